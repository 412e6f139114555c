import jax
import jax.numpy as jnp


def functions(inputs):
    def objective(A, W, H):
        B = W @ H
        return (jnp.log(B) + A / B).sum()

    return objective, jax.grad(objective, (1, 2)), [inputs["A"], inputs["W"], inputs["H"]]

import jax
import jax.numpy as jnp


def functions(inputs):
    def objective(Wq, Wk, Wv, X, Y):
        Q, K, V = (jnp.einsum("sab,ib->sia", W, X) for W in (Wq, Wk, Wv))
        score = jnp.einsum("sia,sja->sij", Q, K) / jnp.sqrt(Q.shape[-1])
        out = jnp.einsum("sij,sja->sia", jax.nn.softmax(score, -1), V)
        return jnp.sum((out - Y) ** 2)

    return objective, jax.value_and_grad(objective, (0, 1, 2)), [inputs[name] for name in ("Wq", "Wk", "Wv", "X", "Y")]

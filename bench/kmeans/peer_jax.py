import jax
import jax.numpy as jnp


def functions(inputs):
    def cost(P, C):
        far = jnp.sum(C * C, 1) - 2.0 * (P @ C.T)
        return jnp.sum(P * P) + jnp.sum(jnp.min(far, 1))

    def newton(P, C):
        return jax.jvp(lambda C: jax.grad(cost, 1)(P, C), (C,), (jnp.ones_like(C),))

    return cost, newton, [inputs["P"], inputs["C"]]

import jax
import jax.numpy as jnp


def functions(inputs):
    n = len(inputs["mass"])

    def energy(x, mass):
        D = x[:, None, :] - x[None, :, :]
        inverse = 1.0 / jnp.sqrt(0.01 + jnp.sum(D * D, -1))
        return -mass @ (inverse * jnp.tri(n, k=-1)) @ mass

    return energy, jax.value_and_grad(energy), [inputs["x"], inputs["mass"]]

import jax
import jax.numpy as jnp


def functions(inputs):
    def one(cam, X):
        r, x = cam[:3], X - cam[3:6]
        t = jnp.sqrt(jnp.sum(r * r))
        u, c, s = r / t, jnp.cos(t), jnp.sin(t)
        y = x * c + jnp.cross(u, x) * s + u * (jnp.dot(u, x) * (1 - c))
        p = y[:2] / y[2]
        r2 = jnp.sum(p * p)
        return p * (1 + cam[9] * r2 + cam[10] * r2 * r2) * cam[6] + cam[7:9]

    objective = lambda cam, X: jax.vmap(lambda x: one(cam, x))(X)
    return objective, jax.jacfwd(objective), [inputs["cam"], inputs["X"]]

import jax
import jax.numpy as jnp
import numpy as np


def functions(inputs):
    if inputs["L"].ndim == 2:
        objective = lambda L, x: jnp.sum(jnp.tril(L) @ x)
    else:
        columns = np.tril_indices(len(inputs["x"]))[1]
        objective = lambda L, x: jnp.sum(L * x[columns])
    return objective, jax.grad(objective, (0, 1)), [inputs["L"], inputs["x"]]

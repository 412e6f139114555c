"""The square of the difference is written out, so that its parts are products of matrices."""

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp


def functions(inputs):
    def objective(alpha, mu, logsd, x):
        precision = jnp.exp(-2 * logsd)
        square = (x * x) @ precision.T - 2 * (x @ (mu * precision).T) + jnp.sum(mu * mu * precision, 1)
        return jnp.sum(logsumexp(alpha - jnp.sum(logsd, 1) - 0.5 * square, 1))

    return objective, jax.value_and_grad(objective, (0, 1, 2)), [inputs[name] for name in ("alpha", "mu", "logsd", "x")]

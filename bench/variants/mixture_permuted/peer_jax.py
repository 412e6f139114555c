import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp


def functions(inputs):
    d, k = inputs["mu"].shape
    n = inputs["x"].shape[1]

    def objective(alpha, mu, logdiag, L, x):
        below = jnp.tril(jnp.ones((d, d)), -1)[:, :, None] * L
        Q = jnp.transpose(below, (2, 0, 1)) + jax.vmap(jnp.diag)(jnp.exp(logdiag).T)
        Qx = (Q.reshape(k * d, d) @ x).reshape(k, d, n) - jnp.einsum("kij,jk->ki", Q, mu)[:, :, None]
        terms = (alpha + jnp.sum(logdiag, 0))[:, None] - 0.5 * jnp.sum(Qx * Qx, 1)
        return jnp.sum(logsumexp(terms, 0)) - n * logsumexp(alpha)

    return objective, jax.value_and_grad(objective, (0, 1, 2, 3)), [inputs[name] for name in ("alpha", "mu", "logdiag", "L", "x")]

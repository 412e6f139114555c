import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp


def functions(inputs):
    (k, d), n = inputs["mu"].shape, len(inputs["x"])

    def objective(alpha, mu, logdiag, L, x):
        Q = jnp.tril(L, -1) + jax.vmap(jnp.diag)(jnp.exp(logdiag))
        Qx = (x @ Q.reshape(k * d, d).T).reshape(n, k, d) - jnp.einsum("kij,kj->ki", Q, mu)[None]
        terms = alpha + jnp.sum(logdiag, 1) - 0.5 * jnp.sum(Qx * Qx, -1)
        return jnp.sum(logsumexp(terms, 1)) - n * logsumexp(alpha)

    return objective, jax.value_and_grad(objective, (0, 1, 2, 3)), [inputs[name] for name in ("alpha", "mu", "logdiag", "L", "x")]

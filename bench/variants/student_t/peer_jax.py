import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp


def functions(inputs):
    (k, d), n = inputs["mu"].shape, len(inputs["x"])
    # The strict lower triangle in the rows of a packed one.
    place, rows, columns = np.array([(i * (i + 1) // 2 + j, i, j) for i in range(d) for j in range(i)], dtype=np.int32).T
    along = np.arange(d)

    def objective(alpha, mu, logdiag, L, nu, x):
        Q = jnp.zeros((k, d, d)).at[:, rows, columns].set(L[:, place]).at[:, along, along].set(jnp.exp(logdiag))
        Qx = (x @ Q.reshape(k * d, d).T).reshape(n, k, d) - jnp.einsum("kij,kj->ki", Q, mu)[None]
        constant = gammaln(0.5 * (nu + d)) - gammaln(0.5 * nu) - 0.5 * d * jnp.log(math.pi * nu)
        terms = alpha + constant + jnp.sum(logdiag, 1) - 0.5 * (nu + d) * jnp.log1p(jnp.sum(Qx * Qx, -1) / nu)
        return jnp.sum(logsumexp(terms, 1)) - n * logsumexp(alpha)

    arguments = [inputs[name] for name in ("alpha", "mu", "logdiag", "L", "nu", "x")]
    return objective, jax.value_and_grad(objective, (0, 1, 2, 3, 4)), arguments

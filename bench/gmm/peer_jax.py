"""The mixture in JAX: Q x - Q mu for all points and components by one matrix product."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from scipy.special import multigammaln


def prior(inputs):
    """The part that has nothing to do with the points."""
    (k, d), gamma, m = inputs["mu"].shape, float(inputs["gamma"]), int(inputs["m"])
    freedom = d + m + 1
    constant = k * (freedom * d * (math.log(gamma) - 0.5 * math.log(2)) - multigammaln(0.5 * freedom, d))
    n = len(inputs["x"])

    def value(diagonal, below, logs):
        squares = jnp.sum(diagonal**2) + jnp.sum(below**2)
        return 0.5 * gamma**2 * squares - m * jnp.sum(logs) - constant - 0.5 * n * d * math.log(2 * math.pi)

    return value


def lower(inputs):
    """Q for each component, from its packed columns."""
    k, d = inputs["mu"].shape
    columns, rows = np.array([(i, j) for i in range(d) for j in range(i + 1, d)], dtype=np.int32).reshape(-1, 2).T
    along = np.arange(d)

    def matrices(icf):
        diagonal = jnp.exp(icf[:, :d])
        return jnp.zeros((k, d, d)).at[:, rows, columns].set(icf[:, d:]).at[:, along, along].set(diagonal), diagonal

    return matrices


def functions(inputs):
    (k, d), n = inputs["mu"].shape, len(inputs["x"])
    rest, matrices = prior(inputs), lower(inputs)

    def objective(alpha, mu, icf, x):
        Q, diagonal = matrices(icf)
        logs = jnp.sum(icf[:, :d], 1)
        Qx = (x @ Q.reshape(k * d, d).T).reshape(n, k, d) - jnp.einsum("kij,kj->ki", Q, mu)[None]
        terms = alpha + logs - 0.5 * jnp.sum(Qx * Qx, -1)
        return jnp.sum(logsumexp(terms, 1)) - n * logsumexp(alpha) + rest(diagonal, icf[:, d:], logs)

    return objective, jax.value_and_grad(objective, (0, 1, 2)), [inputs[name] for name in ("alpha", "mu", "icf", "x")]

"""The mixture in JAX, one component after another: little is held at a time."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp

sys.path.insert(0, str(Path(__file__).parent))
from peer_jax import lower, prior


def functions(inputs):
    d, n = inputs["mu"].shape[1], len(inputs["x"])
    rest, matrices = prior(inputs), lower(inputs)

    def objective(alpha, mu, icf, x):
        Q, diagonal = matrices(icf)
        logs = jnp.sum(icf[:, :d], 1)
        distances = jax.lax.map(lambda c: jnp.sum(((x - c[1]) @ c[0].T) ** 2, 1), (Q, mu))
        terms = (alpha + logs)[:, None] - 0.5 * distances
        return jnp.sum(logsumexp(terms, 0)) - n * logsumexp(alpha) + rest(diagonal, icf[:, d:], logs)

    return objective, jax.value_and_grad(objective, (0, 1, 2)), [inputs[name] for name in ("alpha", "mu", "icf", "x")]

"""A vector over the observations for each number of a camera, two reverse passes for the two rows."""

import jax
import jax.numpy as jnp

i32 = jnp.int32


def residual(a, b, c, t1, t2, t3, f, k1, k2, x, y, z):
    t = jnp.sqrt(a * a + b * b + c * c)
    s, v = jnp.sin(t) / t, (1 - jnp.cos(t)) / t**2
    u1, u2, u3 = b * z - c * y, c * x - a * z, a * y - b * x
    X = x + s * u1 + v * (b * u3 - c * u2) + t1
    Y = y + s * u2 + v * (c * u1 - a * u3) + t2
    Z = z + s * u3 + v * (a * u2 - b * u1) + t3
    p, q = -X / Z, -Y / Z
    r = p * p + q * q
    e = f * (1 + r * (k1 + r * k2))
    return e * p, e * q


def functions(inputs):
    n, p = len(inputs["cams"]), len(inputs["feats"])

    def gathered(cams, points, obs):
        C, P = cams[obs[:, 0]], points[obs[:, 1]]
        return [C[:, k] for k in range(9)] + [P[:, k] for k in range(3)]

    def objective(cams, points, obs, feats):
        return jnp.stack(residual(*gathered(cams, points, obs)), 1) - feats

    def jacobian(cams, points, obs, feats):
        one, zero = jnp.ones(p), jnp.zeros(p)
        _, back = jax.vjp(residual, *gathered(cams, points, obs))
        values = jnp.stack([jnp.stack(back(seed), -1) for seed in ((one, zero), (zero, one))], 1)
        columns = [obs[:, 0] * 9 + k for k in range(9)] + [9 * n + obs[:, 1] * 3 + k for k in range(3)]
        columns = jnp.broadcast_to(jnp.stack(columns, -1)[:, None], values.shape)
        return jnp.arange(2 * p + 1, dtype=i32) * 12, columns.reshape(-1), values.reshape(-1)

    arguments = [inputs["cams"], inputs["points"], inputs["obs"].astype("int32"), inputs["feats"]]
    return objective, jacobian, arguments

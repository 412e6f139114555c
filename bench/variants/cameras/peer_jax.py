"""A vector over the observations for each parameter, two reverse passes for the two rows; columns in the order of the fields."""

import jax
import jax.numpy as jnp

i32 = jnp.int32
FIELDS = {"turn": 4, "shift": 3, "focal": 2, "centre": 2, "radial": 3, "tangential": 2}


def residual(a, b, c, d, t1, t2, t3, f1, f2, c1, c2, k1, k2, k3, p1, p2, x1, x2, x3):
    s = 2 / (a * a + b * b + c * c + d * d)
    X = t1 + (1 - s * (c * c + d * d)) * x1 + s * (b * c - a * d) * x2 + s * (b * d + a * c) * x3
    Y = t2 + s * (b * c + a * d) * x1 + (1 - s * (b * b + d * d)) * x2 + s * (c * d - a * b) * x3
    Z = t3 + s * (b * d - a * c) * x1 + s * (c * d + a * b) * x2 + (1 - s * (b * b + c * c)) * x3
    u, v = X / Z, Y / Z
    r = u * u + v * v
    e = 1 + r * (k1 + r * (k2 + r * k3))
    return (
        f1 * (e * u + 2 * p1 * u * v + p2 * (r + 2 * u * u)) + c1,
        f2 * (e * v + p1 * (r + 2 * v * v) + 2 * p2 * u * v) + c2,
    )


def functions(inputs):
    n, m, p = len(inputs["cams.turn"]), len(inputs["points"]), len(inputs["feats"])
    # Where the fields of a camera have their columns: field by field, as the Jacobian has them.
    offsets, start = [], 0
    for field, size in FIELDS.items():
        offsets += [(start, size, k) for k in range(size)]
        start += n * size

    def gathered(cams, points, obs):
        C, P = [c[obs[:, 0]] for c in cams], points[obs[:, 1]]
        return [c[:, k] for c in C for k in range(c.shape[1])] + [P[:, k] for k in range(3)]

    def objective(cams, points, obs, feats):
        return jnp.stack(residual(*gathered(cams, points, obs)), 1) - feats

    def jacobian(cams, points, obs, feats):
        arguments = gathered(cams, points, obs)
        one, zero = jnp.ones(p), jnp.zeros(p)
        _, back = jax.vjp(residual, *arguments)
        # The first residual has nothing to do with the second focal length and centre, nor the second with the first.
        used = [[k for k in range(19) if k not in (8 - row, 10 - row)] for row in (0, 1)]
        parts = [back((one, zero)), back((zero, one))]
        values = jnp.stack([jnp.stack([part[k] for k in ks], -1) for part, ks in zip(parts, used)], 1)
        columns = [first + obs[:, 0] * size + k for first, size, k in offsets] + [start + obs[:, 1] * 3 + k for k in range(3)]
        columns = jnp.stack([jnp.stack([columns[k] for k in ks], -1) for ks in used], 1)
        return jnp.arange(2 * p + 1, dtype=i32) * 17, columns.reshape(-1), values.reshape(-1)

    cams = [inputs[f"cams.{field}"] for field in FIELDS]
    wrapped = lambda f: lambda *a: f(a[: len(cams)], *a[len(cams) :])
    arguments = [*cams, inputs["points"], inputs["obs"].astype("int32"), inputs["feats"]]
    return wrapped(objective), wrapped(jacobian), arguments

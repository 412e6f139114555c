"""Bundle adjustment in JAX: each camera parameter a vector over the observations, two reverse passes for the two rows."""

import jax
import jax.numpy as jnp

i32 = jnp.int32


def residual(r1, r2, r3, c1, c2, c3, f, u0, v0, k1, k2, x1, x2, x3, w, fx, fy):
    a, b, c = x1 - c1, x2 - c2, x3 - c3
    t = jnp.sqrt(r1 * r1 + r2 * r2 + r3 * r3)
    cosine, sine = jnp.cos(t), jnp.sin(t)
    w1, w2, w3 = r1 / t, r2 / t, r3 / t
    along = (w1 * a + w2 * b + w3 * c) * (1 - cosine)
    X = a * cosine + (w2 * c - w3 * b) * sine + w1 * along
    Y = b * cosine + (w3 * a - w1 * c) * sine + w2 * along
    Z = c * cosine + (w1 * b - w2 * a) * sine + w3 * along
    px, py = X / Z, Y / Z
    r2 = px * px + py * py
    scale = (1 + k1 * r2 + k2 * r2 * r2) * f
    return w * (px * scale + u0 - fx), w * (py * scale + v0 - fy)


def functions(inputs):
    n, m, p = len(inputs["cams"]), len(inputs["points"]), len(inputs["w"])

    def gathered(cams, points, w, obs, feats):
        C, P = cams[obs[:, 0]], points[obs[:, 1]]
        return [C[:, k] for k in range(11)] + [P[:, k] for k in range(3)] + [w], feats[:, 0], feats[:, 1]

    def objective(cams, points, w, obs, feats):
        arguments, fx, fy = gathered(cams, points, w, obs, feats)
        return jnp.stack(residual(*arguments, fx, fy), 1), 1 - w * w

    def jacobian(cams, points, w, obs, feats):
        arguments, fx, fy = gathered(cams, points, w, obs, feats)
        one, zero = jnp.ones(p), jnp.zeros(p)
        _, back = jax.vjp(lambda *a: residual(*a, fx, fy), *arguments)
        rows = jnp.stack([jnp.stack(back((one, zero)), -1), jnp.stack(back((zero, one)), -1)], 1)
        values = jnp.concatenate([rows.reshape(-1), -2 * w])
        own = 11 * n + 3 * m + jnp.arange(p, dtype=i32)
        parts = [obs[:, :1] * 11 + jnp.arange(11, dtype=i32), 11 * n + obs[:, 1:] * 3 + jnp.arange(3, dtype=i32), own[:, None]]
        columns = jnp.concatenate([jnp.broadcast_to(jnp.concatenate(parts, 1)[:, None], (p, 2, 15)).reshape(-1), own])
        pointers = jnp.concatenate([jnp.arange(2 * p + 1, dtype=i32) * 15, 30 * p + 1 + jnp.arange(p, dtype=i32)])
        return pointers, columns, values

    arrays = [inputs[name] for name in ("cams", "points", "w", "obs", "feats")]
    arrays[3] = arrays[3].astype("int32")
    return objective, jacobian, arrays

import jax
import jax.numpy as jnp


def product(a, b):
    a0, a1, a2, a3 = (a[..., k] for k in range(4))
    b0, b1, b2, b3 = (b[..., k] for k in range(4))
    parts = [
        a0 * b0 - a1 * b1 - a2 * b2 - a3 * b3,
        a0 * b1 + a1 * b0 + a2 * b3 - a3 * b2,
        a0 * b2 - a1 * b3 + a2 * b0 + a3 * b1,
        a0 * b3 + a1 * b2 - a2 * b1 + a3 * b0,
    ]
    return jnp.stack(parts, -1)


def functions(inputs):
    weight, rest, points = (jnp.asarray(a) for a in (inputs["weight"][inputs["corr"]], inputs["rest"][inputs["corr"]], inputs["points"]))
    pure = lambda x: jnp.concatenate([jnp.zeros_like(x[..., :1]), x], -1)

    def residuals(bones):
        t = jnp.sqrt(1e-12 + jnp.sum(bones[:, :3] ** 2, 1, keepdims=True))
        r = jnp.concatenate([jnp.cos(0.5 * t), jnp.sin(0.5 * t) / t * bones[:, :3]], 1)
        d = 0.5 * product(pure(bones[:, 3:]), r)
        q, e = weight @ r, weight @ d
        norm = jnp.sqrt(jnp.sum(q * q, 1, keepdims=True))
        u, w = q / norm, e / norm
        back = u * jnp.array([1.0, -1.0, -1.0, -1.0])
        turned, moved = product(product(u, pure(rest)), back), product(w, back)
        return points - (turned + 2 * moved)[:, 1:]

    return residuals, jax.jacfwd(residuals), [inputs["bones"]]

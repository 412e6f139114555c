import jax
import jax.numpy as jnp


def rotation(v):
    t2 = 1e-12 + jnp.sum(v * v)
    t = jnp.sqrt(t2)
    x, y, z = v
    o = jnp.zeros_like(x)
    K = jnp.array([[o, -z, y], [z, o, -x], [-y, x, o]])
    return jnp.eye(3) * jnp.cos(t) + jnp.sin(t) / t * K + (1 - jnp.cos(t)) / t2 * jnp.outer(v, v)


def functions(inputs):
    parent = inputs["parent"]

    def objective(pose, shape, mean, shapes, joints, weight, points):
        rest = mean + shapes @ shape
        joint = joints @ rest
        R = jax.vmap(rotation)(pose)
        turn, at = [], []
        for k, q in enumerate(parent):
            turn.append(R[k] if q < 0 else turn[q] @ R[k])
            at.append(joint[k] if q < 0 else at[q] + turn[q] @ (joint[k] - joint[q]))
        turn, at = jnp.stack(turn), jnp.stack(at)
        shift = at - jnp.einsum("kab,kb->ka", turn, joint)
        blended = (weight @ turn.reshape(len(parent), 9)).reshape(-1, 3, 3)
        x = weight @ shift + jnp.einsum("pab,pb->pa", blended, rest)
        return jnp.sum((x - points) ** 2)

    arguments = [inputs[name] for name in ("pose", "shape", "mean", "shapes", "joints", "weight", "points")]
    return objective, jax.value_and_grad(objective, (0, 1)), arguments

"""A body of blended shapes, skinned by a chain of joints and fitted to points: the squared error and its gradient by pose and
shape."""

import made
import numpy as np

PROGRAM = "blend_shapes.iv"
OBJECTIVE = ["loss"]
DERIVATIVE = ["loss", "--derivative", "value-and-grad", "--wrt", "pose,shape"]
SHAPES = {"v500_j12": (500, 12, 8), "v6890_j24": (6890, 24, 10)}
INSTANCES = list(SHAPES)
QUICK = ["v500_j12"]


def inputs(instance, folder):
    v, j, s = SHAPES[instance]
    arrays = made.uniform("blend_shapes", pose=(j, 3), shape=s, mean=(v, 3), shapes=(v, 3, s), joints=(j, v), weight=(v, j), points=(v, 3))
    arrays["joints"] = np.abs(arrays["joints"]) / np.abs(arrays["joints"]).sum(1, keepdims=True)
    arrays["weight"] = arrays["weight"] ** 2 / (arrays["weight"] ** 2).sum(1, keepdims=True)
    return {**arrays, "parent": np.array([(k - 1) // 2 if k else -1 for k in range(j)])}


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

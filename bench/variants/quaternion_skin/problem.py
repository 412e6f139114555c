"""Skinning by dual quaternions: residuals and their dense Jacobian by the bones."""

import made
import numpy as np

PROGRAM = "quaternion_skin.iv"
OBJECTIVE = ["residuals"]
DERIVATIVE = ["residuals", "--derivative", "jacobian", "--wrt", "bones"]
SHAPES = {"n100_b5": (544, 5, 100), "n1000_b16": (5000, 16, 1000)}
INSTANCES = list(SHAPES)
QUICK = ["n100_b5"]


def inputs(instance, folder):
    v, b, n = SHAPES[instance]
    arrays = made.uniform("quaternion_skin", bones=(b, 6), weight=(v, b), rest=(v, 3), points=(n, 3))
    arrays["weight"] = arrays["weight"] ** 2 / (arrays["weight"] ** 2).sum(1, keepdims=True)
    return {**arrays, "corr": np.arange(n) * 37 % v}

"""Residuals of bundle adjustment, and their Jacobian by cameras, points and weights in compressed rows."""

import numpy as np
import published

PROGRAM = "ba.iv"
OBJECTIVE = ["residuals"]
DERIVATIVE = ["residuals", "--derivative", "jacobian", "--wrt", "cams,points,w", "--format", "csr", "--stack"]
SHAPES = {"ba1": (49, 7776, 31843), "ba5": (257, 65132, 225911), "ba10": (1197, 126327, 563734)}
INSTANCES = list(SHAPES)
QUICK = ["ba1"]


def inputs(instance, folder):
    return published.ba(folder, instance, *SHAPES[instance])


def c_sizes(inputs):
    return [len(inputs["cams"]), len(inputs["points"]), len(inputs["w"])]


def c_outputs(inputs):
    p = len(inputs["w"])
    return [(p, 2), (p,)], [np.empty(3 * p + 1, np.int32), np.empty(31 * p, np.int32), np.empty(31 * p)]


def entries(leaves):
    """Row pointers, columns and values, by their lengths and types; a shape is left out."""
    return [leaf for leaf in leaves if leaf.size > 2]

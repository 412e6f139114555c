"""Bundle adjustment with cameras of nine numbers, rotated by a polynomial in the vector product: residuals and their sparse
Jacobian by cameras and points."""

import made
import numpy as np

PROGRAM = "snavely_cameras.iv"
OBJECTIVE = ["residuals"]
DERIVATIVE = ["residuals", "--derivative", "jacobian", "--wrt", "cams,points", "--format", "csr", "--stack"]
SHAPES = {"p2000": (20, 500, 2000), "p100000": (100, 20000, 100000)}
INSTANCES = list(SHAPES)
QUICK = ["p2000"]


def inputs(instance, folder):
    n, m, p = SHAPES[instance]
    arrays = made.uniform("snavely_cameras", cams=(n, 9), points=(m, 3), feats=(p, 2))
    arrays["cams"][:, 5] += 6
    arrays["cams"][:, 6] += 3
    arrays["cams"][:, 7:] *= 0.1
    return {**arrays, "obs": np.stack([np.arange(p) % n, np.arange(p) * 7 % m], 1)}


def entries(leaves):
    """Row pointers, columns and values, by their lengths and types; a shape is left out."""
    return [leaf for leaf in leaves if leaf.size > 2]

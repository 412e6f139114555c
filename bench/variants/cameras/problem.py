"""Bundle adjustment with cameras that are records of quaternions, translations and distortions: residuals and their sparse
Jacobian by cameras and points."""

import made
import numpy as np

PROGRAM = "cameras.iv"
OBJECTIVE = ["residuals"]
DERIVATIVE = ["residuals", "--derivative", "jacobian", "--wrt", "cams,points", "--format", "csr", "--stack"]
SHAPES = {"p2000": (20, 500, 2000), "p100000": (100, 20000, 100000)}
INSTANCES = list(SHAPES)
QUICK = ["p2000"]
FIELDS = {"turn": 4, "shift": 3, "focal": 2, "centre": 2, "radial": 3, "tangential": 2}


def inputs(instance, folder):
    n, m, p = SHAPES[instance]
    arrays = made.uniform("cameras", **{f"cams.{field}": (n, size) for field, size in FIELDS.items()}, points=(m, 3), feats=(p, 2))
    arrays["cams.shift"][:, 2] += 6
    arrays["cams.focal"] += 3
    arrays["cams.radial"] *= 0.1
    arrays["cams.tangential"] *= 0.1
    return {**arrays, "obs": np.stack([np.arange(p) % n, np.arange(p) * 7 % m], 1)}


def entries(leaves):
    """Row pointers, columns and values, by their lengths and types; a shape is left out."""
    return [leaf for leaf in leaves if leaf.size > 2]

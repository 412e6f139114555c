"""Points projected by one camera, and the dense Jacobian by its eleven parameters."""

import made
import numpy as np

PROGRAM = "ba_projection.iv"
OBJECTIVE = ["project"]
DERIVATIVE = ["project", "--derivative", "jacobian", "--wrt", "cam"]
SIZES = {"n1e3": 10**3, "n1e5": 10**5, "n1e6": 10**6}
INSTANCES = list(SIZES)
QUICK = ["n1e5"]


def inputs(instance, folder):
    X = made.uniform("points", X=(SIZES[instance], 3))["X"] + [0.0, 0.0, 5.0]
    return {"cam": np.array([0.1, -0.2, 0.3, 0.5, -0.4, 0.2, 400.0, 3.0, -2.0, 0.05, 0.01]), "X": X}


def c_sizes(inputs):
    return [len(inputs["X"])]


def c_outputs(inputs):
    return [(len(inputs["X"]), 2)], [(len(inputs["X"]), 2, 11)]

"""The energy of bodies that attract one another and its gradient by their places: forces."""

import made

PROGRAM = "nbody.iv"
OBJECTIVE = ["energy"]
DERIVATIVE = ["energy", "--derivative", "value-and-grad", "--wrt", "x"]
SIZES = {"n256": 256, "n1024": 1024, "n4096": 4096}
INSTANCES = list(SIZES)
QUICK = ["n256"]


def inputs(instance, folder):
    n = SIZES[instance]
    return made.uniform("nbody", x=(n, 3), mass=n)


def c_sizes(inputs):
    return [len(inputs["mass"])]


def c_outputs(inputs):
    return [(1,)], [(1,), inputs["x"].shape]


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

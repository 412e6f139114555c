"""The sum of two vectors and its dense Jacobian by the first: the identity."""

import made

PROGRAM = "add.iv"
OBJECTIVE = ["add"]
DERIVATIVE = ["add", "--derivative", "jacobian", "--wrt", "x"]
SIZES = {"n256": 256, "n1024": 1024, "n4096": 4096}
INSTANCES = list(SIZES)
QUICK = ["n1024"]


def inputs(instance, folder):
    n = SIZES[instance]
    return made.uniform("add", x=n, y=n)


def c_sizes(inputs):
    return [len(inputs["x"])]


def c_outputs(inputs):
    return [inputs["x"].shape], [(len(inputs["x"]),) * 2]

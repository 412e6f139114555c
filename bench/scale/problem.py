"""A vector times a number, and its Jacobian by the number: a copy of the vector."""

import made

PROGRAM = "scale.iv"
OBJECTIVE = ["scale"]
DERIVATIVE = ["scale", "--derivative", "jacobian", "--wrt", "s"]
SIZES = {"n1e4": 10**4, "n1e6": 10**6, "n1e7": 10**7}
INSTANCES = list(SIZES)
QUICK = ["n1e6"]


def inputs(instance, folder):
    return made.uniform("scale", x=SIZES[instance], s=())


def c_sizes(inputs):
    return [len(inputs["x"])]


def c_outputs(inputs):
    return [inputs["x"].shape], [inputs["x"].shape]

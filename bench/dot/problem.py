"""The product of two vectors and its gradient, which is two copies: bound by memory."""

import made

PROGRAM = "dot.iv"
OBJECTIVE = ["dot"]
DERIVATIVE = ["dot", "--derivative", "grad"]
SIZES = {"n1e4": 10**4, "n1e6": 10**6, "n1e7": 10**7}
INSTANCES = list(SIZES)
QUICK = ["n1e6"]


def inputs(instance, folder):
    n = SIZES[instance]
    return made.uniform("dot", x=n, y=n)


def c_sizes(inputs):
    return [len(inputs["x"])]


def c_outputs(inputs):
    return [(1,)], [inputs["x"].shape, inputs["y"].shape]

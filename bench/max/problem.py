"""The largest element of a vector and its gradient: one at a place, zero elsewhere."""

import made

PROGRAM = "max.iv"
OBJECTIVE = ["largest"]
DERIVATIVE = ["largest", "--derivative", "grad"]
SIZES = {"n1e4": 10**4, "n1e6": 10**6, "n1e7": 10**7}
INSTANCES = list(SIZES)
QUICK = ["n1e6"]


def inputs(instance, folder):
    return made.uniform("max", x=SIZES[instance])


def c_sizes(inputs):
    return [len(inputs["x"])]


def c_outputs(inputs):
    return [(1,)], [inputs["x"].shape]

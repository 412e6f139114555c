"""The sum of squares of a matrix product and its gradient: three matrix products."""

import made

PROGRAM = "matmul.iv"
OBJECTIVE = ["matmul"]
DERIVATIVE = ["matmul", "--derivative", "grad"]
SIZES = {"n64": 64, "n256": 256, "n512": 512, "n1024": 1024}
INSTANCES = list(SIZES)
QUICK = ["n256"]


def inputs(instance, folder):
    n = SIZES[instance]
    return made.uniform("matmul", A=(n, n), B=(n, n))


def c_sizes(inputs):
    return [*inputs["A"].shape, inputs["B"].shape[1]]


def c_outputs(inputs):
    return [(1,)], [inputs["A"].shape, inputs["B"].shape]

"""The loss of a factorisation into non-negative matrices and its gradient by both factors."""

import made

PROGRAM = "nnmf.iv"
OBJECTIVE = ["loss"]
DERIVATIVE = ["loss", "--derivative", "grad", "--wrt", "W,H"]
SIZES = {"n100_k10": (100, 10), "n500_k20": (500, 20), "n1000_k50": (1000, 50)}
INSTANCES = list(SIZES)
QUICK = ["n500_k20"]


def inputs(instance, folder):
    n, k = SIZES[instance]
    return made.uniform("nnmf", 0.1, 1.0, A=(n, n), W=(n, k), H=(k, n))


def c_sizes(inputs):
    return [*inputs["W"].shape, inputs["H"].shape[1]]


def c_outputs(inputs):
    return [(1,)], [inputs["W"].shape, inputs["H"].shape]

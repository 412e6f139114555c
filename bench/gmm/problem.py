"""The log-posterior of a Gaussian mixture, and its gradient by weights, means and precisions."""

import published

PROGRAM = "gmm.iv"
OBJECTIVE = ["gmm"]
DERIVATIVE = ["gmm", "--derivative", "value-and-grad", "--wrt", "alpha,mu,icf"]
SHAPES = {
    "1k_d2_K10": ("1k", 1000, 2, 10),
    "1k_d10_K25": ("1k", 1000, 10, 25),
    "1k_d32_K50": ("1k", 1000, 32, 50),
    "1k_d64_K200": ("1k", 1000, 64, 200),
    "10k_d20_K50": ("10k", 10000, 20, 50),
}
INSTANCES = list(SHAPES)
QUICK = ["1k_d2_K10", "1k_d10_K25"]


def inputs(instance, folder):
    return published.gmm(folder, *SHAPES[instance])


def c_sizes(inputs):
    return [*inputs["x"].shape, len(inputs["alpha"])]


def c_outputs(inputs):
    return [(1,)], [(1,), inputs["alpha"].shape, inputs["mu"].shape, inputs["icf"].shape]


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

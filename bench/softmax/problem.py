"""Softmax regression with cross-entropy, and its gradient by weights and bias."""

import made
import numpy as np

PROGRAM = "softmax.iv"
OBJECTIVE = ["loss"]
DERIVATIVE = ["loss", "--derivative", "value-and-grad", "--wrt", "W,b"]
SIZES = {"n1000_d64_c10": (1000, 64, 10), "n10000_d100_c100": (10000, 100, 100)}
INSTANCES = list(SIZES)
QUICK = ["n1000_d64_c10"]


def inputs(instance, folder):
    n, d, c = SIZES[instance]
    return {**made.uniform("softmax", W=(c, d), b=c, X=(n, d)), "class": np.arange(n) * 7 % c}


def c_sizes(inputs):
    return [*inputs["X"].shape, len(inputs["b"])]


def c_outputs(inputs):
    return [(1,)], [(1,), inputs["W"].shape, inputs["b"].shape]


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

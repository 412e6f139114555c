"""A network of two layers on a batch of 64 pictures of 784 numbers: its loss and the gradient by all weights."""

import made
import numpy as np

PROGRAM = "mlp.iv"
OBJECTIVE = ["loss"]
DERIVATIVE = ["loss", "--derivative", "value-and-grad", "--wrt", "W1,b1,W2,b2"]
SIZES = {"h256": 256, "h512": 512, "h1024": 1024}
INSTANCES = list(SIZES)
QUICK = ["h256"]


def inputs(instance, folder):
    h, d, c, n = SIZES[instance], 784, 10, 64
    arrays = made.uniform("mlp", W1=(h, d), b1=h, W2=(c, h), b2=c, X=(n, d))
    arrays["W1"] *= 0.05
    return {**arrays, "class": np.arange(n) * 7 % c}


def c_sizes(inputs):
    return [*inputs["X"].shape, *inputs["W2"].shape]


def c_outputs(inputs):
    return [(1,)], [(1,), *(inputs[name].shape for name in ("W1", "b1", "W2", "b2"))]


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

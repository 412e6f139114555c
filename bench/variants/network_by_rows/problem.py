"""A network written for one example: the mean of its losses over a batch, and the gradient by all weights."""

import made
import numpy as np

PROGRAM = "network_by_rows.iv"
OBJECTIVE = ["loss"]
DERIVATIVE = ["loss", "--derivative", "value-and-grad", "--wrt", "W1,b1,W2,b2,W3,b3"]
SHAPES = {"n200_h50": (200, 50, 50, 10), "n256_h256": (256, 784, 256, 10)}
INSTANCES = list(SHAPES)
QUICK = ["n200_h50"]


def inputs(instance, folder):
    n, d, h, c = SHAPES[instance]
    arrays = made.uniform("network_by_rows", W1=(h, d), b1=h, W2=(h, h), b2=h, W3=(c, h), b3=c, X=(n, d))
    for name in ("W1", "W2", "W3"):
        arrays[name] *= 0.1
    return {**arrays, "class": np.arange(n) * 7 % c}


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

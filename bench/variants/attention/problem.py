"""Heads of attention: the squared error and its gradient by the weights."""

import made

PROGRAM = "attention.iv"
OBJECTIVE = ["loss"]
DERIVATIVE = ["loss", "--derivative", "value-and-grad", "--wrt", "Wq,Wk,Wv"]
SHAPES = {"n64_d16": (2, 64, 16, 64), "n256_d32": (4, 256, 32, 128)}
INSTANCES = list(SHAPES)
QUICK = ["n64_d16"]


def inputs(instance, folder):
    h, n, d, f = SHAPES[instance]
    return made.uniform("attention", Wq=(h, d, f), Wk=(h, d, f), Wv=(h, d, f), X=(n, f), Y=(h, n, d))


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

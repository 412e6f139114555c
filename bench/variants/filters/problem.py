"""The loss of a fitted filter, of a signal or of a picture, and its gradient by both."""

import made

PROGRAM = "filters.iv"
SHAPES = {"signal_n100000_k7": ((100000,), (7,)), "picture_n512_k5": ((512, 512), (5, 5)), "picture_n64_k3": ((64, 64), (3, 3))}
INSTANCES = list(SHAPES)
QUICK = ["picture_n64_k3"]


def OBJECTIVE(instance):
    return [instance.split("_")[0]]


def DERIVATIVE(instance):
    return [*OBJECTIVE(instance), "--derivative", "value-and-grad", "--wrt", "x,w"]


def inputs(instance, folder):
    x, w = SHAPES[instance]
    return made.uniform("filters", x=x, w=w, wanted=tuple(n - k + 1 for n, k in zip(x, w)))


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

"""The loss of a stack of diagonal LSTM layers that predict a sequence, and its gradient by all weights."""

import published

PROGRAM = "lstm.iv"
OBJECTIVE = ["loss"]
DERIVATIVE = ["loss", "--derivative", "value-and-grad", "--wrt", "main,extra"]
SHAPES = {"l2_c1024": (2, 1024), "l4_c4096": (4, 4096)}
INSTANCES = list(SHAPES)
QUICK = ["l2_c1024"]


def inputs(instance, folder):
    return published.lstm(folder, *SHAPES[instance])


def c_sizes(inputs):
    return [len(inputs["main"]), *inputs["seq"].shape]


def c_outputs(inputs):
    return [(1,)], [(1,), inputs["main"].shape, inputs["extra"].shape]


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

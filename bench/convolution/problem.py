"""A convolutional layer and its gradient by picture, filters and bias."""

import made

PROGRAM = "convolution.iv"
OBJECTIVE = ["loss"]
DERIVATIVE = ["loss", "--derivative", "value-and-grad"]
SIZES = {"c8_n32": (8, 32), "c16_n64": (16, 64), "c32_n128": (32, 128)}
INSTANCES = list(SIZES)
QUICK = ["c8_n32"]


def inputs(instance, folder):
    c, n = SIZES[instance]
    return made.uniform("convolution", x=(c, n, n), filter=(c, c, 3, 3), bias=c)


def c_sizes(inputs):
    return [*inputs["x"].shape, *inputs["filter"].shape]


def c_outputs(inputs):
    return [(1,)], [(1,), inputs["x"].shape, inputs["filter"].shape, inputs["bias"].shape]


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

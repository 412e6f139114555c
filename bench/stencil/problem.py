"""Steps of a five-point stencil in a plate, and the gradient of their misfit by the first state and the rate."""

import made
import numpy as np

PROGRAM = "stencil.iv"
OBJECTIVE = ["misfit"]
DERIVATIVE = ["misfit", "--derivative", "value-and-grad", "--wrt", "u,rate"]
SIZES = {"n64_t50": (64, 50), "n256_t100": (256, 100), "n1024_t20": (1024, 20)}
INSTANCES = list(SIZES)
QUICK = ["n64_t50"]


def inputs(instance, folder):
    n, steps = SIZES[instance]
    return {**made.uniform("stencil", u=(n, n), seen=(n, n)), "rate": np.float64(0.2), "steps": np.int64(steps)}


C_INPUTS = ["u", "rate", "seen"]


def c_sizes(inputs):
    return [*inputs["u"].shape, int(inputs["steps"])]


def c_outputs(inputs):
    return [(1,)], [(1,), inputs["u"].shape, (1,)]


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

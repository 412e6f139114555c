"""Residuals of hand tracking and their Jacobian: by the 26 angles, and where points lie in triangles by each point's own
two coordinates there, too."""

import published

PROGRAM = "hand.iv"
FILES = {
    "simple_small": ("hand1_t26_c100", 544, 100),
    "simple_big": ("hand6_t26_c1600", 10000, 1600),
    "complicated_small": ("hand1_t26_c100", 544, 100),
    "complicated_big": ("hand6_t26_c1600", 10000, 1600),
}
INSTANCES = list(FILES)
QUICK = ["simple_small", "complicated_small"]


def is_complicated(instance):
    return instance.startswith("complicated")


def OBJECTIVE(instance):
    return ["triangle_errors"] if is_complicated(instance) else ["errors"]


def DERIVATIVE(instance):
    return ["triangle_jacobian"] if is_complicated(instance) else ["errors", "--derivative", "jacobian", "--wrt", "theta"]


def inputs(instance, folder):
    return published.hand(folder, instance, *FILES[instance])


def c_sizes(inputs):
    return [len(inputs["points"]), len(inputs["rest"]), len(inputs["parent"]), int("us" in inputs)]


C_INPUTS = ["theta", "parent", "base", "inverse", "rest", "weight", "corr", "points", "us", "triangles"]


def c_outputs(inputs):
    columns = 28 if "us" in inputs else 26
    return [inputs["points"].shape], [(len(inputs["points"]), 3, columns)]

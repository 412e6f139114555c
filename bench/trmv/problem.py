"""The sum of a triangular matrix times a vector and its gradient by both: in a square, and packed."""

import made

PROGRAM = "trmv.iv"
SIZES = {f"{form}_{n}": n for form in ("full", "packed") for n in (1024, 2048, 4096)}
INSTANCES = list(SIZES)
QUICK = ["full_1024", "packed_1024"]


def OBJECTIVE(instance):
    return [instance.split("_")[0]]


def DERIVATIVE(instance):
    return [*OBJECTIVE(instance), "--derivative", "grad"]


def inputs(instance, folder):
    n = SIZES[instance]
    return made.uniform("trmv", x=n, L=(n, n) if instance.startswith("full") else n * (n + 1) // 2)


C_INPUTS = ["L", "x"]


def c_sizes(inputs):
    return [len(inputs["x"]), inputs["L"].ndim]


def c_outputs(inputs):
    return [(1,)], [inputs["L"].shape, inputs["x"].shape]

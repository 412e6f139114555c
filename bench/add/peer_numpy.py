import numpy as np


def functions(inputs):
    x, y = inputs["x"], inputs["y"]
    return lambda: x + y, lambda: np.eye(len(x))

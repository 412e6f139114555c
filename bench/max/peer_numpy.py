import numpy as np


def functions(inputs):
    x = inputs["x"]

    def gradient():
        g = np.zeros_like(x)
        g[x.argmax()] = 1.0
        return g

    return x.max, gradient

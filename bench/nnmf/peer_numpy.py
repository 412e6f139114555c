"""By hand, with the matrix products of BLAS."""

import numpy as np


def functions(inputs):
    A, W, H = inputs["A"], inputs["W"], inputs["H"]

    def objective():
        B = W @ H
        return (np.log(B) + A / B).sum()

    def gradient():
        B = W @ H
        G = (1.0 - A / B) / B
        return G @ H.T, W.T @ G

    return objective, gradient

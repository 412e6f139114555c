"""By hand, with the matrix products of BLAS."""

import numpy as np


def functions(inputs):
    W, b, X, label = (inputs[name] for name in ("W", "b", "X", "class"))
    n, own = len(X), np.arange(len(X))

    def forward():
        score = X @ W.T
        score += b
        mine = score[own, label]
        top = score.max(1)
        score -= top[:, None]
        np.exp(score, out=score)
        total = score.sum(1)
        return (np.log(total) + top - mine).sum() / n, score, total

    def gradient():
        value, shares, total = forward()
        shares /= total[:, None] * n
        shares[own, label] -= 1.0 / n
        return value, shares.T @ X, shares.sum(0)

    return lambda: forward()[0], gradient

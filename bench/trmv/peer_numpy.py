"""By hand. There is no sum over a packed triangle in NumPy, so its rows are found by index."""

import numpy as np


def functions(inputs):
    L, x = inputs["L"], inputs["x"]
    if L.ndim == 2:
        return lambda: (np.tril(L) @ x).sum(), lambda: (np.tril(np.broadcast_to(x, L.shape)), np.tril(L).sum(0))
    columns = np.tril_indices(len(x))[1]
    return lambda: L @ x[columns], lambda: (x[columns], np.bincount(columns, L))

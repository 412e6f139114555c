"""By hand: all pairs at once."""

import numpy as np


def functions(inputs):
    x, mass = inputs["x"], inputs["mass"]
    below = np.tri(len(x), k=-1)

    def pairs():
        D = x[:, None, :] - x[None, :, :]
        return D, 1.0 / np.sqrt(0.01 + np.einsum("ija,ija->ij", D, D))

    def energy():
        _, inverse = pairs()
        return -mass @ (inverse * below) @ mass

    def forces():
        D, inverse = pairs()
        pull = inverse**3 * mass
        return -mass @ (inverse * below) @ mass, mass[:, None] * np.einsum("ij,ija->ia", pull, D)

    return energy, forces

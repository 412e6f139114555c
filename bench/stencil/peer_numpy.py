"""By hand: all states are kept, and the way back is the stencil transposed."""

import numpy as np


def functions(inputs):
    u0, seen, rate, steps = inputs["u"], inputs["seen"], float(inputs["rate"]), int(inputs["steps"])

    def change(u):
        return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]

    def states():
        all = [u0]
        for _ in range(steps):
            u = all[-1].copy()
            u[1:-1, 1:-1] += rate * change(all[-1])
            all.append(u)
        return all

    def misfit():
        return ((states()[-1] - seen) ** 2).sum()

    def gradient():
        all = states()
        g, by_rate = 2.0 * (all[-1] - seen), 0.0
        value = ((all[-1] - seen) ** 2).sum()
        for u in reversed(all[:-1]):
            inner = g[1:-1, 1:-1]
            by_rate += (inner * change(u)).sum()
            spread = rate * inner
            g[1:-1, 1:-1] -= 4.0 * spread
            g[:-2, 1:-1] += spread
            g[2:, 1:-1] += spread
            g[1:-1, :-2] += spread
            g[1:-1, 2:] += spread
        return value, g, by_rate

    return misfit, gradient

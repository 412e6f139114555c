"""The mixture and its gradient in NumPy, derived by hand: two matrix products for each component."""

import math

import numpy as np
from scipy.special import multigammaln


def functions(inputs, tiny=0.0):
    alpha, mu, icf, x = (inputs[name] for name in ("alpha", "mu", "icf", "x"))
    gamma, m = float(inputs["gamma"]), int(inputs["m"])
    (k, d), n = mu.shape, len(x)
    columns, rows = np.array([(i, j) for i in range(d) for j in range(i + 1, d)]).reshape(-1, 2).T
    along = np.arange(d)
    freedom = d + m + 1
    constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2)) - multigammaln(0.5 * freedom, d)
    kept, spare, Q = np.empty((k, n, d)), np.empty((n, d)), np.zeros((d, d))

    def load(c):
        Q[rows, columns] = icf[c, d:]
        Q[along, along] = np.exp(icf[c, :d])

    def forward(keep):
        terms, squares = np.empty((k, n)), 0.0
        for c in range(k):
            load(c)
            squares += (Q * Q).sum()
            y = kept[c] if keep else spare
            np.matmul(x, Q.T, out=y)
            y -= Q @ mu[c]
            terms[c] = -0.5 * np.einsum("nd,nd->n", y, y)
        logs = icf[:, :d].sum(1)
        terms += (alpha + logs)[:, None]
        most = terms.max(0)
        shares = np.exp(terms - most)
        total = shares.sum(0)
        top = alpha.max()
        weights = np.exp(alpha - top)
        value = -n * d * 0.5 * math.log(2 * math.pi) + (np.log(total) + most).sum() - n * (math.log(weights.sum()) + top)
        value += 0.5 * gamma**2 * squares - m * logs.sum() - k * constant
        shares /= total
        if tiny:
            shares[shares < tiny] = 0.0
        return value, shares, weights / weights.sum()

    def gradient():
        value, shares, weights = forward(True)
        by_alpha, by_mu, by_icf = shares.sum(1) - n * weights, np.empty((k, d)), np.empty_like(icf)
        for c in range(k):
            load(c)
            y = kept[c]
            y *= shares[c][:, None]
            sums = y.sum(0)
            G = y.T @ x
            G -= np.outer(sums, mu[c])
            by_mu[c] = Q.T @ sums
            diagonal = Q[along, along]
            by_icf[c, :d] = shares[c].sum() - m - G[along, along] * diagonal + gamma**2 * diagonal * diagonal
            by_icf[c, d:] = -G[rows, columns] + gamma**2 * icf[c, d:]
        return value, by_alpha, by_mu, by_icf

    return lambda: forward(False)[0], gradient

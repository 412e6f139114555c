"""The mixture in PyTorch, as it is: one matrix product for all components, and the gradient by its tape."""

import math
import os

import numpy as np
import torch
from scipy.special import multigammaln

torch.set_default_dtype(torch.float64)


def functions(inputs):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    (k, d), n, gamma, m = inputs["mu"].shape, len(inputs["x"]), float(inputs["gamma"]), int(inputs["m"])
    columns, rows = (torch.tensor(t) for t in np.array([(i, j) for i in range(d) for j in range(i + 1, d)]).reshape(-1, 2).T)
    freedom = d + m + 1
    constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2)) - multigammaln(0.5 * freedom, d)
    x = torch.tensor(inputs["x"])
    parameters = [torch.tensor(inputs[name], requires_grad=True) for name in ("alpha", "mu", "icf")]
    every = torch.arange(k)[:, None]

    def objective(alpha, mu, icf):
        diagonal, logs = torch.exp(icf[:, :d]), icf[:, :d].sum(1)
        Q = torch.zeros(k, d, d).index_put((every, rows[None], columns[None]), icf[:, d:]) + torch.diag_embed(diagonal)
        Qx = (x @ Q.reshape(k * d, d).T).reshape(n, k, d) - torch.einsum("kij,kj->ki", Q, mu)
        terms = alpha + logs - 0.5 * (Qx * Qx).sum(-1)
        prior = 0.5 * gamma**2 * ((diagonal**2).sum() + (icf[:, d:] ** 2).sum()) - m * logs.sum() - k * constant
        return torch.logsumexp(terms, 1).sum() - n * torch.logsumexp(alpha, 0) - n * d * 0.5 * math.log(2 * math.pi) + prior

    def value():
        with torch.no_grad():
            return objective(*parameters).numpy()

    def gradient():
        result = objective(*parameters)
        return result.detach().numpy(), *(g.numpy() for g in torch.autograd.grad(result, parameters))

    return value, gradient

"""A Gaussian mixture with its axes in another order: its log-likelihood and the gradient."""

import made

PROGRAM = "mixture_permuted.iv"
OBJECTIVE = ["loglik"]
DERIVATIVE = ["loglik", "--derivative", "value-and-grad", "--wrt", "alpha,mu,logdiag,L"]
SHAPES = {"d10_K25": (1000, 10, 25), "d32_K50": (1000, 32, 50)}
INSTANCES = list(SHAPES)
QUICK = ["d10_K25"]


def inputs(instance, folder):
    n, d, k = SHAPES[instance]
    return made.uniform("mixture_permuted", alpha=k, mu=(d, k), logdiag=(d, k), L=(d, d, k), x=(d, n))


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

"""A Gaussian mixture written one whole array after another: its log-likelihood and the gradient."""

import made

PROGRAM = "mixture_arrays.iv"
OBJECTIVE = ["loglik"]
DERIVATIVE = ["loglik", "--derivative", "value-and-grad", "--wrt", "alpha,mu,logdiag,L"]
SHAPES = {"d10_K25": (1000, 10, 25), "d32_K50": (1000, 32, 50)}
INSTANCES = list(SHAPES)
QUICK = ["d10_K25"]


def inputs(instance, folder):
    n, d, k = SHAPES[instance]
    return made.uniform("mixture_arrays", alpha=k, mu=(k, d), logdiag=(k, d), L=(k, d, d), x=(n, d))


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

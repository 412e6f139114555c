"""A mixture of Gaussians with diagonal covariances: its log-likelihood and the gradient."""

import made

PROGRAM = "mixture_diagonal.iv"
OBJECTIVE = ["loglik"]
DERIVATIVE = ["loglik", "--derivative", "value-and-grad", "--wrt", "alpha,mu,logsd"]
SHAPES = {"d10_K25": (10000, 10, 25), "d64_K100": (1000, 64, 100)}
INSTANCES = list(SHAPES)
QUICK = ["d10_K25"]


def inputs(instance, folder):
    n, d, k = SHAPES[instance]
    return made.uniform("mixture_diagonal", alpha=k, mu=(k, d), logsd=(k, d), x=(n, d))


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

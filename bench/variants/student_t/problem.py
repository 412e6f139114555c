"""A mixture of multivariate t distributions: its log-likelihood and the gradient by all of its parameters."""

import made

PROGRAM = "student_t.iv"
OBJECTIVE = ["loglik"]
DERIVATIVE = ["loglik", "--derivative", "value-and-grad", "--wrt", "alpha,mu,logdiag,L,nu"]
SHAPES = {"d10_K25": (1000, 10, 25), "d32_K50": (1000, 32, 50)}
INSTANCES = list(SHAPES)
QUICK = ["d10_K25"]


def inputs(instance, folder):
    n, d, k = SHAPES[instance]
    arrays = made.uniform("student_t", alpha=k, mu=(k, d), logdiag=(k, d), L=(k, d * (d + 1) // 2), nu=k, x=(n, d))
    arrays["nu"] += 4
    return arrays


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

"""k-means: the cost, and its gradient with the diagonal of its Hessian."""

import made

PROGRAM = "kmeans.iv"
OBJECTIVE = ["cost"]
DERIVATIVE = ["newton"]
SIZES = {"k5_n10000_d35": (5, 10000, 35), "k5_n494019_d35": (5, 494019, 35), "k1024_n10000_d256": (1024, 10000, 256)}
INSTANCES = list(SIZES)
QUICK = ["k5_n10000_d35"]


def inputs(instance, folder):
    k, n, d = SIZES[instance]
    return made.uniform("kmeans", P=(n, d), C=(k, d))


def c_sizes(inputs):
    return [*inputs["P"].shape, len(inputs["C"])]


def c_outputs(inputs):
    return [(1,)], [inputs["C"].shape] * 2

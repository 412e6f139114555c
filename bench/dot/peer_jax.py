import jax


def functions(inputs):
    objective = lambda x, y: x @ y
    # Results that are arguments are no copies unless it is said.
    gradient = lambda x, y: tuple(g.copy() for g in jax.grad(objective, (0, 1))(x, y))
    return objective, gradient, [inputs["x"], inputs["y"]]

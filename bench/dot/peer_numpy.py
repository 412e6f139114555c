def functions(inputs):
    x, y = inputs["x"], inputs["y"]
    return lambda: x @ y, lambda: (y.copy(), x.copy())

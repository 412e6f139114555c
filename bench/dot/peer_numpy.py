def functions(inputs):
    x, y = inputs["x"], inputs["y"]
    return lambda: (x * y * y).sum(), lambda: (y * y, 2.0 * x * y)

"""An LSTM with full matrices over a batch of sequences: the squared error at the end, and the gradient by all weights."""

import made

PROGRAM = "lstm_batch.iv"
OBJECTIVE = ["loss"]
DERIVATIVE = ["loss", "--derivative", "value-and-grad", "--wrt", "W,U,b"]
SHAPES = {"n16_h32": (20, 16, 16, 32), "n64_h128": (20, 64, 80, 128)}
INSTANCES = list(SHAPES)
QUICK = ["n16_h32"]


def inputs(instance, folder):
    t, n, d, h = SHAPES[instance]
    arrays = made.uniform("lstm_batch", W=(4, h, d), U=(4, h, h), b=(4, h), X=(t, n, d), Y=(n, h))
    arrays["W"] *= 0.2
    arrays["U"] *= 0.2
    return arrays


def entries(leaves):
    """Of the gradient; the first leaf is the value."""
    return leaves[1:]

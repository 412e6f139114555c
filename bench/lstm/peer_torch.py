"""The LSTM in PyTorch, as it is: a loop over time, and the gradient by its tape."""

import os

import torch

torch.set_default_dtype(torch.float64)


def functions(inputs):
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    layers, (c, b) = len(inputs["main"]), inputs["seq"].shape
    seq, state = torch.tensor(inputs["seq"]), torch.tensor(inputs["state"])
    parameters = [torch.tensor(inputs[name], requires_grad=True) for name in ("main", "extra")]

    def objective(main, extra):
        states = [(state[k, 0], state[k, 1]) for k in range(layers)]
        # The gates of the input and those of the state, two at a time.
        parts = [(main[k, 0, [0, 2]], main[k, 1, [0, 2]], main[k, 0, [1, 3]], main[k, 1, [1, 3]]) for k in range(layers)]
        given, last = seq[:-1] * extra[0], []
        for t in range(c - 1):
            x = given[t]
            for k, (wi, bi, wh, bh) in enumerate(parts):
                h, cell = states[k]
                outer, inner = torch.sigmoid(torch.addcmul(bi, wi, x)), torch.addcmul(bh, wh, h)
                cell = cell * outer[0] + torch.sigmoid(inner[0]) * torch.tanh(inner[1])
                x = outer[1] * torch.tanh(cell)
                states[k] = x, cell
            last.append(x)
        y = torch.stack(last) * extra[1] + extra[2]
        return -(seq[1:] * (y - torch.log(torch.exp(y).sum(1, keepdim=True) + 2.0))).sum() / ((c - 1) * b)

    def value():
        with torch.no_grad():
            return objective(*parameters).numpy()

    def gradient():
        result = objective(*parameters)
        return result.detach().numpy(), *(g.numpy() for g in torch.autograd.grad(result, parameters))

    return value, gradient

"""The LSTM in JAX: a scan over time, the layers unrolled."""

import jax
import jax.numpy as jnp


def functions(inputs):
    layers, (c, b) = len(inputs["main"]), inputs["seq"].shape

    def layer(weight, bias, h, cell, x):
        forget, output = jax.nn.sigmoid(x * weight[0] + bias[0]), jax.nn.sigmoid(x * weight[2] + bias[2])
        gate, change = jax.nn.sigmoid(h * weight[1] + bias[1]), jnp.tanh(h * weight[3] + bias[3])
        cell = cell * forget + gate * change
        return output * jnp.tanh(cell), cell

    def objective(main, extra, state, seq):
        def step(states, pair):
            given, next_one = pair
            x, new = given * extra[0], []
            for k in range(layers):
                new.append(layer(main[k, 0], main[k, 1], *states[k], x))
                x = new[-1][0]
            y = x * extra[1] + extra[2]
            return new, jnp.sum(next_one * (y - jnp.log(jnp.sum(jnp.exp(y)) + 2.0)))

        first = [(state[k, 0], state[k, 1]) for k in range(layers)]
        _, totals = jax.lax.scan(step, first, (seq[:-1], seq[1:]))
        return -jnp.sum(totals) / ((c - 1) * b)

    return objective, jax.value_and_grad(objective, (0, 1)), [inputs[name] for name in ("main", "extra", "state", "seq")]

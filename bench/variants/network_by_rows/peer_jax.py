import jax
import jax.numpy as jnp


def functions(inputs):
    def objective(W1, b1, W2, b2, W3, b3, X, label):
        score = jnp.tanh(jnp.tanh(X @ W1.T + b1) @ W2.T + b2) @ W3.T + b3
        return jnp.mean(jax.nn.logsumexp(score, 1) - jnp.take_along_axis(score, label[:, None], 1)[:, 0])

    arguments = [inputs[name] for name in ("W1", "b1", "W2", "b2", "W3", "b3", "X", "class")]
    return objective, jax.value_and_grad(objective, (0, 1, 2, 3, 4, 5)), arguments

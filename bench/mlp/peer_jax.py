import jax
import jax.numpy as jnp


def functions(inputs):
    def objective(W1, b1, W2, b2, X, label):
        hidden = jax.nn.relu(X @ W1.T + b1)
        score = hidden @ W2.T + b2
        return jnp.mean(jax.nn.logsumexp(score, 1) - jnp.take_along_axis(score, label[:, None], 1)[:, 0])

    arguments = [inputs[name] for name in ("W1", "b1", "W2", "b2", "X", "class")]
    return objective, jax.value_and_grad(objective, (0, 1, 2, 3)), arguments

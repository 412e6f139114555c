import jax
import jax.numpy as jnp


def functions(inputs):
    def objective(x, w, wanted):
        y = jax.lax.conv_general_dilated(x[None, None], w[None, None], (1,) * x.ndim, "VALID")[0, 0]
        return jnp.sum((y - wanted) ** 2)

    return objective, jax.value_and_grad(objective, (0, 1)), [inputs[name] for name in ("x", "w", "wanted")]

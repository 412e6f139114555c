#include "baseline.h"

/* The largest in eight places at a time, then where it is first. */
void objective(const int64_t *n, const void *const *in, void *const *out)
{
    const double *restrict x = in[0];
    double most = x[0];
#pragma omp parallel for simd reduction(max : most) if (n[0] > 100000)
    for (int64_t i = 0; i < n[0]; i++) most = x[i] > most ? x[i] : most;
    *(double *)out[0] = most;
}

void derivative(const int64_t *n, const void *const *in, void *const *out)
{
    const double *restrict x = in[0];
    double *restrict dx = out[0], most;
    void *at[1] = {&most};
    objective(n, in, at);
    memset(dx, 0, n[0] * sizeof *dx);
    for (int64_t i = 0; i < n[0]; i++)
        if (x[i] == most) {
            dx[i] = 1.0;
            break;
        }
}

#include "baseline.h"

void objective(const int64_t *n, const void *const *in, void *const *out)
{
    const double *restrict x = in[0], *restrict y = in[1];
    double total = 0.0;
#pragma omp parallel for simd reduction(+ : total) if (n[0] > 100000)
    for (int64_t i = 0; i < n[0]; i++) total += x[i] * y[i] * y[i];
    *(double *)out[0] = total;
}

void derivative(const int64_t *n, const void *const *in, void *const *out)
{
    const double *restrict x = in[0], *restrict y = in[1];
    double *restrict dx = out[0], *restrict dy = out[1];
#pragma omp parallel for simd if (n[0] > 100000)
    for (int64_t i = 0; i < n[0]; i++) {
        dx[i] = y[i] * y[i];
        dy[i] = 2.0 * x[i] * y[i];
    }
}

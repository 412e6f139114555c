/* The objective and its gradient by x and y, as one would write them by hand. */
#include "../baseline.h"

double objective(const int64_t *n, double *const *in)
{
    const double *restrict x = in[0], *restrict y = in[1];
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < n[0]; i++) total += x[i] * y[i] * y[i];
    return total;
}

void gradient(const int64_t *n, double *const *in, double *const *out)
{
    const double *restrict x = in[0], *restrict y = in[1];
    double *restrict dx = out[0], *restrict dy = out[1];
    for (int64_t i = 0; i < n[0]; i++) {
        dx[i] = y[i] * y[i];
        dy[i] = 2.0 * x[i] * y[i];
    }
}

#include "baseline.h"

static int64_t start(const int64_t *n, int64_t i) { return n[1] == 2 ? i * n[0] : i * (i + 1) / 2; }

void objective(const int64_t *n, const void *const *in, void *const *out)
{
    const double *restrict L = in[0], *restrict x = in[1];
    double total = 0.0;
#pragma omp parallel for reduction(+ : total) schedule(static, 16)
    for (int64_t i = 0; i < n[0]; i++) {
        const double *restrict row = L + start(n, i);
        double sum = 0.0;
        for (int64_t j = 0; j <= i; j++) sum += row[j] * x[j];
        total += sum;
    }
    *(double *)out[0] = total;
}

void derivative(const int64_t *n, const void *const *in, void *const *out)
{
    const double *restrict L = in[0], *restrict x = in[1];
    double *restrict dL = out[0], *restrict dx = out[1];
    memset(dx, 0, n[0] * sizeof *dx);
#pragma omp parallel for reduction(+ : dx[: n[0]]) schedule(static, 16)
    for (int64_t i = 0; i < n[0]; i++) {
        const double *restrict row = L + start(n, i);
        double *restrict to = dL + start(n, i);
        for (int64_t j = 0; j <= i; j++) {
            to[j] = x[j];
            dx[j] += row[j];
        }
        if (n[1] == 2) memset(to + i + 1, 0, (n[0] - i - 1) * sizeof *to);
    }
}

/* Coordinates apart, all pairs twice where forces are wanted: no two bodies write to the same place. */
#include "baseline.h"

static double *apart(int64_t n, const double *x)
{
    double *out = malloc(3 * n * sizeof *out);
    for (int64_t i = 0; i < n; i++)
        for (int a = 0; a < 3; a++) out[a * n + i] = x[3 * i + a];
    return out;
}

void objective(const int64_t *m, const void *const *in, void *const *out)
{
    int64_t n = m[0];
    const double *restrict mass = in[1];
    double *restrict x = apart(n, in[0]), total = 0.0;
#pragma omp parallel for reduction(+ : total) schedule(dynamic, 32)
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0;
        for (int64_t j = 0; j < i; j++) {
            double dx = x[i] - x[j], dy = x[n + i] - x[n + j], dz = x[2 * n + i] - x[2 * n + j];
            sum += mass[j] / sqrt(0.01 + dx * dx + dy * dy + dz * dz);
        }
        total += mass[i] * sum;
    }
    *(double *)out[0] = -total;
    free(x);
}

void derivative(const int64_t *m, const void *const *in, void *const *out)
{
    int64_t n = m[0];
    const double *restrict mass = in[1];
    double *restrict x = apart(n, in[0]), *restrict g = out[1], total = 0.0;
#pragma omp parallel for reduction(+ : total)
    for (int64_t i = 0; i < n; i++) {
        double sum = 0.0, fx = 0.0, fy = 0.0, fz = 0.0;
        for (int64_t j = 0; j < n; j++) {
            double dx = x[i] - x[j], dy = x[n + i] - x[n + j], dz = x[2 * n + i] - x[2 * n + j];
            double r2 = 0.01 + dx * dx + dy * dy + dz * dz, inverse = 1.0 / sqrt(r2), pull = mass[j] * inverse * inverse * inverse;
            sum += mass[j] * inverse;
            fx += pull * dx, fy += pull * dy, fz += pull * dz;
        }
        total += 0.5 * mass[i] * (sum - mass[i] * 10.0);
        g[3 * i] = mass[i] * fx, g[3 * i + 1] = mass[i] * fy, g[3 * i + 2] = mass[i] * fz;
    }
    *(double *)out[0] = -total;
    free(x);
}

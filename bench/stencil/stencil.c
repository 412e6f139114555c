/* All states are kept; the way back is the same stencil, transposed. */
#include "baseline.h"

static void spread(int64_t n, int64_t m, double rate, const double *restrict u, double *restrict to)
{
    memcpy(to, u, m * sizeof *to);
    memcpy(to + (n - 1) * m, u + (n - 1) * m, m * sizeof *to);
#pragma omp parallel for if (n * m > 50000)
    for (int64_t i = 1; i < n - 1; i++) {
        const double *restrict v = u + i * m;
        double *restrict w = to + i * m;
        w[0] = v[0], w[m - 1] = v[m - 1];
        for (int64_t j = 1; j < m - 1; j++) w[j] = v[j] + rate * (v[j - m] + v[j + m] + v[j - 1] + v[j + 1] - 4.0 * v[j]);
    }
}

static double misfit(int64_t size, const double *restrict u, const double *restrict seen)
{
    double total = 0.0;
    for (int64_t k = 0; k < size; k++) total += (u[k] - seen[k]) * (u[k] - seen[k]);
    return total;
}

void objective(const int64_t *s, const void *const *in, void *const *out)
{
    int64_t n = s[0], m = s[1], size = n * m;
    double rate = *(const double *)in[1], *both = malloc(2 * size * sizeof *both);
    memcpy(both, in[0], size * sizeof *both);
    for (int64_t t = 0; t < s[2]; t++) spread(n, m, rate, both + t % 2 * size, both + (t + 1) % 2 * size);
    *(double *)out[0] = misfit(size, both + s[2] % 2 * size, in[2]);
    free(both);
}

void derivative(const int64_t *s, const void *const *in, void *const *out)
{
    int64_t n = s[0], m = s[1], size = n * m, steps = s[2];
    double rate = *(const double *)in[1], *states = malloc((steps + 2) * size * sizeof *states), *adj = states + (steps + 1) * size;
    const double *seen = in[2];
    double *restrict du = out[1], by_rate = 0.0;
    memcpy(states, in[0], size * sizeof *states);
    for (int64_t t = 0; t < steps; t++) spread(n, m, rate, states + t * size, states + (t + 1) * size);
    const double *last = states + steps * size;
    *(double *)out[0] = misfit(size, last, seen);
    for (int64_t k = 0; k < size; k++) du[k] = 2.0 * (last[k] - seen[k]);
    for (int64_t t = steps - 1; t >= 0; t--) {
        const double *restrict u = states + t * size;
        /* Only what is not on the rim spreads, so the rim's adjoints are set aside. */
        double *restrict inner = adj;
        memset(inner, 0, m * sizeof *inner);
        memset(inner + (n - 1) * m, 0, m * sizeof *inner);
#pragma omp parallel for reduction(+ : by_rate) if (size > 50000)
        for (int64_t i = 1; i < n - 1; i++) {
            const double *v = u + i * m, *g = du + i * m;
            double *w = inner + i * m;
            w[0] = w[m - 1] = 0.0;
            for (int64_t j = 1; j < m - 1; j++) {
                w[j] = rate * g[j];
                by_rate += g[j] * (v[j - m] + v[j + m] + v[j - 1] + v[j + 1] - 4.0 * v[j]);
            }
        }
#pragma omp parallel for if (size > 50000)
        for (int64_t i = 0; i < n; i++) {
            const double *restrict w = inner + i * m;
            double *restrict g = du + i * m;
            for (int64_t j = 0; j < m; j++) {
                double to = -4.0 * w[j];
                to += (i > 0 ? w[j - m] : 0.0) + (i < n - 1 ? w[j + m] : 0.0);
                to += (j > 0 ? w[j - 1] : 0.0) + (j < m - 1 ? w[j + 1] : 0.0);
                g[j] += to;
            }
        }
    }
    *(double *)out[2] = by_rate;
    free(states);
}

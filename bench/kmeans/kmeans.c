/* The nearest centre of a point by |C|^2 - 2 P.C for eight centres at a time; then its part of the sums. */
#include "baseline.h"

enum { LANES = 8 };

/* Centres eight by eight, coordinate by coordinate, with their squares behind them. */
static double *grouped(int64_t d, int64_t k, const double *C)
{
    int64_t groups = (k + LANES - 1) / LANES;
    double *out = calloc(groups * (d + 1) * LANES, sizeof *out);
    for (int64_t c = 0; c < groups * LANES; c++) {
        double *g = out + c / LANES * (d + 1) * LANES + c % LANES, square = 0.0;
        for (int64_t a = 0; a < d && c < k; a++) {
            g[a * LANES] = C[c * d + a];
            square += C[c * d + a] * C[c * d + a];
        }
        g[d * LANES] = c < k ? square : INFINITY;
    }
    return out;
}

static int64_t nearest(int64_t d, int64_t k, const double *groups, const double *p)
{
    double least = 1e300;
    int64_t found = 0;
    for (int64_t c = 0; c < k; c += LANES) {
        const double *g = groups + c * (d + 1);
        double dot[LANES] = {0};
        for (int64_t a = 0; a < d; a++)
            for (int e = 0; e < LANES; e++) dot[e] += p[a] * g[a * LANES + e];
        for (int e = 0; e < LANES && c + e < k; e++) {
            double far = g[d * LANES + e] - 2.0 * dot[e];
            if (far < least) least = far, found = c + e;
        }
    }
    return found;
}

void objective(const int64_t *m, const void *const *in, void *const *out)
{
    int64_t n = m[0], d = m[1], k = m[2];
    const double *P = in[0], *C = in[1];
    double *groups = grouped(d, k, C), total = 0.0;
#pragma omp parallel for reduction(+ : total)
    for (int64_t i = 0; i < n; i++) {
        const double *p = P + i * d, *c = C + nearest(d, k, groups, p) * d;
        double far = 0.0;
        for (int64_t a = 0; a < d; a++) far += (p[a] - c[a]) * (p[a] - c[a]);
        total += far;
    }
    free(groups);
    *(double *)out[0] = total;
}

void derivative(const int64_t *m, const void *const *in, void *const *out)
{
    int64_t n = m[0], d = m[1], k = m[2], size = k * d;
    const double *P = in[0], *C = in[1];
    double *groups = grouped(d, k, C), *g = out[0], *h = out[1];
    double *count = calloc(k, sizeof *count);
    memset(g, 0, size * sizeof *g);
#pragma omp parallel for reduction(+ : g[: size], count[: k])
    for (int64_t i = 0; i < n; i++) {
        const double *p = P + i * d;
        int64_t c = nearest(d, k, groups, p);
        count[c] += 1.0;
        for (int64_t a = 0; a < d; a++) g[c * d + a] += p[a];
    }
    for (int64_t c = 0; c < k; c++)
        for (int64_t a = 0; a < d; a++) {
            g[c * d + a] = 2.0 * (count[c] * C[c * d + a] - g[c * d + a]);
            h[c * d + a] = 2.0 * count[c];
        }
    free(groups), free(count);
}

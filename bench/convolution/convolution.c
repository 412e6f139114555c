/* Rows of the result at a time, each the sum of shifted rows of the picture. */
#include "baseline.h"

enum { C, H, W, K, CC, R, S };

/* One row of the layer before it is cut off. */
static void row_of(const int64_t *n, const double *x, const double *filter, double bias, int64_t i, double *restrict y)
{
    int64_t width = n[W] - n[S] + 1;
    for (int64_t j = 0; j < width; j++) y[j] = bias;
    for (int64_t a = 0; a < n[C]; a++)
        for (int64_t p = 0; p < n[R]; p++)
            for (int64_t q = 0; q < n[S]; q++) {
                double f = filter[(a * n[R] + p) * n[S] + q];
                const double *restrict from = x + (a * n[H] + i + p) * n[W] + q;
                for (int64_t j = 0; j < width; j++) y[j] += f * from[j];
            }
}

void objective(const int64_t *n, const void *const *in, void *const *out)
{
    const double *x = in[0], *filter = in[1], *bias = in[2];
    int64_t height = n[H] - n[R] + 1, width = n[W] - n[S] + 1, window = n[C] * n[R] * n[S];
    double total = 0.0;
#pragma omp parallel reduction(+ : total)
    {
        double *row = malloc(width * sizeof *row);
#pragma omp for collapse(2)
        for (int64_t o = 0; o < n[K]; o++)
            for (int64_t i = 0; i < height; i++) {
                row_of(n, x, filter + o * window, bias[o], i, row);
                double sum = 0.0;
                for (int64_t j = 0; j < width; j++) sum += row[j] > 0.0 ? row[j] * row[j] : 0.0;
                total += sum;
            }
        free(row);
    }
    *(double *)out[0] = total;
}

void derivative(const int64_t *n, const void *const *in, void *const *out)
{
    const double *x = in[0], *filter = in[1], *bias = in[2];
    double *dx = out[1], *df = out[2], *db = out[3], total = 0.0;
    int64_t height = n[H] - n[R] + 1, width = n[W] - n[S] + 1, window = n[C] * n[R] * n[S], size = n[C] * n[H] * n[W];
    memset(dx, 0, size * sizeof *dx);
#pragma omp parallel for reduction(+ : total, dx[: size])
    for (int64_t o = 0; o < n[K]; o++) {
        double *restrict row = malloc(width * sizeof *row), *restrict to = df + o * window, sum = 0.0;
        memset(to, 0, window * sizeof *to);
        for (int64_t i = 0; i < height; i++) {
            row_of(n, x, filter + o * window, bias[o], i, row);
            for (int64_t j = 0; j < width; j++) {
                double y = row[j] > 0.0 ? row[j] : 0.0;
                total += y * y;
                row[j] = 2.0 * y;
                sum += row[j];
            }
            for (int64_t a = 0; a < n[C]; a++)
                for (int64_t p = 0; p < n[R]; p++)
                    for (int64_t q = 0; q < n[S]; q++) {
                        int64_t at = (a * n[R] + p) * n[S] + q, place = (a * n[H] + i + p) * n[W] + q;
                        double f = filter[o * window + at], inner = 0.0;
                        const double *restrict from = x + place;
                        double *restrict back = dx + place;
                        for (int64_t j = 0; j < width; j++) {
                            inner += row[j] * from[j];
                            back[j] += f * row[j];
                        }
                        to[at] += inner;
                    }
        }
        db[o] = sum;
        free(row);
    }
    *(double *)out[0] = total;
}

/* A row of the product at a time, which stays in cache for its part of both gradients. */
#include "baseline.h"

static void product(int64_t k, int64_t m, const double *restrict w, const double *restrict H, double *restrict row)
{
    memset(row, 0, m * sizeof *row);
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < m; j++) row[j] += w[l] * H[l * m + j];
}

void objective(const int64_t *sizes, const void *const *in, void *const *out)
{
    int64_t n = sizes[0], k = sizes[1], m = sizes[2];
    const double *restrict A = in[0], *restrict W = in[1], *restrict H = in[2];
    double total = 0.0;
#pragma omp parallel reduction(+ : total)
    {
        double *restrict row = malloc(m * sizeof *row);
#pragma omp for
        for (int64_t i = 0; i < n; i++) {
            product(k, m, W + i * k, H, row);
            double sum = 0.0;
            for (int64_t j = 0; j < m; j++) sum += log(row[j]) + A[i * m + j] / row[j];
            total += sum;
        }
        free(row);
    }
    *(double *)out[0] = total;
}

void derivative(const int64_t *sizes, const void *const *in, void *const *out)
{
    int64_t n = sizes[0], k = sizes[1], m = sizes[2];
    const double *restrict A = in[0], *restrict W = in[1], *restrict H = in[2];
    double *restrict dW = out[0], *restrict dH = out[1];
    memset(dH, 0, k * m * sizeof *dH);
#pragma omp parallel reduction(+ : dH[: k * m])
    {
        double *restrict row = malloc(m * sizeof *row);
#pragma omp for
        for (int64_t i = 0; i < n; i++) {
            const double *restrict w = W + i * k;
            product(k, m, w, H, row);
            for (int64_t j = 0; j < m; j++) {
                double inverse = 1.0 / row[j];
                row[j] = inverse - A[i * m + j] * inverse * inverse;
            }
            for (int64_t l = 0; l < k; l++) {
                double total = 0.0;
                for (int64_t j = 0; j < m; j++) {
                    total += row[j] * H[l * m + j];
                    dH[l * m + j] += w[l] * row[j];
                }
                dW[i * k + l] = total;
            }
        }
        free(row);
    }
}

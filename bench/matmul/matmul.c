/* Three products in blocks: rows of the left by panels of the right that stay in cache. */
#include "baseline.h"

enum { PANEL = 64 };

/* C = A B, where A[i, l] is at A[i * ra + l * ca]; B and C by rows. */
static void product(int64_t n, int64_t k, int64_t m, const double *A, int64_t ra, int64_t ca, const double *restrict B, double *restrict C)
{
    memset(C, 0, n * m * sizeof *C);
#pragma omp parallel for
    for (int64_t i0 = 0; i0 < n; i0 += 4)
        for (int64_t l0 = 0; l0 < k; l0 += PANEL)
            for (int64_t l = l0; l < k && l < l0 + PANEL; l++) {
                const double *restrict b = B + l * m;
                if (i0 + 4 <= n) {
                    double a0 = A[i0 * ra + l * ca], a1 = A[(i0 + 1) * ra + l * ca], a2 = A[(i0 + 2) * ra + l * ca], a3 = A[(i0 + 3) * ra + l * ca];
                    double *restrict c = C + i0 * m;
                    for (int64_t j = 0; j < m; j++) {
                        c[j] += a0 * b[j];
                        c[m + j] += a1 * b[j];
                        c[2 * m + j] += a2 * b[j];
                        c[3 * m + j] += a3 * b[j];
                    }
                } else
                    for (int64_t i = i0; i < n; i++)
                        for (int64_t j = 0; j < m; j++) C[i * m + j] += A[i * ra + l * ca] * b[j];
            }
}

void objective(const int64_t *s, const void *const *in, void *const *out)
{
    int64_t n = s[0], k = s[1], m = s[2];
    double *C = malloc(n * m * sizeof *C), total = 0.0;
    product(n, k, m, in[0], k, 1, in[1], C);
#pragma omp simd reduction(+ : total)
    for (int64_t e = 0; e < n * m; e++) total += C[e] * C[e];
    *(double *)out[0] = total;
    free(C);
}

void derivative(const int64_t *s, const void *const *in, void *const *out)
{
    int64_t n = s[0], k = s[1], m = s[2];
    const double *B = in[1];
    double *D = malloc((n * m + m * k) * sizeof *D), *Bt = D + n * m;
    product(n, k, m, in[0], k, 1, B, D);
    for (int64_t e = 0; e < n * m; e++) D[e] *= 2.0;
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < m; j++) Bt[j * k + l] = B[l * m + j];
    product(n, m, k, D, m, 1, Bt, out[0]);
    product(k, n, m, in[0], 1, k, D, out[1]);
    free(D);
}

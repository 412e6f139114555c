#include "baseline.h"
#include "product.h"

void objective(const int64_t *s, const void *const *in, void *const *out)
{
    int64_t n = s[0], k = s[1], m = s[2];
    double *C = malloc(n * m * sizeof *C), total = 0.0;
    product(n, k, m, in[0], k, 1, in[1], m, 1, C);
    for (int64_t e = 0; e < n * m; e++) total += C[e] * C[e];
    *(double *)out[0] = total;
    free(C);
}

void derivative(const int64_t *s, const void *const *in, void *const *out)
{
    int64_t n = s[0], k = s[1], m = s[2];
    double *D = malloc(n * m * sizeof *D);
    product(n, k, m, in[0], k, 1, in[1], m, 1, D);
    for (int64_t e = 0; e < n * m; e++) D[e] *= 2.0;
    product(n, m, k, D, m, 1, in[1], 1, m, out[0]);
    product(k, n, m, in[0], 1, k, D, m, 1, out[1]);
    free(D);
}

#include "baseline.h"
#include "product.h"

/* C[i, k] = b[k] + sum j. X[i, j] W[k, j], cut off at zero where asked. */
static void layer(int64_t n, int64_t d, int64_t h, const double *X, const double *W, const double *b, double *restrict C, int cut)
{
    product(n, d, h, X, d, 1, W, 1, d, C);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < h; k++) {
            double y = C[i * h + k] + b[k];
            C[i * h + k] = cut && !(y > 0.0) ? 0.0 : y;
        }
}

/* The loss, and the scores' adjoints in their place where asked. */
static double cross_entropy(int64_t n, int64_t c, double *score, const int64_t *class, int derive)
{
    double total = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double *s = score + i * c, top = s[0], sum = 0.0, own = s[class[i]];
        for (int64_t k = 1; k < c; k++) top = s[k] > top ? s[k] : top;
        for (int64_t k = 0; k < c; k++) sum += exp(s[k] - top);
        total += log(sum) + top - own;
        if (derive)
            for (int64_t k = 0; k < c; k++) s[k] = (exp(s[k] - top) / sum - (k == class[i])) / n;
    }
    return total / n;
}

void objective(const int64_t *m, const void *const *in, void *const *out)
{
    int64_t n = m[0], d = m[1], c = m[2], h = m[3];
    double *hidden = malloc(n * (h + c) * sizeof *hidden), *score = hidden + n * h;
    layer(n, d, h, in[4], in[0], in[1], hidden, 1);
    layer(n, h, c, hidden, in[2], in[3], score, 0);
    *(double *)out[0] = cross_entropy(n, c, score, in[5], 0);
    free(hidden);
}

void derivative(const int64_t *m, const void *const *in, void *const *out)
{
    int64_t n = m[0], d = m[1], c = m[2], h = m[3];
    const double *W2 = in[2];
    double *hidden = malloc(n * (2 * h + c) * sizeof *hidden), *score = hidden + n * h, *back = score + n * c;
    double *db1 = out[2], *db2 = out[4];
    layer(n, d, h, in[4], in[0], in[1], hidden, 1);
    layer(n, h, c, hidden, in[2], in[3], score, 0);
    *(double *)out[0] = cross_entropy(n, c, score, in[5], 1);
    product(c, n, h, score, 1, c, hidden, h, 1, out[3]);
    memset(db1, 0, h * sizeof *db1);
    memset(db2, 0, c * sizeof *db2);
    product(n, c, h, score, c, 1, W2, h, 1, back);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < c; k++) db2[k] += score[i * c + k];
        for (int64_t j = 0; j < h; j++) {
            back[i * h + j] = hidden[i * h + j] > 0.0 ? back[i * h + j] : 0.0;
            db1[j] += back[i * h + j];
        }
    }
    product(h, n, d, back, 1, h, in[4], d, 1, out[1]);
    free(hidden);
}

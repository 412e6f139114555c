/* Products in blocks: four rows of the left with a row of the right at a time. */
#include "baseline.h"

/* C[i, k] = b[k] + sum j. X[i, j] W[k, j], cut off at zero where asked. */
static void layer(int64_t n, int64_t d, int64_t h, const double *X, const double *W, const double *b, double *restrict C, int cut)
{
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t k0 = 0; k0 < h; k0 += 4)
        for (int64_t i0 = 0; i0 < n; i0 += 4) {
            double s[4][4] = {{0}};
            if (k0 + 4 <= h && i0 + 4 <= n) {
                const double *x = X + i0 * d, *w = W + k0 * d;
                double v[4][4][8] = {{{0}}};
                int64_t j = 0;
                for (; j + 8 <= d; j += 8)
                    for (int a = 0; a < 4; a++)
                        for (int c = 0; c < 4; c++)
                            for (int e = 0; e < 8; e++) v[a][c][e] += x[a * d + j + e] * w[c * d + j + e];
                for (int a = 0; a < 4; a++)
                    for (int c = 0; c < 4; c++) {
                        for (int e = 0; e < 8; e++) s[a][c] += v[a][c][e];
                        for (int64_t r = j; r < d; r++) s[a][c] += x[a * d + r] * w[c * d + r];
                    }
            } else
                for (int a = 0; a < 4 && i0 + a < n; a++)
                    for (int c = 0; c < 4 && k0 + c < h; c++)
                        for (int64_t j = 0; j < d; j++) s[a][c] += X[(i0 + a) * d + j] * W[(k0 + c) * d + j];
            for (int a = 0; a < 4 && i0 + a < n; a++)
                for (int c = 0; c < 4 && k0 + c < h; c++) {
                    double y = s[a][c] + b[k0 + c];
                    C[(i0 + a) * h + k0 + c] = cut && !(y > 0.0) ? 0.0 : y;
                }
        }
}

/* D[k, j] = sum i. A[i, k] X[i, j] */
static void outer(int64_t n, int64_t h, int64_t d, const double *A, const double *X, double *restrict D)
{
#pragma omp parallel for
    for (int64_t k = 0; k < h; k++) {
        double *restrict row = D + k * d;
        memset(row, 0, d * sizeof *row);
        int64_t i = 0;
        for (; i + 4 <= n; i += 4) {
            double a0 = A[i * h + k], a1 = A[(i + 1) * h + k], a2 = A[(i + 2) * h + k], a3 = A[(i + 3) * h + k];
            if (a0 == 0.0 && a1 == 0.0 && a2 == 0.0 && a3 == 0.0) continue;
            const double *x = X + i * d;
            for (int64_t j = 0; j < d; j++) row[j] += a0 * x[j] + a1 * x[d + j] + a2 * x[2 * d + j] + a3 * x[3 * d + j];
        }
        for (; i < n; i++)
            for (int64_t j = 0; j < d; j++) row[j] += A[i * h + k] * X[i * d + j];
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
    outer(n, c, h, score, hidden, out[3]);
    memset(db1, 0, h * sizeof *db1);
    memset(db2, 0, c * sizeof *db2);
    for (int64_t i = 0; i < n; i++) {
        double *row = back + i * h;
        memset(row, 0, h * sizeof *row);
        for (int64_t k = 0; k < c; k++) {
            double s = score[i * c + k];
            db2[k] += s;
            for (int64_t j = 0; j < h; j++) row[j] += s * W2[k * h + j];
        }
        for (int64_t j = 0; j < h; j++) {
            row[j] = hidden[i * h + j] > 0.0 ? row[j] : 0.0;
            db1[j] += row[j];
        }
    }
    outer(n, h, d, back, in[4], out[1]);
    free(hidden);
}

/* Points in blocks: their scores, shares and part of the gradient while they are in cache. */
#include "baseline.h"

enum { BLOCK = 32 };

static double block(const int64_t *m, const void *const *in, const double *Wt, int64_t first, int64_t count, double *restrict score)
{
    int64_t d = m[1], c = m[2];
    const double *b = in[1], *X = in[2];
    const int64_t *class = in[3];
    double total = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double *restrict s = score + i * c;
        const double *x = X + (first + i) * d;
        memcpy(s, b, c * sizeof *s);
        int64_t j = 0;
        for (; j + 4 <= d; j += 4) {
            const double *w = Wt + j * c;
            for (int64_t k = 0; k < c; k++) s[k] += x[j] * w[k] + x[j + 1] * w[c + k] + x[j + 2] * w[2 * c + k] + x[j + 3] * w[3 * c + k];
        }
        for (; j < d; j++)
            for (int64_t k = 0; k < c; k++) s[k] += x[j] * Wt[j * c + k];
        double top = s[0], sum = 0.0, own = s[class[first + i]];
        for (int64_t k = 1; k < c; k++) top = s[k] > top ? s[k] : top;
        for (int64_t k = 0; k < c; k++) {
            s[k] = exp(s[k] - top);
            sum += s[k];
        }
        total += top + log(sum) - own;
        for (int64_t k = 0; k < c; k++) s[k] /= sum * m[0];
        s[class[first + i]] -= 1.0 / m[0];
    }
    return total;
}

static double *transposed(const int64_t *m, const double *W)
{
    double *Wt = malloc(m[1] * m[2] * sizeof *Wt);
    for (int64_t k = 0; k < m[2]; k++)
        for (int64_t j = 0; j < m[1]; j++) Wt[j * m[2] + k] = W[k * m[1] + j];
    return Wt;
}

void objective(const int64_t *m, const void *const *in, void *const *out)
{
    double total = 0.0, *Wt = transposed(m, in[0]);
#pragma omp parallel reduction(+ : total)
    {
        double *score = malloc(BLOCK * m[2] * sizeof *score);
#pragma omp for
        for (int64_t i = 0; i < m[0]; i += BLOCK) total += block(m, in, Wt, i, m[0] - i < BLOCK ? m[0] - i : BLOCK, score);
        free(score);
    }
    free(Wt);
    *(double *)out[0] = total / m[0];
}

void derivative(const int64_t *m, const void *const *in, void *const *out)
{
    int64_t d = m[1], c = m[2], size = c * d;
    const double *X = in[2];
    double total = 0.0, *Wt = transposed(m, in[0]), *dW = out[1], *db = out[2];
    memset(dW, 0, size * sizeof *dW);
    memset(db, 0, c * sizeof *db);
#pragma omp parallel reduction(+ : total, dW[: size], db[: c])
    {
        double *score = malloc(BLOCK * c * sizeof *score);
#pragma omp for
        for (int64_t i = 0; i < m[0]; i += BLOCK) {
            int64_t count = m[0] - i < BLOCK ? m[0] - i : BLOCK;
            total += block(m, in, Wt, i, count, score);
            for (int64_t k = 0; k < c; k++) {
                double *restrict row = dW + k * d;
                int64_t p = 0;
                for (; p + 4 <= count; p += 4) {
                    double s0 = score[p * c + k], s1 = score[(p + 1) * c + k], s2 = score[(p + 2) * c + k], s3 = score[(p + 3) * c + k];
                    const double *x = X + (i + p) * d;
                    db[k] += s0 + s1 + s2 + s3;
                    for (int64_t j = 0; j < d; j++) row[j] += s0 * x[j] + s1 * x[d + j] + s2 * x[2 * d + j] + s3 * x[3 * d + j];
                }
                for (; p < count; p++) {
                    db[k] += score[p * c + k];
                    for (int64_t j = 0; j < d; j++) row[j] += score[p * c + k] * X[(i + p) * d + j];
                }
            }
        }
        free(score);
    }
    free(Wt);
    *(double *)out[0] = total / m[0];
}

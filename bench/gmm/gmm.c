/* The mixture by hand: the triangles unpacked once for each component, points in blocks that stay in cache, responsibilities
 * kept between the two passes, products over the triangles only. */
#include "baseline.h"

enum { BLOCK = 16 };

static double logsumexp(const double *x, int64_t n, double *most)
{
    double m = x[0], total = 0.0;
    for (int64_t k = 1; k < n; k++) m = x[k] > m ? x[k] : m;
    for (int64_t k = 0; k < n; k++) total += exp(x[k] - m);
    *most = m;
    return m + log(total);
}

/* Q of one component, column by column: column b has its d - b numbers from the diagonal on. */
static void unpack(int64_t d, const double *icf, double *Q)
{
    const double *below = icf + d;
    for (int64_t b = 0; b < d; b++) {
        *Q++ = exp(icf[b]);
        for (int64_t a = b + 1; a < d; a++) *Q++ = *below++;
    }
}

/* q[a, p] = sum b <= a. Q[a, b] (x[p, b] - mu[b]) for the points of a block. */
static void apply(int64_t d, const double *restrict Q, const double (*restrict z)[BLOCK], double (*restrict q)[BLOCK])
{
    memset(q, 0, d * sizeof *q);
    for (int64_t b = 0; b < d; b++)
        for (int64_t a = b; a < d; a++) {
            double w = *Q++;
            for (int p = 0; p < BLOCK; p++) q[a][p] += w * z[b][p];
        }
}

static void centre(int64_t d, int64_t n, int64_t first, const double *x, const double *mu, double (*z)[BLOCK])
{
    for (int64_t a = 0; a < d; a++)
        for (int p = 0; p < BLOCK; p++) z[a][p] = first + p < n ? x[(first + p) * d + a] - mu[a] : 0.0;
}

/* terms[c, i]: the logarithm of a component's share of a point, but for what all have in common. */
static void terms_of(int64_t n, int64_t d, int64_t k, const void *const *in, double *Q, double *terms)
{
    const double *alpha = in[0], *mu = in[1], *icf = in[2], *x = in[3];
    int64_t packed = d * (d + 1) / 2;
#pragma omp parallel
    {
        double(*z)[BLOCK] = malloc(2 * d * sizeof *z), (*q)[BLOCK] = z + d;
#pragma omp for
        for (int64_t c = 0; c < k; c++) {
            double logs = alpha[c];
            for (int64_t a = 0; a < d; a++) logs += icf[c * packed + a];
            unpack(d, icf + c * packed, Q + c * packed);
            for (int64_t i = 0; i < n; i += BLOCK) {
                centre(d, n, i, x, mu + c * d, z);
                apply(d, Q + c * packed, (const double(*)[BLOCK])z, q);
                double squares[BLOCK] = {0};
                for (int64_t a = 0; a < d; a++)
                    for (int p = 0; p < BLOCK; p++) squares[p] += q[a][p] * q[a][p];
                for (int p = 0; p < BLOCK && i + p < n; p++) terms[c * n + i + p] = logs - 0.5 * squares[p];
            }
        }
        free(z);
    }
}

/* The value; `terms` become responsibilities where they are asked for. */
static double value(int64_t n, int64_t d, int64_t k, const void *const *in, double *terms, int shares)
{
    const double *alpha = in[0], *icf = in[2];
    double gamma = *(const double *)in[4], m = (double)*(const int64_t *)in[5];
    int64_t packed = d * (d + 1) / 2;
    double total = 0.0, most;
#pragma omp parallel reduction(+ : total)
    {
        double *column = malloc(k * sizeof *column);
#pragma omp for
        for (int64_t i = 0; i < n; i++) {
            double top;
            for (int64_t c = 0; c < k; c++) column[c] = terms[c * n + i];
            double all = logsumexp(column, k, &top);
            total += all;
            if (shares)
                for (int64_t c = 0; c < k; c++) terms[c * n + i] = exp(column[c] - all);
        }
        free(column);
    }
    total -= n * logsumexp(alpha, k, &most) + 0.5 * n * d * log(2.0 * M_PI);
    for (int64_t c = 0; c < k; c++) {
        const double *row = icf + c * packed;
        for (int64_t a = 0; a < d; a++) total += 0.5 * gamma * gamma * exp(2.0 * row[a]) - m * row[a];
        for (int64_t e = d; e < packed; e++) total += 0.5 * gamma * gamma * row[e] * row[e];
    }
    double freedom = d + m + 1, normal = freedom * d * (log(gamma) - 0.5 * log(2.0)) - 0.25 * d * (d - 1) * log(M_PI);
    for (int64_t j = 0; j < d; j++) normal -= lgamma(0.5 * freedom - 0.5 * j);
    return total - k * normal;
}

void objective(const int64_t *sizes, const void *const *in, void *const *out)
{
    int64_t n = sizes[0], d = sizes[1], k = sizes[2];
    double *terms = malloc((n * k + k * d * (d + 1) / 2) * sizeof *terms);
    terms_of(n, d, k, in, terms + n * k, terms);
    *(double *)out[0] = value(n, d, k, in, terms, 0);
    free(terms);
}

void derivative(const int64_t *sizes, const void *const *in, void *const *out)
{
    int64_t n = sizes[0], d = sizes[1], k = sizes[2], packed = d * (d + 1) / 2;
    const double *alpha = in[0], *mu = in[1], *icf = in[2], *x = in[3];
    double gamma = *(const double *)in[4], m = (double)*(const int64_t *)in[5];
    double *by_alpha = out[1], *by_mu = out[2], *by_icf = out[3];
    double *terms = malloc((n * k + k * packed) * sizeof *terms), *triangles = terms + n * k, most;
    terms_of(n, d, k, in, triangles, terms);
    *(double *)out[0] = value(n, d, k, in, terms, 1);
    double every = logsumexp(alpha, k, &most);
#pragma omp parallel
    {
        double(*z)[BLOCK] = malloc(2 * d * sizeof *z + packed * sizeof(double)), (*q)[BLOCK] = z + d;
        double *G = (double *)(z + 2 * d);
#pragma omp for
        for (int64_t c = 0; c < k; c++) {
            const double *Q = triangles + c * packed, *shares = terms + c * n, *row = icf + c * packed;
            double *to_mu = by_mu + c * d, *to_icf = by_icf + c * packed, weight = 0.0;
            memset(G, 0, packed * sizeof *G);
            memset(to_mu, 0, d * sizeof *to_mu);
            for (int64_t i = 0; i < n; i += BLOCK) {
                double share[BLOCK];
                for (int p = 0; p < BLOCK; p++) {
                    /* What is so little changes no result, and would be computed slowly. */
                    double r = i + p < n ? shares[i + p] : 0.0;
                    share[p] = r < 1e-200 ? 0.0 : r;
                    weight += share[p];
                }
                double largest = 0.0;
                for (int p = 0; p < BLOCK; p++) largest = share[p] > largest ? share[p] : largest;
                if (largest == 0.0) continue;
                centre(d, n, i, x, mu + c * d, z);
                apply(d, Q, (const double(*)[BLOCK])z, q);
                for (int64_t a = 0; a < d; a++)
                    for (int p = 0; p < BLOCK; p++) q[a][p] *= share[p];
                /* G[a, b] = sum p. q[a, p] z[b, p], and the means by Q^T q. */
                double *g = G;
                const double *w = Q;
                for (int64_t b = 0; b < d; b++) {
                    double to = 0.0;
                    for (int64_t a = b; a < d; a++) {
                        double total = 0.0, sum = 0.0;
                        for (int p = 0; p < BLOCK; p++) {
                            total += q[a][p] * z[b][p];
                            sum += q[a][p];
                        }
                        *g++ += total;
                        to += *w++ * sum;
                    }
                    to_mu[b] += to;
                }
            }
            by_alpha[c] = weight - n * exp(alpha[c] - every);
            const double *g = G, *w = Q;
            double *strict = to_icf + d;
            const double *given = row + d;
            for (int64_t b = 0; b < d; b++) {
                to_icf[b] = weight - m - *g * *w + gamma * gamma * *w * *w;
                g++, w++;
                for (int64_t a = b + 1; a < d; a++, g++, w++) *strict++ = -*g + gamma * gamma * *given++;
            }
        }
        free(z);
    }
    free(terms);
}

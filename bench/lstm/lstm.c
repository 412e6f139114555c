/* The network by hand: all gates are kept on the way forward, and the way back is one pass over them. */
#include "baseline.h"

/* What a layer keeps of a step: gates f, i, o, g, the cell after it, its tanh, and the input; b numbers each. */
enum { FORGET, INPUT, OUTPUT, CHANGE, CELL, BENT, GIVEN, KEPT };

static double forward(int64_t l, int64_t c, int64_t b, const void *const *in, double *kept, double *ys)
{
    const double *main = in[0], *extra = in[1], *state = in[2], *seq = in[3];
    double *h = malloc(2 * l * b * sizeof *h), *cell = h + l * b, total = 0.0;
    for (int64_t k = 0; k < l; k++) {
        memcpy(h + k * b, state + 2 * k * b, b * sizeof *h);
        memcpy(cell + k * b, state + (2 * k + 1) * b, b * sizeof *h);
    }
    double *spare = kept ? NULL : malloc(KEPT * b * sizeof *spare), *y = malloc(b * sizeof *y);
    for (int64_t t = 0; t + 1 < c; t++) {
        for (int64_t k = 0; k < l; k++) {
            const double *restrict w = main + 8 * k * b, *restrict v = w + 4 * b;
            const double *restrict x = k ? h + (k - 1) * b : seq + t * b;
            double *restrict s = kept ? kept + (t * l + k) * KEPT * b : spare;
            double *restrict hk = h + k * b, *restrict ck = cell + k * b;
#pragma omp simd
            for (int64_t j = 0; j < b; j++) {
                double given = k ? x[j] : x[j] * extra[j];
                double f = 1.0 / (1.0 + exp(-(given * w[j] + v[j])));
                double i = 1.0 / (1.0 + exp(-(hk[j] * w[b + j] + v[b + j])));
                double o = 1.0 / (1.0 + exp(-(given * w[2 * b + j] + v[2 * b + j])));
                double g = tanh(hk[j] * w[3 * b + j] + v[3 * b + j]);
                double after = ck[j] * f + i * g, bent = tanh(after);
                s[FORGET * b + j] = f;
                s[INPUT * b + j] = i;
                s[OUTPUT * b + j] = o;
                s[CHANGE * b + j] = g;
                s[CELL * b + j] = after;
                s[BENT * b + j] = bent;
                s[GIVEN * b + j] = given;
                ck[j] = after;
                hk[j] = o * bent;
            }
        }
        const double *last = h + (l - 1) * b, *next = seq + (t + 1) * b;
        double sum = 2.0, dot = 0.0, weight = 0.0;
        for (int64_t j = 0; j < b; j++) {
            double yj = last[j] * extra[b + j] + extra[2 * b + j], e = exp(yj);
            if (ys) ys[t * b + j] = e;
            sum += e;
            dot += next[j] * yj;
            weight += next[j];
        }
        total += dot - weight * log(sum);
        if (ys)
            for (int64_t j = 0; j < b; j++) ys[t * b + j] = next[j] - weight * ys[t * b + j] / sum;
    }
    free(h), free(spare), free(y);
    return -total / ((c - 1) * b);
}

void objective(const int64_t *n, const void *const *in, void *const *out)
{
    *(double *)out[0] = forward(n[0], n[1], n[2], in, NULL, NULL);
}

void derivative(const int64_t *n, const void *const *in, void *const *out)
{
    int64_t l = n[0], c = n[1], b = n[2];
    const double *main = in[0], *extra = in[1], *state = in[2], *seq = in[3];
    double *by_main = out[1], *by_extra = out[2], scale = -1.0 / ((c - 1) * b);
    double *kept = malloc((c - 1) * (l * KEPT + 1) * b * sizeof *kept), *ys = kept + (c - 1) * l * KEPT * b;
    *(double *)out[0] = forward(l, c, b, in, kept, ys);
    memset(by_main, 0, 8 * l * b * sizeof *by_main);
    memset(by_extra, 0, 3 * b * sizeof *by_extra);
    double *h_adj = calloc(2 * l * b + b, sizeof *h_adj), *c_adj = h_adj + l * b, *up = c_adj + l * b;
    for (int64_t t = c - 2; t >= 0; t--) {
        double *last = kept + (t * l + l - 1) * KEPT * b;
        for (int64_t j = 0; j < b; j++) {
            double h = last[OUTPUT * b + j] * last[BENT * b + j], y_adj = scale * ys[t * b + j];
            by_extra[b + j] += y_adj * h;
            by_extra[2 * b + j] += y_adj;
            up[j] = y_adj * extra[b + j];
        }
        for (int64_t k = l - 1; k >= 0; k--) {
            const double *restrict w = main + 8 * k * b, *restrict s = kept + (t * l + k) * KEPT * b;
            const double *before = t ? kept + ((t - 1) * l + k) * KEPT * b : NULL;
            double *restrict dw = by_main + 8 * k * b, *restrict dv = dw + 4 * b;
            double *restrict ha = h_adj + k * b, *restrict ca = c_adj + k * b;
#pragma omp simd
            for (int64_t j = 0; j < b; j++) {
                double h0 = before ? before[OUTPUT * b + j] * before[BENT * b + j] : state[2 * k * b + j];
                double c0 = before ? before[CELL * b + j] : state[(2 * k + 1) * b + j];
                double f = s[FORGET * b + j], i = s[INPUT * b + j], o = s[OUTPUT * b + j], g = s[CHANGE * b + j];
                double bent = s[BENT * b + j], given = s[GIVEN * b + j];
                double h = ha[j] + up[j], cell = ca[j] + h * o * (1.0 - bent * bent);
                double fa = cell * c0 * f * (1.0 - f), ia = cell * g * i * (1.0 - i);
                double oa = h * bent * o * (1.0 - o), ga = cell * i * (1.0 - g * g);
                dw[j] += fa * given, dv[j] += fa;
                dw[b + j] += ia * h0, dv[b + j] += ia;
                dw[2 * b + j] += oa * given, dv[2 * b + j] += oa;
                dw[3 * b + j] += ga * h0, dv[3 * b + j] += ga;
                ca[j] = cell * f;
                ha[j] = ia * w[b + j] + ga * w[3 * b + j];
                up[j] = fa * w[j] + oa * w[2 * b + j];
            }
        }
        for (int64_t j = 0; j < b; j++) by_extra[j] += up[j] * seq[t * b + j];
    }
    free(kept), free(h_adj);
}

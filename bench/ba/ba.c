/* Bundle adjustment by hand: the chain rule written out, forward through the rotation. */
#include "baseline.h"

typedef struct {
    double w[3], c, s, along, t; /* axis, cosine, sine, (1 - c) (w . x), angle */
    double x[3], y[3];           /* before and after the rotation */
    double p[2], r2, f, scale;   /* projection, its square, focal length, distortion */
    int still;                   /* no rotation */
} Camera;

static void cross(const double *a, const double *b, double *out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

static Camera project(const double *cam, const double *X)
{
    Camera v;
    double turned[3];
    for (int k = 0; k < 3; k++) v.x[k] = X[k] - cam[3 + k];
    double t2 = cam[0] * cam[0] + cam[1] * cam[1] + cam[2] * cam[2];
    v.still = !(t2 > 0.0);
    if (v.still) {
        cross(cam, v.x, turned);
        for (int k = 0; k < 3; k++) v.y[k] = v.x[k] + turned[k], v.w[k] = 0.0;
        v.t = v.s = v.along = 0.0, v.c = 1.0;
    } else {
        v.t = sqrt(t2), v.c = cos(v.t), v.s = sin(v.t);
        for (int k = 0; k < 3; k++) v.w[k] = cam[k] / v.t;
        cross(v.w, v.x, turned);
        v.along = v.w[0] * v.x[0] + v.w[1] * v.x[1] + v.w[2] * v.x[2];
        for (int k = 0; k < 3; k++) v.y[k] = v.x[k] * v.c + turned[k] * v.s + v.w[k] * v.along * (1.0 - v.c);
    }
    double inverse = 1.0 / v.y[2];
    v.p[0] = v.y[0] * inverse, v.p[1] = v.y[1] * inverse;
    v.r2 = v.p[0] * v.p[0] + v.p[1] * v.p[1];
    v.scale = 1.0 + cam[9] * v.r2 + cam[10] * v.r2 * v.r2;
    v.f = cam[6];
    return v;
}

void objective(const int64_t *n, const void *const *in, void *const *out)
{
    const double *cams = in[0], *points = in[1], *w = in[2], *feats = in[4];
    const int64_t *obs = in[3];
    double *e = out[0], *we = out[1];
#pragma omp parallel for
    for (int64_t i = 0; i < n[2]; i++) {
        const double *cam = cams + 11 * obs[2 * i];
        Camera v = project(cam, points + 3 * obs[2 * i + 1]);
        for (int q = 0; q < 2; q++) e[2 * i + q] = w[i] * (v.p[q] * v.scale * v.f + cam[7 + q] - feats[2 * i + q]);
        we[i] = 1.0 - w[i] * w[i];
    }
}

void derivative(const int64_t *n, const void *const *in, void *const *out)
{
    const double *cams = in[0], *points = in[1], *weights = in[2], *feats = in[4];
    const int64_t *obs = in[3];
    int64_t p = n[2];
    int32_t *rows = out[0], *cols = out[1], point = 11 * n[0], own = point + 3 * n[1];
    double *vals = out[2];
    rows[0] = 0;
#pragma omp parallel for
    for (int64_t i = 0; i < p; i++) {
        const double *cam = cams + 11 * obs[2 * i];
        double weight = weights[i];
        Camera v = project(cam, points + 3 * obs[2 * i + 1]);
        /* y by x: the rotation; y by r: through the axis and the angle. */
        double R[3][3], D[3][3], wx[3];
        cross(v.w, v.x, wx);
        double K[3][3] = {{0, -v.w[2], v.w[1]}, {v.w[2], 0, -v.w[0]}, {-v.w[1], v.w[0], 0}};
        if (v.still) {
            double k[3][3] = {{0, v.x[2], -v.x[1]}, {-v.x[2], 0, v.x[0]}, {v.x[1], -v.x[0], 0}};
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++) {
                    double turn[3][3] = {{0, -cam[2], cam[1]}, {cam[2], 0, -cam[0]}, {-cam[1], cam[0], 0}};
                    R[a][b] = (a == b) + turn[a][b];
                    D[a][b] = k[a][b];
                }
        } else {
            double dw[3][3], by_angle[3]; /* y by the axis, and by the angle */
            double X[3][3] = {{0, v.x[2], -v.x[1]}, {-v.x[2], 0, v.x[0]}, {v.x[1], -v.x[0], 0}};
            for (int a = 0; a < 3; a++) {
                by_angle[a] = -v.x[a] * v.s + wx[a] * v.c + v.w[a] * v.along * v.s;
                for (int b = 0; b < 3; b++) {
                    R[a][b] = (a == b) * v.c + K[a][b] * v.s + v.w[a] * v.w[b] * (1.0 - v.c);
                    dw[a][b] = X[a][b] * v.s + (1.0 - v.c) * ((a == b) * v.along + v.w[a] * v.x[b]);
                }
            }
            /* w = r / t, so w by r is (1 - w w^T) / t, and t by r is w. */
            for (int a = 0; a < 3; a++) {
                double along = dw[a][0] * v.w[0] + dw[a][1] * v.w[1] + dw[a][2] * v.w[2];
                for (int b = 0; b < 3; b++) D[a][b] = (dw[a][b] - along * v.w[b]) / v.t + by_angle[a] * v.w[b];
            }
        }
        double inverse = 1.0 / v.y[2], slope = cam[9] + 2.0 * cam[10] * v.r2;
        for (int q = 0; q < 2; q++) {
            /* e by p, then by y */
            double ep[2], ey[3];
            for (int s = 0; s < 2; s++) ep[s] = weight * v.f * ((q == s) * v.scale + 2.0 * v.p[q] * v.p[s] * slope);
            ey[0] = ep[0] * inverse, ey[1] = ep[1] * inverse, ey[2] = -(ep[0] * v.p[0] + ep[1] * v.p[1]) * inverse;
            double *row = vals + 30 * i + 15 * q;
            int32_t *col = cols + 30 * i + 15 * q;
            for (int b = 0; b < 3; b++) {
                double by_x = ey[0] * R[0][b] + ey[1] * R[1][b] + ey[2] * R[2][b];
                row[b] = ey[0] * D[0][b] + ey[1] * D[1][b] + ey[2] * D[2][b];
                row[3 + b] = -by_x;
                row[11 + b] = by_x;
            }
            row[6] = weight * v.p[q] * v.scale;
            row[7] = q == 0 ? weight : 0.0;
            row[8] = q == 1 ? weight : 0.0;
            row[9] = weight * v.p[q] * v.f * v.r2;
            row[10] = row[9] * v.r2;
            row[14] = v.p[q] * v.scale * v.f + cam[7 + q] - feats[2 * i + q];
            for (int k = 0; k < 11; k++) col[k] = 11 * obs[2 * i] + k;
            for (int k = 0; k < 3; k++) col[11 + k] = point + 3 * obs[2 * i + 1] + k;
            col[14] = own + i;
            rows[2 * i + q + 1] = 30 * i + 15 * (q + 1);
        }
        vals[30 * p + i] = -2.0 * weight;
        cols[30 * p + i] = own + i;
        rows[2 * p + 1 + i] = 30 * p + i + 1;
    }
}

/* What depends on the camera alone once; the derivatives of the rotation by its axis as three matrices. */
#include "baseline.h"

typedef struct {
    double R[3][3], D[3][3][3]; /* the rotation, and its derivatives by the three numbers */
} Rotation;

static Rotation rotation(const double *r)
{
    Rotation out;
    double t2 = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    double turn[3][3] = {{0, -r[2], r[1]}, {r[2], 0, -r[0]}, {-r[1], r[0], 0}};
    for (int k = 0; k < 3; k++) {
        double e[3] = {k == 0, k == 1, k == 2}, E[3][3] = {{0, -e[2], e[1]}, {e[2], 0, -e[0]}, {-e[1], e[0], 0}};
        memcpy(out.D[k], E, sizeof E);
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) out.R[i][j] = (i == j) + turn[i][j];
    if (!(t2 > 0.0)) return out;
    double t = sqrt(t2), c = cos(t), s = sin(t), u[3] = {r[0] / t, r[1] / t, r[2] / t};
    double K[3][3] = {{0, -u[2], u[1]}, {u[2], 0, -u[0]}, {-u[1], u[0], 0}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) out.R[i][j] = u[i] * u[j] * (1 - c) + (i == j) * c + s * K[i][j];
    for (int k = 0; k < 3; k++) {
        double du[3];
        for (int i = 0; i < 3; i++) du[i] = ((i == k) - u[i] * u[k]) / t;
        double dK[3][3] = {{0, -du[2], du[1]}, {du[2], 0, -du[0]}, {-du[1], du[0], 0}};
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                out.D[k][i][j] = (du[i] * u[j] + u[i] * du[j]) * (1 - c) + u[k] * (u[i] * u[j] * s - (i == j) * s + c * K[i][j]) + s * dK[i][j];
    }
    return out;
}

static void turned(const double R[3][3], const double *x, double *y)
{
    for (int i = 0; i < 3; i++) y[i] = R[i][0] * x[0] + R[i][1] * x[1] + R[i][2] * x[2];
}

void objective(const int64_t *n, const void *const *in, void *const *out)
{
    const double *cam = in[0], *X = in[1];
    double *z = out[0];
    Rotation q = rotation(cam);
#pragma omp parallel for if (n[0] > 5000)
    for (int64_t k = 0; k < n[0]; k++) {
        double x[3] = {X[3 * k] - cam[3], X[3 * k + 1] - cam[4], X[3 * k + 2] - cam[5]}, y[3];
        turned(q.R, x, y);
        double inverse = 1.0 / y[2], p0 = y[0] * inverse, p1 = y[1] * inverse, r2 = p0 * p0 + p1 * p1;
        double scale = (1.0 + cam[9] * r2 + cam[10] * r2 * r2) * cam[6];
        z[2 * k] = p0 * scale + cam[7];
        z[2 * k + 1] = p1 * scale + cam[8];
    }
}

void derivative(const int64_t *n, const void *const *in, void *const *out)
{
    const double *cam = in[0], *X = in[1];
    double *J = out[0];
    Rotation q = rotation(cam);
#pragma omp parallel for if (n[0] > 5000)
    for (int64_t k = 0; k < n[0]; k++) {
        double x[3] = {X[3 * k] - cam[3], X[3 * k + 1] - cam[4], X[3 * k + 2] - cam[5]}, y[3], by[3][3];
        turned(q.R, x, y);
        for (int a = 0; a < 3; a++) turned(q.D[a], x, by[a]);
        double inverse = 1.0 / y[2], p[2] = {y[0] * inverse, y[1] * inverse}, r2 = p[0] * p[0] + p[1] * p[1];
        double shape = 1.0 + cam[9] * r2 + cam[10] * r2 * r2, slope = cam[9] + 2.0 * cam[10] * r2;
        for (int e = 0; e < 2; e++) {
            double ep[2], ey[3], *row = J + 22 * k + 11 * e;
            for (int s = 0; s < 2; s++) ep[s] = cam[6] * ((e == s) * shape + 2.0 * p[e] * p[s] * slope);
            ey[0] = ep[0] * inverse, ey[1] = ep[1] * inverse, ey[2] = -(ep[0] * p[0] + ep[1] * p[1]) * inverse;
            for (int a = 0; a < 3; a++) {
                row[a] = ey[0] * by[a][0] + ey[1] * by[a][1] + ey[2] * by[a][2];
                row[3 + a] = -(ey[0] * q.R[0][a] + ey[1] * q.R[1][a] + ey[2] * q.R[2][a]);
            }
            row[6] = p[e] * shape;
            row[7] = e == 0, row[8] = e == 1;
            row[9] = p[e] * cam[6] * r2;
            row[10] = row[9] * r2;
        }
    }
}

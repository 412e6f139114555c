/* Hand tracking by hand: the transforms of the bones with their derivatives by the four angles of their own finger, then each
 * vertex that a point is compared with, of the bones that move it. */
#include "baseline.h"

typedef double M[3][4]; /* the upper rows of a rigid transform */

static void multiply(M a, M b, int whole, M out)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            out[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j] + (j == 3 && whole ? a[i][3] : 0.0);
}

static void load(const double *from, M out) { memcpy(out, from, sizeof(M)); }

/* Rz Rx and its derivatives by x and z, which have no fourth column to be added to. */
static void bend(double x, double z, M out, M by_x, M by_z)
{
    double cx = cos(x), sx = sin(x), cz = cos(z), sz = sin(z);
    M r = {{cz, -sz * cx, sz * sx, 0}, {sz, cz * cx, -cz * sx, 0}, {0, sx, cx, 0}};
    M dx = {{0, sz * sx, sz * cx, 0}, {0, -cz * sx, -cz * cx, 0}, {0, cx, -sx, 0}};
    M dz = {{-sz, -cz * cx, cz * sx, 0}, {cz, -sz * cx, sz * sx, 0}, {0, 0, 0, 0}};
    memcpy(out, r, sizeof r), memcpy(by_x, dx, sizeof dx), memcpy(by_z, dz, sizeof dz);
}

/* The rotation by an axis times an angle, and its derivatives by the three. */
static void axis_angle(const double *v, double R[3][3], double D[3][3][3])
{
    double t2 = v[0] * v[0] + v[1] * v[1] + v[2] * v[2];
    memset(D, 0, 27 * sizeof(double));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) R[i][j] = i == j;
    if (t2 < 1e-8) return;
    double t = sqrt(t2), c = cos(t), s = sin(t), u[3] = {v[0] / t, v[1] / t, v[2] / t};
    double K[3][3] = {{0, -u[2], u[1]}, {u[2], 0, -u[0]}, {-u[1], u[0], 0}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) R[i][j] = u[i] * u[j] * (1 - c) + (i == j) * c + s * K[i][j];
    for (int k = 0; k < 3; k++) {
        double du[3];
        for (int i = 0; i < 3; i++) du[i] = ((i == k) - u[i] * u[k]) / t;
        double dK[3][3] = {{0, -du[2], du[1]}, {du[2], 0, -du[0]}, {-du[1], du[0], 0}}, dt = u[k];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                D[k][i][j] = (du[i] * u[j] + u[i] * du[j]) * (1 - c) + u[i] * u[j] * s * dt - (i == j) * s * dt + c * dt * K[i][j] + s * dK[i][j];
    }
}

typedef struct {
    M at;    /* where the bone takes a vertex at rest */
    M by[4]; /* its derivatives by the angles of its finger */
    int moves;
    int finger;
} Bone;

static void pose(int64_t bones, const double *theta, const int64_t *parent, const double *base, const double *inverse, Bone *out, int derive)
{
    Bone *absolute = malloc(bones * sizeof *absolute);
    for (int64_t k = 0; k < bones; k++) {
        int finger = (int)(k - 2) / 4, joint = (int)(k - 2) % 4, bent = k >= 2 && joint < 3 && finger < 5;
        double x = bent ? theta[6 + 4 * finger + (joint ? joint + 1 : 0)] : 0.0, z = bent && !joint ? theta[7 + 4 * finger] : 0.0;
        M own, fixed, r, by_x, by_z, relative, inv;
        Bone *b = absolute + k, *p = parent[k] < 0 ? NULL : absolute + parent[k];
        load(base + 16 * k, own), load(inverse + 16 * k, inv);
        bend(x, z, r, by_x, by_z);
        if (p) multiply(p->at, own, 1, fixed);
        else memcpy(fixed, own, sizeof fixed);
        multiply(fixed, r, 1, b->at);
        multiply(b->at, inv, 1, out[k].at);
        b->moves = out[k].moves = derive && ((p && p->moves) || bent);
        b->finger = out[k].finger = bent ? finger : p ? p->finger : 0;
        if (!b->moves) continue;
        memset(b->by, 0, sizeof b->by);
        multiply(own, r, 1, relative);
        if (p && p->moves)
            for (int a = 0; a < 4; a++) multiply(p->by[a], relative, 1, b->by[a]);
        if (bent) {
            multiply(fixed, by_x, 0, b->by[joint ? joint + 1 : 0]);
            if (!joint) multiply(fixed, by_z, 0, b->by[1]);
        }
        for (int a = 0; a < 4; a++) multiply(b->by[a], inv, 1, out[k].by[a]);
    }
    free(absolute);
}

static void transform(M m, const double *x, double weight, double *out)
{
    for (int i = 0; i < 3; i++) out[i] += weight * (m[i][0] * x[0] + m[i][1] * x[1] + m[i][2] * x[2] + m[i][3] * x[3]);
}

static void turn(double R[3][3], const double *x, double *out)
{
    for (int i = 0; i < 3; i++) out[i] = R[i][0] * x[0] + R[i][1] * x[1] + R[i][2] * x[2];
}

/* Adds a vertex times `share` to `place`, and its derivatives by theta to `by` where that is asked for. */
static void vertex(int64_t bones, const Bone *skin, const double *rest, const double *weight, const double *theta, double R[3][3],
                   double D[3][3][3], double share, double *place, double (*by)[26])
{
    double bent[3] = {0}, out[3], angles[20][3];
    int fingers = 0;
    if (by) memset(angles, 0, sizeof angles);
    for (int64_t k = 0; k < bones; k++) {
        if (weight[k] == 0.0) continue;
        transform((double(*)[4])skin[k].at, rest, weight[k], bent);
        if (by && skin[k].moves) {
            fingers |= 1 << skin[k].finger;
            for (int a = 0; a < 4; a++) transform((double(*)[4])skin[k].by[a], rest, weight[k], angles[4 * skin[k].finger + a]);
        }
    }
    turn(R, bent, out);
    for (int i = 0; i < 3; i++) place[i] += share * (out[i] + theta[3 + i]);
    if (!by) return;
    for (int a = 0; a < 3; a++) {
        turn(D[a], bent, out);
        for (int i = 0; i < 3; i++) by[i][a] += share * out[i];
        by[a][3 + a] += share;
    }
    for (int f = 0; f < 5; f++) {
        if (!(fingers >> f & 1)) continue;
        for (int a = 0; a < 4; a++) {
            turn(R, angles[4 * f + a], out);
            for (int i = 0; i < 3; i++) by[i][6 + 4 * f + a] += share * out[i];
        }
    }
}

static void run(const int64_t *n, const void *const *in, double *errors, double *jacobian)
{
    const double *theta = in[0], *base = in[2], *inverse = in[3], *rest = in[4], *weight = in[5], *points = in[7], *us = in[8];
    const int64_t *parent = in[1], *corr = in[6], *triangles = in[9];
    int64_t bones = n[2], columns = n[3] ? 28 : 26, own = columns - 26;
    double R[3][3], D[3][3][3];
    Bone *skin = malloc(bones * sizeof *skin);
    axis_angle(theta, R, D);
    pose(bones, theta, parent, base, inverse, skin, jacobian != NULL);
#pragma omp parallel for
    for (int64_t i = 0; i < n[0]; i++) {
        double place[3][3] = {{0}}, by[3][26];
        int corners = n[3] ? 3 : 1;
        memset(by, 0, sizeof by);
        for (int c = 0; c < corners; c++) {
            int64_t v = n[3] ? triangles[3 * corr[i] + c] : corr[i];
            double share = !n[3] ? 1.0 : c < 2 ? us[2 * i + c] : 1.0 - us[2 * i] - us[2 * i + 1];
            double corner[3] = {0};
            /* The corner itself is wanted where its share is a variable. */
            double mine[3][26];
            memset(mine, 0, sizeof mine);
            vertex(bones, skin, rest + 4 * v, weight + bones * v, theta, R, D, 1.0, corner, jacobian ? mine : NULL);
            for (int a = 0; a < 3; a++) {
                place[c][a] = corner[a];
                if (jacobian)
                    for (int k = 0; k < 26; k++) by[a][k] += share * mine[a][k];
            }
        }
        for (int a = 0; a < 3; a++) {
            double u = n[3] ? us[2 * i] : 1.0, w = n[3] ? us[2 * i + 1] : 0.0;
            if (errors) errors[3 * i + a] = points[3 * i + a] - (u * place[0][a] + w * place[1][a] + (n[3] ? (1 - u - w) * place[2][a] : 0.0));
            if (!jacobian) continue;
            double *row = jacobian + (3 * i + a) * columns;
            if (n[3]) row[0] = place[2][a] - place[0][a], row[1] = place[2][a] - place[1][a];
            for (int k = 0; k < 26; k++) row[own + k] = -by[a][k];
        }
    }
    free(skin);
}

void objective(const int64_t *n, const void *const *in, void *const *out) { run(n, in, out[0], NULL); }
void derivative(const int64_t *n, const void *const *in, void *const *out) { run(n, in, NULL, out[0]); }

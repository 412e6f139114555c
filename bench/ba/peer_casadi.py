"""Bundle adjustment in CasADi: the symbolic Jacobian of one residual as C, compiled, in a loop over the observations."""

import ctypes
import os
import subprocess
import tempfile

import casadi as ca
import numpy as np

COMPILES = True

LOOP = """
#include "residual.c"
void objective(int p, const double *cams, const double *points, const double *w, const int *obs, const double *feats,
               double *e, double *we)
{
    double work[512];
    for (int i = 0; i < p; i++) {
        const double *a[4] = {cams + 11 * obs[2 * i], points + 3 * obs[2 * i + 1], w + i, feats + 2 * i};
        double *r[1] = {e + 2 * i};
        residual(a, r, 0, work, 0);
    }
    for (int i = 0; i < p; i++) we[i] = 1 - w[i] * w[i];
}
void jacobian(int n, int m, int p, const double *cams, const double *points, const double *w, const int *obs,
              const double *feats, double *e, int *rows, int *cols, double *vals)
{
    double work[512];
    rows[0] = 0;
    for (int i = 0; i < p; i++) {
        const double *a[4] = {cams + 11 * obs[2 * i], points + 3 * obs[2 * i + 1], w + i, feats + 2 * i};
        double *r[2] = {e + 2 * i, vals + 30 * (long)i};
        both(a, r, 0, work, 0);
        for (int q = 0; q < 2; q++) {
            int *c = cols + 30 * (long)i + 15 * q;
            for (int k = 0; k < 11; k++) c[k] = 11 * obs[2 * i] + k;
            for (int k = 0; k < 3; k++) c[11 + k] = 11 * n + 3 * obs[2 * i + 1] + k;
            c[14] = 11 * n + 3 * m + i;
            rows[2 * i + q + 1] = 30 * i + 15 * (q + 1);
        }
    }
    for (int i = 0; i < p; i++) {
        vals[30 * (long)p + i] = -2 * w[i];
        cols[30 * (long)p + i] = 11 * n + 3 * m + i;
        rows[2 * p + 1 + i] = 30 * p + i + 1;
    }
}
"""


def library():
    cam, X, w, feat = ca.SX.sym("cam", 11), ca.SX.sym("X", 3), ca.SX.sym("w"), ca.SX.sym("feat", 2)
    r, Xo = cam[0:3], X - cam[3:6]
    t = ca.sqrt(ca.sumsqr(r))
    u, c, s = r / t, ca.cos(t), ca.sin(t)
    Y = Xo * c + ca.cross(u, Xo) * s + u * (ca.dot(u, Xo) * (1 - c))
    p = Y[0:2] / Y[2]
    r2 = ca.sumsqr(p)
    e = w * (p * (1 + cam[9] * r2 + cam[10] * r2**2) * cam[6] + cam[7:9] - feat)
    # Column by column 15 x 2: rows of 15.
    J = ca.densify(ca.jacobian(e, ca.vertcat(cam, X, w))).T
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        generator = ca.CodeGenerator("residual.c")
        generator.add(ca.Function("residual", [cam, X, w, feat], [e]))
        generator.add(ca.Function("both", [cam, X, w, feat], [e, J]))
        generator.generate()
        with open("loop.c", "w") as text:
            text.write(LOOP)
        compiler = os.environ.get("CC", "cc")
        subprocess.run([compiler, *"-O3 -march=native -w -shared -fPIC -o ba.so loop.c -lm".split()], check=True)
        loaded = ctypes.CDLL(os.path.join(folder, "ba.so"))
        os.chdir(before)
    return loaded


def functions(inputs):
    made = library()
    arrays = [np.ascontiguousarray(inputs[name]) for name in ("cams", "points", "w", "obs", "feats")]
    arrays[3] = arrays[3].astype(np.int32)
    n, m, p = len(arrays[0]), len(arrays[1]), len(arrays[2])
    at = lambda *those: [a.ctypes.data_as(ctypes.c_void_p) for a in those]
    outputs = {}

    def objective():
        # Made once: results are written over those of the last call.
        e, we = outputs.setdefault("objective", (np.empty((p, 2)), np.empty(p)))
        made.objective(p, *at(*arrays, e, we))
        return e, we

    def jacobian():
        new = lambda: (np.empty((p, 2)), np.empty(3 * p + 1, np.int32), np.empty(31 * p, np.int32), np.empty(31 * p))
        results = outputs.get("jacobian") or outputs.setdefault("jacobian", new())
        made.jacobian(n, m, p, *at(*arrays, *results))
        return results[1:]

    return objective, jacobian

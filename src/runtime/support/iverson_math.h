/* Scalar functions that libm lacks, as src/scalar/numerics.rs has them in Rust. */
#ifndef IVERSON_MATH_H
#define IVERSON_MATH_H

#include <math.h>
#include <stdint.h>

/* Branch-free where a loop over arrays should become vector code. */

static inline double iv_sign(double x) { return x > 0.0 ? 1.0 : (x < 0.0 ? -1.0 : x); }
/* The first argument wins ties, NaN wins over numbers. */
static inline double iv_max(double x, double y) { return (x >= y) | (x != x) ? x : y; }
static inline double iv_min(double x, double y) { return (x <= y) | (x != x) ? x : y; }
/* Right in both tails: where exp(-x) overflows, the quotient is 0. */
static inline double iv_sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

static inline int64_t iv_int_sign(int64_t x) { return (x > 0) - (x < 0); }
static inline int64_t iv_int_abs(int64_t x) { return x < 0 ? (int64_t)(0 - (uint64_t)x) : x; }
static inline int64_t iv_int_max(int64_t x, int64_t y) { return x >= y ? x : y; }
static inline int64_t iv_int_min(int64_t x, int64_t y) { return x <= y ? x : y; }

/* Floored division. The caller has seen to it that b is not zero; by -1 the smallest number wraps to itself. */
static inline int64_t iv_int_div(int64_t a, int64_t b) {
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    int64_t q = a / b;
    return q - ((a % b != 0) & ((a < 0) != (b < 0)));
}
static inline int64_t iv_int_mod(int64_t a, int64_t b) {
    if (b == -1) return 0;
    int64_t m = a % b;
    return m + (((m != 0) & ((m < 0) != (b < 0))) ? b : 0);
}

/* Powers by repeated squaring, the smallest powers first. Small constant exponents leave no loop behind. */
static inline double iv_powi(double x, int64_t k) {
    if (__builtin_constant_p(k)) {
        if (k == 0) return 1.0;
        if (k == 1) return x;
        if (k == 2) return x * x;
        if (k == 3) return x * (x * x);
        if (k == 4) return (x * x) * (x * x);
        if (k == -1) return 1.0 / x;
        if (k == -2) return 1.0 / (x * x);
    }
    uint64_t left = k < 0 ? 0 - (uint64_t)k : (uint64_t)k;
    double power = 1.0;
    for (double base = x; left != 0; left >>= 1, base *= base)
        if (left & 1) power *= base;
    return k < 0 ? 1.0 / power : power;
}
/* The caller has seen to it that k is not negative. */
static inline int64_t iv_int_pow(int64_t n, int64_t k) {
    uint64_t power = 1, base = (uint64_t)n;
    for (; k != 0; k >>= 1, base *= base)
        if (k & 1) power *= base;
    return (int64_t)power;
}
/* Whether a float has an integer once its fraction is dropped. */
static inline int iv_has_int(double x) { return x >= -9223372036854775808.0 && x < 9223372036854775808.0; }

static inline double iv_digamma(double x) {
    const double pi = 3.14159265358979323846;
    double sum = 0.0;
    if (x == 0.0) return -1.0 / x;
    if (x < 0.0) {
        double fraction = x - floor(x);
        if (fraction == 0.0 || isinf(x)) return NAN;
        /* psi(x) = psi(1 - x) - pi / tan(pi x), the tangent having period 1 in x */
        sum = -(pi / tan(pi * fraction));
        x = 1.0 - x;
    }
    double below = 0.0;
    for (; x < 10.0; x += 1.0) below += 1.0 / x;
    double inverse = 1.0 / x, z = inverse * inverse;
    double series = z * (1.0 / 12.0 - z * (1.0 / 120.0 - z * (1.0 / 252.0 - z * (1.0 / 240.0 - z * (1.0 / 132.0
                    - z * (691.0 / 32760.0 - z * (1.0 / 12.0 - z * (3617.0 / 8160.0))))))));
    return log(x) - 0.5 * inverse - series - below + sum;
}

/* Hurwitz's zeta function for x > 0, s >= 2, by Euler and Maclaurin's formula. */
static inline double iv_zeta(double s, double x) {
    /* B(2j) / (2j)! */
    static const double coefficients[10] = {
        1.0 / 12.0,
        -1.0 / 720.0,
        1.0 / 30240.0,
        -1.0 / 1209600.0,
        1.0 / 47900160.0,
        -691.0 / 1307674368000.0,
        1.0 / 74724249600.0,
        -3617.0 / 10670622842880000.0,
        43867.0 / 5109094217170944000.0,
        -174611.0 / 802857662698291200000.0,
    };
    if (isinf(x)) return 0.0;
    double sum = 0.0, a = x;
    for (; a < 10.0 + s; a += 1.0) {
        double term = pow(a, -s);
        sum += term;
        if (term < 1e-17 * sum) return sum;
    }
    double power = pow(a, -s);
    sum += power * a / (s - 1.0) + 0.5 * power;
    double factor = s * power / a;
    for (int j = 0; j < 10; j++) {
        sum += coefficients[j] * factor;
        double k = s + 2.0 * j;
        factor *= (k + 1.0) * (k + 2.0) / (a * a);
    }
    return sum;
}

/* The derivative of the given order of digamma: (-1)^(k+1) k! zeta(k + 1, x), for negative x by summing the terms on
   either side of the pole at 0. */
static inline double iv_polygamma(int64_t order, double x) {
    if (order < 0 || x != x) return NAN;
    if (order == 0) return iv_digamma(x);
    double s = (double)order + 1.0, sum;
    int odd = order % 2 == 1;
    if (x > 0.0) {
        sum = iv_zeta(s, x);
    } else {
        double fraction = x - floor(x);
        if (fraction == 0.0 || isinf(x)) return odd ? INFINITY : NAN;
        double below = iv_zeta(s, 1.0 - fraction) - iv_zeta(s, 1.0 - x);
        sum = odd ? iv_zeta(s, fraction) + below : iv_zeta(s, fraction) - below;
    }
    double factorial = 1.0;
    for (int64_t k = 2; k <= (order < 171 ? order : 171); k++) factorial *= (double)k;
    return odd ? factorial * sum : -factorial * sum;
}

#endif

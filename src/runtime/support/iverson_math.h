/* Scalar functions: those of libm, and those that it lacks, as src/scalar/numerics.rs has them in Rust. */
#ifndef IVERSON_MATH_H
#define IVERSON_MATH_H

#include <stdint.h>

/* glibc has vector forms of most; saying so is enough for gcc to use them in `omp simd` loops, without the licence to
   drop NaN and infinities that -ffast-math is. Sums in vector loops and these calls are all that differs from strict code. */
#if !defined(IV_STRICT) && defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#if __GLIBC_PREREQ(2, 35)
#define IV_SIMD_MATHS
#endif
#endif
#if defined(IV_SIMD_MATHS)
#define IV_VECTOR __attribute__((simd("notinbranch"), const))
#else
#define IV_VECTOR
#endif
/* Declared here, since math.h is longer to read than most of what is emitted. */
#define IV_LIBM(kind, name) kind double name(double); kind float name##f(float);
#define IV_LIBM2(kind, name) kind double name(double, double); kind float name##f(float, float);
IV_LIBM(, sqrt) IV_LIBM(, fabs) IV_LIBM(, floor) IV_LIBM(, ceil) IV_LIBM(, round) IV_LIBM(, lgamma)
IV_LIBM(IV_VECTOR, exp) IV_LIBM(IV_VECTOR, exp2) IV_LIBM(IV_VECTOR, expm1)
IV_LIBM(IV_VECTOR, log) IV_LIBM(IV_VECTOR, log2) IV_LIBM(IV_VECTOR, log10) IV_LIBM(IV_VECTOR, log1p)
IV_LIBM(IV_VECTOR, sin) IV_LIBM(IV_VECTOR, cos) IV_LIBM(IV_VECTOR, tan)
IV_LIBM(IV_VECTOR, asin) IV_LIBM(IV_VECTOR, acos) IV_LIBM(IV_VECTOR, atan)
IV_LIBM(IV_VECTOR, sinh) IV_LIBM(IV_VECTOR, cosh) IV_LIBM(IV_VECTOR, tanh)
IV_LIBM(IV_VECTOR, erf) IV_LIBM(IV_VECTOR, erfc) IV_LIBM(IV_VECTOR, cbrt)
IV_LIBM2(IV_VECTOR, pow) IV_LIBM2(IV_VECTOR, atan2) IV_LIBM2(IV_VECTOR, hypot)
#ifndef NAN
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#endif

/* Every function is there for each width of its type: iv_max for double and iv_maxf for float, iv_int_max for int64_t
   and iv_int32_max for int32_t. Branch-free where a loop over arrays should become vector code. */

/* iv_max and iv_min: the first argument wins ties, NaN wins over numbers.
   iv_sigmoid: right in both tails, since where exp(-x) overflows, the quotient is 0.
   iv_powi: powers by repeated squaring, the smallest powers first. Small constant exponents leave no loop behind. */
#define IV_FLOATS(T, f)                                                                                                \
    static inline T iv_sign##f(T x) { return x > 0 ? (T)1 : (x < 0 ? (T)-1 : x); }                                     \
    static inline T iv_max##f(T x, T y) { return (x >= y) | (x != x) ? x : y; }                                        \
    static inline T iv_min##f(T x, T y) { return (x <= y) | (x != x) ? x : y; }                                        \
    static inline T iv_sigmoid##f(T x) { return 1 / (1 + exp##f(-x)); }                                                \
    static inline T iv_powi##f(T x, int64_t k) {                                                                       \
        if (__builtin_constant_p(k)) {                                                                                 \
            if (k == 0) return 1;                                                                                      \
            if (k == 1) return x;                                                                                      \
            if (k == 2) return x * x;                                                                                  \
            if (k == 3) return x * (x * x);                                                                            \
            if (k == 4) return (x * x) * (x * x);                                                                      \
            if (k == -1) return 1 / x;                                                                                 \
            if (k == -2) return 1 / (x * x);                                                                           \
        }                                                                                                              \
        uint64_t left = k < 0 ? 0 - (uint64_t)k : (uint64_t)k;                                                         \
        T power = 1;                                                                                                   \
        for (T base = x; left != 0; left >>= 1, base *= base)                                                          \
            if (left & 1) power *= base;                                                                               \
        return k < 0 ? 1 / power : power;                                                                              \
    }
IV_FLOATS(double, )
IV_FLOATS(float, f)

/* div and mod are floored. The caller has seen to it that b is not zero; by -1 the smallest number wraps to itself.
   pow: the caller has seen to it that k is not negative; agreed: that a is b, or as it is wanted beside it. */
#define IV_INTEGERS(T, U, p)                                                                                           \
    static inline T p##_sign(T x) { return (x > 0) - (x < 0); }                                                        \
    static inline T p##_abs(T x) { return x < 0 ? (T)(0 - (U)x) : x; }                                                 \
    static inline T p##_max(T x, T y) { return x >= y ? x : y; }                                                       \
    static inline T p##_min(T x, T y) { return x <= y ? x : y; }                                                       \
    static inline T p##_agreed(T a, T b) { return (void)b, a; }                                                        \
    static inline T p##_div(T a, T b) {                                                                                \
        if (b == -1) return (T)(0 - (U)a);                                                                             \
        T q = a / b;                                                                                                   \
        return q - ((a % b != 0) & ((a < 0) != (b < 0)));                                                              \
    }                                                                                                                  \
    static inline T p##_mod(T a, T b) {                                                                                \
        if (b == -1) return 0;                                                                                         \
        T m = a % b;                                                                                                   \
        return m + (((m != 0) & ((m < 0) != (b < 0))) ? b : 0);                                                        \
    }                                                                                                                  \
    static inline T p##_pow(T n, int64_t k) {                                                                          \
        U power = 1, base = (U)n;                                                                                      \
        for (; k != 0; k >>= 1, base *= base)                                                                          \
            if (k & 1) power *= base;                                                                                  \
        return (T)power;                                                                                               \
    }
IV_INTEGERS(int64_t, uint64_t, iv_int)
IV_INTEGERS(int32_t, uint32_t, iv_int32)

/* Whether a float has an integer of so many bits once its fraction is dropped. */
static inline int iv_has_int64(double x) { return x >= -9223372036854775808.0 && x < 9223372036854775808.0; }
static inline int iv_has_int32(double x) { return x > -2147483649.0 && x < 2147483648.0; }

static inline double iv_digamma(double x) {
    const double pi = 3.14159265358979323846;
    double sum = 0.0;
    if (x == 0.0) return -1.0 / x;
    if (x < 0.0) {
        double fraction = x - floor(x);
        if (fraction == 0.0 || __builtin_isinf(x)) return NAN;
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
    if (__builtin_isinf(x)) return 0.0;
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
        if (fraction == 0.0 || __builtin_isinf(x)) return odd ? INFINITY : NAN;
        double below = iv_zeta(s, 1.0 - fraction) - iv_zeta(s, 1.0 - x);
        sum = odd ? iv_zeta(s, fraction) + below : iv_zeta(s, fraction) - below;
    }
    double factorial = 1.0;
    for (int64_t k = 2; k <= (order < 171 ? order : 171); k++) factorial *= (double)k;
    return odd ? factorial * sum : -factorial * sum;
}

/* As near as double has them. */
static inline float iv_digammaf(float x) { return (float)iv_digamma(x); }
static inline float iv_polygammaf(int64_t order, float x) { return (float)iv_polygamma(order, x); }

#endif

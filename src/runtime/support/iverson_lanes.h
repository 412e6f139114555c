/* Iterations side by side: vectors of 8 numbers, or of 16 where none of them has 64 bits but offsets, whatever the
   machine's vectors are. */
#ifndef IVERSON_LANES_H
#define IVERSON_LANES_H

/* Vectors are passed only to functions that are inlined, so how they would be passed does not matter. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/* Names end with the number of lanes and a letter: d, f for floats of 64 and 32 bits, l, i for integers, m for conditions,
   which are all ones or all zeros in each lane. With `_at` they are anywhere in memory. */
#define IV_VECTOR_TYPE(T, N, s)                                                                                        \
    typedef T iv_v##N##s __attribute__((vector_size(N * sizeof(T))));                                                  \
    typedef T iv_v##N##s##_at __attribute__((vector_size(N * sizeof(T)), aligned(sizeof(T)), may_alias));
IV_VECTOR_TYPE(double, 8, d)
IV_VECTOR_TYPE(float, 8, f)
IV_VECTOR_TYPE(int64_t, 8, l)
IV_VECTOR_TYPE(int32_t, 8, i)
IV_VECTOR_TYPE(int64_t, 8, m)
IV_VECTOR_TYPE(float, 16, f)
IV_VECTOR_TYPE(int64_t, 16, l)
IV_VECTOR_TYPE(int32_t, 16, i)
IV_VECTOR_TYPE(int32_t, 16, m)
#define iv_lanes_8l ((iv_v8l){0, 1, 2, 3, 4, 5, 6, 7})
#define iv_lanes_16l ((iv_v16l){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
#define iv_first_8m(count) ((iv_v8m){0, 1, 2, 3, 4, 5, 6, 7} < (int64_t)(count))
#define iv_first_16m(count) ((iv_v16m){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} < (int32_t)(count))

/* One number in all lanes; subtracting zero leaves -0 as it is. */
#define iv_all_8d(x) ((double)(x) - (iv_v8d){0})
#define iv_all_8f(x) ((float)(x) - (iv_v8f){0})
#define iv_all_8l(x) ((int64_t)(x) - (iv_v8l){0})
#define iv_all_8i(x) ((int32_t)(x) - (iv_v8i){0})
#define iv_all_8m(p) (-(int64_t)(p) - (iv_v8m){0})
#define iv_all_16f(x) ((float)(x) - (iv_v16f){0})
#define iv_all_16l(x) ((int64_t)(x) - (iv_v16l){0})
#define iv_all_16i(x) ((int32_t)(x) - (iv_v16i){0})
#define iv_all_16m(p) (-(int32_t)(p) - (iv_v16m){0})

/* Conversions between numbers and, of conditions, between widths. */
#define iv_as(V, x) __builtin_convertvector(x, V)
/* The bits of x where the mask has ones, those of y elsewhere; I are integers as wide as they. */
#define iv_select_of(V, I, mask, x, y) ((V)(((I)(x) & (mask)) | ((I)(y) & ~(mask))))
#define iv_select_8d(mask, x, y) iv_select_of(iv_v8d, iv_v8l, mask, x, y)
#define iv_select_8l(mask, x, y) iv_select_of(iv_v8l, iv_v8l, mask, x, y)
#define iv_select_8m(mask, x, y) iv_select_of(iv_v8m, iv_v8l, mask, x, y)
#define iv_select_8f(mask, x, y) iv_select_of(iv_v8f, iv_v8i, iv_as(iv_v8i, mask), x, y)
#define iv_select_8i(mask, x, y) iv_select_of(iv_v8i, iv_v8i, iv_as(iv_v8i, mask), x, y)
#define iv_select_16f(mask, x, y) iv_select_of(iv_v16f, iv_v16i, mask, x, y)
#define iv_select_16i(mask, x, y) iv_select_of(iv_v16i, iv_v16i, mask, x, y)
#define iv_select_16m(mask, x, y) iv_select_of(iv_v16m, iv_v16i, mask, x, y)
#define iv_select_16l(mask, x, y) iv_select_of(iv_v16l, iv_v16l, iv_as(iv_v16l, mask), x, y)

/* Loops over lanes are written out: a vector is then never an array in memory. */
#if defined(__GNUC__) && !defined(__clang__)
#define IV_EACH _Pragma("GCC unroll 16")
#define IV_ROLLED _Pragma("GCC unroll 1")
#else
#define IV_EACH _Pragma("unroll")
#define IV_ROLLED _Pragma("nounroll")
#endif
/* Asks for so many bytes, which need not be there. */
static inline void iv_fetch(const void *from, int64_t bytes)
{
    IV_ROLLED for (int64_t k = 0; k < bytes; k += 64) __builtin_prefetch((const char *)from + k);
}
/* Where the processor has masks in registers of their own. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define IV_MASKS
typedef long long iv_quads __attribute__((vector_size(64)));
typedef int iv_words __attribute__((vector_size(64)));
#define iv_bits_8(mask) ((unsigned char)__builtin_ia32_ptestmq512((iv_quads)(mask), (iv_quads)(mask), (unsigned char)-1))
#define iv_bits_16(mask) ((unsigned short)__builtin_ia32_ptestmd512((iv_words)(mask), (iv_words)(mask), (unsigned short)-1))
#endif

#define IV_LANES(N)                                                                                                    \
    static inline int64_t iv_least_##N(iv_v##N##l x)                                                                   \
    {                                                                                                                  \
        int64_t least = x[0];                                                                                          \
        IV_EACH for (int l = 1; l < N; l++) least = x[l] < least ? x[l] : least;                                       \
        return least;                                                                                                  \
    }                                                                                                                  \
    static inline int64_t iv_most_##N(iv_v##N##l x)                                                                    \
    {                                                                                                                  \
        int64_t most = x[0];                                                                                           \
        IV_EACH for (int l = 1; l < N; l++) most = x[l] > most ? x[l] : most;                                          \
        return most;                                                                                                   \
    }
IV_LANES(8)
IV_LANES(16)
#ifdef IV_MASKS
#define iv_any_8(mask) ({ const iv_v8m iv_m = mask; iv_bits_8(iv_m) != 0; })
#define iv_any_16(mask) ({ const iv_v16m iv_m = mask; iv_bits_16(iv_m) != 0; })
#else
#define IV_ANY(N)                                                                                                      \
    static inline bool iv_any_##N(iv_v##N##m mask)                                                                     \
    {                                                                                                                  \
        int64_t any = 0;                                                                                               \
        IV_EACH for (int l = 0; l < N; l++) any |= mask[l];                                                            \
        return any != 0;                                                                                               \
    }
IV_ANY(8)
IV_ANY(16)
#endif

#define IV_FIRST(x) __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7)
#define IV_LAST(x) __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15)
/* In pairs, so that the order is the same everywhere. */
#define IV_SUM_OF_8(T, s)                                                                                              \
    static inline T iv_sum_8##s(iv_v8##s x)                                                                            \
    {                                                                                                                  \
        typedef T four __attribute__((vector_size(4 * sizeof(T))));                                                    \
        typedef T two __attribute__((vector_size(2 * sizeof(T))));                                                     \
        const four half = __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);       \
        const two quarter = __builtin_shufflevector(half, half, 0, 1) + __builtin_shufflevector(half, half, 2, 3);     \
        return quarter[0] + quarter[1];                                                                                \
    }
#define IV_SUM_OF_16(T, s)                                                                                             \
    static inline iv_v8##s iv_fold_16##s(iv_v16##s x)                                                                  \
    {                                                                                                                  \
        return IV_FIRST(x) + IV_LAST(x);                                                                               \
    }                                                                                                                  \
    static inline T iv_sum_16##s(iv_v16##s x) { return iv_sum_8##s(iv_fold_16##s(x)); }
IV_SUM_OF_8(double, d)
IV_SUM_OF_8(float, f)
IV_SUM_OF_8(int64_t, l)
IV_SUM_OF_8(int32_t, i)
IV_SUM_OF_16(float, f)
IV_SUM_OF_16(int64_t, l)
IV_SUM_OF_16(int32_t, i)

/* Pairs of the lanes of even numbers, and of odd ones. */
#define IV_LOW(x, y) __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14)
#define IV_HIGH(x, y) __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15)
/* Four sums at once, added to four places. */
#define IV_ADD_SUMS(T, s)                                                                                              \
    static inline void iv_add_sums_8##s(T *p0, T *p1, T *p2, T *p3, iv_v8##s a, iv_v8##s b, iv_v8##s c, iv_v8##s d)    \
    {                                                                                                                  \
        typedef T half __attribute__((vector_size(4 * sizeof(T))));                                                    \
        const iv_v8##s ab = IV_LOW(a, b) + IV_HIGH(a, b), cd = IV_LOW(c, d) + IV_HIGH(c, d);                           \
        const half x = __builtin_shufflevector(ab, ab, 0, 1, 2, 3) + __builtin_shufflevector(ab, ab, 4, 5, 6, 7);      \
        const half y = __builtin_shufflevector(cd, cd, 0, 1, 2, 3) + __builtin_shufflevector(cd, cd, 4, 5, 6, 7);      \
        const half sums = __builtin_shufflevector(x, y, 0, 1, 4, 5) + __builtin_shufflevector(x, y, 2, 3, 6, 7);       \
        *p0 += sums[0];                                                                                                \
        *p1 += sums[1];                                                                                                \
        *p2 += sums[2];                                                                                                \
        *p3 += sums[3];                                                                                                \
    }
IV_ADD_SUMS(double, d)
IV_ADD_SUMS(float, f)
static inline void iv_add_sums_16f(float *p0, float *p1, float *p2, float *p3, iv_v16f a, iv_v16f b, iv_v16f c, iv_v16f d)
{
    iv_add_sums_8f(p0, p1, p2, p3, iv_fold_16f(a), iv_fold_16f(b), iv_fold_16f(c), iv_fold_16f(d));
}

/* Eight rows of eight numbers, so far apart, as columns. */
static __attribute__((noinline, unused)) void iv_turn_8d(const double *rows, int64_t apart, iv_v8d *columns)
{
    const iv_v8d r0 = *(const iv_v8d_at *)rows, r1 = *(const iv_v8d_at *)(rows + apart);
    const iv_v8d r2 = *(const iv_v8d_at *)(rows + 2 * apart), r3 = *(const iv_v8d_at *)(rows + 3 * apart);
    const iv_v8d r4 = *(const iv_v8d_at *)(rows + 4 * apart), r5 = *(const iv_v8d_at *)(rows + 5 * apart);
    const iv_v8d r6 = *(const iv_v8d_at *)(rows + 6 * apart), r7 = *(const iv_v8d_at *)(rows + 7 * apart);
#define IV_EVEN(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define IV_ODD(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define IV_EVEN_PAIRS(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define IV_ODD_PAIRS(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define IV_FIRST_HALVES(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define IV_SECOND_HALVES(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
    const iv_v8d a0 = IV_EVEN(r0, r1), a1 = IV_ODD(r0, r1), a2 = IV_EVEN(r2, r3), a3 = IV_ODD(r2, r3);
    const iv_v8d a4 = IV_EVEN(r4, r5), a5 = IV_ODD(r4, r5), a6 = IV_EVEN(r6, r7), a7 = IV_ODD(r6, r7);
    const iv_v8d b0 = IV_EVEN_PAIRS(a0, a2), b2 = IV_ODD_PAIRS(a0, a2), b1 = IV_EVEN_PAIRS(a1, a3), b3 = IV_ODD_PAIRS(a1, a3);
    const iv_v8d b4 = IV_EVEN_PAIRS(a4, a6), b6 = IV_ODD_PAIRS(a4, a6), b5 = IV_EVEN_PAIRS(a5, a7), b7 = IV_ODD_PAIRS(a5, a7);
    columns[0] = IV_FIRST_HALVES(b0, b4), columns[4] = IV_SECOND_HALVES(b0, b4);
    columns[1] = IV_FIRST_HALVES(b1, b5), columns[5] = IV_SECOND_HALVES(b1, b5);
    columns[2] = IV_FIRST_HALVES(b2, b6), columns[6] = IV_SECOND_HALVES(b2, b6);
    columns[3] = IV_FIRST_HALVES(b3, b7), columns[7] = IV_SECOND_HALVES(b3, b7);
#undef IV_EVEN
#undef IV_ODD
#undef IV_EVEN_PAIRS
#undef IV_ODD_PAIRS
#undef IV_FIRST_HALVES
#undef IV_SECOND_HALVES
}
/* sums[r] = the sum over k of columns[k] * rows[r][k], of eight rows of so many numbers. */
static __attribute__((noinline, unused)) void iv_products_8d(const iv_v8d *columns, const double *rows, int64_t width, iv_v8d *sums)
{
    iv_v8d s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
    for (int64_t k = 0; k < width; k++) {
        const iv_v8d v = columns[k];
        const double *p = rows + k;
        s0 += v * p[0], s1 += v * p[width], s2 += v * p[2 * width], s3 += v * p[3 * width];
        s4 += v * p[4 * width], s5 += v * p[5 * width], s6 += v * p[6 * width], s7 += v * p[7 * width];
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3, sums[4] = s4, sums[5] = s5, sums[6] = s6, sums[7] = s7;
}

/* Adds to the neighbours that the mask names; nothing else is read or written. */
static inline void iv_add_where_8d(double *p, iv_v8d x, iv_v8m mask)
{
#ifdef IV_MASKS
    const unsigned char bits = iv_bits_8(mask);
    __builtin_ia32_storeupd512_mask(p, x + __builtin_ia32_loadupd512_mask(p, (iv_v8d){0}, bits), bits);
#else
    for (int l = 0; l < 8; l++)
        if (mask[l]) p[l] += x[l];
#endif
}

/* T is the type in memory, of which `in` and `out` make what stands in a lane and back. Near: neighbours in memory, the
   first `live` of them where they are a part. Far: lanes so many elements apart. Pick: each at its own offset, `some` only
   where the mask says so. */
#define IV_LANES_OF(T, N, s, in, out)                                                                                  \
    static inline iv_v##N##s iv_far_##N##s(const T *p, int64_t stride)                                                 \
    {                                                                                                                  \
        iv_v##N##s r;                                                                                                  \
        IV_EACH for (int l = 0; l < N; l++) r[l] = in(p[l * stride]);                                                  \
        return r;                                                                                                      \
    }                                                                                                                  \
    static inline void iv_put_far_##N##s(T *p, int64_t stride, iv_v##N##s x)                                           \
    {                                                                                                                  \
        IV_EACH for (int l = 0; l < N; l++) p[l * stride] = out(x[l]);                                                 \
    }                                                                                                                  \
    static inline iv_v##N##s iv_pick_##N##s(const T *p, iv_v##N##l at)                                                 \
    {                                                                                                                  \
        iv_v##N##s r;                                                                                                  \
        IV_EACH for (int l = 0; l < N; l++) r[l] = in(p[at[l]]);                                                       \
        return r;                                                                                                      \
    }
/* A branch for each lane is much code, so these are called where vectors are passed in registers. */
#ifdef IV_MASKS
#define IV_CALLED static __attribute__((noinline, unused))
#else
#define IV_CALLED static inline
#endif
#define IV_SOME_OF(T, N, s, in, out)                                                                                   \
    IV_CALLED iv_v##N##s iv_pick_some_##N##s(const T *p, iv_v##N##l at, iv_v##N##m mask)                               \
    {                                                                                                                  \
        iv_v##N##s r = {0};                                                                                            \
        for (int l = 0; l < N; l++)                                                                                    \
            if (mask[l]) r[l] = in(p[at[l]]);                                                                          \
        return r;                                                                                                      \
    }                                                                                                                  \
    IV_CALLED void iv_put_some_##N##s(T *p, iv_v##N##l at, iv_v##N##s x, iv_v##N##m mask)                              \
    {                                                                                                                  \
        for (int l = 0; l < N; l++)                                                                                    \
            if (mask[l]) p[at[l]] = out(x[l]);                                                                         \
    }
#ifdef IV_MASKS
#define IV_SOME_OF_8(T, s, V, I, gather, scatter)                                                                      \
    static inline iv_v8##s iv_pick_some_8##s(const T *p, iv_v8l at, iv_v8m mask)                                       \
    {                                                                                                                  \
        return (iv_v8##s)gather((V){0}, (const I *)p, (iv_quads)at, iv_bits_8(mask), sizeof(T));                       \
    }                                                                                                                  \
    static inline void iv_put_some_8##s(T *p, iv_v8l at, iv_v8##s x, iv_v8m mask)                                      \
    {                                                                                                                  \
        scatter((I *)p, iv_bits_8(mask), (iv_quads)at, (V)x, sizeof(T));                                               \
    }
IV_SOME_OF_8(double, d, iv_v8d, double, __builtin_ia32_gatherdiv8df, __builtin_ia32_scatterdiv8df)
IV_SOME_OF_8(float, f, iv_v8f, float, __builtin_ia32_gatherdiv16sf, __builtin_ia32_scatterdiv16sf)
IV_SOME_OF_8(int64_t, l, iv_quads, long long, __builtin_ia32_gatherdiv8di, __builtin_ia32_scatterdiv8di)
IV_SOME_OF_8(int32_t, i, iv_v8i, int, __builtin_ia32_gatherdiv16si, __builtin_ia32_scatterdiv16si)
#else
IV_SOME_OF(double, 8, d, , )
IV_SOME_OF(float, 8, f, , )
IV_SOME_OF(int64_t, 8, l, , )
IV_SOME_OF(int32_t, 8, i, , )
#endif
IV_SOME_OF(float, 16, f, , )
IV_SOME_OF(int64_t, 16, l, , )
IV_SOME_OF(int32_t, 16, i, , )
/* Sums, and neighbours that stand in memory as they do in vectors. */
#define IV_NUMBERS_OF(T, N, s)                                                                                         \
    IV_LANES_OF(T, N, s, , )                                                                                           \
    static inline iv_v##N##s iv_near_##N##s(const T *p) { return *(const iv_v##N##s##_at *)p; }                        \
    static inline void iv_put_near_##N##s(T *p, iv_v##N##s x) { *(iv_v##N##s##_at *)p = x; }                           \
    static inline void iv_add_far_##N##s(T *p, int64_t stride, iv_v##N##s x)                                           \
    {                                                                                                                  \
        IV_EACH for (int l = 0; l < N; l++) p[l * stride] += x[l];                                                     \
    }                                                                                                                  \
    IV_CALLED void iv_add_some_##N##s(T *p, iv_v##N##l at, iv_v##N##s x, iv_v##N##m mask)                              \
    {                                                                                                                  \
        for (int l = 0; l < N; l++)                                                                                    \
            if (mask[l]) p[at[l]] += x[l];                                                                             \
    }
IV_NUMBERS_OF(double, 8, d)
IV_NUMBERS_OF(float, 8, f)
IV_NUMBERS_OF(int64_t, 8, l)
IV_NUMBERS_OF(int32_t, 8, i)
IV_NUMBERS_OF(float, 16, f)
IV_NUMBERS_OF(int64_t, 16, l)
IV_NUMBERS_OF(int32_t, 16, i)

/* Roots: what compilers make of a loop over lanes depends on what stands around it. */
#ifdef IV_MASKS
static inline iv_v8d iv_sqrt_8d(iv_v8d x) { return __builtin_ia32_sqrtpd512_mask(x, x, (unsigned char)-1, 4); }
static inline iv_v16f iv_sqrt_16f(iv_v16f x) { return __builtin_ia32_sqrtps512_mask(x, x, (unsigned short)-1, 4); }
static inline iv_v8f iv_sqrt_8f(iv_v8f x) { return __builtin_ia32_sqrtps256(x); }
#else
#define IV_SQRT_OF(N, s, sqrt)                                                                                         \
    static inline iv_v##N##s iv_sqrt_##N##s(iv_v##N##s x)                                                              \
    {                                                                                                                  \
        iv_v##N##s r;                                                                                                  \
        for (int l = 0; l < N; l++) r[l] = sqrt(x[l]);                                                                 \
        return r;                                                                                                      \
    }
IV_SQRT_OF(8, d, sqrt)
IV_SQRT_OF(8, f, sqrtf)
IV_SQRT_OF(16, f, sqrtf)
#endif

/* Scalar functions in lanes: glibc has vector forms of many (`IV_VECTOR` in iverson_math.h). */
#if defined(IV_SIMD_MATHS) && defined(__AVX512F__)
#define IV_FUNCTION_AS(own, name)                                                                                      \
    iv_v8d _ZGVeN8v_##name(iv_v8d);                                                                                    \
    iv_v8f _ZGVdN8v_##name##f(iv_v8f);                                                                                 \
    iv_v16f _ZGVeN16v_##name##f(iv_v16f);                                                                              \
    static inline iv_v8d own##_8d(iv_v8d x) { return _ZGVeN8v_##name(x); }                                             \
    static inline iv_v8f own##_8f(iv_v8f x) { return _ZGVdN8v_##name##f(x); }                                          \
    static inline iv_v16f own##_16f(iv_v16f x) { return _ZGVeN16v_##name##f(x); }
#else
#define IV_LANE_BY_LANE(own, name, N, s)                                                                               \
    static inline iv_v##N##s own##_##N##s(iv_v##N##s x)                                                                \
    {                                                                                                                  \
        iv_v##N##s r;                                                                                                  \
        for (int l = 0; l < N; l++) r[l] = name(x[l]);                                                                 \
        return r;                                                                                                      \
    }
#define IV_FUNCTION_AS(own, name)                                                                                      \
    IV_LANE_BY_LANE(own, name, 8, d)                                                                                   \
    IV_LANE_BY_LANE(own, name##f, 8, f)                                                                                \
    IV_LANE_BY_LANE(own, name##f, 16, f)
#endif
#define IV_FUNCTION_OF(name) IV_FUNCTION_AS(iv_##name, name)
IV_FUNCTION_OF(exp2) IV_FUNCTION_OF(expm1) IV_FUNCTION_OF(log) IV_FUNCTION_OF(log2) IV_FUNCTION_OF(log10)
IV_FUNCTION_OF(log1p) IV_FUNCTION_OF(sin) IV_FUNCTION_OF(cos) IV_FUNCTION_OF(tan) IV_FUNCTION_OF(asin)
IV_FUNCTION_OF(acos) IV_FUNCTION_OF(atan) IV_FUNCTION_OF(sinh) IV_FUNCTION_OF(cosh) IV_FUNCTION_OF(tanh)
IV_FUNCTION_OF(erf) IV_FUNCTION_OF(erfc) IV_FUNCTION_OF(cbrt)
/* Vector forms go lane by lane where one is far out, as many are where the largest of all is subtracted first. Below `least`
   there is only zero; I are integers as wide as the numbers. */
IV_FUNCTION_AS(iv_near_exp, exp)
#define IV_EXP_OF(N, s, I, least)                                                                                      \
    static inline iv_v##N##s iv_exp_##N##s(iv_v##N##s x)                                                               \
    {                                                                                                                  \
        const I some = ~(I)(x < least);                                                                                \
        return (iv_v##N##s)((I)iv_near_exp_##N##s((iv_v##N##s)((I)x & some)) & some);                                  \
    }
IV_EXP_OF(8, d, iv_v8l, -746.0)
IV_EXP_OF(8, f, iv_v8i, -104.0f)
IV_EXP_OF(16, f, iv_v16i, -104.0f)
/* As iverson_math.h has them: the first wins ties, NaN wins over numbers; I are integers as wide as the numbers. */
#define IV_CHOICES_OF(N, s, I)                                                                                         \
    static inline iv_v##N##s iv_max_##N##s(iv_v##N##s x, iv_v##N##s y)                                                 \
    {                                                                                                                  \
        const I first = (I)((x >= y) | (x != x));                                                                      \
        return (iv_v##N##s)(((I)x & first) | ((I)y & ~first));                                                         \
    }                                                                                                                  \
    static inline iv_v##N##s iv_min_##N##s(iv_v##N##s x, iv_v##N##s y)                                                 \
    {                                                                                                                  \
        const I first = (I)((x <= y) | (x != x));                                                                      \
        return (iv_v##N##s)(((I)x & first) | ((I)y & ~first));                                                         \
    }
IV_CHOICES_OF(8, d, iv_v8l)
IV_CHOICES_OF(8, f, iv_v8i)
IV_CHOICES_OF(8, l, iv_v8l)
IV_CHOICES_OF(8, i, iv_v8i)
IV_CHOICES_OF(16, f, iv_v16i)
IV_CHOICES_OF(16, l, iv_v16l)
IV_CHOICES_OF(16, i, iv_v16i)

/* Some vectors side by side in each lane's row: `p[l * stride + k]` is the lane `l` of the vector `k`. Pairs are put together,
   then pairs of pairs, and rows are written as a whole. */
#define IV_LOW_PAIRS(x, y) __builtin_shufflevector(x, y, 0, 1, 8, 9, 4, 5, 12, 13)
#define IV_HIGH_PAIRS(x, y) __builtin_shufflevector(x, y, 2, 3, 10, 11, 6, 7, 14, 15)
#define IV_ROWS_OF(T, s)                                                                                               \
    typedef T iv_pair_##s __attribute__((vector_size(2 * sizeof(T)), aligned(sizeof(T)), may_alias));                  \
    typedef T iv_four_##s __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));                  \
    static inline void iv_put_2_rows_8##s(T *p, int64_t stride, iv_v8##s a, iv_v8##s b)                                \
    {                                                                                                                  \
        const iv_v8##s even = IV_LOW(a, b), odd = IV_HIGH(a, b);                                                       \
        *(iv_pair_##s *)p = __builtin_shufflevector(even, even, 0, 1);                                                 \
        *(iv_pair_##s *)(p + stride) = __builtin_shufflevector(odd, odd, 0, 1);                                        \
        *(iv_pair_##s *)(p + 2 * stride) = __builtin_shufflevector(even, even, 2, 3);                                  \
        *(iv_pair_##s *)(p + 3 * stride) = __builtin_shufflevector(odd, odd, 2, 3);                                    \
        *(iv_pair_##s *)(p + 4 * stride) = __builtin_shufflevector(even, even, 4, 5);                                  \
        *(iv_pair_##s *)(p + 5 * stride) = __builtin_shufflevector(odd, odd, 4, 5);                                    \
        *(iv_pair_##s *)(p + 6 * stride) = __builtin_shufflevector(even, even, 6, 7);                                  \
        *(iv_pair_##s *)(p + 7 * stride) = __builtin_shufflevector(odd, odd, 6, 7);                                    \
    }                                                                                                                  \
    static inline void iv_put_fours_8##s(T *p, int64_t stride, iv_v8##s x)                                             \
    {                                                                                                                  \
        *(iv_four_##s *)p = __builtin_shufflevector(x, x, 0, 1, 2, 3);                                                 \
        *(iv_four_##s *)(p + 4 * stride) = __builtin_shufflevector(x, x, 4, 5, 6, 7);                                  \
    }                                                                                                                  \
    static inline void iv_put_4_rows_8##s(T *p, int64_t stride, iv_v8##s a, iv_v8##s b, iv_v8##s c, iv_v8##s d)        \
    {                                                                                                                  \
        const iv_v8##s even = IV_LOW(a, b), odd = IV_HIGH(a, b), even2 = IV_LOW(c, d), odd2 = IV_HIGH(c, d);           \
        iv_put_fours_8##s(p, stride, IV_LOW_PAIRS(even, even2));                                                       \
        iv_put_fours_8##s(p + stride, stride, IV_LOW_PAIRS(odd, odd2));                                                \
        iv_put_fours_8##s(p + 2 * stride, stride, IV_HIGH_PAIRS(even, even2));                                         \
        iv_put_fours_8##s(p + 3 * stride, stride, IV_HIGH_PAIRS(odd, odd2));                                           \
    }                                                                                                                  \
    static inline void iv_put_eights_8##s(T *p, int64_t stride, iv_v8##s x, iv_v8##s y)                                \
    {                                                                                                                  \
        *(iv_v8##s##_at *)p = __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11);                                 \
        *(iv_v8##s##_at *)(p + 4 * stride) = __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15);                \
    }                                                                                                                  \
    static inline void iv_put_8_rows_8##s(T *p, int64_t stride, iv_v8##s a, iv_v8##s b, iv_v8##s c, iv_v8##s d,        \
                                          iv_v8##s e, iv_v8##s f, iv_v8##s g, iv_v8##s h)                              \
    {                                                                                                                  \
        const iv_v8##s even = IV_LOW(a, b), odd = IV_HIGH(a, b), even2 = IV_LOW(c, d), odd2 = IV_HIGH(c, d);           \
        const iv_v8##s even3 = IV_LOW(e, f), odd3 = IV_HIGH(e, f), even4 = IV_LOW(g, h), odd4 = IV_HIGH(g, h);         \
        iv_put_eights_8##s(p, stride, IV_LOW_PAIRS(even, even2), IV_LOW_PAIRS(even3, even4));                          \
        iv_put_eights_8##s(p + stride, stride, IV_LOW_PAIRS(odd, odd2), IV_LOW_PAIRS(odd3, odd4));                     \
        iv_put_eights_8##s(p + 2 * stride, stride, IV_HIGH_PAIRS(even, even2), IV_HIGH_PAIRS(even3, even4));           \
        iv_put_eights_8##s(p + 3 * stride, stride, IV_HIGH_PAIRS(odd, odd2), IV_HIGH_PAIRS(odd3, odd4));               \
    }
IV_ROWS_OF(double, d)
IV_ROWS_OF(float, f)
IV_ROWS_OF(int64_t, l)
IV_ROWS_OF(int32_t, i)
#define IV_ROWS_OF_16(T, s)                                                                                            \
    static inline void iv_put_2_rows_16##s(T *p, int64_t stride, iv_v16##s a, iv_v16##s b)                             \
    {                                                                                                                  \
        iv_put_2_rows_8##s(p, stride, IV_FIRST(a), IV_FIRST(b));                                                       \
        iv_put_2_rows_8##s(p + 8 * stride, stride, IV_LAST(a), IV_LAST(b));                                            \
    }                                                                                                                  \
    static inline void iv_put_4_rows_16##s(T *p, int64_t stride, iv_v16##s a, iv_v16##s b, iv_v16##s c, iv_v16##s d)   \
    {                                                                                                                  \
        iv_put_4_rows_8##s(p, stride, IV_FIRST(a), IV_FIRST(b), IV_FIRST(c), IV_FIRST(d));                             \
        iv_put_4_rows_8##s(p + 8 * stride, stride, IV_LAST(a), IV_LAST(b), IV_LAST(c), IV_LAST(d));                    \
    }                                                                                                                  \
    static inline void iv_put_8_rows_16##s(T *p, int64_t stride, iv_v16##s a, iv_v16##s b, iv_v16##s c, iv_v16##s d,   \
                                           iv_v16##s e, iv_v16##s f, iv_v16##s g, iv_v16##s h)                         \
    {                                                                                                                  \
        iv_put_8_rows_8##s(p, stride, IV_FIRST(a), IV_FIRST(b), IV_FIRST(c), IV_FIRST(d), IV_FIRST(e), IV_FIRST(f),    \
                           IV_FIRST(g), IV_FIRST(h));                                                                  \
        iv_put_8_rows_8##s(p + 8 * stride, stride, IV_LAST(a), IV_LAST(b), IV_LAST(c), IV_LAST(d), IV_LAST(e),         \
                           IV_LAST(f), IV_LAST(g), IV_LAST(h));                                                        \
    }
IV_ROWS_OF_16(float, f)
IV_ROWS_OF_16(int64_t, l)
IV_ROWS_OF_16(int32_t, i)

#define IV_IS_TRUE(x) ((x) != 0)
#define IV_CONDITIONS_OF(N)                                                                                            \
    IV_LANES_OF(bool, N, m, -, IV_IS_TRUE)                                                                             \
    IV_SOME_OF(bool, N, m, -, IV_IS_TRUE)                                                                              \
    static inline iv_v##N##m iv_near_##N##m(const bool *p) { return iv_far_##N##m(p, 1); }                             \
    static inline void iv_put_near_##N##m(bool *p, iv_v##N##m x) { iv_put_far_##N##m(p, 1, x); }
IV_CONDITIONS_OF(8)
IV_CONDITIONS_OF(16)

#define IV_PARTS_OF(T, N, s, in, out)                                                                                  \
    static inline iv_v##N##s iv_near_part_##N##s(const T *p, int64_t live)                                             \
    {                                                                                                                  \
        if (live == N) return iv_near_##N##s(p);                                                                       \
        iv_v##N##s r = {0};                                                                                            \
        IV_EACH for (int l = 0; l < N; l++)                                                                            \
            if (l < live) r[l] = in(p[l]);                                                                             \
        return r;                                                                                                      \
    }                                                                                                                  \
    static inline void iv_put_near_part_##N##s(T *p, iv_v##N##s x, int64_t live)                                       \
    {                                                                                                                  \
        if (live == N) {                                                                                               \
            iv_put_near_##N##s(p, x);                                                                                  \
            return;                                                                                                    \
        }                                                                                                              \
        IV_EACH for (int l = 0; l < N; l++)                                                                            \
            if (l < live) p[l] = out(x[l]);                                                                            \
    }
#ifdef IV_MASKS
#define IV_MASKED_PARTS_OF(T, N, s, V, load, store, M)                                                                 \
    static inline iv_v##N##s iv_near_part_##N##s(const T *p, int64_t live)                                             \
    {                                                                                                                  \
        return (iv_v##N##s)load((const void *)p, (V){0}, (M)((1u << live) - 1));                                       \
    }                                                                                                                  \
    static inline void iv_put_near_part_##N##s(T *p, iv_v##N##s x, int64_t live)                                       \
    {                                                                                                                  \
        store((void *)p, (V)x, (M)((1u << live) - 1));                                                                 \
    }
IV_MASKED_PARTS_OF(double, 8, d, iv_v8d, __builtin_ia32_loadupd512_mask, __builtin_ia32_storeupd512_mask, unsigned char)
IV_MASKED_PARTS_OF(float, 16, f, iv_v16f, __builtin_ia32_loadups512_mask, __builtin_ia32_storeups512_mask, unsigned short)
#else
IV_PARTS_OF(double, 8, d, , )
IV_PARTS_OF(float, 16, f, , )
#endif
IV_PARTS_OF(float, 8, f, , )
IV_PARTS_OF(int64_t, 8, l, , )
IV_PARTS_OF(int32_t, 8, i, , )
IV_PARTS_OF(bool, 8, m, -, IV_IS_TRUE)
IV_PARTS_OF(int64_t, 16, l, , )
IV_PARTS_OF(int32_t, 16, i, , )
IV_PARTS_OF(bool, 16, m, -, IV_IS_TRUE)

/* Whether an array of so many rows is so large that what is written is not found in caches afterwards. */
#define IV_LARGE 16777216.0
static inline bool iv_streams(int64_t rows, int64_t bytes) { return (double)rows * (double)bytes >= IV_LARGE; }
/* A piece of such an array: whole lines go to memory without being read first. Whoever reads them has to know that they are
   there, which `iv_streamed` sees to. */
#if defined(__SSE2__)
typedef long long iv_line __attribute__((vector_size(64), aligned(1), may_alias));
#if defined(__clang__)
#define iv_put_line(to, from) __builtin_nontemporal_store(*(const iv_line *)(from), (long long __attribute__((vector_size(64))) *)(to))
#elif defined(__AVX512F__)
typedef long long iv_whole_line __attribute__((vector_size(64)));
#define iv_put_line(to, from) __builtin_ia32_movntdq512((iv_whole_line *)(to), *(const iv_line *)(from))
#else
typedef long long iv_sixteen __attribute__((vector_size(16)));
typedef long long iv_sixteen_at __attribute__((vector_size(16), aligned(1), may_alias));
static inline void iv_put_line(char *to, const char *from)
{
    for (int k = 0; k < 64; k += 16) __builtin_ia32_movntdq((iv_sixteen *)(to + k), *(const iv_sixteen_at *)(from + k));
}
#endif
/* Less than a line. A call of memcpy would cost more than that: registers of vectors do not survive it. */
static inline void iv_put_piece(char *to, const char *from, int64_t bytes)
{
#define IV_PIECE(N)                                                                                                    \
    if (bytes & N) {                                                                                                   \
        memcpy(to, from, N);                                                                                           \
        to += N;                                                                                                       \
        from += N;                                                                                                     \
    }
    IV_PIECE(32)
    IV_PIECE(16)
    IV_PIECE(8)
    IV_PIECE(4)
    IV_PIECE(2)
    IV_PIECE(1)
#undef IV_PIECE
}
static inline void iv_stream(void *place, const void *aside, int64_t bytes)
{
    char *to = (char *)place;
    const char *from = (const char *)aside;
    int64_t at = iv_int_min(bytes, -(intptr_t)to & 63);
    iv_put_piece(to, from, at);
    for (; at + 64 <= bytes; at += 64) iv_put_line(to + at, from + at);
    iv_put_piece(to + at, from + at, bytes - at);
}
static inline void iv_streamed(void) { __builtin_ia32_sfence(); }
#else
static inline void iv_stream(void *place, const void *aside, int64_t bytes) { memcpy(place, aside, (size_t)bytes); }
static inline void iv_streamed(void) {}
#endif

#endif

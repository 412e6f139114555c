/* Iterations side by side: vectors of eight numbers, whatever the machine's vectors are. */
#ifndef IVERSON_LANES_H
#define IVERSON_LANES_H

/* Vectors are passed only to functions that are inlined, so how they would be passed does not matter. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

typedef double iv_vd __attribute__((vector_size(64)));
typedef int64_t iv_vl __attribute__((vector_size(64)));
/* The same anywhere in memory. */
typedef double iv_vd_at __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t iv_vl_at __attribute__((vector_size(64), aligned(8), may_alias));

/* One number in all lanes; subtracting zero leaves -0 as it is. */
#define iv_all_d(x) ((double)(x) - (iv_vd){0})
#define iv_all_l(x) ((int64_t)(x) - (iv_vl){0})
/* A condition in lanes is all ones or all zeros. */
#define iv_all_b(p) (-(int64_t)(p) - (iv_vl){0})
#define iv_select_d(mask, x, y) ((iv_vd)(((iv_vl)(x) & (mask)) | ((iv_vl)(y) & ~(mask))))
#define iv_select_l(mask, x, y) (((x) & (mask)) | ((y) & ~(mask)))
#define iv_lane_numbers ((iv_vl){0, 1, 2, 3, 4, 5, 6, 7})

static inline bool iv_any(iv_vl mask)
{
    int64_t any = 0;
    for (int l = 0; l < 8; l++) any |= mask[l];
    return any != 0;
}
static inline int64_t iv_least(iv_vl x)
{
    int64_t least = x[0];
    for (int l = 1; l < 8; l++) least = x[l] < least ? x[l] : least;
    return least;
}
static inline int64_t iv_most(iv_vl x)
{
    int64_t most = x[0];
    for (int l = 1; l < 8; l++) most = x[l] > most ? x[l] : most;
    return most;
}
/* In pairs, so that the order is the same everywhere. */
static inline double iv_sum_d(iv_vd x)
{
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}
static inline int64_t iv_sum_l(iv_vl x)
{
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

/* Four sums at once, added to four places. */
static inline void iv_add_sums_d(double *p0, double *p1, double *p2, double *p3, iv_vd a, iv_vd b, iv_vd c, iv_vd d)
{
    typedef double quarter __attribute__((vector_size(32)));
    const iv_vd ab = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) + __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    const iv_vd cd = __builtin_shufflevector(c, d, 0, 8, 2, 10, 4, 12, 6, 14) + __builtin_shufflevector(c, d, 1, 9, 3, 11, 5, 13, 7, 15);
    const quarter x = __builtin_shufflevector(ab, ab, 0, 1, 2, 3) + __builtin_shufflevector(ab, ab, 4, 5, 6, 7);
    const quarter y = __builtin_shufflevector(cd, cd, 0, 1, 2, 3) + __builtin_shufflevector(cd, cd, 4, 5, 6, 7);
    const quarter sums = __builtin_shufflevector(x, y, 0, 1, 4, 5) + __builtin_shufflevector(x, y, 2, 3, 6, 7);
    *p0 += sums[0];
    *p1 += sums[1];
    *p2 += sums[2];
    *p3 += sums[3];
}

/* Eight rows of eight numbers, so far apart, as columns. */
static inline void iv_turn_d(const double *rows, int64_t apart, iv_vd *columns)
{
    const iv_vd r0 = *(const iv_vd_at *)rows, r1 = *(const iv_vd_at *)(rows + apart);
    const iv_vd r2 = *(const iv_vd_at *)(rows + 2 * apart), r3 = *(const iv_vd_at *)(rows + 3 * apart);
    const iv_vd r4 = *(const iv_vd_at *)(rows + 4 * apart), r5 = *(const iv_vd_at *)(rows + 5 * apart);
    const iv_vd r6 = *(const iv_vd_at *)(rows + 6 * apart), r7 = *(const iv_vd_at *)(rows + 7 * apart);
#define IV_EVEN(a, b) __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14)
#define IV_ODD(a, b) __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15)
#define IV_EVEN_PAIRS(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define IV_ODD_PAIRS(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define IV_FIRST_HALVES(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define IV_SECOND_HALVES(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15)
    const iv_vd a0 = IV_EVEN(r0, r1), a1 = IV_ODD(r0, r1), a2 = IV_EVEN(r2, r3), a3 = IV_ODD(r2, r3);
    const iv_vd a4 = IV_EVEN(r4, r5), a5 = IV_ODD(r4, r5), a6 = IV_EVEN(r6, r7), a7 = IV_ODD(r6, r7);
    const iv_vd b0 = IV_EVEN_PAIRS(a0, a2), b2 = IV_ODD_PAIRS(a0, a2), b1 = IV_EVEN_PAIRS(a1, a3), b3 = IV_ODD_PAIRS(a1, a3);
    const iv_vd b4 = IV_EVEN_PAIRS(a4, a6), b6 = IV_ODD_PAIRS(a4, a6), b5 = IV_EVEN_PAIRS(a5, a7), b7 = IV_ODD_PAIRS(a5, a7);
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
static inline void iv_products_d(const iv_vd *columns, const double *rows, int64_t width, iv_vd *sums)
{
    iv_vd s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
    for (int64_t k = 0; k < width; k++) {
        const iv_vd v = columns[k];
        const double *p = rows + k;
        s0 += v * p[0], s1 += v * p[width], s2 += v * p[2 * width], s3 += v * p[3 * width];
        s4 += v * p[4 * width], s5 += v * p[5 * width], s6 += v * p[6 * width], s7 += v * p[7 * width];
    }
    sums[0] = s0, sums[1] = s1, sums[2] = s2, sums[3] = s3, sums[4] = s4, sums[5] = s5, sums[6] = s6, sums[7] = s7;
}

/* T is the type in memory, V that of its vectors. Far: lanes so many elements apart. Pick: each at its own offset, `some`
   only where the mask says so. Own: arrays of which each lane has one, with so many lanes side by side. */
#define IV_LANES_OF(T, V, L, s)                                                                                        \
    static inline V iv_near_##s(const T *p) { return *(const V##_at *)p; }                                             \
    static inline void iv_put_near_##s(T *p, V x) { *(V##_at *)p = x; }                                                \
    static inline V iv_far_##s(const T *p, int64_t stride)                                                             \
    {                                                                                                                  \
        V r;                                                                                                           \
        for (int l = 0; l < 8; l++) r[l] = p[l * stride];                                                              \
        return r;                                                                                                      \
    }                                                                                                                  \
    static inline void iv_put_far_##s(T *p, int64_t stride, V x)                                                       \
    {                                                                                                                  \
        for (int l = 0; l < 8; l++) p[l * stride] = x[l];                                                              \
    }                                                                                                                  \
    static inline void iv_add_far_##s(T *p, int64_t stride, V x)                                                       \
    {                                                                                                                  \
        for (int l = 0; l < 8; l++) p[l * stride] += x[l];                                                             \
    }                                                                                                                  \
    static inline V iv_pick_##s(const T *p, iv_vl at)                                                                  \
    {                                                                                                                  \
        V r;                                                                                                           \
        for (int l = 0; l < 8; l++) r[l] = p[at[l]];                                                                   \
        return r;                                                                                                      \
    }                                                                                                                  \
    static inline V iv_pick_some_##s(const T *p, iv_vl at, iv_vl mask)                                                 \
    {                                                                                                                  \
        V r = {0};                                                                                                     \
        for (int l = 0; l < 8; l++)                                                                                    \
            if (mask[l]) r[l] = p[at[l]];                                                                              \
        return r;                                                                                                      \
    }                                                                                                                  \
    static inline void iv_put_some_##s(T *p, iv_vl at, V x, iv_vl mask)                                                \
    {                                                                                                                  \
        for (int l = 0; l < 8; l++)                                                                                    \
            if (mask[l]) p[at[l]] = x[l];                                                                              \
    }                                                                                                                  \
    static inline void iv_add_some_##s(T *p, iv_vl at, V x, iv_vl mask)                                                \
    {                                                                                                                  \
        for (int l = 0; l < 8; l++)                                                                                    \
            if (mask[l]) p[at[l]] += x[l];                                                                             \
    }
IV_LANES_OF(double, iv_vd, iv_vl, d)
IV_LANES_OF(int64_t, iv_vl, iv_vl, l)

/* The first `live` lanes, of a block that may be a part of one. */
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
static inline iv_vd iv_near_part_d(const double *p, int64_t live)
{
    return (iv_vd)__builtin_ia32_loadupd512_mask(p, (iv_vd){0}, (unsigned char)((1u << live) - 1));
}
static inline void iv_put_near_part_d(double *p, iv_vd x, int64_t live)
{
    __builtin_ia32_storeupd512_mask(p, x, (unsigned char)((1u << live) - 1));
}
#else
static inline iv_vd iv_near_part_d(const double *p, int64_t live)
{
    if (live == 8) return iv_near_d(p);
    iv_vd r = {0};
    for (int l = 0; l < 8; l++)
        if (l < live) r[l] = p[l];
    return r;
}
static inline void iv_put_near_part_d(double *p, iv_vd x, int64_t live)
{
    if (live == 8) {
        iv_put_near_d(p, x);
        return;
    }
    for (int l = 0; l < 8; l++)
        if (l < live) p[l] = x[l];
}
#endif
static inline iv_vl iv_near_part_l(const int64_t *p, int64_t live)
{
    if (live == 8) return iv_near_l(p);
    iv_vl r = {0};
    for (int l = 0; l < 8; l++)
        if (l < live) r[l] = p[l];
    return r;
}
static inline void iv_put_near_part_l(int64_t *p, iv_vl x, int64_t live)
{
    for (int l = 0; l < 8; l++)
        if (l < live) p[l] = x[l];
}

#endif

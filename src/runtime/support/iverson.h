/* What emitted C stands on: the context of a call, errors, planning of memory, vector maths. */
#ifndef IVERSON_H
#define IVERSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is used of the library is declared here: its headers are longer to read than most of what is emitted. */
void *memcpy(void *restrict dest, const void *restrict source, size_t bytes);
void *memset(void *dest, int byte, size_t bytes);
void *malloc(size_t bytes);
void free(void *block);

#include "iverson_math.h"

#define IV_UNLIKELY(p) __builtin_expect(!!(p), 0)
/* What runs once in a call, to be small rather than fast. */
#define IV_COLD __attribute__((cold, noinline))
/* Small arrays begin where vectors do. gcc 12 takes what is left of a row behind its last whole vector for aligned, by half a
   vector, where it has aligned the array only for single numbers. */
#define IV_ALIGNED __attribute__((aligned(64)))

/* dest[r * dest_row + c * dest_column] (+)= scale * sum k. left[r, k] * right[k, c] */
typedef void iv_gemm(int64_t rows, int64_t columns, int64_t depth, double *dest, int64_t dest_row, int64_t dest_column,
                     const double *left, int64_t left_row, int64_t left_column, const double *right, int64_t right_row,
                     int64_t right_column, double scale, int32_t accumulate);
typedef void iv_gemm32(int64_t rows, int64_t columns, int64_t depth, float *dest, int64_t dest_row, int64_t dest_column,
                       const float *left, int64_t left_row, int64_t left_column, const float *right, int64_t right_row,
                       int64_t right_column, float scale, int32_t accumulate);

/* How a call runs, and what it leaves behind. All zeros is a valid context. */
typedef struct {
    /* in: the number of threads (0 is 1) and matrix products, or null */
    int32_t threads;
    /* out: the error */
    int32_t code;
    int32_t site;
    int64_t a, b;
    iv_gemm *gemm;
    iv_gemm32 *gemm32;
    /* added to by counting builds */
    int64_t additions, multiplications, calls, copied_bytes;
} iv_context;

enum { IV_NO_MEMORY = 100 };

static inline int32_t iv_fail(iv_context *context, int32_t code, int64_t a, int64_t b, int32_t site)
{
    context->code = code;
    context->a = a;
    context->b = b;
    context->site = site;
    return code;
}
/* The mode of this thread's floats, and denormal numbers taken for zero, as operands and as results, until it is restored.
   What is read or written on one side of a change stays there. */
#define IV_MODE_CHANGES __asm__ volatile("" : : : "memory")
#if defined(__SSE2__)
typedef unsigned iv_float_mode;
static inline iv_float_mode iv_flush(void)
{
    const iv_float_mode mode = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(mode | 0x8040);
    IV_MODE_CHANGES;
    return mode;
}
static inline void iv_restore(iv_float_mode mode)
{
    IV_MODE_CHANGES;
    __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0x8040u) | (mode & 0x8040u));
}
#elif defined(__aarch64__)
typedef uint64_t iv_float_mode;
static inline iv_float_mode iv_flush(void)
{
    iv_float_mode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | (uint64_t)1 << 24) : "memory");
    return mode;
}
static inline void iv_restore(iv_float_mode mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
#else
typedef int iv_float_mode;
static inline iv_float_mode iv_flush(void) { return 0; }
static inline void iv_restore(iv_float_mode mode) { (void)mode; }
#endif
static inline int64_t iv_bits(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Maxima as the language has them, for reductions: the first wins ties, NaN passes on. */
#if defined(_OPENMP) || defined(IV_SIMD)
#pragma omp declare reduction(iv_max : double : omp_out = iv_max(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare reduction(iv_min : double : omp_out = iv_min(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare reduction(iv_max : float : omp_out = iv_maxf(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#pragma omp declare reduction(iv_min : float : omp_out = iv_minf(omp_out, omp_in)) initializer(omp_priv = omp_orig)
#endif

/* Sizes at entry saturate: what is too large stays too large. */
#define IV_MOST_BYTES (INT64_MAX / 4)
static inline int64_t iv_saturating_add(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_add_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}
static inline int64_t iv_saturating_sub(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_sub_overflow(a, b, &r) ? (a < 0 ? INT64_MIN : INT64_MAX) : r;
}
static inline int64_t iv_saturating_mul(int64_t a, int64_t b)
{
    int64_t r;
    return __builtin_mul_overflow(a, b, &r) ? ((a < 0) != (b < 0) ? INT64_MIN : INT64_MAX) : r;
}
static inline int64_t iv_saturating_neg(int64_t a) { return iv_saturating_sub(0, a); }
static inline int64_t iv_saturating_div(int64_t a, int64_t b) { return b == 0 ? 0 : iv_int_div(a, b); }
static inline int64_t iv_saturating_mod(int64_t a, int64_t b) { return b == 0 ? 0 : iv_int_mod(a, b); }
/* Slots are aligned to 64 bytes. */
static inline int64_t iv_slot_bytes(int64_t count, int64_t size)
{
    const int64_t bytes = iv_saturating_mul(iv_int_max(count, 0), size);
    return bytes > INT64_MAX - 63 ? INT64_MAX : (bytes + 63) & ~(int64_t)63;
}

/* Memory that threads have to themselves lies so far apart, and from all other, that no processor fetches ahead into what another
   one writes: they would wait for each other. */
#define IV_APART 8192
static inline int64_t iv_copies(int64_t copies, int64_t bytes)
{
    return iv_saturating_add(IV_APART, iv_saturating_mul(copies, iv_saturating_add(bytes, IV_APART)));
}

/* Parallel loops run in chunks, whose number depends on sizes alone: on the bounds, on what an iteration costs about (an
   operation in vectors 1, else 4), and on how many elements each chunk has to itself and must zero and add up at the end.
   As loops/workspace.rs has it, which leaves out the threads of loops of one chunk. */
#ifndef IV_GRAIN
#define IV_GRAIN 65536.0
#endif
#define IV_MOST_OWN 2097152.0
static inline int64_t iv_chunks(int64_t lo, int64_t hi, int64_t cost, int64_t own, int64_t most)
{
    const double grain = IV_GRAIN, count = (double)hi - (double)lo, work = count * (double)cost;
    if (!(work >= 2.0 * grain) || !(count >= 2.0)) return 1;
    double chunks = work / grain;
    if (own > 0 && chunks > work / (32.0 * (double)own)) chunks = work / (32.0 * (double)own);
    /* Not much memory for them all, and yet some to share out. */
    if (own > 0 && chunks * (double)own > IV_MOST_OWN) chunks = iv_max(4.0, IV_MOST_OWN / (double)own);
    if (chunks > count) chunks = count;
    if (chunks > (double)most) chunks = (double)most;
    return chunks < 1.0 ? 1 : (int64_t)chunks;
}
static inline int64_t iv_chunk_start(int64_t lo, int64_t hi, int64_t chunks, int64_t chunk)
{
    const int64_t each = (hi - lo) / chunks, rest = (hi - lo) % chunks;
    return lo + chunk * each + iv_int_min(chunk, rest);
}
/* As before, with chunks of whole blocks: only the last may end within one, and none is shorter than that. */
static inline int64_t iv_block_start(int64_t lo, int64_t hi, int64_t chunks, int64_t chunk, int64_t width)
{
    const int64_t blocks = iv_int_max(1, (hi - lo) / width), block = iv_chunk_start(0, blocks, chunks, chunk);
    return block == blocks ? hi : lo + width * block;
}
static inline int iv_threads(const iv_context *context, int64_t chunks)
{
    return context->threads < 2 ? 1 : (int)iv_int_min(context->threads, chunks);
}
/* Chunks to share out among the threads: taking one costs time, too. */
static inline int64_t iv_few(const iv_context *context, int64_t chunks)
{
    return iv_int_min(chunks, 8 * iv_int_max(1, context->threads));
}
#if defined(_OPENMP)
#include <omp.h>
static inline int64_t iv_thread(void) { return omp_get_thread_num(); }
#else
static inline int64_t iv_thread(void) { return 0; }
#endif
/* Where the copy of a thread begins. */
static inline int64_t iv_copy(int64_t bytes) { return IV_APART + iv_thread() * (bytes + IV_APART); }
/* Chunks by turns: a thread takes those of its own part first, so that the next call finds its data where it was, and then what
   others have left of theirs. */
enum { IV_QUEUES = 16 };
typedef struct {
    int64_t chunks, queues;
    struct {
        int64_t taken, apart[7];
    } queue[IV_QUEUES];
} iv_turns;
static inline void iv_share_out(iv_turns *turns, int64_t chunks, int threads)
{
    turns->chunks = chunks;
    turns->queues = iv_int_min(threads, IV_QUEUES);
    for (int64_t k = 0; k < turns->queues; k++) turns->queue[k].taken = 0;
}
/* The next chunk, or their number if there is none. */
static __attribute__((noinline, unused)) int64_t iv_take(iv_turns *turns)
{
    for (int64_t k = 0; k < turns->queues; k++) {
        const int64_t queue = (iv_thread() + k) % turns->queues;
        const int64_t chunk = iv_chunk_start(0, turns->chunks, turns->queues, queue)
                              + __atomic_fetch_add(&turns->queue[queue].taken, 1, __ATOMIC_RELAXED);
        if (chunk < iv_chunk_start(0, turns->chunks, turns->queues, queue + 1)) return chunk;
    }
    return turns->chunks;
}
/* Into how many parts a side of a matrix product is cut, so that each of them is added up as the whole is: kernels take another
   way where few places are left of the result, and cut a long depth in another way where both sides are short.
   As runtime/team.rs has it. */
#define IV_LEAST_SHARED 524288.0
static inline int64_t iv_parts(int64_t side, int64_t other, int64_t depth, int64_t threads)
{
    const int64_t least = other > 64 || depth <= 512 ? 32 : 72;
    if (threads < 2 || (double)side * (double)other * (double)depth < IV_LEAST_SHARED || other < 16) return 1;
    return iv_int_max(1, iv_int_min(threads, side / least));
}
/* Where a part begins: at a place that kernels would begin at, too. */
static inline int64_t iv_part_start(int64_t side, int64_t parts, int64_t part)
{
    return iv_int_min(side, 16 * iv_chunk_start(0, (side + 15) / 16, parts, part));
}
#if defined(_OPENMP)
/* A matrix product by the threads of a call: the longer side is cut among them. */
#define IV_SHARED(gemm, T)                                                                                             \
    static __attribute__((noinline, unused)) void iv_shared_##gemm(                                                    \
        const iv_context *context, int64_t rows, int64_t columns, int64_t depth, T *dest, int64_t dest_row,            \
        int64_t dest_column, const T *left, int64_t left_row, int64_t left_column, const T *right, int64_t right_row,  \
        int64_t right_column, T scale, int32_t accumulate, bool flush)                                                 \
    {                                                                                                                  \
        const bool by_rows = rows >= columns;                                                                          \
        const int64_t side = by_rows ? rows : columns, other = by_rows ? columns : rows;                               \
        const int64_t parts = iv_parts(side, other, depth, context->threads);                                          \
        _Pragma("omp parallel for schedule(static, 1) num_threads((int)parts) if (parts > 1)")                         \
        for (int64_t part = 0; part < parts; part++) {                                                                 \
            const iv_float_mode mode = flush ? iv_flush() : (iv_float_mode)0;                                          \
            const int64_t from = iv_part_start(side, parts, part), count = iv_part_start(side, parts, part + 1) - from; \
            if (by_rows)                                                                                               \
                context->gemm(count, columns, depth, dest + from * dest_row, dest_row, dest_column,                    \
                              left + from * left_row, left_row, left_column, right, right_row, right_column, scale,    \
                              accumulate);                                                                             \
            else                                                                                                       \
                context->gemm(rows, count, depth, dest + from * dest_column, dest_row, dest_column, left, left_row,    \
                              left_column, right + from * right_column, right_row, right_column, scale, accumulate);   \
            if (flush) iv_restore(mode);                                                                               \
        }                                                                                                              \
    }
IV_SHARED(gemm, double)
IV_SHARED(gemm32, float)
#else
/* By the only one, whose floats have their mode. */
#define iv_shared_gemm(context, rows, columns, depth, dest, dest_row, dest_column, left, left_row, left_column, right, \
                       right_row, right_column, scale, accumulate, flush)                                              \
    (context)->gemm(rows, columns, depth, dest, dest_row, dest_column, left, left_row, left_column, right, right_row,  \
                    right_column, scale, accumulate)
#define iv_shared_gemm32(context, rows, columns, depth, dest, dest_row, dest_column, left, left_row, left_column, right, \
                         right_row, right_column, scale, accumulate, flush)                                            \
    (context)->gemm32(rows, columns, depth, dest, dest_row, dest_column, left, left_row, left_column, right,           \
                      right_row, right_column, scale, accumulate)
#endif
/* The error of the first chunk that has one is the error of the loop. */
typedef struct {
    int64_t chunk;
    int32_t code, site;
    int64_t a, b;
} iv_failure;
static inline void iv_keep(iv_failure *kept, int64_t chunk, const iv_context *context)
{
    if (kept->code && kept->chunk < chunk) return;
    kept->chunk = chunk;
    kept->code = context->code;
    kept->site = context->site;
    kept->a = context->a;
    kept->b = context->b;
}

/* Memory whose size is known only where it is used: it grows, and is kept until the call ends. */
typedef struct {
    void *data;
    int64_t bytes;
} iv_reserve;
static inline void *iv_reserve_bytes(iv_reserve *r, int64_t count, int64_t size)
{
    int64_t bytes = iv_saturating_mul(count, size);
    if (bytes > IV_MOST_BYTES) return NULL;
    if (!r->data || bytes > r->bytes) {
        free(r->data);
        if (bytes < 2 * r->bytes) bytes = 2 * r->bytes;
        if (bytes < 64) bytes = 64;
        r->data = malloc((size_t)bytes);
        r->bytes = r->data ? bytes : 0;
    }
    return r->data;
}
static inline void iv_release(iv_reserve *reserves, int count)
{
    for (int k = 0; k < count; k++) free(reserves[k].data);
}

/* Whether a matrix product is worth a kernel of its own. */
static inline bool iv_is_large(int64_t m, int64_t n, int64_t k)
{
    return m >= 2 && n >= 2 && k >= 2 && (double)m * (double)n * (double)k >= 2000.0;
}

/* What the chunks of a loop have added up, each for itself, put together in their order. */
#define IV_ADD_PARTS(T, s)                                                                                             \
    static __attribute__((noinline, unused)) void iv_add_parts_##s(T *restrict all, const T *restrict parts,           \
                                                                   int64_t count, int64_t chunks)                      \
    {                                                                                                                  \
        for (int64_t chunk = 1; chunk < chunks; chunk++, parts += count) {                                             \
            _Pragma("omp simd") for (int64_t k = 0; k < count; k++) all[k] += parts[k];                                \
        }                                                                                                              \
    }
IV_ADD_PARTS(double, d)
IV_ADD_PARTS(float, f)
IV_ADD_PARTS(int64_t, l)
IV_ADD_PARTS(int32_t, i)

/* Code without lanes says so: they are long to read. */
#ifndef IV_NO_LANES
#include "iverson_lanes.h"
#endif

#endif

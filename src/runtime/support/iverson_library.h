/* What the functions of a library have in common: memory for a call, and what is said about one that failed. */
#ifndef IVERSON_LIBRARY_H
#define IVERSON_LIBRARY_H

#include <stdio.h>

enum { IV_BAD_SIZE = 101 };

/* What the last call of this thread that failed has to say. */
static __thread char iv_message[256];

/* A function as it is exported: its kernel, and the places in the source that its checks speak of. */
typedef struct {
    const char *name;
    int32_t (*entry)(const int64_t *, const void *const *, void *const *, void *, iv_context *);
    int64_t (*work)(const int64_t *, const void *const *);
    const char *const *places;
    int32_t place_count;
} iv_function;

static int32_t iv_describe(int32_t code, int64_t a, int64_t b, char *out, size_t size);

static int32_t iv_say(const iv_function *function, int32_t code, int64_t a, int64_t b, int32_t site)
{
    const char *place = site >= 0 && site < function->place_count ? function->places[site] : function->name;
    const int start = snprintf(iv_message, sizeof iv_message, "%s: ", place);
    if (start > 0 && (size_t)start < sizeof iv_message) iv_describe(code, a, b, iv_message + start, sizeof iv_message - (size_t)start);
    return code;
}

/* Calls a kernel. Its workspace is on the stack if it is small, and freed before the call returns. */
static int32_t iv_library_call(const iv_function *function, const int64_t *sizes, int32_t size_count, const void *const *inputs,
                               void *const *outputs)
{
    for (int32_t k = 0; k < size_count; k++)
        if (sizes[k] < 0) return iv_say(function, IV_BAD_SIZE, sizes[k], 0, -1);
    const int64_t bytes = function->work(sizes, inputs);
    if (bytes < 0) return iv_say(function, IV_NO_MEMORY, 0, 0, -1);
    char small[4096] __attribute__((aligned(64)));
    char *large = NULL, *work = small;
    if ((size_t)bytes > sizeof small) {
        large = malloc((size_t)bytes + 64);
        if (!large) return iv_say(function, IV_NO_MEMORY, 0, 0, -1);
        work = large + (64 - (uintptr_t)large % 64);
    }
    iv_context context = {0};
#if defined(_OPENMP)
    context.threads = omp_get_max_threads();
#else
    context.threads = 1;
#endif
#if defined(IV_HAS_GEMM)
    context.gemm = iv_library_gemm;
#endif
#if defined(IV_HAS_GEMM32)
    context.gemm32 = iv_library_gemm32;
#endif
    const int32_t status = function->entry(sizes, inputs, outputs, work, &context);
    free(large);
    return status ? iv_say(function, context.code, context.a, context.b, context.site) : 0;
}

#endif

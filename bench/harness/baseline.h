/* What the baselines written by hand share: a problem defines `objective` and `derivative`, and the harness calls what
 * times them. `n` are sizes, `in` the inputs in the order of the program's parameters, `out` the results. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void objective(const int64_t *n, const void *const *in, void *const *out);
void derivative(const int64_t *n, const void *const *in, void *const *out);

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

#define TIMED(work)                                                                                                    \
    void time_##work(const int64_t *n, const void *const *in, void *const *out, int64_t count, double *times)          \
    {                                                                                                                  \
        for (int64_t k = 0; k < count; k++) {                                                                          \
            double start = milliseconds();                                                                             \
            work(n, in, out);                                                                                          \
            times[k] = milliseconds() - start;                                                                         \
        }                                                                                                              \
    }
TIMED(objective)
TIMED(derivative)

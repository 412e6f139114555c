/* What the hand-written baselines share: a problem defines `objective` and `gradient`; this reads the inputs from raw
 * files of doubles, times both, and writes the gradient for comparison.
 *
 * usage: PROGRAM RUNS OUTPUT COUNT INPUT SIZE [INPUT SIZE ...]   with SIZE the number of doubles in INPUT */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

double objective(const int64_t *n, double *const *in);
void gradient(const int64_t *n, double *const *in, double *const *out);

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
}

static int by_value(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

int main(int argc, char **argv)
{
    if (argc < 6) return fprintf(stderr, "usage: %s RUNS OUTPUT COUNT INPUT SIZE ...\n", argv[0]), 2;
    int runs = atoi(argv[1]), count = atoi(argv[3]);
    int64_t n[8];
    double *in[8], *out[8];
    for (int k = 0; k < count && k < 8; k++) {
        n[k] = atoll(argv[5 + 2 * k]);
        in[k] = malloc(sizeof(double) * n[k]);
        out[k] = malloc(sizeof(double) * n[k]);
        FILE *f = fopen(argv[4 + 2 * k], "rb");
        if (!f || fread(in[k], sizeof(double), n[k], f) != (size_t)n[k]) return fprintf(stderr, "cannot read %s\n", argv[4 + 2 * k]), 1;
        fclose(f);
    }
    double *times = malloc(sizeof(double) * runs), value = 0.0, first, second;
    for (int r = 0; r < runs; r++) {
        double start = milliseconds();
        value = objective(n, in);
        times[r] = milliseconds() - start;
    }
    qsort(times, runs, sizeof(double), by_value);
    first = times[runs / 2];
    for (int r = 0; r < runs; r++) {
        double start = milliseconds();
        gradient(n, in, out);
        times[r] = milliseconds() - start;
    }
    qsort(times, runs, sizeof(double), by_value);
    second = times[runs / 2];
    FILE *f = fopen(argv[2], "wb");
    for (int k = 0; f && k < count; k++) fwrite(out[k], sizeof(double), n[k], f);
    if (f) fclose(f);
    printf("{\"objective_ms\": %.6f, \"derivative_ms\": %.6f, \"value\": %.17g}\n", first, second, value);
    return 0;
}

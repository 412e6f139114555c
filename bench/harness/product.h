/* A matrix product as one writes it by hand: panels of the right matrix packed, six rows by sixteen columns in registers. */
typedef double Lane __attribute__((vector_size(64), aligned(8)));

enum { ROWS = 6, COLUMNS = 16 };

/* C = A B: n x k by k x m. A[i, l] is at A[i * ai + l * al], B[l, j] at B[l * bl + j * bj]; C by rows. */
static void product(int64_t n, int64_t k, int64_t m, const double *A, int64_t ai, int64_t al, const double *B, int64_t bl,
                    int64_t bj, double *restrict C)
{
#pragma omp parallel
    {
        double *panel = aligned_alloc(64, (k * COLUMNS + 8) * sizeof *panel);
#pragma omp for
        for (int64_t j0 = 0; j0 < m; j0 += COLUMNS) {
            int64_t width = m - j0 < COLUMNS ? m - j0 : COLUMNS;
            for (int64_t l = 0; l < k; l++)
                for (int64_t j = 0; j < COLUMNS; j++) panel[l * COLUMNS + j] = j < width ? B[l * bl + (j0 + j) * bj] : 0.0;
            for (int64_t i0 = 0; i0 < n; i0 += ROWS) {
                Lane sum[ROWS][2] = {{{0}}};
                int64_t height = n - i0 < ROWS ? n - i0 : ROWS, row[ROWS];
                for (int r = 0; r < ROWS; r++) row[r] = (i0 + (r < height ? r : 0)) * ai;
                for (int64_t l = 0; l < k; l++) {
                    Lane b0 = *(const Lane *)(panel + l * COLUMNS), b1 = *(const Lane *)(panel + l * COLUMNS + 8);
#pragma GCC unroll 6
                    for (int r = 0; r < ROWS; r++) {
                        double a = A[row[r] + l * al];
                        sum[r][0] += a * b0;
                        sum[r][1] += a * b1;
                    }
                }
                for (int64_t r = 0; r < height; r++)
                    for (int64_t j = 0; j < width; j++) C[(i0 + r) * m + j0 + j] = sum[r][j / 8][j % 8];
            }
        }
        free(panel);
    }
}

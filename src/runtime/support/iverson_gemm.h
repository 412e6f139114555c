/* The matrix product of libraries, where no other is at hand: blocks that fit the caches, packed, and a kernel that keeps
   its part of the result in registers. The terms of each element are added in the same order in products of any size.
   It is read once for each type of float: IV_REAL is the type, and IV_NAME(name) gives the names their endings. */

#ifndef IV_GEMM_ROWS
#if defined(__AVX512F__)
#define IV_GEMM_ROWS 8
#define IV_GEMM_BYTES 128
#else
#define IV_GEMM_ROWS 4
#define IV_GEMM_BYTES 64
#endif
enum { IV_GEMM_DEPTH_BLOCK = 256, IV_GEMM_ROW_BLOCK = 96, IV_GEMM_COLUMN_BLOCK = 512 };
#endif
#define IV_GEMM_COLUMNS ((int64_t)(IV_GEMM_BYTES / sizeof(IV_REAL)))

typedef IV_REAL IV_NAME(iv_gemm_row) __attribute__((vector_size(IV_GEMM_BYTES), aligned(sizeof(IV_REAL)), may_alias));

/* dest = sum over k of the k-th packed column of the left times the k-th packed row of the right */
static void IV_NAME(iv_gemm_kernel)(int64_t depth, const IV_REAL *left, const IV_REAL *right, IV_REAL *dest)
{
    IV_NAME(iv_gemm_row) sums[IV_GEMM_ROWS] = {{0}};
    for (int64_t k = 0; k < depth; k++) {
        const IV_NAME(iv_gemm_row) row = *(const IV_NAME(iv_gemm_row) *)(right + k * IV_GEMM_COLUMNS);
        for (int r = 0; r < IV_GEMM_ROWS; r++) sums[r] += left[k * IV_GEMM_ROWS + r] * row;
    }
    for (int r = 0; r < IV_GEMM_ROWS; r++) *(IV_NAME(iv_gemm_row) *)(dest + r * IV_GEMM_COLUMNS) = sums[r];
}

/* Panels of `width` rows (of the left) or columns (of the right), filled up with zeros. */
static void IV_NAME(iv_gemm_pack)(int64_t count, int64_t depth, int64_t width, const IV_REAL *from, int64_t across, int64_t along, IV_REAL *to)
{
    for (int64_t start = 0; start < count; start += width) {
        const int64_t filled = iv_int_min(width, count - start);
        for (int64_t k = 0; k < depth; k++, to += width) {
            const IV_REAL *place = from + start * across + k * along;
            for (int64_t j = 0; j < filled; j++) to[j] = place[j * across];
            for (int64_t j = filled; j < width; j++) to[j] = 0.0;
        }
    }
}

static void IV_NAME(iv_library_gemm)(int64_t rows, int64_t columns, int64_t depth, IV_REAL *dest, int64_t dest_row, int64_t dest_column,
                            const IV_REAL *left, int64_t left_row, int64_t left_column, const IV_REAL *right, int64_t right_row,
                            int64_t right_column, IV_REAL scale, int32_t accumulate)
{
    const int64_t panels = IV_GEMM_COLUMN_BLOCK / IV_GEMM_COLUMNS;
    IV_REAL *packed = malloc(sizeof(IV_REAL) * (size_t)((panels * IV_GEMM_COLUMNS + IV_GEMM_ROW_BLOCK) * IV_GEMM_DEPTH_BLOCK));
    if (!accumulate)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) dest[r * dest_row + c * dest_column] = 0.0;
    if (!packed) {
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) {
                IV_REAL sum = 0.0;
                for (int64_t k = 0; k < depth; k++) sum += left[r * left_row + k * left_column] * right[k * right_row + c * right_column];
                dest[r * dest_row + c * dest_column] += scale * sum;
            }
        return;
    }
    IV_REAL *const packed_left = packed + panels * IV_GEMM_COLUMNS * IV_GEMM_DEPTH_BLOCK;
    for (int64_t c0 = 0; c0 < columns; c0 += IV_GEMM_COLUMN_BLOCK) {
        const int64_t width = iv_int_min(IV_GEMM_COLUMN_BLOCK, columns - c0);
        for (int64_t k0 = 0; k0 < depth; k0 += IV_GEMM_DEPTH_BLOCK) {
            const int64_t length = iv_int_min(IV_GEMM_DEPTH_BLOCK, depth - k0);
            IV_NAME(iv_gemm_pack)(width, length, IV_GEMM_COLUMNS, right + k0 * right_row + c0 * right_column, right_column, right_row, packed);
            for (int64_t r0 = 0; r0 < rows; r0 += IV_GEMM_ROW_BLOCK) {
                const int64_t height = iv_int_min(IV_GEMM_ROW_BLOCK, rows - r0);
                IV_NAME(iv_gemm_pack)(height, length, IV_GEMM_ROWS, left + r0 * left_row + k0 * left_column, left_row, left_column, packed_left);
                for (int64_t c = 0; c < width; c += IV_GEMM_COLUMNS)
                    for (int64_t r = 0; r < height; r += IV_GEMM_ROWS) {
                        IV_REAL tile[IV_GEMM_ROWS * IV_GEMM_COLUMNS];
                        IV_NAME(iv_gemm_kernel)(length, packed_left + r * length, packed + c * length, tile);
                        const int64_t tall = iv_int_min(IV_GEMM_ROWS, height - r), wide = iv_int_min(IV_GEMM_COLUMNS, width - c);
                        for (int64_t i = 0; i < tall; i++) {
                            IV_REAL *place = dest + (r0 + r + i) * dest_row + (c0 + c) * dest_column;
                            for (int64_t j = 0; j < wide; j++) place[j * dest_column] += scale * tile[i * IV_GEMM_COLUMNS + j];
                        }
                    }
            }
        }
    }
    free(packed);
}
#undef IV_GEMM_COLUMNS

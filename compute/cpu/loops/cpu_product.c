/*
 * cpu_product.c - C (+)= A B for few rows of A and a packed B, for each step of
 * a recurrence. A BLAS packs B in every call, which takes as long as the
 * product if A has 16 rows.
 *
 * B is packed in panels of 2 vectors of columns, row by row. A tile of ROWS x 2
 * vectors of C stays in registers while k runs.
 * Compiled once for each instruction set, see cpu_isa.h.
 */
#include "compute/cpu/loops/cpu_isa.h"
#include "compute/cpu/loops/cpu_vector.h"

/* tile [rows, COLUMNS] = a [rows, k] panel [k, COLUMNS]. `rows` is a constant
 * at every call, so that the loops are unrolled. */
__attribute__((always_inline)) static inline void
multiply_rows(size_t rows, size_t k, const float *a, size_t lda,
              const float *panel, float *tile)
{
    vector sum[ROWS][2];

    for (size_t i = 0; i < rows; i++)
        sum[i][0] = sum[i][1] = SPREAD(0.0f);
    for (size_t l = 0; l < k; l++) {
        vector left = load(panel + l * COLUMNS);
        vector right = load(panel + l * COLUMNS + LANES);
        for (size_t i = 0; i < rows; i++) {
            vector x = SPREAD(a[i * lda + l]);
            sum[i][0] = MADD(x, left, sum[i][0]);
            sum[i][1] = MADD(x, right, sum[i][1]);
        }
    }
    for (size_t i = 0; i < rows; i++) {
        store(tile + i * COLUMNS, sum[i][0]);
        store(tile + i * COLUMNS + LANES, sum[i][1]);
    }
}

static void multiply_tile(size_t rows, size_t k, const float *a, size_t lda,
                          const float *panel, float *tile)
{
    switch (rows) {
#define ROW_CASE(n)                                                            \
    case n:                                                                    \
        multiply_rows(n <= ROWS ? n : ROWS, k, a, lda, panel, tile);           \
        break
        ROW_CASE(1);
        ROW_CASE(2);
        ROW_CASE(3);
        ROW_CASE(4);
        ROW_CASE(5);
        ROW_CASE(6);
        ROW_CASE(7);
        ROW_CASE(8);
#undef ROW_CASE
    default:
        BM_ASSERT(rows >= 1 && rows <= ROWS);
    }
}

static void take(const float *tile, size_t rows, size_t columns, float *c,
                 size_t ldc, bool add)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            c[i * ldc + j] = tile[i * COLUMNS + j] + (add ? c[i * ldc + j] : 0);
}

static void multiply(size_t m, size_t n, size_t k, const float *a, size_t lda,
                     const float *packed, float *c, size_t ldc, bool add)
{
    float tile[ROWS * COLUMNS];
    size_t tiles = (m + ROWS - 1) / ROWS; /* with nearly equal rows */

    for (size_t j = 0; j < n; j += COLUMNS, packed += k * COLUMNS)
        for (size_t t = 0; t < tiles; t++) {
            size_t i = t * m / tiles, rows = (t + 1) * m / tiles - i;
            size_t columns = n - j < COLUMNS ? n - j : COLUMNS;

            multiply_tile(rows, k, a + i * lda, lda, packed, tile);
            if (columns == COLUMNS)
                take(tile, rows, COLUMNS, c + i * ldc + j, ldc, add);
            else
                take(tile, rows, columns, c + i * ldc + j, ldc, add);
        }
}

static void pack(bool transposed, size_t k, size_t n, const float *b,
                 float *packed)
{
    size_t down = transposed ? 1 : n, along = transposed ? k : 1;

    for (size_t j = 0; j < n; j += COLUMNS, packed += k * COLUMNS)
        for (size_t l = 0; l < k; l++)
            for (size_t c = 0; c < COLUMNS; c++)
                packed[l * COLUMNS + c] =
                    j + c < n ? b[l * down + (j + c) * along] : 0;
}

const bm_product BM_OF_ISA(bm_product, BM_ISA) = {
    .pack = pack,
    .multiply = multiply,
};

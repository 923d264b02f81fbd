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

enum { PANELS = 4 }; /* at most ROWS */

/* tile [rows, panels COLUMNS] = a [rows, k] times `panels` panels [k, COLUMNS].
 * `rows` and `panels` are constants at every call, so that the loops are
 * unrolled. */
__attribute__((always_inline)) static inline void
multiply_rows(size_t rows, size_t panels, size_t k, const float *a, size_t lda,
              const float *panel, float *tile)
{
    vector sum[ROWS][2 * PANELS];

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < 2 * panels; j++)
            sum[i][j] = SPREAD(0.0f);
    for (size_t l = 0; l < k; l++)
        for (size_t j = 0; j < panels; j++) {
            const float *at = panel + (j * k + l) * COLUMNS;
            vector left = load(at), right = load(at + LANES);

            for (size_t i = 0; i < rows; i++) {
                vector x = SPREAD(a[i * lda + l]);
                sum[i][2 * j] = MADD(x, left, sum[i][2 * j]);
                sum[i][2 * j + 1] = MADD(x, right, sum[i][2 * j + 1]);
            }
        }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < 2 * panels; j++)
            store(tile + (i * 2 * panels + j) * LANES, sum[i][j]);
}

/* Panels that are multiplied together: with one or two rows those of one panel
 * would wait for each other's sums. */
static size_t panels_for(size_t rows)
{
    return rows == 1 ? PANELS : rows == 2 ? PANELS / 2 : 1;
}

static void multiply_tile(size_t rows, size_t panels, size_t k, const float *a,
                          size_t lda, const float *panel, float *tile)
{
    if (panels == PANELS) {
        multiply_rows(1, PANELS, k, a, lda, panel, tile);
        return;
    }
    if (panels == PANELS / 2) {
        multiply_rows(2, PANELS / 2, k, a, lda, panel, tile);
        return;
    }
    switch (rows) {
#define ROW_CASE(n)                                                            \
    case n:                                                                    \
        multiply_rows(n <= ROWS ? n : ROWS, 1, k, a, lda, panel, tile);        \
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

/* tile: rows of `width` floats. */
static void take(const float *tile, size_t width, size_t rows, size_t columns,
                 float *c, size_t ldc, bool add)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            c[i * ldc + j] = tile[i * width + j] + (add ? c[i * ldc + j] : 0);
}

/* Columns from j on, as many as a tile has; returns their number. */
static size_t multiply_columns(size_t m, size_t n, size_t j, size_t k,
                               const float *a, size_t lda, const float *packed,
                               float *c, size_t ldc, bool add)
{
    float tile[ROWS * COLUMNS];
    size_t tiles = (m + ROWS - 1) / ROWS; /* with nearly equal rows */
    size_t panels = panels_for(m), width = 0, columns = 0;

    if (n - j < panels * COLUMNS)
        panels = 1;
    width = panels * COLUMNS;
    columns = n - j < width ? n - j : width;
    for (size_t t = 0; t < tiles; t++) {
        size_t i = t * m / tiles, rows = (t + 1) * m / tiles - i;

        multiply_tile(rows, panels, k, a + i * lda, lda, packed, tile);
        if (columns == COLUMNS)
            take(tile, COLUMNS, rows, COLUMNS, c + i * ldc + j, ldc, add);
        else
            take(tile, width, rows, columns, c + i * ldc + j, ldc, add);
    }
    return width;
}

static void multiply(size_t m, size_t n, size_t k, const float *a, size_t lda,
                     const float *packed, float *c, size_t ldc, bool add)
{
    for (size_t j = 0, width = 0; j < n && m > 0; j += width)
        width =
            multiply_columns(m, n, j, k, a, lda, packed + j * k, c, ldc, add);
}

/* A panel of the transpose of b: each column of it is a row of b. */
static void pack_rows(size_t columns, size_t k, const float *b, float *panel)
{
    enum { RUN = 16 };

    for (size_t from = 0; from < k; from += RUN)
        for (size_t c = 0; c < COLUMNS; c++)
            for (size_t l = from; l < k && l < from + RUN; l++)
                panel[l * COLUMNS + c] = c < columns ? b[c * k + l] : 0;
}

static void pack(bool transposed, size_t k, size_t n, const float *b,
                 float *packed)
{
    for (size_t j = 0; j < n; j += COLUMNS, packed += k * COLUMNS) {
        size_t columns = n - j < COLUMNS ? n - j : COLUMNS;

        if (transposed)
            pack_rows(columns, k, b + j * k, packed);
        for (size_t l = 0; l < k && !transposed; l++)
            for (size_t c = 0; c < COLUMNS; c++)
                packed[l * COLUMNS + c] = c < columns ? b[l * n + j + c] : 0;
    }
}

const bm_product BM_OF_ISA(bm_product, BM_ISA) = {
    .pack = pack,
    .multiply = multiply,
};

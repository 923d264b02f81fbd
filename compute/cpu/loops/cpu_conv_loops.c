/*
 * cpu_conv_loops.c - the two products of a convolution along one column of
 * pixels. Overlapping windows are the rows of a matrix whose rows overlap in
 * memory, so that nothing is copied.
 *
 * A tile of the result stays in registers, as in cpu_product.c. Compiled once
 * for each instruction set, see cpu_isa.h.
 */
#include "compute/cpu/loops/cpu_isa.h"
#include "compute/cpu/loops/cpu_vector.h"

/* Vectors per row of the next panel, with `columns` columns left. */
static size_t width_of(size_t columns)
{
    return columns > LANES ? 2 : 1;
}

static void pack(size_t k, size_t n, const float *w, float *packed)
{
    for (size_t j = 0; j < n; j += COLUMNS) {
        size_t width = width_of(n - j) * LANES;

        for (size_t l = 0; l < k; l++)
            for (size_t c = 0; c < width; c++)
                *packed++ = j + c < n ? w[l * n + j + c] : 0;
    }
}

/* The windows of one column, see bm_conv_loops. */
typedef struct windows {
    const bm_taps *taps;
    const float *a;
    size_t lda;
} windows;

/* sum [rows, width vectors] += the products of a run of n numbers of each
 * window. Returns the panel after the run's weights. */
__attribute__((always_inline)) static inline const float *
convolve_run(size_t rows, size_t width, size_t n, const float *a, size_t lda,
             const float *panel, vector sum[ROWS][2])
{
    for (size_t l = 0; l < n; l++, panel += width * LANES) {
        vector left = load(panel);
        vector right = load(panel + (width - 1) * LANES);

        for (size_t i = 0; i < rows; i++) {
            vector x = SPREAD(a[i * lda + l]);
            sum[i][0] = MADD(x, left, sum[i][0]);
            if (width > 1)
                sum[i][1] = MADD(x, right, sum[i][1]);
        }
    }
    return panel;
}

/* tile [rows, width vectors], with rows ldt apart. `rows` and `width` are
 * constants at every call, so that the loops are unrolled. */
__attribute__((always_inline)) static inline void
convolve_rows(size_t rows, size_t width, const windows *w, const float *panel,
              const float *b, float *tile, size_t ldt)
{
    vector sum[ROWS][2];
    const bm_taps taps = *w->taps;

    for (size_t i = 0; i < rows; i++)
        for (size_t v = 0; v < width; v++)
            sum[i][v] = load(b + v * LANES);
    for (size_t f = 0; f < taps.frames; f++)
        for (size_t r = 0; r < taps.rows; r++)
            panel = convolve_run(rows, width, taps.n,
                                 w->a + f * taps.frame + r * taps.row, w->lda,
                                 panel, sum);
    for (size_t i = 0; i < rows; i++)
        for (size_t v = 0; v < width; v++)
            store(tile + i * ldt + v * LANES, sum[i][v]);
}

/* Calls f with constants for the first two arguments. */
#define CASE(f, n, ...)                                                        \
    case 2 * (n):                                                              \
        f((n) <= ROWS ? (n) : ROWS, 1, __VA_ARGS__);                           \
        break;                                                                 \
    case 2 * (n) + 1:                                                          \
        f((n) <= ROWS ? (n) : ROWS, 2, __VA_ARGS__);                           \
        break
#define CHOOSE(f, rows, width, ...)                                            \
    switch (2 * (rows) + (width)-1) {                                          \
        CASE(f, 1, __VA_ARGS__);                                               \
        CASE(f, 2, __VA_ARGS__);                                               \
        CASE(f, 3, __VA_ARGS__);                                               \
        CASE(f, 4, __VA_ARGS__);                                               \
        CASE(f, 5, __VA_ARGS__);                                               \
        CASE(f, 6, __VA_ARGS__);                                               \
        CASE(f, 7, __VA_ARGS__);                                               \
        CASE(f, 8, __VA_ARGS__);                                               \
    default:                                                                   \
        BM_ASSERT((rows) >= 1 && (rows) <= ROWS);                              \
    }

static void convolve_tile(size_t rows, size_t width, const windows *w,
                          const float *panel, const float *b, float *tile,
                          size_t ldt)
{
    CHOOSE(convolve_rows, rows, width, w, panel, b, tile, ldt)
}

static void convolve(size_t m, size_t n, const bm_taps *taps, const float *a,
                     size_t lda, const float *packed, const float *b, float *y)
{
    size_t k = taps->frames * taps->rows * taps->n;
    float tile[ROWS * COLUMNS];
    size_t tiles = (m + ROWS - 1) / ROWS; /* with nearly equal rows */

    for (size_t j = 0; j < n; j += COLUMNS) {
        size_t width = width_of(n - j), whole = width * LANES;

        for (size_t t = 0; t < tiles; t++) {
            size_t i = t * m / tiles, rows = (t + 1) * m / tiles - i;
            windows w = {taps, a + i * lda, lda};

            if (n - j >= whole) {
                convolve_tile(rows, width, &w, packed, b + j, y + i * n + j, n);
                continue;
            }
            convolve_tile(rows, width, &w, packed, b + j, tile, whole);
            for (size_t r = 0; r < rows; r++)
                memcpy(y + (i + r) * n + j, tile + r * whole,
                       (n - j) * sizeof *y);
        }
        packed += k * whole;
    }
}

/* Columns of pixels and their gradients, see bm_conv_loops. */
typedef struct pairs {
    size_t frames, rows;
    const float *a;
    size_t a_frame, lda;
    const float *b;
    size_t b_frame, ldb;
} pairs;

/* c [rows, width vectors], with rows ldc apart, += the product of a [.., rows]
 * and b. A row of b has `columns` numbers, which fill the vectors if `whole`,
 * also a constant. */
__attribute__((always_inline)) static inline void
correlate_rows(size_t rows, size_t width, bool whole, const pairs *p,
               size_t columns, float *c, size_t ldc)
{
    vector sum[ROWS][2];
    float part[COLUMNS] = {0};

    for (size_t i = 0; i < rows; i++)
        for (size_t v = 0; v < width; v++)
            sum[i][v] = load(c + i * ldc + v * LANES);
    for (size_t f = 0; f < p->frames; f++) {
        const float *a = p->a + f * p->a_frame, *b = p->b + f * p->b_frame;
        for (size_t h = 0; h < p->rows; h++, a += p->lda, b += p->ldb) {
            const float *y = whole ? b : memcpy(part, b, columns * sizeof *b);
            vector left = load(y), right = load(y + (width - 1) * LANES);

            for (size_t i = 0; i < rows; i++) {
                vector x = SPREAD(a[i]);
                sum[i][0] = MADD(x, left, sum[i][0]);
                if (width > 1)
                    sum[i][1] = MADD(x, right, sum[i][1]);
            }
        }
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t v = 0; v < width; v++)
            store(c + i * ldc + v * LANES, sum[i][v]);
}

static void correlate_whole(size_t rows, size_t width, const pairs *p, float *c)
{
    CHOOSE(correlate_rows, rows, width, true, p, 0, c, p->ldb)
}

static void correlate_part(size_t rows, size_t width, const pairs *p,
                           size_t columns, float *c)
{
    float tile[ROWS * COLUMNS] = {0};

    for (size_t i = 0; i < rows; i++)
        memcpy(tile + i * COLUMNS, c + i * p->ldb, columns * sizeof *c);
    CHOOSE(correlate_rows, rows, width, false, p, columns, tile, COLUMNS)
    for (size_t i = 0; i < rows; i++)
        memcpy(c + i * p->ldb, tile + i * COLUMNS, columns * sizeof *c);
}

static void correlate(size_t frames, size_t rows, size_t m, size_t n,
                      const float *a, size_t a_frame, size_t lda,
                      const float *b, size_t b_frame, float *c)
{
    size_t tiles = (m + ROWS - 1) / ROWS;

    for (size_t j = 0; j < n; j += COLUMNS)
        for (size_t t = 0; t < tiles; t++) {
            size_t i = t * m / tiles, height = (t + 1) * m / tiles - i;
            size_t width = width_of(n - j);
            pairs p = {frames, rows, a + i, a_frame, lda, b + j, b_frame, n};

            if (n - j >= width * LANES)
                correlate_whole(height, width, &p, c + i * n + j);
            else
                correlate_part(height, width, &p, n - j, c + i * n + j);
        }
}

const bm_conv_loops BM_OF_ISA(bm_conv_loops, BM_ISA) = {
    .pack = pack,
    .convolve = convolve,
    .correlate = correlate,
};

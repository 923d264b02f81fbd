/*
 * cpu_bytes.c - C (+)= A B with B in bytes: each column of B has a step, of
 * which its numbers are multiples from -127 to 127. A row of A is rounded to
 * multiples of a step of its own, in 16 bits or as many less as keep a sum of k
 * products below 2^31. So sums are exact, and what is lost is in the factors.
 *
 * B is packed in panels of 2 vectors of columns, pairs of rows side by side:
 * a processor multiplies two pairs of 16 bits and adds the products in one
 * instruction. Bytes become 16 bits when they are loaded.
 * Compiled once for each instruction set, see cpu_isa.h.
 */
#include "compute/cpu/loops/cpu_isa.h"
#include "compute/cpu/loops/cpu_vector.h"

#include <math.h>

enum { PANELS = 4, TILE_ROWS = 3, MOST_BYTE = 127 };

/* words: LANES sums of 32 bits. WIDEN: 2 LANES bytes as 16 bits. PAIRS: the
 * sums of two products each. */
#if defined __AVX512BW__
typedef __m512i words;
#define WIDEN(p)       _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)(p)))
#define PAIRS(a, b)    _mm512_madd_epi16(a, b)
#define PLUS(a, b)     _mm512_add_epi32(a, b)
#define SPREAD_PAIR(x) _mm512_set1_epi32(x)
#define FLOATS(x)      _mm512_cvtepi32_ps(x)
#elif defined __AVX2__
typedef __m256i words;
#define WIDEN(p)       _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(p)))
#define PAIRS(a, b)    _mm256_madd_epi16(a, b)
#define PLUS(a, b)     _mm256_add_epi32(a, b)
#define SPREAD_PAIR(x) _mm256_set1_epi32(x)
#define FLOATS(x)      _mm256_cvtepi32_ps(x)
#elif defined __SSE2__
typedef __m128i words;
#define WIDEN(p)       widen(_mm_loadl_epi64((const void *)(p)))
#define PAIRS(a, b)    _mm_madd_epi16(a, b)
#define PLUS(a, b)     _mm_add_epi32(a, b)
#define SPREAD_PAIR(x) _mm_set1_epi32(x)
#define FLOATS(x)      ((vector)_mm_cvtepi32_ps(x))

static inline __m128i widen(__m128i x)
{
    return _mm_srai_epi16(_mm_unpacklo_epi8(x, x), 8);
}
#else
typedef struct words {
    int32_t x[LANES];
} words;
#define WIDEN(p)       widen(p)
#define PAIRS(a, b)    pairs(a, b)
#define PLUS(a, b)     plus(a, b)
#define SPREAD_PAIR(x) spread_pair(x)
#define FLOATS(x)      floats(x)

/* Two numbers of 16 bits in each of 32. */
static inline words widen(const int8_t *p)
{
    words y;

    for (int i = 0; i < LANES; i++)
        y.x[i] = (int32_t)((uint32_t)(uint16_t)p[2 * i] |
                           (uint32_t)(uint16_t)p[2 * i + 1] << 16);
    return y;
}

static inline words pairs(words a, words b)
{
    words y;

    for (int i = 0; i < LANES; i++)
        y.x[i] =
            (int16_t)a.x[i] * (int16_t)b.x[i] + (a.x[i] >> 16) * (b.x[i] >> 16);
    return y;
}

static inline words plus(words a, words b)
{
    for (int i = 0; i < LANES; i++)
        a.x[i] += b.x[i];
    return a;
}

static inline words spread_pair(int32_t x)
{
    words y;

    for (int i = 0; i < LANES; i++)
        y.x[i] = x;
    return y;
}

static inline vector floats(words a)
{
    vector y;

    for (int i = 0; i < LANES; i++)
        y[i] = (float)a.x[i];
    return y;
}
#endif

/* ---- rounding ----------------------------------------------------------- */

/* The largest |x|; NAN if a number is not finite. */
static float largest(size_t n, const float *x)
{
    float most = 0, odd = 0;

#pragma omp simd reduction(max : most) reduction(+ : odd)
    for (size_t i = 0; i < n; i++) {
        float size = fabsf(x[i]);

        most = size > most ? size : most;
        odd += x[i] * 0;
    }
    return odd == 0 ? most : NAN;
}

static float round_row(size_t k, const float *x, int16_t *q)
{
    const double room = (double)INT32_MAX / MOST_BYTE / (double)(k + 1);
    const float top = room < INT16_MAX ? (float)(int)room : INT16_MAX;
    const float most = largest(k, x), scale = top / most;

    memset(q, 0, bm_row_of_bytes(k) * sizeof *q);
    if (!(most > 0) || !isfinite(scale))
        return most * 0; /* no step: zeros, or NAN */
#pragma omp simd
    for (size_t i = 0; i < k; i++) {
        float y = x[i] * scale;

        q[i] = (int16_t)(int32_t)(y + (y < 0 ? -0.5f : 0.5f));
    }
    return most / top;
}

/* ---- packing ------------------------------------------------------------ */

static size_t padded(size_t n)
{
    return (n + 31) / 32 * 32;
}

/* The steps of all columns, then the panels. */
static void pack(size_t k, size_t n, const float *b, void *packed)
{
    float *steps = packed;
    int8_t *to = (int8_t *)(steps + padded(n));
    size_t pairs_of_rows = bm_row_of_bytes(k) / 2;

    for (size_t j = 0; j < padded(n); j++)
        steps[j] = j < n ? largest(k, b + j * k) / MOST_BYTE : 0;
    memset(to, 0, padded(n) * bm_row_of_bytes(k));
    for (size_t j = 0; j < n; j++) {
        int8_t *column =
            to + j / COLUMNS * COLUMNS * 2 * pairs_of_rows + j % COLUMNS * 2;
        const float *from = b + j * k, step = steps[j];

        for (size_t l = 0; l < k && step > 0; l++) {
            float q = nearbyintf(from[l] / step);

            column[l / 2 * COLUMNS * 2 + l % 2] =
                (int8_t)(q > MOST_BYTE    ? MOST_BYTE
                         : q < -MOST_BYTE ? -MOST_BYTE
                                          : q);
        }
    }
}

/* ---- a product ---------------------------------------------------------- */

/* tile [rows, panels COLUMNS]. `rows` and `panels` are constants at every call.
 * pairs: half of k, rounded up; steps: of A's rows. */
__attribute__((always_inline)) static inline void
multiply_rows(size_t rows, size_t panels, size_t n_pairs, const int16_t *a,
              const float *steps, const int8_t *panel, const float *columns,
              float *tile)
{
    words sum[TILE_ROWS][2 * PANELS];

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < 2 * panels; j++)
            sum[i][j] = SPREAD_PAIR(0);
    for (size_t from = 0; from < n_pairs; from += 2) /* unrolled twice */
        for (size_t u = 0; u < 2 * panels; u++) {
            const size_t j = u / 2, l = from + u % 2;
            const int8_t *at = panel + (j * n_pairs + l) * COLUMNS * 2;
            words left = WIDEN(at), right = WIDEN(at + 2 * LANES);

            for (size_t i = 0; i < rows; i++) {
                int32_t pair = 0;
                words x;

                memcpy(&pair, a + (i * n_pairs + l) * 2, sizeof pair);
                x = SPREAD_PAIR(pair);
                sum[i][2 * j] = PLUS(sum[i][2 * j], PAIRS(x, left));
                sum[i][2 * j + 1] = PLUS(sum[i][2 * j + 1], PAIRS(x, right));
            }
        }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < 2 * panels; j++)
            store(tile + (i * 2 * panels + j) * LANES,
                  FLOATS(sum[i][j]) *
                      (SPREAD(steps[i]) * load(columns + j * LANES)));
}

static void multiply_tile(size_t rows, size_t panels, size_t n_pairs,
                          const int16_t *a, const float *steps,
                          const int8_t *panel, const float *columns,
                          float *tile)
{
#define TILE(r, p) multiply_rows(r, p, n_pairs, a, steps, panel, columns, tile)
    if (panels == PANELS)
        TILE(1, PANELS);
    else if (panels == PANELS / 2)
        TILE(2, PANELS / 2);
    else if (rows == 1)
        TILE(1, 1);
    else if (rows == 2)
        TILE(2, 1);
    else
        TILE(3, 1);
#undef TILE
}

static void take(const float *tile, size_t width, size_t rows, size_t columns,
                 float *c, size_t ldc, bool add)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            c[i * ldc + j] = tile[i * width + j] + (add ? c[i * ldc + j] : 0);
}

static void multiply(size_t m, size_t n, size_t k, const int16_t *a,
                     const float *steps, const void *packed, float *c,
                     size_t ldc, bool add)
{
    const float *columns = packed;
    const int8_t *panel = (const int8_t *)(columns + padded(n));
    const size_t n_pairs = bm_row_of_bytes(k) / 2,
                 tiles = (m + TILE_ROWS - 1) / TILE_ROWS;
    float tile[PANELS * COLUMNS];

    for (size_t j = 0, width = 0; j < n && m > 0; j += width) {
        size_t panels = m == 1 ? PANELS : m == 2 ? PANELS / 2 : 1;

        if (n - j < panels * COLUMNS)
            panels = 1;
        width = panels * COLUMNS;
        for (size_t t = 0; t < tiles; t++) {
            size_t i = t * m / tiles, rows = (t + 1) * m / tiles - i;

            multiply_tile(rows, panels, n_pairs, a + i * 2 * n_pairs, steps + i,
                          panel + j * 2 * n_pairs, columns + j, tile);
            if (n - j >= width && width == COLUMNS)
                take(tile, COLUMNS, rows, COLUMNS, c + i * ldc + j, ldc, add);
            else
                take(tile, width, rows, n - j < width ? n - j : width,
                     c + i * ldc + j, ldc, add);
        }
    }
}

const bm_byte_product BM_OF_ISA(bm_byte_product, BM_ISA) = {
    .pack = pack,
    .round = round_row,
    .multiply = multiply,
};

/*
 * cpu_bytes.c - C (+)= A B with B in bytes: each column of B has a step, of
 * which its numbers are multiples from -127 to 127. Each row of A has a step of
 * its own and is rounded to multiples from -63 to 63, to which 64 is added: the
 * processor multiplies unsigned by signed bytes, and the sum of two such
 * products fits into its 16 bits. Sums start with -64 times the sum of the
 * column, which takes the 64 away again. They are exact; what is lost is in the
 * factors.
 *
 * B is packed in panels of 2 vectors of columns, four rows side by side.
 * Compiled once for each instruction set, see cpu_isa.h.
 */
#include "compute/cpu/loops/cpu_isa.h"
#include "compute/cpu/loops/cpu_vector.h"

#include <math.h>

enum { PANELS = 4, TILE_ROWS = 4, MOST_BYTE = 127, MOST = 63, MIDDLE = 64 };

/* words: LANES numbers of 32 bits. QUADS: of each four bytes x >= 0 and w, the
 * sum of the products. */
#if defined __AVX512BW__
typedef __m512i words;
#define QUADS(x, w)                                                            \
    _mm512_madd_epi16(_mm512_maddubs_epi16(x, w), _mm512_set1_epi16(1))
#define PLUS(a, b)     _mm512_add_epi32(a, b)
#define SPREAD_QUAD(x) _mm512_set1_epi32(x)
#define FLOATS(x)      _mm512_cvtepi32_ps(x)
#elif defined __AVX2__
typedef __m256i words;
#define QUADS(x, w)                                                            \
    _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1))
#define PLUS(a, b)     _mm256_add_epi32(a, b)
#define SPREAD_QUAD(x) _mm256_set1_epi32(x)
#define FLOATS(x)      _mm256_cvtepi32_ps(x)
#elif defined __SSE2__
typedef __m128i words;
#define QUADS(x, w)    quads(x, w)
#define PLUS(a, b)     _mm_add_epi32(a, b)
#define SPREAD_QUAD(x) _mm_set1_epi32(x)
#define FLOATS(x)      ((vector)_mm_cvtepi32_ps(x))

static inline __m128i quads(__m128i x, __m128i w)
{
    const __m128i none = _mm_setzero_si128(), minus = _mm_cmpgt_epi8(none, w);
    __m128 low = _mm_castsi128_ps(_mm_madd_epi16(_mm_unpacklo_epi8(x, none),
                                                 _mm_unpacklo_epi8(w, minus)));
    __m128 high = _mm_castsi128_ps(_mm_madd_epi16(_mm_unpackhi_epi8(x, none),
                                                  _mm_unpackhi_epi8(w, minus)));

    return _mm_add_epi32(_mm_castps_si128(_mm_shuffle_ps(low, high, 0x88)),
                         _mm_castps_si128(_mm_shuffle_ps(low, high, 0xdd)));
}
#else
typedef struct words {
    int32_t x[LANES];
} words;
#define QUADS(x, w)    quads(x, w)
#define PLUS(a, b)     plus(a, b)
#define SPREAD_QUAD(x) spread_quad(x)
#define FLOATS(x)      floats(x)

static inline words quads(words x, words w)
{
    const int8_t *p = (const int8_t *)x.x, *q = (const int8_t *)w.x;
    words y;

    for (int i = 0; i < LANES; i++, p += 4, q += 4)
        y.x[i] = p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3];
    return y;
}

static inline words plus(words a, words b)
{
    for (int i = 0; i < LANES; i++)
        a.x[i] += b.x[i];
    return a;
}

static inline words spread_quad(int32_t x)
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

static inline words load_words(const void *p)
{
    words x;

    memcpy(&x, p, sizeof x);
    return x;
}

/* ---- rounding ----------------------------------------------------------- */

/* The largest |x|; NAN if a number is not finite. */
static float largest(size_t n, const float *x)
{
    float most = 0, non_finite = 0;

#pragma omp simd reduction(max : most) reduction(+ : non_finite)
    for (size_t i = 0; i < n; i++) {
        float size = fabsf(x[i]);

        most = size > most ? size : most;
        non_finite += x[i] * 0;
    }
    return non_finite == 0 ? most : NAN;
}

static float round_row(size_t k, const float *x, uint8_t *q)
{
    const float most = largest(k, x), scale = MOST / most;

    memset(q, 0, bm_row_of_bytes(k));
    if (!(most > 0) || !isfinite(scale))
        return most * 0; /* no step: zeros, or NAN */
#pragma omp simd
    for (size_t i = 0; i < k; i++)
        q[i] = (uint8_t)(int32_t)(x[i] * scale + (MIDDLE + 0.5f));
    return most / MOST;
}

/* ---- packing ------------------------------------------------------------ */

static size_t padded(size_t n)
{
    return (n + 31) / 32 * 32;
}

/* Of all columns the steps and what their sums start with; then the panels. */
static void pack(size_t k, size_t n, const float *b, void *packed)
{
    float *steps = packed;
    int32_t *starts = (int32_t *)(void *)(steps + padded(n));
    int8_t *to = (int8_t *)(starts + padded(n));
    size_t row = bm_row_of_bytes(k);

    memset(packed, 0, bm_packed_bytes(k, n));
    for (size_t j = 0; j < n; j++) {
        int8_t *column = to + j / COLUMNS * COLUMNS * row + j % COLUMNS * 4;
        const float *from = b + j * k;

        steps[j] = largest(k, from) / MOST_BYTE;
        for (size_t l = 0; l < k && steps[j] > 0; l++) {
            float near = nearbyintf(from[l] / steps[j]);
            int8_t q = (int8_t)(near > MOST_BYTE    ? MOST_BYTE
                                : near < -MOST_BYTE ? -MOST_BYTE
                                                    : near);

            column[l / 4 * COLUMNS * 4 + l % 4] = q;
            starts[j] -= MIDDLE * q;
        }
    }
}

/* ---- a product ---------------------------------------------------------- */

/* Of the columns of a product. */
typedef struct columns_of {
    const float *steps;
    const int32_t *starts;
    const int8_t *panels;
} columns_of;

/* c [rows, panels COLUMNS], ldc apart. `rows` and `panels` are constants at every
 * call. n_quads: a quarter of k, rounded up; steps: of A's rows. */
__attribute__((always_inline)) static inline void
multiply_rows(size_t rows, size_t panels, size_t n_quads, const uint8_t *a,
              const float *steps, columns_of b, float *c, size_t ldc, bool add)
{
    words sum[TILE_ROWS][2 * PANELS];

    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < 2 * panels; j++)
            sum[i][j] = load_words(b.starts + j * LANES);
    for (size_t l = 0; l < n_quads; l++)
        for (size_t j = 0; j < panels; j++) {
            const int8_t *at = b.panels + (j * n_quads + l) * COLUMNS * 4;
            words left = load_words(at), right = load_words(at + 4 * LANES);

            for (size_t i = 0; i < rows; i++) {
                int32_t quad = 0;
                words x;

                memcpy(&quad, a + (i * n_quads + l) * 4, sizeof quad);
                x = SPREAD_QUAD(quad);
                sum[i][2 * j] = PLUS(sum[i][2 * j], QUADS(x, left));
                sum[i][2 * j + 1] = PLUS(sum[i][2 * j + 1], QUADS(x, right));
            }
        }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < 2 * panels; j++) {
            float *to = c + i * ldc + j * LANES;
            vector y = FLOATS(sum[i][j]) *
                       (SPREAD(steps[i]) * load(b.steps + j * LANES));

            if (add)
                y += load(to);
            store(to, y);
        }
}

static void multiply_tile(size_t rows, size_t panels, size_t n_quads,
                          const uint8_t *a, const float *steps, columns_of b,
                          float *c, size_t ldc, bool add)
{
#define TILE(r, p) multiply_rows(r, p, n_quads, a, steps, b, c, ldc, add)
    if (panels == PANELS)
        TILE(1, PANELS);
    else if (panels == PANELS / 2)
        TILE(2, PANELS / 2);
    else if (rows == 1)
        TILE(1, 1);
    else if (rows == 2)
        TILE(2, 1);
    else if (rows == 3)
        TILE(3, 1);
    else
        TILE(4, 1);
#undef TILE
}

/* The last panel, of which C has only the first `columns`. */
static void multiply_last(size_t rows, size_t columns, size_t n_quads,
                          const uint8_t *a, const float *steps, columns_of b,
                          float *c, size_t ldc, bool add)
{
    float tile[TILE_ROWS * COLUMNS];

    multiply_tile(rows, 1, n_quads, a, steps, b, tile, COLUMNS, false);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            c[i * ldc + j] = tile[i * COLUMNS + j] + (add ? c[i * ldc + j] : 0);
}

static void multiply(size_t m, size_t n, size_t k, const uint8_t *a,
                     const float *steps, const void *packed, float *c,
                     size_t ldc, bool add)
{
    const size_t row = bm_row_of_bytes(k),
                 tiles = (m + TILE_ROWS - 1) / TILE_ROWS;
    const float *columns = packed;
    const int32_t *starts =
        (const int32_t *)(const void *)(columns + padded(n));
    const int8_t *panels = (const int8_t *)(starts + padded(n));

    for (size_t j = 0, side = 0; j < n; j += side * COLUMNS) {
        const columns_of b = {columns + j, starts + j, panels + j * row};

        side = m == 1 ? PANELS : m == 2 ? PANELS / 2 : 1;
        if (n - j < side * COLUMNS)
            side = 1;
        for (size_t t = 0; t < tiles; t++) {
            size_t i = t * m / tiles, rows = (t + 1) * m / tiles - i;

            if (n - j < COLUMNS)
                multiply_last(rows, n - j, row / 4, a + i * row, steps + i, b,
                              c + i * ldc + j, ldc, add);
            else
                multiply_tile(rows, side, row / 4, a + i * row, steps + i, b,
                              c + i * ldc + j, ldc, add);
        }
    }
}

const bm_byte_product BM_OF_ISA(bm_byte_product, BM_ISA) = {
    .pack = pack,
    .round = round_row,
    .multiply = multiply,
};

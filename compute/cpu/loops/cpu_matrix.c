/*
 * cpu_matrix.c - C = alpha op(A) op(B) + beta C for matrices of any size.
 *
 * A tile of C, ROWS x WIDE vectors, stays in registers while l runs over a
 * block of k. B is packed panel by panel, each the columns of a tile, so that a
 * tile reads it contiguously; A is read in place, or packed in strips of ROWS
 * rows if it is transposed. Between the tiles the next operands are prefetched
 * and the next panel is packed, a little at a time, since they do not fit in
 * the caches with the current ones.
 *
 * A number of C is a sum over l in increasing order, block by block. Blocks
 * depend on k alone, so that no number depends on how C is divided.
 * Compiled once for each instruction set, see cpu_isa.h.
 */
#include "compute/cpu/loops/cpu_isa.h"
#include "compute/cpu/loops/cpu_vector.h"

enum {
    WIDE = LANES == 16 ? 3 : 2, /* vectors of a tile's row */
    WIDTH = WIDE * LANES,
    STEP = 16,    /* of l, when B is packed */
    LOOK = 64,    /* of l, between two prefetches */
    DEPTH = 1024, /* of k, at most, in a block */
    BLOCK = 256,  /* rows of A, at most, in a block */
    TOGETHER = 8, /* strips packed at a time: whole cache lines of A */
    GROUP = TOGETHER * ROWS,
    LINE = 64 / sizeof(float),
};

static size_t least(size_t x, size_t y)
{
    return x < y ? x : y;
}

static size_t parts_of(size_t n, size_t most)
{
    BM_ASSERT(most > 0);
    return (n + most - 1) / most;
}

/* ---- prefetching -------------------------------------------------------- */

/* Memory to prefetch: `floats` in each of `rows`, from number `at` of the first
 * row on. */
typedef struct region {
    const float *x;
    size_t ld, rows, floats, at;
} region;

static size_t lines_of(const region *r)
{
    return r->rows * parts_of(r->floats, LINE);
}

__attribute__((always_inline)) static inline void fetch(region *r, size_t lines)
{
    for (; lines > 0 && r->rows > 0; lines--) {
        __builtin_prefetch(r->x + r->at, 0, 2);
        r->at += LINE;
        if (r->at >= r->floats) {
            r->at = 0;
            r->rows--;
            r->x += r->ld;
        }
    }
}

/* ---- a tile ------------------------------------------------------------- */

typedef struct tile {
    size_t k;
    const float *a; /* [ROWS, k], lda from row to row; or a strip [k, ROWS] */
    size_t lda;
    const float *panel; /* [k, vectors * LANES] */
    float *c;
    size_t ldc;
    float alpha, beta;
    region *b_next, *a_next;
    size_t b_lines, a_lines; /* cache lines for each prefetch */
} tile;

/* `vectors` and `strip` are constants at every call, so that the loops are
 * unrolled. */
__attribute__((always_inline)) static inline void
multiply_tile(size_t vectors, bool strip, const tile *t)
{
    vector sum[ROWS][WIDE];
    size_t down = strip ? 1 : t->lda, along = strip ? ROWS : 1;
    const float *a = t->a, *panel = t->panel;
    region b_next = *t->b_next, a_next = *t->a_next;
    size_t looks = parts_of(t->k, LOOK);

#pragma GCC unroll 8
    for (size_t i = 0; i < ROWS; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < vectors; j++)
            sum[i][j] = SPREAD(0.0f);
    for (size_t look = 0; look < looks; look++) {
        size_t to = least(t->k, (look + 1) * LOOK);

        fetch(&b_next, t->b_lines);
        fetch(&a_next, t->a_lines);
        if (look < ROWS / 2)
#pragma GCC unroll 8
            for (size_t j = 0; j < vectors; j++) {
                __builtin_prefetch(t->c + 2 * look * t->ldc + j * LANES, 1);
                __builtin_prefetch(t->c + (2 * look + 1) * t->ldc + j * LANES,
                                   1);
            }
#pragma GCC unroll 4
        for (size_t l = look * LOOK; l < to; l++) {
            vector b[WIDE];
#pragma GCC unroll 8
            for (size_t j = 0; j < vectors; j++)
                b[j] = load(panel + (l * vectors + j) * LANES);
#pragma GCC unroll 8
            for (size_t i = 0; i < ROWS; i++) {
                vector x = SPREAD(a[i * down + l * along]);
#pragma GCC unroll 8
                for (size_t j = 0; j < vectors; j++)
                    sum[i][j] = MADD(x, b[j], sum[i][j]);
            }
        }
    }
#pragma GCC unroll 8
    for (size_t i = 0; i < ROWS; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < vectors; j++) {
            float *c = t->c + i * t->ldc + j * LANES;
            vector x = SPREAD(t->alpha) * sum[i][j];
            store(c, t->beta == 0 ? x : MADD(SPREAD(t->beta), load(c), x));
        }
    *t->b_next = b_next;
    *t->a_next = a_next;
}

#define TILE(name, vectors, strip)                                             \
    __attribute__((noinline)) static void name(const tile *t)                  \
    {                                                                          \
        multiply_tile((vectors) < WIDE ? (vectors) : WIDE, strip, t);          \
    }
TILE(rows_by_1, 1, false)
TILE(rows_by_2, 2, false)
TILE(rows_by_3, 3, false)
TILE(strip_by_1, 1, true)
TILE(strip_by_2, 2, true)
TILE(strip_by_3, 3, true)

static void (*const tiles[2][3])(const tile *t) = {
    {rows_by_1, rows_by_2, rows_by_3},
    {strip_by_1, strip_by_2, strip_by_3},
};

/* A tile that reaches over the edge of C is computed in a buffer. */
static void multiply(size_t rows, size_t columns, size_t vectors, bool strip,
                     tile *t)
{
    float aside[ROWS * WIDTH];
    float *c = t->c;
    size_t ldc = t->ldc;
    bool edge = rows < ROWS || columns < vectors * LANES;

    if (edge) {
        t->c = aside;
        t->ldc = WIDTH;
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < WIDTH; j++)
                aside[i * WIDTH + j] = t->beta != 0 && i < rows && j < columns
                                           ? c[i * ldc + j]
                                           : 0;
    }
    tiles[strip][vectors - 1](t);
    if (edge)
        for (size_t i = 0; i < rows; i++)
            memcpy(c + i * ldc, aside + i * WIDTH, columns * sizeof *c);
}

/* ---- packing ------------------------------------------------------------ */

/* A panel: `columns` of a block of op(B), padded with zeros to whole vectors.
 */
typedef struct panel {
    bool transposed;
    const float *b; /* its first number */
    size_t ld, k, at, columns, vectors;
    float *x; /* [k, vectors * LANES] */
} panel;

#if defined __AVX512F__
/* y [16, ldy] = the transpose of x [16, ldx]. */
static void turn(const float *x, size_t ldx, float *y, size_t ldy)
{
    __m512 r[16], t[16];

    for (int i = 0; i < 4; i++)
        for (int q = 0; q < 4; q++) {
            const float *from = x + (size_t)i * ldx + (size_t)(4 * q);
            __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(from));
            v = _mm512_insertf32x4(v, _mm_loadu_ps(from + 4 * ldx), 1);
            v = _mm512_insertf32x4(v, _mm_loadu_ps(from + 8 * ldx), 2);
            v = _mm512_insertf32x4(v, _mm_loadu_ps(from + 12 * ldx), 3);
            r[4 * q + i] = v; /* columns 4q.. of rows i, 4 + i, 8 + i, 12 + i */
        }
    for (int q = 0; q < 16; q += 4) {
        t[q] = _mm512_unpacklo_ps(r[q], r[q + 1]);
        t[q + 1] = _mm512_unpackhi_ps(r[q], r[q + 1]);
        t[q + 2] = _mm512_unpacklo_ps(r[q + 2], r[q + 3]);
        t[q + 3] = _mm512_unpackhi_ps(r[q + 2], r[q + 3]);
    }
#define PAIRS(half, x, y)                                                      \
    _mm512_castpd_ps(                                                          \
        _mm512_unpack##half##_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)))
    for (int q = 0; q < 16; q += 4) {
        float *to = y + (size_t)q * ldy;
        store(to, PAIRS(lo, t[q], t[q + 2]));
        store(to + ldy, PAIRS(hi, t[q], t[q + 2]));
        store(to + 2 * ldy, PAIRS(lo, t[q + 1], t[q + 3]));
        store(to + 3 * ldy, PAIRS(hi, t[q + 1], t[q + 3]));
    }
#undef PAIRS
}
#else
static void turn(const float *x, size_t ldx, float *y, size_t ldy)
{
    for (size_t l = 0; l < STEP; l++)
        for (size_t j = 0; j < LANES; j++)
            y[l * ldy + j] = x[j * ldx + l];
}
#endif

static void pack_transposed(const panel *p, size_t from, size_t to)
{
    size_t width = p->vectors * LANES;

    for (size_t j = 0; j < width; j += LANES)
        for (size_t l = from; l < to; l += STEP) {
            float *x = p->x + l * width + j;

            if (l + STEP <= to && j + LANES <= p->columns)
                turn(p->b + j * p->ld + l, p->ld, x, width);
            else
                for (size_t i = 0; l + i < to && i < STEP; i++)
                    for (size_t c = 0; c < LANES; c++)
                        x[i * width + c] = j + c < p->columns
                                               ? p->b[(j + c) * p->ld + l + i]
                                               : 0;
        }
}

static void pack_plain(const panel *p, size_t from, size_t to)
{
    size_t width = p->vectors * LANES, n = p->columns;

    if (n == WIDTH)
        for (size_t l = from; l < to; l++)
            for (size_t j = 0; j < WIDTH; j += LANES)
                store(p->x + l * WIDTH + j, load(p->b + l * p->ld + j));
    else
        for (size_t l = from; l < to; l++)
            for (size_t j = 0; j < width; j++)
                p->x[l * width + j] = j < n ? p->b[l * p->ld + j] : 0;
}

/* Of k, from `from` on. */
static void pack(const panel *p, size_t from, size_t to)
{
    if (p->transposed)
        pack_transposed(p, from, to);
    else
        pack_plain(p, from, to);
}

/* The start of its input. */
static region source(const panel *p, size_t from, size_t to)
{
    return p->transposed ? (region){.x = p->b + from,
                                    .ld = p->ld,
                                    .rows = p->columns,
                                    .floats = to - from}
                         : (region){.x = p->b + from * p->ld,
                                    .ld = p->ld,
                                    .rows = to - from,
                                    .floats = p->columns};
}

/* Strips of ROWS rows of op(A) [rows, k] to x, the last padded with zeros. */
static void pack_strips(bool transposed, size_t rows, size_t k, const float *a,
                        size_t lda, float *x)
{
    size_t i = 0;

    if (transposed)
        for (; i + TOGETHER * ROWS <= rows; i += TOGETHER * ROWS)
            for (size_t l = 0; l < k; l++)
                for (size_t s = 0; s < TOGETHER; s++)
                    memcpy(x + (i + s * ROWS) * k + l * ROWS,
                           a + l * lda + i + s * ROWS, ROWS * sizeof *x);
    for (; i < rows; i += ROWS)
        for (size_t l = 0; l < k; l++)
            for (size_t r = 0; r < ROWS; r++)
                x[i * k + l * ROWS + r] = i + r >= rows ? 0
                                          : transposed  ? a[l * lda + i + r]
                                                        : a[(i + r) * lda + l];
}

/* ---- the product -------------------------------------------------------- */

/* The start of block i of n along a side, at whole tiles. */
static size_t cut(size_t all, size_t grain, size_t n, size_t i)
{
    BM_ASSERT(n > 0);
    return least(all, parts_of(all, grain) * i / n * grain);
}

/* A block of k: C (+)= op(A) op(B). Rows of it: op(A) [rows, k]. */
typedef struct block {
    const bm_matrices *p;
    size_t from, k; /* of l */
    float beta;
    float *strips, *panels;
    size_t n_panels;
    bool keep; /* all panels, for more rows; else this one and the next */
} block;

/* Panel i. Columns are divided evenly, since a tile of one vector is slow. */
static panel panel_at(const block *b, size_t i)
{
    const bm_matrices *p = b->p;
    size_t j = cut(p->n, LANES, b->n_panels, i);
    size_t columns = cut(p->n, LANES, b->n_panels, i + 1) - j;

    return (panel){
        .transposed = p->trans_b,
        .b = p->b + (p->trans_b ? j * p->ldb + b->from : b->from * p->ldb + j),
        .ld = p->ldb,
        .k = b->k,
        .at = j,
        .columns = columns,
        .vectors = parts_of(columns, LANES),
        .x = b->panels + (b->keep ? j : i % 2 * WIDTH) * b->k};
}

static const float *a_at(const block *b, size_t i)
{
    const bm_matrices *p = b->p;

    return p->a + (p->trans_a ? b->from * p->lda + i : i * p->lda + b->from);
}

/* op(A) [to - i, k] */
static region rows_at(const block *b, size_t i, size_t to)
{
    bool t = b->p->trans_a;

    return (region){.x = a_at(b, i),
                    .ld = b->p->lda,
                    .rows = t ? b->k : to - i,
                    .floats = t ? to - i : b->k};
}

/* Rows `from` to `to` of C with panel `now`. Meanwhile panel `next` is packed,
 * if `packing`, else prefetched. */
static void multiply_panel(const block *b, size_t from, size_t to,
                           const panel *now, const panel *next, bool packing,
                           tile *t)
{
    const bm_matrices *p = b->p;
    size_t n = parts_of(to - from, ROWS), looks = parts_of(b->k, LOOK);
    size_t whole = p->trans_a ? 0 : (to - from) / ROWS * ROWS;
    size_t some = parts_of(b->k, n * STEP) * STEP; /* of k, for each tile */
    region ahead = packing ? source(next, 0, least(some, b->k))
                           : (region){.x = next->x,
                                      .rows = 1,
                                      .floats = b->k * next->vectors * LANES};

    t->b_next = &ahead;
    t->b_lines = parts_of(lines_of(&ahead), packing ? looks : n * looks);
    for (size_t i = 0; i < n; i++) {
        size_t at = i * ROWS;
        bool strip = at >= whole;
        float *strips = b->strips + (at - whole) * b->k;
        size_t l = least(b->k, i * some), l_end = least(b->k, l + some);

        if (now->at == 0 && strip && (at - whole) % GROUP == 0)
            pack_strips(p->trans_a, least(GROUP, to - from - at), b->k,
                        a_at(b, from + at), p->lda, strips);
        if (packing)
            ahead = source(next, l, l_end);
        t->a = strip ? strips : a_at(b, from + at);
        t->panel = now->x;
        t->c = p->c + (from + at) * p->ldc + now->at;
        t->ldc = p->ldc;
        multiply(least(ROWS, to - from - at), now->columns, now->vectors, strip,
                 t);
        if (packing)
            pack(next, l, l_end);
    }
}

/* Rows `from` to `to` of C. The first of such calls packs the panels; rows up
 * to `more` come next. */
static void multiply_rows(const block *b, size_t from, size_t to, size_t more)
{
    const bm_matrices *p = b->p;
    bool first = from == 0;
    region rows = rows_at(b, to, more);
    tile t = {.k = b->k,
              .lda = p->lda,
              .alpha = p->alpha,
              .beta = b->beta,
              .a_next = &rows,
              .a_lines = parts_of(lines_of(&rows),
                                  b->n_panels * parts_of(to - from, ROWS) *
                                      parts_of(b->k, LOOK))};
    panel now = panel_at(b, 0);

    if (first)
        pack(&now, 0, b->k);
    for (size_t j = 0; j < b->n_panels; j++) {
        bool last = j + 1 == b->n_panels;
        panel next = panel_at(b, last ? 0 : j + 1);

        multiply_panel(b, from, to, &now, &next, first && !last, &t);
        now = next;
    }
}

/* Also enough for products with fewer rows. */
static size_t room(const bm_matrices *p)
{
    size_t depth = parts_of(least(DEPTH, p->k), STEP) * STEP;
    size_t all = parts_of(p->n, LANES) * LANES, two = 2 * WIDTH;

    return depth * (BLOCK + ROWS + (p->m > BLOCK && all > two ? all : two));
}

static void multiply_all(const bm_matrices *p, float *work)
{
    size_t blocks = parts_of(p->k, DEPTH), downs = parts_of(p->m, BLOCK);
    block b = {.p = p,
               .strips = work,
               .keep = downs > 1,
               .n_panels = parts_of(p->n, WIDTH)};

    for (size_t i = 0; i < blocks; i++) {
        b.from = cut(p->k, STEP, blocks, i);
        b.k = cut(p->k, STEP, blocks, i + 1) - b.from;
        b.beta = i == 0 ? p->beta : 1;
        b.panels = work + (BLOCK + ROWS) * b.k;
        for (size_t d = 0; d < downs; d++)
            multiply_rows(&b, cut(p->m, ROWS, downs, d),
                          cut(p->m, ROWS, downs, d + 1),
                          cut(p->m, ROWS, downs, least(downs, d + 2)));
    }
}

const bm_matrix_loops BM_OF_ISA(bm_matrix_loops, BM_ISA) = {
    .room = room,
    .multiply = multiply_all,
};

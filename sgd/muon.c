#include "sgd/muon.h"

#include <math.h>
#include <stdlib.h>

enum { ITERATIONS = 5 };
static const float A = 3.4445F, B = -4.775F, C = 2.0315F;

/* Weights from `offset` on: a matrix, or, with rows = 0, `count` others. */
typedef struct piece {
    size_t offset, count;
    size_t rows, cols;
    float scale;
} piece;

struct bm_muon {
    const bm_params *params; /* borrowed */
    piece *pieces;           /* [n_pieces], all learned weights */
    size_t n_pieces;
    float *x;       /* [largest matrix] */
    float *square;  /* [the smaller side of a matrix, squared] */
    float *squared; /* likewise: the square of `square` */
};

/* Matrices that a segment consists of, one after the other. */
static size_t matrices(const bm_segment *s)
{
    if (s->rank < 2 || s->stacked == BM_NO_MATRIX)
        return 0;
    return s->stacked > 0 ? s->stacked : 1;
}

/* A matrix [rows, cols] of the segment has outputs as rows, or as columns if it
 * is that of a convolution. */
static piece matrix_of(const bm_segment *s, size_t number)
{
    size_t cols = s->dim[s->rank - 1], count = s->count / matrices(s);
    double outputs = (double)(s->rank == 4 ? cols : count / cols);
    double inputs = (double)count / outputs;

    return (piece){.offset = s->offset + number * count,
                   .count = count,
                   .rows = count / cols,
                   .cols = cols,
                   .scale = (float)sqrt(fmax(1, outputs / inputs))};
}

static size_t smaller_side(const piece *p)
{
    return p->rows < p->cols ? p->rows : p->cols;
}

/* out [.., or NULL]: all learned weights, in order. Returns how many pieces. */
static size_t list_pieces(const bm_params *p, piece *out)
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < p->n_segments; i++) {
        const bm_segment *s = &p->segments[i];

        for (size_t k = 0; s->offset < p->n_learned && k < matrices(s); k++) {
            piece m = matrix_of(s, k);

            if (m.offset > at && out != NULL)
                out[n] = (piece){.offset = at, .count = m.offset - at};
            n += m.offset > at;
            if (out != NULL)
                out[n] = m;
            n++;
            at = m.offset + m.count;
        }
    }
    if (at < p->n_learned && out != NULL)
        out[n] = (piece){.offset = at, .count = p->n_learned - at};
    return n + (at < p->n_learned);
}

/* The largest matrix, and the square of the largest smaller side. */
static void measure(const bm_params *p, size_t *whole, size_t *square)
{
    *whole = *square = 0;
    for (size_t i = 0; i < p->n_segments; i++)
        if (p->segments[i].offset < p->n_learned &&
            matrices(&p->segments[i]) > 0) {
            piece m = matrix_of(&p->segments[i], 0);
            size_t side = smaller_side(&m);

            *whole = m.count > *whole ? m.count : *whole;
            *square = side * side > *square ? side * side : *square;
        }
}

bm_status bm_muon_new(bm_muon **out, const bm_params *params)
{
    bm_muon *m = calloc(1, sizeof *m);
    size_t whole = 0, square = 0;
    bm_status status = BM_OK;

    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for Muon");
    m->params = params;
    m->n_pieces = list_pieces(params, NULL);
    m->pieces = calloc(m->n_pieces + 1, sizeof *m->pieces);
    if (m->pieces == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu matrices", m->n_pieces);
    (void)list_pieces(params, m->pieces);
    measure(params, &whole, &square);
    BM_TRY_DONE(bm_alloc(params->be, whole, &m->x));
    BM_TRY_DONE(bm_alloc(params->be, square, &m->square));
    BM_TRY_DONE(bm_alloc(params->be, square, &m->squared));
    *out = m;
    m = NULL;
done:
    bm_muon_free(m);
    return status;
}

void bm_muon_free(bm_muon *m)
{
    if (m == NULL)
        return;
    bm_free(m->params->be, m->squared);
    bm_free(m->params->be, m->square);
    bm_free(m->params->be, m->x);
    free(m->pieces);
    free(m);
}

/* y <- a x + (b q + c q^2) x with q = x x', or with q = x' x from the right if
 * that is smaller. */
static void iterate(bm_muon *m, const piece *p, float *from, float *to)
{
    bm_backend *be = m->params->be;
    bool wide = p->rows <= p->cols;
    size_t side = smaller_side(p);
    bm_tensor x = bm_matrix(from, p->rows, p->cols);
    bm_tensor y = bm_matrix(to, p->rows, p->cols);
    bm_tensor q = bm_matrix(m->square, side, side);
    bm_tensor sum = bm_matrix(m->squared, side, side);

    bm_gemm(be, !wide, wide, 1, x, x, 0, q);
    bm_gemm(be, false, false, C, q, q, 0, sum);
    bm_axpby(be, side * side, B, q.data, 1, sum.data);
    bm_axpby(be, p->count, A, from, 0, to);
    if (wide)
        bm_gemm(be, false, false, 1, sum, x, 1, y);
    else
        bm_gemm(be, false, false, 1, x, sum, 1, y);
}

static void step_matrix(bm_muon *m, const piece *p, float *d, float rate,
                        float keep)
{
    bm_backend *be = m->params->be;
    float *x = d + p->offset, *y = m->x;

    bm_unit(be, p->count, x, x);
    for (int i = 0; i < ITERATIONS; i++) {
        float *done = y;

        iterate(m, p, x, y);
        y = x;
        x = done;
    }
    bm_axpby(be, p->count, rate * p->scale, x, keep, m->params->w + p->offset);
}

void bm_muon_step(bm_muon *m, float *d, float rate, float decay)
{
    const bm_params *p = m->params;
    float keep = 1 - rate * decay;

    for (size_t i = 0; i < m->n_pieces; i++) {
        const piece *at = &m->pieces[i];

        if (at->rows > 0)
            step_matrix(m, at, d, rate, keep);
        else
            bm_axpby(p->be, at->count, 1, d + at->offset, keep,
                     p->w + at->offset);
    }
    bm_axpby(p->be, p->n - p->n_learned, 1, d + p->n_learned, 1,
             p->w + p->n_learned);
}

/*
 * cuda_forms.c - memory of the device, and which form of it is current. All of
 * it is floats, but for spans where the bf16 twin is current too, or alone.
 * Spans never overlap. There are as many as vectors in use: some dozens.
 */
#include "compute/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

typedef struct span {
    size_t first, last; /* [first, last) */
    bool alone;         /* the floats there are out of date */
} span;

typedef struct piece {
    float *x;
    size_t n;
    bm_bf16 *twin; /* NULL: nobody has asked for it */
    span *spans;
    size_t n_spans, room;
} piece;

/* What `side` still reads, or writes. */
typedef struct loan {
    const float *x;
    size_t n;
    bool written;
} loan;

struct bm_cuda_memory {
    piece *pieces;
    size_t n_pieces, room;
    loan *loans;
    size_t n_loans, room_for_loans;
};

bm_status bm_cuda_memory_open(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    cuda->memory = calloc(1, sizeof *cuda->memory);
    if (cuda->memory == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    return BM_OK;
}

static void let_go(piece *p)
{
    cudaFree(p->twin);
    cudaFree(p->x);
    free(p->spans);
}

void bm_cuda_memory_close(bm_backend *be)
{
    bm_cuda_memory *m = bm_cuda_of(be)->memory;

    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n_pieces; i++)
        let_go(&m->pieces[i]);
    free(m->loans);
    free(m->pieces);
    free(m);
}

/* Room for one more at the end of a vector of things. */
static bm_status grow(void *vector, size_t n, size_t *room, size_t size)
{
    void **x = vector;
    void *more = NULL;

    if (n < *room)
        return BM_OK;
    more = realloc(*x, (2 * *room + 16) * size);
    if (more == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    *x = more;
    *room = 2 * *room + 16;
    return BM_OK;
}

bm_status bm_cuda_alloc(bm_backend *be, size_t n, float **out)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_memory *m = cuda->memory;
    size_t bytes = (n > 0 ? n : 1) * sizeof(float);
    float *x = NULL;
    bm_status status = BM_OK;

    bm_cuda_step_end(be);
    BM_TRY(grow(&m->pieces, m->n_pieces, &m->room, sizeof *m->pieces));
    BM_TRY(bm_cuda_status(cudaMalloc((void **)&x, bytes), "cudaMalloc"));
    status =
        bm_cuda_status(cudaMemsetAsync(x, 0, bytes, cuda->stream), "memset");
    if (status != BM_OK) {
        cudaFree(x);
        return status;
    }
    m->pieces[m->n_pieces++] = (piece){.x = x, .n = n > 0 ? n : 1};
    *out = x;
    return BM_OK;
}

static piece *find(bm_backend *be, const float *x, size_t n)
{
    bm_cuda_memory *m = bm_cuda_of(be)->memory;

    for (size_t i = 0; i < m->n_pieces; i++) {
        piece *p = &m->pieces[i];
        if (x >= p->x && x + n <= p->x + p->n)
            return p;
    }
    BM_ASSERT(!"memory of this backend");
    return NULL;
}

/* The stream may still use it: cudaFree waits. */
void bm_cuda_free(bm_backend *be, float *x)
{
    bm_cuda_memory *m = bm_cuda_of(be)->memory;
    piece *p = find(be, x, 1); /* not one that ends there */

    bm_cuda_step_end(be);
    let_go(p);
    *p = m->pieces[--m->n_pieces];
}

void bm_cuda_lend(bm_backend *be, const float *x, size_t n, bool written)
{
    bm_cuda_memory *m = bm_cuda_of(be)->memory;
    bm_status status =
        grow(&m->loans, m->n_loans, &m->room_for_loans, sizeof *m->loans);

    if (status != BM_OK) {
        bm_remember(be, status);
        bm_cuda_join(be);
        return;
    }
    m->loans[m->n_loans++] = (loan){x, n, written};
}

void bm_cuda_lent_back(bm_backend *be)
{
    bm_cuda_of(be)->memory->n_loans = 0;
}

/* Waits for `side` if it works with x in a way that does not go with this. */
static void reclaim(bm_backend *be, const float *x, size_t n, bool to_write)
{
    bm_cuda_memory *m = bm_cuda_of(be)->memory;

    for (size_t i = 0; i < m->n_loans; i++) {
        const loan *l = &m->loans[i];
        if ((l->written || to_write) && x < l->x + l->n && l->x < x + n) {
            bm_cuda_join(be);
            return;
        }
    }
}

static bool overlaps(const span *s, size_t first, size_t last)
{
    return s->first < last && first < s->last;
}

static bool covers(const span *s, size_t first, size_t last)
{
    return s->first <= first && last <= s->last;
}

static void widen(bm_backend *be, piece *p, span *s)
{
    BM_CUDA(be, bm_kernel_widen(bm_cuda_of(be)->stream, s->last - s->first,
                                p->twin + s->first, p->x + s->first));
    s->alone = false;
}

/* Floats are current in [first, last). */
static void widen_all(bm_backend *be, piece *p, size_t first, size_t last)
{
    for (size_t i = 0; i < p->n_spans; i++)
        if (p->spans[i].alone && overlaps(&p->spans[i], first, last))
            widen(be, p, &p->spans[i]);
}

static void remember(bm_backend *be, piece *p, span s)
{
    bm_status status = grow(&p->spans, p->n_spans, &p->room, sizeof *p->spans);

    if (status != BM_OK)
        bm_remember(be, status);
    else if (s.first < s.last)
        p->spans[p->n_spans++] = s;
}

/* [first, last) is about to be written: no span says anything of it. What one
 * says of numbers beside it still holds. */
static void forget(bm_backend *be, piece *p, size_t first, size_t last)
{
    size_t kept = 0;
    span behind = {0};

    for (size_t i = 0; i < p->n_spans; i++) {
        span s = p->spans[i];

        if (overlaps(&s, first, last)) {
            bool before = s.first < first, after = last < s.last;

            if (before && after)
                behind = (span){last, s.last, s.alone};
            if (before)
                s.last = first;
            else if (after)
                s.first = last;
            else
                continue;
        }
        p->spans[kept++] = s;
    }
    p->n_spans = kept;
    remember(be, p, behind);
}

static bool have_twin(bm_backend *be, piece *p)
{
    if (p->twin == NULL) {
        bm_step_leave(be);
        BM_CUDA(be, cudaMalloc((void **)&p->twin, p->n * sizeof *p->twin));
    }
    return p->twin != NULL;
}

const float *bm_cuda_read(bm_backend *be, const float *x, size_t n)
{
    piece *p = find(be, x, n);
    size_t first = (size_t)(x - p->x);

    reclaim(be, x, n, false);
    widen_all(be, p, first, first + n);
    return x;
}

static bool is_current16(const piece *p, size_t first, size_t last)
{
    for (size_t i = 0; i < p->n_spans; i++)
        if (covers(&p->spans[i], first, last))
            return true;
    return false;
}

const bm_bf16 *bm_cuda_read16(bm_backend *be, const float *x, size_t n)
{
    piece *p = find(be, x, n);
    size_t first = (size_t)(x - p->x);

    reclaim(be, x, n, false);
    if (is_current16(p, first, first + n))
        return p->twin + first;
    reclaim(be, x, n, true);
    widen_all(be, p, first, first + n);
    forget(be, p, first, first + n);
    if (!have_twin(be, p))
        return NULL;
    BM_CUDA(be, bm_kernel_round(bm_cuda_of(be)->stream, n, x, p->twin + first));
    remember(be, p, (span){first, first + n, false});
    return p->twin + first;
}

float *bm_cuda_write(bm_backend *be, float *x, size_t n)
{
    piece *p = find(be, x, n);
    size_t first = (size_t)(x - p->x);

    reclaim(be, x, n, true);
    forget(be, p, first, first + n);
    return x;
}

static bm_bf16 *write_twin(bm_backend *be, float *x, size_t n, bool alone)
{
    piece *p = find(be, x, n);
    size_t first = (size_t)(x - p->x);

    reclaim(be, x, n, true);
    forget(be, p, first, first + n);
    if (!have_twin(be, p))
        return NULL;
    remember(be, p, (span){first, first + n, alone});
    return p->twin + first;
}

bm_bf16 *bm_cuda_write16(bm_backend *be, float *x, size_t n)
{
    return write_twin(be, x, n, true);
}

bm_bf16 *bm_cuda_write_both(bm_backend *be, float *x, size_t n)
{
    return write_twin(be, x, n, false);
}

bm_in bm_cuda_in(bm_backend *be, const float *x, size_t n)
{
    const piece *p = find(be, x, n);
    size_t first = (size_t)(x - p->x);

    if (bm_cuda_of(be)->precision == BM_BF16 &&
        is_current16(p, first, first + n))
        return (bm_in){bm_cuda_read16(be, x, n), true};
    return (bm_in){bm_cuda_read(be, x, n), false};
}

bm_out bm_cuda_out(bm_backend *be, float *x, size_t n)
{
    if (bm_cuda_of(be)->precision == BM_BF16)
        return (bm_out){bm_cuda_write16(be, x, n), true};
    return (bm_out){bm_cuda_write(be, x, n), false};
}

bm_out bm_cuda_change(bm_backend *be, float *x, size_t n, bool half)
{
    if (half) {
        (void)bm_cuda_read16(be, x, n);
        return (bm_out){bm_cuda_write16(be, x, n), true};
    }
    (void)bm_cuda_read(be, x, n);
    return (bm_out){bm_cuda_write(be, x, n), false};
}

/*
 * cuda_forms.c - see cuda_forms.h. The floats of a piece are current except in
 * spans that say otherwise: there the bf16 twin is current too, or alone. Spans
 * never overlap. There are some dozens, about as many as vectors in use.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/device/cuda_side.h"
#include "core/grow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct span {
    size_t first, last; /* [first, last) */
    bool alone;         /* the floats there are out of date */
} span;

/* One bm_alloc or bm_alloc_idle. */
typedef struct piece {
    float
        *x; /* as callers know it; of idle vectors an address without memory */
    size_t n;
    bm_cuda_idle *idle; /* NULL: x is on the device */
    bm_bf16 *twin;      /* NULL until it is needed */
    span *spans;
    size_t n_spans, room;
} piece;

struct bm_cuda_memory {
    piece *pieces;
    size_t n_pieces, room;
};
typedef struct bm_cuda_memory bm_cuda_memory;

bm_status bm_cuda_memory_open(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    cuda->memory = calloc(1, sizeof *cuda->memory);
    if (cuda->memory == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    return BM_OK;
}

static void free_piece(bm_backend *be, piece *p)
{
    if (p->idle != NULL) {
        bm_cuda_idle_close(be, p->idle);
        munmap(p->x, p->n * sizeof *p->x);
    } else {
        cudaFree(p->x);
    }
    cudaFree(p->twin);
    free(p->spans);
}

void bm_cuda_memory_close(bm_backend *be)
{
    bm_cuda_memory *m = bm_cuda_of(be)->memory;

    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n_pieces; i++)
        free_piece(be, &m->pieces[i]);
    free(m->pieces);
    free(m);
}

bm_status bm_cuda_alloc(bm_backend *be, size_t n, float **out)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_memory *m = cuda->memory;
    size_t bytes = (n > 0 ? n : 1) * sizeof(float);
    float *x = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_grow(&m->pieces, m->n_pieces, &m->room, sizeof *m->pieces));
    BM_TRY(
        bm_cuda_status(bm_cuda_malloc(be, (void **)&x, bytes), "cudaMalloc"));
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

bm_status bm_cuda_alloc_idle(bm_backend *be, size_t n, float **out)
{
    bm_cuda_memory *m = bm_cuda_of(be)->memory;
    size_t bytes = (n > 0 ? n : 1) * sizeof(float);
    piece p = {.n = n > 0 ? n : 1};
    bm_status status = BM_OK;

    BM_TRY(bm_grow(&m->pieces, m->n_pieces, &m->room, sizeof *m->pieces));
    p.x = mmap(NULL, bytes, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p.x == MAP_FAILED)
        return BM_FAIL(BM_ERR_MEMORY, "no addresses for %zu floats", n);
    status = bm_cuda_idle_open(be, bytes, &p.idle);
    if (status != BM_OK) {
        munmap(p.x, bytes);
        return status;
    }
    m->pieces[m->n_pieces++] = p;
    *out = p.x;
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
    BM_ASSERT(!"a vector from bm_alloc of this backend");
    return NULL;
}

/* Where the floats from number `first` on are. `load`: they are read, or not all
 * of the piece is written. */
static float *place(bm_backend *be, const piece *p, size_t first, bool load)
{
    float *x = p->idle != NULL ? bm_cuda_idle_take(be, p->idle, load) : p->x;

    return x != NULL ? x + first : NULL;
}

/* The stream may still use x: cudaFree waits. */
void bm_cuda_free(bm_backend *be, float *x)
{
    bm_cuda_memory *m = bm_cuda_of(be)->memory;
    piece *p = find(be, x, 1); /* n = 0 could find the piece before */

    free_piece(be, p);
    *p = m->pieces[--m->n_pieces];
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

/* Makes the floats in [first, last) current. */
static void widen_all(bm_backend *be, piece *p, size_t first, size_t last)
{
    for (size_t i = 0; i < p->n_spans; i++)
        if (p->spans[i].alone && overlaps(&p->spans[i], first, last))
            widen(be, p, &p->spans[i]);
}

static void add_span(bm_backend *be, piece *p, span s)
{
    bm_status status =
        bm_grow(&p->spans, p->n_spans, &p->room, sizeof *p->spans);

    if (status != BM_OK)
        bm_remember(be, status);
    else if (s.first < s.last)
        p->spans[p->n_spans++] = s;
}

/* Removes [first, last), which is about to be written, from all spans. A span
 * keeps what it covers on either side. */
static void drop_spans(bm_backend *be, piece *p, size_t first, size_t last)
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
    add_span(be, p, behind);
}

static bool have_twin(bm_backend *be, piece *p)
{
    BM_ASSERT(p->idle == NULL);
    if (p->twin == NULL)
        BM_CUDA(be,
                bm_cuda_malloc(be, (void **)&p->twin, p->n * sizeof *p->twin));
    return p->twin != NULL;
}

const float *bm_cuda_read(bm_backend *be, const float *x, size_t n)
{
    piece *p = find(be, x, n);
    size_t first = (size_t)(x - p->x);

    bm_cuda_reclaim(be, x, n, false);
    widen_all(be, p, first, first + n);
    return place(be, p, first, true);
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

    bm_cuda_reclaim(be, x, n, false);
    if (is_current16(p, first, first + n))
        return p->twin + first;
    bm_cuda_reclaim(be, x, n, true);
    widen_all(be, p, first, first + n);
    drop_spans(be, p, first, first + n);
    if (!have_twin(be, p))
        return NULL;
    BM_CUDA(be, bm_kernel_round(bm_cuda_of(be)->stream, n, x, p->twin + first));
    add_span(be, p, (span){first, first + n, false});
    return p->twin + first;
}

float *bm_cuda_write(bm_backend *be, float *x, size_t n)
{
    piece *p = find(be, x, n);
    size_t first = (size_t)(x - p->x);

    bm_cuda_reclaim(be, x, n, true);
    drop_spans(be, p, first, first + n);
    return place(be, p, first, n < p->n);
}

static bm_bf16 *write_twin(bm_backend *be, float *x, size_t n, bool alone)
{
    piece *p = find(be, x, n);
    size_t first = (size_t)(x - p->x);

    bm_cuda_reclaim(be, x, n, true);
    drop_spans(be, p, first, first + n);
    if (!have_twin(be, p))
        return NULL;
    add_span(be, p, (span){first, first + n, alone});
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

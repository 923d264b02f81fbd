/* stage.c - sends mini-batches to a backend: packs them on the host, or calls
 * the backend's stage. */
#include "compute/backend_ops.h"
#include "core/size.h"

#include <stdlib.h>
#include <string.h>

struct bm_stage {
    bm_backend *be; /* borrowed */
    void *self;     /* the backend's state; NULL: its memory is the host's */
    float *x;       /* [room], if self is NULL */
    size_t room;
};

bm_status bm_stage_open(bm_stage **out, bm_backend *be)
{
    bm_stage *s = calloc(1, sizeof *s);
    bm_status status = BM_OK;

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a stage");
    s->be = be;
    if (!be->ops->on_host)
        status = be->ops->stage_open(be, &s->self);
    if (status == BM_OK)
        *out = s;
    else
        free(s);
    return status;
}

void bm_stage_close(bm_stage *s)
{
    if (s == NULL)
        return;
    if (s->self != NULL)
        s->be->ops->stage_close(s->be, s->self);
    bm_free(s->be, s->x);
    free(s);
}

size_t bm_stage_frames(const bm_backend *be, size_t longest)
{
    size_t step = 16; /* frames; a smaller power of two for short sequences */

    if (be->ops->on_host)
        return longest;
    while (step > 1 && 16 * step > longest)
        step /= 2;
    return (longest + step - 1) / step * step;
}

/* Writes column b of x [T, B, D]. */
static void write_column(float *x, bm_extent e, size_t D, size_t b,
                         const bm_stored *p)
{
    size_t frames = (size_t)e.frames[b];
    const float *from = p->x;

    BM_ASSERT(p->bytes == sizeof *from);
    for (size_t t = 0; t < e.T; t++) {
        float *row = x + (t * e.B + b) * D;
        if (t < frames)
            memcpy(row, from + t * D, D * sizeof *row);
        else
            memset(row, 0, D * sizeof *row);
    }
}

bm_status bm_stage_send(bm_stage *s, bm_extent e, size_t D,
                        const bm_stored *sequences, float **x)
{
    size_t n = bm_size_mul(bm_size_mul(e.T, e.B), D);

    if (n > PTRDIFF_MAX / sizeof(float))
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu x %zu x %zu floats",
                       e.T, e.B, D);
    if (s->self != NULL)
        return s->be->ops->stage_send(s->be, s->self, e, D, sequences, x);
    if (s->x == NULL || n > s->room) {
        bm_free(s->be, s->x);
        s->x = NULL;
        BM_TRY(bm_alloc(s->be, n, &s->x));
        s->room = n;
    }
    for (size_t b = 0; b < e.B; b++)
        write_column(s->x, e, D, b, &sequences[b]);
    *x = s->x;
    return BM_OK;
}

/* stage.c - input on its way to a backend: the host's own. */
#include "compute/backend_ops.h"

#include <stdlib.h>

struct bm_stage {
    bm_backend *be; /* borrowed */
    void *self;     /* the backend's; NULL: its memory is the host's */
    float *x;       /* [room], then */
    size_t room;
};

bm_status bm_stage_open(bm_stage **out, bm_backend *be)
{
    bm_stage *s = calloc(1, sizeof *s);
    bm_status status = BM_OK;

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for input");
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

bm_status bm_stage_room(bm_stage *s, size_t n, float **host)
{
    if (s->self != NULL)
        return s->be->ops->stage_room(s->be, s->self, n, host);
    if (s->x == NULL || n > s->room) {
        bm_free(s->be, s->x);
        s->x = NULL;
        BM_TRY(bm_alloc(s->be, n, &s->x));
        s->room = n;
    }
    *host = s->x;
    return BM_OK;
}

float *bm_stage_send(bm_stage *s, size_t n)
{
    return s->self != NULL ? s->be->ops->stage_send(s->be, s->self, n) : s->x;
}

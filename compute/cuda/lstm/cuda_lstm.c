/* cuda_lstm.c - LSTM over whole sequences, by the engine of this backend, and
 * GRU step by step. */
#include "compute/cuda/lstm/cuda_lstm.h"
#include "compute/cuda/device/cuda_operations.h"

#include <stdlib.h>

static const bm_lstm_engine *const engines[] = {
#define X(name) &bm_lstm_engine_##name,
    BM_LSTM_ENGINES(X)
#undef X
};

static const char *const names[] = {
#define X(name) #name,
    BM_LSTM_ENGINES(X)
#undef X
        NULL,
};

bm_status bm_cuda_lstm_open(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    size_t i = 0;

    BM_TRY(bm_cuda_switch(cuda, "BMUF_LSTM", names, &i));
    cuda->lstm = calloc(1, sizeof *cuda->lstm);
    if (cuda->lstm == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    cuda->lstm->engine = engines[i];
    return BM_OK;
}

void bm_cuda_lstm_close(bm_backend *be)
{
    struct bm_cuda_lstm *own = bm_cuda_of(be)->lstm;

    if (own == NULL)
        return;
    bm_lstm_engine_steps.close(be);
    if (own->engine->close != NULL)
        own->engine->close(be);
    cudaFree(own->partial.x);
    free(own);
}

/* NULL if there are no frames, or if the engine cannot compute such a batch:
 * then the backend has failed. */
static const bm_lstm_engine *engine_for(bm_backend *be, const bm_recurrent *l,
                                        bm_extent e)
{
    const bm_lstm_engine *engine = bm_cuda_of(be)->lstm->engine;
    const char *why = NULL;

    if (e.T == 0 || e.B == 0 || be->failed != BM_OK)
        return NULL;
    if (l->cell == BM_GRU || l->n_projected > 0)
        return &bm_lstm_engine_steps;
    if (engine->obstacle != NULL)
        why = engine->obstacle(be, l, e);
    if (why == NULL)
        return be->failed == BM_OK ? engine : NULL;
    bm_remember(
        be, BM_FAIL(BM_ERR_UNSUPPORTED, "BMUF_LSTM=%s: %s", engine->name, why));
    return NULL;
}

size_t bm_cuda_recurrent_kept(bm_backend *be, const bm_recurrent *l,
                              bm_extent e)
{
    const bm_lstm_engine *engine = engine_for(be, l, e);

    if (engine == NULL)
        return 0;
    return engine->sweep != NULL ? bm_lstm_around_kept(be, l, e)
                                 : engine->kept(be, l, e);
}

void bm_cuda_recurrent_forward(bm_backend *be, const bm_recurrent *l,
                               bm_extent e, const float *x, float *y,
                               float *kept)
{
    const bm_lstm_engine *engine = engine_for(be, l, e);

    if (engine == NULL)
        return;
    if (engine->sweep != NULL)
        bm_lstm_around_forward(be, engine, l, e, x, y, kept);
    else
        engine->forward(be, l, e, x, y, kept);
}

static void clear(bm_backend *be, float *x, size_t n)
{
    BM_CUDA(be, cudaMemsetAsync(bm_cuda_write(be, x, n), 0, n * sizeof *x,
                                bm_cuda_of(be)->stream));
}

void bm_cuda_recurrent_backward(bm_backend *be, const bm_recurrent *l,
                                bm_extent e, const float *x, const float *y,
                                const float *dy, float *kept, float *dx,
                                float *dwx, float *dwh, float *db, float *dwr)
{
    size_t R = l->directions, n = R * bm_recurrent_rows(l);
    const bm_lstm_engine *engine = engine_for(be, l, e);

    if (engine == NULL) {
        clear(be, dwx, n * l->n_in);
        clear(be, dwh, n * bm_recurrent_width(l));
        clear(be, db, R * BM_CELL_VALUES * l->n_hidden);
        if (l->n_projected > 0)
            clear(be, dwr, R * l->n_projected * l->n_hidden);
    } else if (engine->sweep != NULL) {
        bm_lstm_around_backward(be, engine, l, e, x, y, dy, kept, dx, dwx, dwh,
                                db, dwr);
    } else {
        engine->backward(be, l, e, x, y, dy, kept, dx, dwx, dwh, db);
    }
}

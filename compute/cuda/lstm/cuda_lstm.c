/* cuda_lstm.c - LSTM over whole sequences, by the engine that is chosen. */
#include "compute/cuda/lstm/cuda_lstm.h"

#include <stdlib.h>

const bm_lstm_engine *const bm_lstm_engines[] = {
#define X(name) &bm_lstm_engine_##name,
    BM_LSTM_ENGINES(X)
#undef X
        NULL,
};

bm_status bm_cuda_lstm_open(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    cuda->lstm = calloc(1, sizeof *cuda->lstm);
    if (cuda->lstm == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    return BM_OK;
}

void bm_cuda_lstm_close(bm_backend *be)
{
    struct bm_cuda_lstm *own = bm_cuda_of(be)->lstm;

    if (own == NULL)
        return;
    for (size_t i = 0; bm_lstm_engines[i] != NULL; i++)
        if (bm_lstm_engines[i]->close != NULL)
            bm_lstm_engines[i]->close(be);
    cudaFree(own->partial);
    free(own);
}

/* The engine for all calls with such a batch; NULL if there are no frames, or
 * after a failure. */
static const bm_lstm_engine *engine(bm_backend *be, const bm_lstm *l,
                                    bm_extent e)
{
    return e.T == 0 || e.B == 0 ? NULL : bm_lstm_choose(be, l, e);
}

size_t bm_cuda_lstm_kept(bm_backend *be, const bm_lstm *l, bm_extent e)
{
    const bm_lstm_engine *with = engine(be, l, e);
    return with != NULL ? with->kept(be, l, e) : 0;
}

void bm_cuda_lstm_forward(bm_backend *be, const bm_lstm *l, bm_extent e,
                          const float *x, float *y, float *kept)
{
    const bm_lstm_engine *with = engine(be, l, e);

    if (with != NULL)
        with->forward(be, l, e, x, y, kept);
}

static void clear(bm_backend *be, float *x, size_t n)
{
    bm_cuda_axpby(be, n, 0, x, 0, x);
}

void bm_cuda_lstm_backward(bm_backend *be, const bm_lstm *l, bm_extent e,
                           const float *x, const float *y, const float *dy,
                           float *kept, float *dx, float *dwx, float *dwh,
                           float *db)
{
    size_t n = l->directions * 4 * l->n_hidden;
    const bm_lstm_engine *with = engine(be, l, e);

    if (with != NULL) {
        with->backward(be, l, e, x, y, dy, kept, dx, dwx, dwh, db);
        return;
    }
    clear(be, dwx, n * l->n_in);
    clear(be, dwh, n * l->n_hidden);
    clear(be, db, n);
}

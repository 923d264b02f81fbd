/* cuda_conv.c - convolution of columns of pixels, by the engine of this
 * backend. */
#include "compute/cuda/image/cuda_conv.h"
#include "compute/cuda/device/cuda_operations.h"

static const bm_conv_engine *const engines[] = {
#define X(name) &bm_conv_engine_##name,
    BM_CONV_ENGINES(X)
#undef X
};

static const char *const names[] = {
#define X(name) #name,
    BM_CONV_ENGINES(X)
#undef X
        NULL,
};

bm_status bm_cuda_conv_open(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    size_t i = 0;

    BM_TRY(bm_cuda_switch(cuda, "BMUF_CONV", names, &i));
    cuda->conv = engines[i];
    return BM_OK;
}

/* NULL if the engine cannot compute such a batch: the backend has failed. */
static const bm_conv_engine *engine_for(bm_backend *be, const bm_conv *c,
                                        bm_extent in, bm_extent out)
{
    const bm_conv_engine *engine = bm_cuda_of(be)->conv;
    const char *why = NULL;

    if (out.T == 0 || out.B == 0)
        return engines[0];
    if (be->failed != BM_OK)
        return NULL;
    if (engine->obstacle != NULL)
        why = engine->obstacle(be, c, in, out);
    if (why == NULL)
        return engine;
    bm_remember(
        be, BM_FAIL(BM_ERR_UNSUPPORTED, "BMUF_CONV=%s: %s", engine->name, why));
    return NULL;
}

size_t bm_cuda_conv_work(bm_backend *be, const bm_conv *c)
{
    return bm_conv_im2col_work(be, c);
}

void bm_cuda_conv_forward(bm_backend *be, const bm_conv *c, bm_extent in,
                          bm_extent out, const float *x, float *y, float *work)
{
    const bm_conv_engine *engine = engine_for(be, c, in, out);

    if (engine != NULL)
        engine->forward(be, c, in, out, x, y, work);
}

void bm_cuda_conv_backward(bm_backend *be, const bm_conv *c, bm_extent in,
                           bm_extent out, const float *x, const float *dy,
                           float *work, float *dx, float *dw, float *db)
{
    const bm_conv_engine *engine = engine_for(be, c, in, out);

    if (engine != NULL)
        engine->backward(be, c, in, out, x, dy, work, dx, dw, db);
}

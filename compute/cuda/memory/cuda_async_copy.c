/*
 * cuda_async_copy.c - copies on a stream for each direction, as a device copies
 * both ways at a time. A copy starts after the work that is already queued on
 * the backend's stream. Work that is queued later does not wait for it.
 */
#include "compute/cuda/memory/cuda_async_copy.h"
#include "compute/cuda/memory/cuda_forms.h"

#include <stdlib.h>

typedef struct async_copy {
    cudaStream_t out, in; /* from the device, to it */
    cudaEvent_t ready;    /* after the work that a copy waits for */
    cudaEvent_t put;      /* after all copies to the device */
    cudaEvent_t *came;    /* [n_pieces]: after each copy from the device */
    size_t n_pieces;
} async_copy;

void bm_cuda_async_copy_close(bm_backend *be, void *self)
{
    async_copy *f = self;
    cudaStream_t streams[] = {f->out, f->in};

    (void)be;
    for (size_t i = 0; i < 2; i++)
        if (streams[i] != NULL) {
            cudaStreamSynchronize(streams[i]);
            cudaStreamDestroy(streams[i]);
        }
    for (size_t i = 0; i < f->n_pieces; i++)
        cudaEventDestroy(f->came[i]);
    if (f->put != NULL)
        cudaEventDestroy(f->put);
    if (f->ready != NULL)
        cudaEventDestroy(f->ready);
    free((void *)f->came);
    free(f);
}

static cudaError_t start(async_copy *f)
{
    cudaError_t error =
        cudaStreamCreateWithFlags(&f->out, cudaStreamNonBlocking);

    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&f->in, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags(&f->ready, cudaEventDisableTiming);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags(&f->put, cudaEventDisableTiming);
    return error;
}

bm_status bm_cuda_async_copy_open(bm_backend *be, void **self)
{
    async_copy *f = calloc(1, sizeof *f);
    bm_status status = BM_OK;

    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for copies");
    status = bm_cuda_status(start(f), "streams of copies");
    if (status == BM_OK)
        *self = f;
    else
        bm_cuda_async_copy_close(be, f);
    return status;
}

/* Makes sure that there is an event for `piece`. */
static bm_status have_piece(async_copy *f, size_t piece)
{
    cudaEvent_t *more = f->came;

    if (piece < f->n_pieces)
        return BM_OK;
    more =
        (cudaEvent_t *)realloc((void *)more, (piece + 1) * sizeof(cudaEvent_t));
    if (more == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for copies");
    f->came = more;
    for (; f->n_pieces <= piece; f->n_pieces++)
        BM_TRY(bm_cuda_status(cudaEventCreateWithFlags(&f->came[f->n_pieces],
                                                       cudaEventDisableTiming),
                              "event"));
    return BM_OK;
}

/* Makes `stream` wait for the work on the backend's stream. */
static void follow(bm_backend *be, async_copy *f, cudaStream_t stream)
{
    BM_CUDA(be, cudaEventRecord(f->ready, bm_cuda_of(be)->stream));
    BM_CUDA(be, cudaStreamWaitEvent(stream, f->ready, 0));
}

void bm_cuda_async_copy_get(bm_backend *be, void *self, size_t piece,
                            float *dst, const float *src, size_t n)
{
    async_copy *f = self;
    const float *x = NULL;

    bm_remember(be, have_piece(f, piece));
    x = bm_cuda_read(be, src, n);
    follow(be, f, f->out);
    BM_CUDA(be, cudaMemcpyAsync(dst, x, n * sizeof *dst, cudaMemcpyDeviceToHost,
                                f->out));
    BM_CUDA(be, cudaEventRecord(f->came[piece], f->out));
}

bm_status bm_cuda_async_copy_wait(bm_backend *be, void *self, size_t piece)
{
    const async_copy *f = self;

    (void)be;
    if (piece >= f->n_pieces)
        return BM_OK; /* get was never called for it */
    return bm_cuda_status(cudaEventSynchronize(f->came[piece]),
                          "a copy from the device");
}

void bm_cuda_async_copy_put(bm_backend *be, void *self, float *dst,
                            const float *src, size_t n)
{
    async_copy *f = self;
    float *y = NULL;

    y = bm_cuda_write(be, dst, n);
    follow(be, f, f->in);
    BM_CUDA(be, cudaMemcpyAsync(y, src, n * sizeof *dst, cudaMemcpyHostToDevice,
                                f->in));
}

void bm_cuda_async_copy_join(bm_backend *be, void *self)
{
    async_copy *f = self;

    BM_CUDA(be, cudaEventRecord(f->put, f->in));
    BM_CUDA(be, cudaStreamWaitEvent(bm_cuda_of(be)->stream, f->put, 0));
}

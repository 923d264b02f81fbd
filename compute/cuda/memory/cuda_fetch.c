/* cuda_fetch.c - copies to pinned memory, on a stream of their own. Each starts
 * after what was on the backend's stream before it. */
#include "compute/cuda/memory/cuda_fetch.h"
#include "compute/cuda/memory/cuda_forms.h"

#include <stdlib.h>

typedef struct fetch {
    float *host; /* [n], pinned */
    cudaStream_t stream;
    cudaEvent_t computed;
    size_t copies;
    cudaEvent_t done[]; /* [copies] */
} fetch;

static bm_status start(fetch *f, size_t n)
{
    BM_TRY(bm_cuda_status(
        cudaMallocHost((void **)&f->host, (n + 1) * sizeof *f->host),
        "pinned memory"));
    BM_TRY(bm_cuda_stream_open(&f->stream));
    BM_TRY(bm_cuda_event_open(&f->computed));
    for (size_t i = 0; i < f->copies; i++)
        BM_TRY(bm_cuda_event_open(&f->done[i]));
    return BM_OK;
}

bm_status bm_cuda_fetch_open(bm_backend *be, size_t n, size_t copies,
                             void **self)
{
    fetch *f = calloc(1, sizeof *f + copies * sizeof(cudaEvent_t));
    bm_status status = BM_OK;

    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for copies");
    f->copies = copies;
    status = start(f, n);
    if (status == BM_OK)
        *self = f;
    else
        bm_cuda_fetch_close(be, f);
    return status;
}

void bm_cuda_fetch_close(bm_backend *be, void *self)
{
    fetch *f = self;

    (void)be;
    if (f->stream != NULL)
        (void)cudaStreamSynchronize(f->stream);
    for (size_t i = 0; i < f->copies; i++)
        if (f->done[i] != NULL)
            cudaEventDestroy(f->done[i]);
    if (f->computed != NULL)
        cudaEventDestroy(f->computed);
    if (f->stream != NULL)
        cudaStreamDestroy(f->stream);
    cudaFreeHost(f->host);
    free(f);
}

void bm_cuda_fetch_start(bm_backend *be, void *self, size_t copy,
                         const float *x, size_t at, size_t n)
{
    fetch *f = self;
    const float *from = bm_cuda_read(be, x, n);

    BM_ASSERT(copy < f->copies);
    BM_CUDA(be, cudaEventRecord(f->computed, bm_cuda_of(be)->stream));
    BM_CUDA(be, cudaStreamWaitEvent(f->stream, f->computed, 0));
    BM_CUDA(be, cudaMemcpyAsync(f->host + at, from, n * sizeof *from,
                                cudaMemcpyDeviceToHost, f->stream));
    BM_CUDA(be, cudaEventRecord(f->done[copy], f->stream));
}

const float *bm_cuda_fetch_wait(bm_backend *be, void *self, size_t copy)
{
    const fetch *f = self;

    BM_CUDA(be, cudaEventSynchronize(f->done[copy]));
    return be->failed == BM_OK ? f->host : NULL;
}

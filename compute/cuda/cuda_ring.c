/*
 * cuda_ring.c - small numbers of the host on their way to the device: they are
 * copied into a ring of pinned memory and from there to one of the device. Each
 * half of it is used again when the device is through with it.
 */
#include "compute/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

enum { HALF = 4 << 20, LINE = 256 }; /* bytes */

struct bm_cuda_ring {
    char *host, *device;    /* [2 HALF] */
    cudaEvent_t through[2]; /* with this half */
    size_t at;              /* in the half */
    int half;
};

bm_status bm_cuda_ring_open(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_ring *r = cuda->ring = calloc(1, sizeof *r);

    if (r == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    BM_TRY(bm_cuda_status(cudaMallocHost((void **)&r->host, 2 * HALF),
                          "pinned memory"));
    BM_TRY(bm_cuda_status(cudaMalloc((void **)&r->device, 2 * HALF),
                          "cudaMalloc"));
    for (int i = 0; i < 2; i++)
        BM_TRY(bm_cuda_status(
            cudaEventCreateWithFlags(&r->through[i], cudaEventDisableTiming),
            "event"));
    return BM_OK;
}

void bm_cuda_ring_close(bm_backend *be)
{
    bm_cuda_ring *r = bm_cuda_of(be)->ring;

    if (r == NULL)
        return;
    for (int i = 0; i < 2; i++)
        if (r->through[i] != NULL)
            cudaEventDestroy(r->through[i]);
    cudaFree(r->device);
    cudaFreeHost(r->host);
    free(r);
}

static void turn(bm_backend *be, bm_cuda_ring *r)
{
    BM_CUDA(be, cudaEventRecord(r->through[r->half], bm_cuda_of(be)->stream));
    r->half = 1 - r->half;
    r->at = 0;
    BM_CUDA(be, cudaEventSynchronize(r->through[r->half]));
}

const void *bm_cuda_send(bm_backend *be, const void *host, size_t bytes)
{
    bm_cuda_ring *r = bm_cuda_of(be)->ring;
    size_t place = 0;

    if (bytes > HALF) {
        bm_remember(be, BM_FAIL(BM_ERR_UNSUPPORTED,
                                "%zu bytes of lengths or labels in a "
                                "mini-batch; a GPU takes %d",
                                bytes, HALF));
        return NULL;
    }
    if (r->at + bytes > HALF)
        turn(be, r);
    if (be->failed != BM_OK)
        return NULL;
    place = (size_t)r->half * HALF + r->at;
    r->at += (bytes + LINE - 1) / LINE * LINE;
    memcpy(r->host + place, host, bytes);
    BM_CUDA(be,
            cudaMemcpyAsync(r->device + place, r->host + place, bytes,
                            cudaMemcpyHostToDevice, bm_cuda_of(be)->stream));
    return r->device + place;
}

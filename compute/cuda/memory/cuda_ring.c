/*
 * cuda_ring.c - small numbers of the host on their way to the device: they are
 * copied into a ring of pinned memory and from there to one of the device. Each
 * half of it is used again when the device is through with it. In a step that
 * is a graph they go with that, see cuda_step.h.
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

/* Where so many bytes go; NULL after a failure. */
static char *take(bm_backend *be, size_t bytes)
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
    return r->host + place;
}

/* Sends what has been written there. */
static const void *go(bm_backend *be, const char *from, size_t bytes)
{
    bm_cuda_ring *r = bm_cuda_of(be)->ring;
    char *to = r->device + (from - r->host);

    BM_CUDA(be, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice,
                                bm_cuda_of(be)->stream));
    return to;
}

/* Room for so many bytes, which `go` sends: with the step, or now. */
static char *room_for(bm_backend *be, size_t bytes, const void **device)
{
    char *host = bm_step_room(be, bytes, device);

    if (host != NULL)
        return host;
    *device = NULL;
    return take(be, bytes);
}

const void *bm_cuda_send(bm_backend *be, const void *host, size_t bytes)
{
    const void *device = NULL;
    char *from = room_for(be, bytes, &device);

    if (from == NULL)
        return NULL;
    if (bytes > 0)
        memcpy(from, host, bytes);
    return device != NULL ? device : go(be, from, bytes);
}

const int32_t *bm_cuda_begins(bm_backend *be, const int32_t *count, size_t B)
{
    const void *device = NULL;
    char *from = room_for(be, B * sizeof *count, &device);
    int32_t *begins = (int32_t *)(void *)from, all = 0;

    if (from == NULL)
        return NULL;
    for (size_t b = 0; b < B; b++) {
        begins[b] = all;
        all += count[b];
    }
    return device != NULL ? device : go(be, from, B * sizeof *count);
}

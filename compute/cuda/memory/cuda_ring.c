/*
 * cuda_ring.c - see cuda_ring.h. Arrays are copied into a ring of pinned
 * memory, and from there to a ring on the device. Each half is used again when
 * the device has done the work that reads it.
 */
#include "compute/cuda/memory/cuda_ring.h"

#include <stdlib.h>
#include <string.h>

enum { HALF = 4 << 20, LINE = 256 }; /* bytes */

struct bm_cuda_ring {
    char *host, *device;    /* [2 HALF] */
    cudaEvent_t through[2]; /* after the last use of each half */
    size_t at;              /* bytes used of the current half */
    int half;
};
typedef struct bm_cuda_ring bm_cuda_ring;

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
        BM_TRY(bm_cuda_event_open(&r->through[i]));
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

/* Goes on in the other half. */
static void turn(bm_backend *be, bm_cuda_ring *r)
{
    BM_CUDA(be, cudaEventRecord(r->through[r->half], bm_cuda_of(be)->stream));
    r->half = 1 - r->half;
    r->at = 0;
    BM_CUDA(be, cudaEventSynchronize(r->through[r->half]));
}

/* Takes room for so many bytes. NULL after a failure. */
static char *take(bm_backend *be, size_t bytes)
{
    bm_cuda_ring *r = bm_cuda_of(be)->ring;
    size_t place = 0;

    BM_ASSERT(r != NULL);
    if (bytes > HALF) {
        bm_remember(be, BM_FAIL(BM_ERR_UNSUPPORTED,
                                "a mini-batch has %zu bytes of lengths or "
                                "labels; a GPU takes at most %d",
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

/* Queues the copy of what was written to `from`, and returns where it goes. */
static const void *go(bm_backend *be, const char *from, size_t bytes)
{
    bm_cuda_ring *r = bm_cuda_of(be)->ring;
    char *to = r->device + (from - r->host);

    BM_CUDA(be, cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice,
                                bm_cuda_of(be)->stream));
    return to;
}

const void *bm_cuda_send(bm_backend *be, const void *host, size_t bytes)
{
    char *from = take(be, bytes);

    if (from == NULL)
        return NULL;
    if (bytes > 0)
        memcpy(from, host, bytes);
    return go(be, from, bytes);
}

const int32_t *bm_cuda_begins(bm_backend *be, const int32_t *count, size_t B)
{
    char *from = take(be, B * sizeof *count);
    int32_t *begins = (int32_t *)(void *)from, all = 0;

    if (from == NULL)
        return NULL;
    for (size_t b = 0; b < B; b++) {
        begins[b] = all;
        all += count[b];
    }
    return go(be, from, B * sizeof *count);
}

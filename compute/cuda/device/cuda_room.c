/*
 * cuda_room.c - see cuda_room.h. The vector that was used last makes room for
 * the next one: workers take turns, so that its own turn is the farthest away.
 * Copies are queued on the stream, between the operations that they belong to.
 */
#include "compute/cuda/device/cuda_room.h"
#include "compute/cuda/device/cuda_side.h"
#include "core/log.h"

#include <stdlib.h>

enum { RESERVE = 8 }; /* of the device's memory one part is not for vectors */

struct bm_cuda_idle {
    size_t bytes;
    void *x;            /* on the device; NULL: it is not there */
    void *host;         /* pinned; NULL: it was always on the device, or is 0 */
    unsigned long turn; /* of the operation that took it last */
    bm_cuda_idle *next;
};

bm_status bm_cuda_idle_open(bm_backend *be, size_t bytes, bm_cuda_idle **out)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_idle *v = calloc(1, sizeof *v);

    if (v == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    v->bytes = bytes;
    v->next = cuda->idle;
    *out = cuda->idle = v;
    return BM_OK;
}

/* The stream may still use it. cudaFree waits; of a vector that was swapped out a
 * copy to the host may be under way. */
void bm_cuda_idle_close(bm_backend *be, bm_cuda_idle *v)
{
    bm_cuda_idle **at = &bm_cuda_of(be)->idle;

    while (*at != v)
        at = &(*at)->next;
    *at = v->next;
    if (v->x == NULL && v->host != NULL)
        cudaStreamSynchronize(bm_cuda_of(be)->stream);
    cudaFree(v->x);
    cudaFreeHost(v->host);
    free(v);
}

/* ---- out ----------------------------------------------------------------- */

/* What to swap out: the vector on the device that was used last, but not by the
 * operation that runs. NULL: there is none. */
static bm_cuda_idle *last_used(const bm_backend *be)
{
    bm_cuda_idle *last = NULL;

    for (bm_cuda_idle *v = bm_cuda_of(be)->idle; v != NULL; v = v->next)
        if (v->x != NULL && v->turn != be->turn &&
            (last == NULL || v->turn > last->turn))
            last = v;
    return last;
}

/* Queues the copy to the host; its memory on the device is the caller's. */
static void *swap_out(bm_backend *be, bm_cuda_idle *v)
{
    bm_cuda *cuda = bm_cuda_of(be);
    void *x = v->x;

    if (!cuda->swaps)
        bm_log(BM_NOTE, "the device's memory is full: vectors of workers that "
                        "wait are kept in memory of the host");
    cuda->swaps = true;
    if (v->host == NULL)
        BM_CUDA(be, cudaMallocHost(&v->host, v->bytes));
    bm_cuda_join(be);
    BM_CUDA(be, cudaMemcpyAsync(v->host, x, v->bytes, cudaMemcpyDeviceToHost,
                                cuda->stream));
    v->x = NULL;
    return x;
}

/* ---- in ------------------------------------------------------------------ */

/* cudaErrorMemoryAllocation: the caller makes room. Other errors are not about
 * room: an earlier kernel that failed shows here, too. */
static cudaError_t allocate(void **out, size_t bytes)
{
    cudaError_t error = cudaMalloc(out, bytes);

    if (error != cudaSuccess)
        *out = NULL;
    if (error == cudaErrorMemoryAllocation)
        (void)cudaGetLastError();
    return error;
}

static cudaError_t allocate_if_there_is_room(void **out, size_t bytes)
{
    size_t left = 0, all = 0;
    cudaError_t error = cudaMemGetInfo(&left, &all);

    *out = NULL;
    if (error != cudaSuccess)
        return error;
    return left >= bytes + all / RESERVE ? allocate(out, bytes)
                                         : cudaErrorMemoryAllocation;
}

/* The backend whose idle vectors make room for be: of two on one device that of
 * the training, between whose operations the caller is. */
static bm_backend *lender(bm_backend *be)
{
    bm_backend *of = bm_cuda_of(be)->beside;

    if (of == NULL)
        return be;
    BM_ASSERT(bm_used_here(of));
    of->turn++;
    return of;
}

cudaError_t bm_cuda_malloc(bm_backend *be, void **out, size_t bytes)
{
    bm_backend *from = lender(be);
    cudaError_t error = allocate(out, bytes);

    while (error == cudaErrorMemoryAllocation) {
        bm_cuda_idle *v = last_used(from);

        if (v == NULL || from->failed != BM_OK)
            return error;
        cudaFree(swap_out(from, v));
        error = allocate(out, bytes);
    }
    return error;
}

/* Memory for a vector that is to be used. Vectors of one length hand it over
 * without waiting for the device. */
static void *find_room(bm_backend *be, size_t bytes)
{
    void *x = NULL;
    cudaError_t error = allocate_if_there_is_room(&x, bytes);

    while (error == cudaErrorMemoryAllocation) {
        bm_cuda_idle *v = last_used(be);

        if (v == NULL || be->failed != BM_OK) {
            BM_CUDA(be, bm_cuda_malloc(be, &x, bytes));
            return x;
        }
        x = swap_out(be, v);
        if (v->bytes == bytes)
            return x;
        cudaFree(x);
        error = allocate_if_there_is_room(&x, bytes);
    }
    if (be->failed == BM_OK)
        bm_cuda_note(be, error, "cudaMalloc");
    return x;
}

void *bm_cuda_idle_take(bm_backend *be, bm_cuda_idle *v, bool load)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;

    v->turn = be->turn;
    if (v->x != NULL || be->failed != BM_OK)
        return v->x;
    v->x = find_room(be, v->bytes);
    if (v->x == NULL || !load)
        return v->x;
    if (v->host == NULL)
        BM_CUDA(be, cudaMemsetAsync(v->x, 0, v->bytes, stream));
    else
        BM_CUDA(be, cudaMemcpyAsync(v->x, v->host, v->bytes,
                                    cudaMemcpyHostToDevice, stream));
    return v->x;
}

/* ---- rooms --------------------------------------------------------------- */

void *bm_cuda_room_for(bm_backend *be, bm_cuda_room *r, size_t bytes)
{
    if (bytes > r->bytes) {
        cudaFree(r->x); /* waits for kernels that use it */
        *r = (bm_cuda_room){NULL, 0};
        BM_CUDA(be, bm_cuda_malloc(be, &r->x, bytes));
        if (be->failed == BM_OK)
            r->bytes = bytes;
    }
    return be->failed == BM_OK ? r->x : NULL;
}

void *bm_cuda_scratch(bm_backend *be, size_t bytes)
{
    return bm_cuda_room_for(be, &bm_cuda_of(be)->scratch, bytes);
}

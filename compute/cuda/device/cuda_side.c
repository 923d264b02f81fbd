/* cuda_side.c - see cuda_side.h. */
#include "compute/cuda/device/cuda_side.h"

#include "core/grow.h"

#include <stdlib.h>

typedef struct loan {
    const float *x;
    size_t n;
    bool written;
} loan;

struct bm_cuda_loans {
    cudaEvent_t forked, joined;
    loan *of;
    size_t n, room;
};

static bool is_one_stream(const bm_cuda *cuda)
{
    return cuda->side == cuda->stream;
}

bm_status bm_cuda_side_open(bm_backend *be)
{
    static const char *const values[] = {"off", "on", NULL};
    bm_cuda *cuda = bm_cuda_of(be);
    size_t on = 0;

    cuda->side = cuda->stream;
    BM_TRY(bm_cuda_switch(cuda, "BMUF_SIDE_STREAM", values, &on));
    if (!on)
        return BM_OK;
    cuda->loans = calloc(1, sizeof *cuda->loans);
    if (cuda->loans == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    BM_TRY(bm_cuda_event_open(&cuda->loans->forked));
    BM_TRY(bm_cuda_event_open(&cuda->loans->joined));
    return bm_cuda_status(
        cudaStreamCreateWithFlags(&cuda->side, cudaStreamNonBlocking),
        "stream");
}

void bm_cuda_side_close(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    if (cuda->side != NULL && !is_one_stream(cuda))
        cudaStreamDestroy(cuda->side);
    cuda->side = NULL;
    if (cuda->loans == NULL)
        return;
    if (cuda->loans->joined != NULL)
        cudaEventDestroy(cuda->loans->joined);
    if (cuda->loans->forked != NULL)
        cudaEventDestroy(cuda->loans->forked);
    free(cuda->loans->of);
    free(cuda->loans);
    cuda->loans = NULL;
}

void bm_cuda_fork(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    if (is_one_stream(cuda))
        return;
    BM_CUDA(be, cudaEventRecord(cuda->loans->forked, cuda->stream));
    BM_CUDA(be, cudaStreamWaitEvent(cuda->side, cuda->loans->forked, 0));
}

void bm_cuda_join(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    if (is_one_stream(cuda))
        return;
    BM_CUDA(be, cudaEventRecord(cuda->loans->joined, cuda->side));
    BM_CUDA(be, cudaStreamWaitEvent(cuda->stream, cuda->loans->joined, 0));
    cuda->loans->n = 0;
}

void bm_cuda_lend(bm_backend *be, const float *x, size_t n, bool written)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_status status = BM_OK;

    if (is_one_stream(cuda))
        return;
    status = bm_grow(&cuda->loans->of, cuda->loans->n, &cuda->loans->room,
                     sizeof *cuda->loans->of);
    if (status != BM_OK) {
        bm_remember(be, status);
        bm_cuda_join(be);
        return;
    }
    cuda->loans->of[cuda->loans->n++] = (loan){x, n, written};
}

void bm_cuda_reclaim(bm_backend *be, const float *x, size_t n, bool to_write)
{
    const struct bm_cuda_loans *loans = bm_cuda_of(be)->loans;

    for (size_t i = 0; loans != NULL && i < loans->n; i++) {
        const loan *l = &loans->of[i];
        if ((l->written || to_write) && x < l->x + l->n && l->x < x + n) {
            bm_cuda_join(be);
            return;
        }
    }
}

cudaError_t bm_cuda_side_sync(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    cudaError_t error = cudaStreamSynchronize(cuda->side);

    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cuda->stream);
    if (cuda->loans != NULL)
        cuda->loans->n = 0;
    return error;
}

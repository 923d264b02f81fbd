/* cuda.c - one GPU: opening it, waiting for it. */
#include "compute/cuda/cuda.h"
#include "compute/cuda/cuda_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bm_status bm_cuda_status(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return BM_OK;
    return BM_FAIL(error == cudaErrorMemoryAllocation ? BM_ERR_MEMORY
                                                      : BM_ERR_DEVICE,
                   "%s: %s", what, cudaGetErrorString(error));
}

void bm_cuda_note(bm_backend *be, cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        bm_remember(be, bm_cuda_status(error, what));
}

void bm_cuda_fork(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    cuda->is_forked = true;
    BM_CUDA(be, bm_step_record(be, cuda->stream, cuda->forked));
    BM_CUDA(be, bm_step_wait(be, cuda->side, cuda->forked));
}

void bm_cuda_join(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    cuda->is_forked = false;
    BM_CUDA(be, bm_step_record(be, cuda->side, cuda->joined));
    BM_CUDA(be, bm_step_wait(be, cuda->stream, cuda->joined));
    bm_cuda_lent_back(be);
}

void *bm_cuda_scratch(bm_backend *be, size_t bytes)
{
    bm_cuda *cuda = bm_cuda_of(be);

    if (bytes > cuda->scratch_bytes) {
        bm_step_leave(be);
        cudaFree(cuda->scratch); /* waits for who uses it */
        cuda->scratch = NULL;
        cuda->scratch_bytes = 0;
        BM_CUDA(be, cudaMalloc(&cuda->scratch, bytes));
    }
    if (be->failed != BM_OK)
        return NULL;
    if (bytes > cuda->scratch_bytes)
        cuda->scratch_bytes = bytes;
    return cuda->scratch;
}

static void cuda_close(bm_backend *be)
{
    bm_cuda *cuda = be->self;

    if (cuda == NULL)
        return;
    bm_cuda_step_end(be);
    if (cuda->side != NULL)
        cudaStreamSynchronize(cuda->side);
    if (cuda->stream != NULL)
        cudaStreamSynchronize(cuda->stream);
    bm_cuda_device_comm_ops.close(be);
    bm_step_close(be);
    bm_cuda_lstm_close(be);
    bm_cudnn_close(be);
    bm_cuda_choices_free(be);
    bm_cuda_products_close(be);
    bm_cuda_slots_close(be);
    bm_cuda_ring_close(be);
    bm_cuda_memory_close(be);
    cudaFree(cuda->scratch);
    cudaFree(cuda->partial);
    if (cuda->joined != NULL)
        cudaEventDestroy(cuda->joined);
    if (cuda->forked != NULL)
        cudaEventDestroy(cuda->forked);
    if (cuda->side != NULL)
        cudaStreamDestroy(cuda->side);
    if (cuda->stream != NULL)
        cudaStreamDestroy(cuda->stream);
    free(cuda);
    be->self = NULL;
}

/* Ranks of one host take its devices in turn. */
static bm_status choose(bm_cuda *cuda, int index)
{
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);

    if (error != cudaSuccess || n == 0)
        return BM_FAIL(BM_ERR_DEVICE,
                       "no cuda here: there is a driver, but no device: %s",
                       cudaGetErrorString(error));
    cuda->device = index % n;
    return bm_cuda_status(cudaSetDevice(cuda->device), "cudaSetDevice");
}

static bm_status describe(bm_cuda *cuda)
{
    struct cudaDeviceProp p;
    int driver = 0;

    BM_TRY(bm_cuda_status(cudaGetDeviceProperties(&p, cuda->device),
                          "properties of the device"));
    BM_TRY(bm_cuda_status(cudaDriverGetVersion(&driver), "driver"));
    cuda->major = p.major;
    cuda->minor = p.minor;
    cuda->multiprocessors = p.multiProcessorCount;
    memcpy(cuda->name, p.name, sizeof cuda->name);
    snprintf(cuda->about, sizeof cuda->about,
             "%s, compute capability %d.%d, %.1f GiB, driver for CUDA %d.%d",
             p.name, p.major, p.minor,
             (double)p.totalGlobalMem / (double)(1 << 30), driver / 1000,
             driver % 1000 / 10);
    return BM_OK;
}

static const char *cuda_about(const bm_backend *be)
{
    return bm_cuda_of(be)->about;
}

bm_status bm_cuda_stream_open(cudaStream_t *out)
{
    int least = 0, most = 0;

    BM_TRY(bm_cuda_status(cudaDeviceGetStreamPriorityRange(&least, &most),
                          "priorities of streams"));
    return bm_cuda_status(
        cudaStreamCreateWithPriority(out, cudaStreamNonBlocking, most),
        "stream");
}

static bm_status start(bm_backend *be, bm_cuda *cuda)
{
    BM_TRY(bm_cuda_stream_open(&cuda->stream));
    BM_TRY(bm_cuda_status(
        cudaStreamCreateWithFlags(&cuda->side, cudaStreamNonBlocking),
        "stream"));
    BM_TRY(bm_cuda_status(
        cudaEventCreateWithFlags(&cuda->forked, cudaEventDisableTiming),
        "event"));
    BM_TRY(bm_cuda_status(
        cudaEventCreateWithFlags(&cuda->joined, cudaEventDisableTiming),
        "event"));
    BM_TRY(bm_cuda_status(cudaMalloc((void **)&cuda->partial,
                                     BM_PARTIALS * sizeof *cuda->partial),
                          "cudaMalloc"));
    BM_TRY(bm_cuda_memory_open(be));
    BM_TRY(bm_step_open(be));
    BM_TRY(bm_cuda_ring_open(be));
    BM_TRY(bm_cuda_slots_open(be));
    BM_TRY(bm_cuda_products_open(be));
    return bm_cuda_lstm_open(be);
}

static bm_status cuda_open(bm_backend *be, int index)
{
    bm_cuda *cuda = calloc(1, sizeof *cuda);
    bm_status status = BM_OK;

    if (cuda == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    be->self = cuda;
    BM_TRY_DONE(choose(cuda, index));
    BM_TRY_DONE(describe(cuda));
    status = start(be, cuda);
done:
    if (status != BM_OK)
        cuda_close(be);
    return status;
}

/* Threads are the host's. */
static bm_status cuda_use(bm_backend *be, size_t threads,
                          bm_precision precision)
{
    (void)threads;
    bm_cuda_step_end(be);
    bm_cuda_of(be)->precision = precision;
    return BM_OK;
}

static void cuda_sync(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    cudaError_t error = cudaSuccess;

    bm_cuda_step_end(be);
    error = cudaStreamSynchronize(cuda->side);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(cuda->stream);
    bm_cuda_lent_back(be);
    if (be->failed == BM_OK) /* else what was told first stands */
        bm_cuda_note(be, error, "queued work");
}

void bm_cuda_axpby(bm_backend *be, size_t n, float a, const float *x, float b,
                   float *y)
{
    const float *from = a == 0 ? NULL : bm_cuda_read(be, x, n);
    float *to = NULL;

    if (b != 0)
        (void)bm_cuda_read(be, y, n);
    to = bm_cuda_write(be, y, n);
    BM_CUDA(be, bm_kernel_axpby(bm_cuda_of(be)->stream, n, a, from, b, to));
}

const bm_backend_ops bm_backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .about = cuda_about,
    .use = cuda_use,
    .sync = cuda_sync,
    .step_begin = bm_cuda_step_begin,
    .step_end = bm_cuda_step_end,
    .alloc = bm_cuda_alloc,
    .free = bm_cuda_free,
    .put = bm_cuda_put,
    .get = bm_cuda_get,
    .stage_open = bm_cuda_stage_open,
    .stage_close = bm_cuda_stage_close,
    .stage_send = bm_cuda_stage_send,
    .pin = bm_cuda_pin,
    .unpin = bm_cuda_unpin,
    .async_copy_open = bm_cuda_async_copy_open,
    .async_copy_close = bm_cuda_async_copy_close,
    .async_copy_get = bm_cuda_async_copy_get,
    .async_copy_wait = bm_cuda_async_copy_wait,
    .async_copy_put = bm_cuda_async_copy_put,
    .async_copy_join = bm_cuda_async_copy_join,
    .device_comm = &bm_cuda_device_comm_ops,
#define BM_OPERATION(name, ...) .name = bm_cuda_##name,
#define BM_SIZE_OPERATION       BM_OPERATION
#include "compute/operations.h"
};

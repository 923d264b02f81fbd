/* cuda.c - the cuda backend: opens a device, and lists its operations. */
#include "compute/cuda/cuda.h"
#include "compute/cuda/cuda_device_code.h"
#include "compute/cuda/device/cuda_operations.h"
#include "compute/cuda/device/cuda_side.h"
#include "compute/cuda/device/cuda_times.h"
#include "compute/cuda/image/cuda_conv.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/libraries/cuda_device_comm.h"
#include "compute/cuda/libraries/cuda_products.h"
#include "compute/cuda/lstm/cuda_lstm.h"
#include "compute/cuda/memory/cuda_copy.h"
#include "compute/cuda/memory/cuda_fetch.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"
#include "compute/cuda/memory/cuda_stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void cuda_close(bm_backend *be)
{
    bm_cuda *cuda = be->self;

    if (cuda == NULL)
        return;
    if (cuda->stream != NULL)
        (void)bm_cuda_side_sync(be);
    bm_cuda_device_comm_ops.close(be);
    bm_cuda_lstm_close(be);
    if (cuda->close_cudnn != NULL)
        cuda->close_cudnn(be);
    bm_cuda_products_close(be);
    bm_cuda_times_close(be);
    bm_cuda_slots_close(be);
    bm_cuda_ring_close(be);
    bm_cuda_memory_close(be);
    cudaFree(cuda->scratch.x);
    cudaFree(cuda->partial);
    bm_cuda_side_close(be);
    if (cuda->given != NULL)
        cudaEventDestroy(cuda->given);
    if (cuda->stream != NULL)
        cudaStreamDestroy(cuda->stream);
    free(cuda);
    be->self = NULL;
}

/* The ranks of a host take its devices in turn. */
static bm_status select_device(bm_cuda *cuda, int index)
{
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);

    if (error != cudaSuccess || n == 0)
        return BM_FAIL(BM_ERR_DEVICE,
                       "no CUDA device: the driver finds none: %s",
                       cudaGetErrorString(error));
    cuda->device = index % n;
    return bm_cuda_status(cudaSetDevice(cuda->device), "cudaSetDevice");
}

/* The first of CMAKE_CUDA_ARCHITECTURES, and of what CUDA 13 compiles for. */
enum { LEAST_CAPABILITY = 75 };

static bm_status describe(bm_cuda *cuda)
{
    struct cudaDeviceProp p;
    int driver = 0;

    BM_TRY(bm_cuda_status(cudaGetDeviceProperties(&p, cuda->device),
                          "properties of the device"));
    BM_TRY(bm_cuda_status(cudaDriverGetVersion(&driver), "driver"));
    if (10 * p.major + p.minor < LEAST_CAPABILITY)
        return BM_FAIL(BM_ERR_DEVICE,
                       "no CUDA device: %s has compute capability %d.%d, and "
                       "%d.%d is the least",
                       p.name, p.major, p.minor, LEAST_CAPABILITY / 10,
                       LEAST_CAPABILITY % 10);
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

/* Devices before Ampere multiply bf16 without tensor cores. */
static bm_precision cuda_precision(const bm_backend *be)
{
    return bm_cuda_of(be)->major >= 8 ? BM_BF16 : BM_FP32;
}

/* Training goes before what runs beside it. */
static bm_status open_stream(bm_cuda *cuda)
{
    if (cuda->beside == NULL)
        return bm_cuda_stream_open(&cuda->stream);
    return bm_cuda_status(
        cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking),
        "stream");
}

static bm_status start(bm_backend *be, bm_cuda *cuda)
{
    static const char *const values[] = {"off", "on", NULL};
    size_t graphs = 0;

    BM_TRY(open_stream(cuda));
    BM_TRY(bm_cuda_event_open(&cuda->given));
    BM_TRY(bm_cuda_side_open(be));
    BM_TRY(bm_cuda_switch(cuda, "BMUF_GRAPH", values, &graphs));
    cuda->graphs = graphs == 1;
    BM_TRY(bm_cuda_status(cudaMalloc((void **)&cuda->partial,
                                     BM_PARTIALS * sizeof *cuda->partial),
                          "cudaMalloc"));
    BM_TRY(bm_cuda_memory_open(be));
    BM_TRY(bm_cuda_slots_open(be));
    if (cuda->beside == NULL) {
        BM_TRY(bm_cuda_ring_open(be));
        BM_TRY(bm_cuda_products_open(be));
    }
    BM_TRY(bm_cuda_conv_open(be));
    return bm_cuda_lstm_open(be);
}

static bm_status open_on(bm_backend *be, int index, bm_backend *beside)
{
    bm_cuda *cuda = calloc(1, sizeof *cuda);
    bm_status status = BM_OK;

    if (cuda == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    be->self = cuda;
    cuda->beside = beside;
    BM_TRY_DONE(select_device(cuda, index));
    BM_TRY_DONE(describe(cuda));
    status = start(be, cuda);
done:
    if (status != BM_OK)
        cuda_close(be);
    return status;
}

static bm_status cuda_open(bm_backend *be, int index)
{
    return open_on(be, index, NULL);
}

static bm_status cuda_open_beside(bm_backend *be, bm_backend *of)
{
    return open_on(be, bm_cuda_of(of)->device, of);
}

/* A thread has a device of its own that its calls are for. */
static void cuda_take(bm_backend *be)
{
    BM_CUDA(be, cudaSetDevice(bm_cuda_of(be)->device));
}

/* The number of threads does not concern a device. */
static bm_status cuda_use(bm_backend *be, size_t threads,
                          bm_precision precision)
{
    (void)threads;
    bm_cuda_of(be)->precision = precision;
    return BM_OK;
}

static void cuda_sync(bm_backend *be)
{
    cudaError_t error = bm_cuda_side_sync(be);

    if (be->failed == BM_OK) /* else the first failure is reported */
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
    .open_beside = cuda_open_beside,
    .take = cuda_take,
    .copy_between = bm_cuda_copy_between,
    .about = cuda_about,
    .precision = cuda_precision,
    .use = cuda_use,
    .sync = cuda_sync,
    .alloc = bm_cuda_alloc,
    .alloc_idle = bm_cuda_alloc_idle,
    .free = bm_cuda_free,
    .put = bm_cuda_put,
    .get = bm_cuda_get,
    .stage_open = bm_cuda_stage_open,
    .stage_close = bm_cuda_stage_close,
    .stage_send = bm_cuda_stage_send,
    .fetch_open = bm_cuda_fetch_open,
    .fetch_close = bm_cuda_fetch_close,
    .fetch_start = bm_cuda_fetch_start,
    .fetch_wait = bm_cuda_fetch_wait,
    .time_as = bm_cuda_time_as,
    .timed = bm_cuda_timed,
    .pin = bm_cuda_pin,
    .unpin = bm_cuda_unpin,
    .device_code = &bm_cuda_device_code_ops,
    .device_comm = &bm_cuda_device_comm_ops,
#define BM_OPERATION(name, ...) .name = bm_cuda_##name,
#define BM_SIZE_OPERATION       BM_OPERATION
#include "compute/operations.h"
};

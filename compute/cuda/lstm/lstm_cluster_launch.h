/*
 * lstm_cluster_launch.h - chooses the kernel for a hidden size and the
 * sequences of each cluster, and launches it.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_LSTM_CLUSTER_LAUNCH_H
#define BM_COMPUTE_CUDA_LSTM_LSTM_CLUSTER_LAUNCH_H

#include "compute/cuda/kernels/kernel.h"
#include "compute/cuda/lstm/lstm_kernels.h"

/* Units H, and the blocks C that share them out: few enough that wh fits into
 * registers, and multiples of 8 cells each. */
#define FOR_EACH_SIZE(X)                                                       \
    X(64, 4), X(128, 4), X(192, 8), X(256, 8), X(320, 8), X(384, 8), X(512, 16)
enum { LSTM_SIZES = 7, MOST_TILES = 8, MOST_SHARED = 227 << 10 };

/* A kernel, and how many clusters with 1, 2, .. tiles the device runs at once:
 * set by ask_all; 0: they do not fit. */
typedef struct lstm_pass {
    void (*kernel)(bm_lstm_cluster, int);
    size_t H;
    unsigned cluster;
    size_t weights, tile; /* bytes of shared memory, which take turns */
    int clusters[MOST_TILES];
} lstm_pass;

/* In lstm_cluster_forward.cu: see fits. */
cudaError_t bm_lstm_cluster_forward_fits(size_t H, bool *out);

/* The smallest kernel that takes H, a multiple of 8 (16 bytes); NULL: none. */
static lstm_pass *pass_for(lstm_pass passes[LSTM_SIZES], size_t H)
{
    for (int i = 0; i < LSTM_SIZES && H > 0 && H % 8 == 0; i++)
        if (H <= passes[i].H)
            return &passes[i];
    return NULL;
}

static unsigned threads(const lstm_pass *p)
{
    return (unsigned)(8 * p->H / p->cluster);
}

static size_t shared(const lstm_pass *p, int tiles)
{
    size_t bytes = p->tile * (size_t)tiles;
    return bytes > p->weights ? bytes : p->weights;
}

static cudaError_t ask(lstm_pass *p, int tiles)
{
    const void *kernel = (const void *)p->kernel;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {dim3(p->cluster), dim3(threads(p)),
                                 shared(p, tiles), NULL,
                                 &attribute,       1};

    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {p->cluster, 1, 1};
    return cudaOccupancyMaxActiveClusters(&p->clusters[tiles - 1], kernel,
                                          &config);
}

static cudaError_t ask_all(lstm_pass *p)
{
    const void *kernel = (const void *)p->kernel;
    int most = 1;
    cudaError_t error = cudaSuccess;

    while (most < MOST_TILES && shared(p, most + 1) <= MOST_SHARED)
        most++;
    error = cudaFuncSetAttribute(kernel,
                                 cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (int)shared(p, most));
    if (error == cudaSuccess && p->cluster > 8) /* not on every device */
        error = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    for (int tiles = 1; tiles <= most && error == cudaSuccess; tiles++)
        error = ask(p, tiles);
    return error;
}

/* Whether a device says so that it cannot run such clusters. Other errors are
 * those of earlier work. */
static bool is_limit(cudaError_t error)
{
    return error == cudaErrorInvalidValue ||
           error == cudaErrorInvalidClusterSize ||
           error == cudaErrorInvalidConfiguration ||
           error == cudaErrorInvalidDeviceFunction ||
           error == cudaErrorNoKernelImageForDevice ||
           error == cudaErrorNotSupported;
}

/* *out: whether the device can run a kernel for H. */
static cudaError_t fits(lstm_pass passes[LSTM_SIZES], size_t H, bool *out)
{
    lstm_pass *p = pass_for(passes, H);
    cudaError_t error = cudaSuccess;

    *out = false;
    if (p == NULL)
        return cudaSuccess;
    if (p->clusters[0] == 0)
        error = ask_all(p);
    if (error != cudaSuccess)
        p->clusters[0] = 0;
    if (is_limit(error)) {
        (void)cudaGetLastError();
        error = cudaSuccess;
    }
    *out = p->clusters[0] > 0;
    return error;
}

/* Clusters of a batch. */
static size_t needed(size_t B, size_t R, int tiles)
{
    size_t each = 8 * (size_t)tiles;
    return (B + each - 1) / each * R;
}

static cudaError_t launch(lstm_pass passes[LSTM_SIZES], cudaStream_t stream,
                          const bm_lstm_cluster *l)
{
    const lstm_pass *p = pass_for(passes, l->H);
    int tiles = 0;
    bool able = false;
    cudaError_t error = fits(passes, l->H, &able);

    if (error != cudaSuccess || !able)
        return error != cudaSuccess ? error : cudaErrorNotSupported;
    if (l->T == 0 || l->B == 0)
        return cudaSuccess;
    if ((uintptr_t)l->gates % 16 != 0 || (uintptr_t)l->cells % 16 != 0)
        return cudaErrorMisalignedAddress;
    tiles = bm_lstm_cluster_tiles(p->clusters, MOST_TILES, l->B, l->R);
    return BM_LAUNCH_CLUSTER(stream, p->kernel, p->cluster,
                             (unsigned)needed(l->B, l->R, tiles) * p->cluster,
                             threads(p), shared(p, tiles), *l, tiles);
}

#endif

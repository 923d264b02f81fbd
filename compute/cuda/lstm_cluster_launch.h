/*
 * lstm_cluster_launch.h - which kernel takes how many units and sequences, and
 * starting it.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_CLUSTER_LAUNCH_H
#define BM_COMPUTE_CUDA_LSTM_CLUSTER_LAUNCH_H

#include "compute/cuda/kernel.h"
#include "compute/cuda/lstm_kernels.h"

/* Units H, and the blocks C that share them out: few enough that wh fits into
 * registers, and multiples of 16 units each. */
#define FOR_EACH_SIZE(X)                                                       \
    X(64, 4) X(128, 4) X(192, 8) X(256, 8) X(320, 8) X(384, 8) X(512, 16)

/* A kernel for clusters of so many sequences, and how many of those the device
 * runs at once, after somebody has asked. */
typedef struct lstm_variant {
    void (*kernel)(bm_lstm_cluster);
    int bytes, clusters;
} lstm_variant;

typedef struct lstm_pass {
    size_t H;
    unsigned cluster;
    lstm_variant eight, sixteen;
} lstm_pass;

#define BOTH_PASSES(H, C) {H, C, PASS(H, C, 1), PASS(H, C, 2)},

enum { LSTM_SIZES = 7 };

/* In lstm_cluster_forward.cu. */
bool bm_lstm_cluster_forward_fits(size_t H);

/* The least that holds H; NULL: none. Pieces of 16 bytes are eight units. */
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

static cudaError_t ask(const lstm_pass *p, lstm_variant *v)
{
    const void *kernel = (const void *)v->kernel;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {dim3(p->cluster), dim3(threads(p)),
                                 (size_t)v->bytes, NULL,
                                 &attribute,       1};
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, v->bytes);

    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {p->cluster, 1, 1};
    if (error == cudaSuccess && p->cluster > 8) /* not on every device */
        error = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveClusters(&v->clusters, kernel, &config);
    return error;
}

static bool has_room(const lstm_pass *p, lstm_variant *v)
{
    if (v->clusters == 0 && ask(p, v) != cudaSuccess) {
        (void)cudaGetLastError(); /* asked and answered */
        v->clusters = 0;
    }
    return v->clusters > 0;
}

static bool fits(lstm_pass passes[LSTM_SIZES], size_t H)
{
    lstm_pass *p = pass_for(passes, H);
    return p != NULL && has_room(p, &p->eight) && has_room(p, &p->sixteen);
}

/* Eight sequences a cluster if all clusters run at once then; else 16, whose
 * steps take less than twice as long. */
static cudaError_t launch(lstm_pass passes[LSTM_SIZES], cudaStream_t stream,
                          const bm_lstm_cluster *l)
{
    lstm_pass *p = pass_for(passes, l->H);
    size_t eights = (l->B + 7) / 8 * l->R, sixteens = (l->B + 15) / 16 * l->R;
    bool few = false;
    lstm_variant v;

    if (!fits(passes, l->H))
        return cudaErrorNotSupported;
    if (l->T == 0 || l->B == 0)
        return cudaSuccess;
    if ((uintptr_t)l->gates % 16 != 0 || (uintptr_t)l->cells % 16 != 0)
        return cudaErrorMisalignedAddress;
    few = eights <= (size_t)p->eight.clusters;
    v = few ? p->eight : p->sixteen;
    return BM_LAUNCH_CLUSTER(stream, v.kernel, p->cluster,
                             (unsigned)(few ? eights : sixteens) * p->cluster,
                             threads(p), (size_t)v.bytes, *l);
}

#endif

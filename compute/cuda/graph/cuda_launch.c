/*
 * cuda_launch.c - kernels as bytes, to be compared, kept, and started later or
 * as part of a graph.
 */
#include "compute/cuda/graph/cuda_launch.h"

#include <string.h>

/* What a kernel is given begins with this; then sizes [n], and arguments, each
 * in whole units. */
typedef struct head {
    void *kernel;
    unsigned grid[3], block[3];
    size_t shared;
    unsigned cluster, n;
} head;

enum { UNIT = 16, MOST_ARGUMENTS = 16 };

static size_t units(size_t bytes)
{
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

size_t bm_launch_pack(const bm_launch *l, char *out)
{
    head h = {l->kernel,
              {l->grid.x, l->grid.y, l->grid.z},
              {l->block.x, l->block.y, l->block.z},
              l->shared,
              l->cluster,
              l->n};
    size_t at = units(sizeof h), end = at + units(l->n * sizeof *l->sizes);

    BM_ASSERT(l->n <= MOST_ARGUMENTS);
    for (unsigned i = 0; i < l->n; i++)
        end += units(l->sizes[i]);
    BM_ASSERT(end <= BM_LAUNCH_BYTES);
    memset(out, 0, end);
    memcpy(out, &h, sizeof h);
    memcpy(out + at, l->sizes, l->n * sizeof *l->sizes);
    at += units(l->n * sizeof *l->sizes);
    for (unsigned i = 0; i < l->n; i++) {
        memcpy(out + at, l->arguments[i], l->sizes[i]);
        at += units(l->sizes[i]);
    }
    return end;
}

/* Where its arguments lie. */
static void unpack(char *bytes, void *arguments[MOST_ARGUMENTS])
{
    const head *h = (const head *)(const void *)bytes;
    char *at = bytes + units(sizeof *h);
    const size_t *sizes = (const size_t *)(const void *)at;

    at += units(h->n * sizeof *sizes);
    for (unsigned i = 0; i < h->n; i++) {
        arguments[i] = at;
        at += units(sizes[i]);
    }
}

bool bm_launch_is_same(const char *a, const char *b)
{
    const head *x = (const head *)(const void *)a;
    const head *y = (const head *)(const void *)b;
    size_t sizes = units(sizeof *x);

    return x->kernel == y->kernel && x->cluster == 1 && y->cluster == 1 &&
           x->n == y->n &&
           memcmp(a + sizes, b + sizes, x->n * sizeof(size_t)) == 0;
}

cudaError_t bm_launch_now(const bm_launch *l)
{
    cudaLaunchAttribute cluster = {.id = cudaLaunchAttributeClusterDimension,
                                   .val.clusterDim = {l->cluster, 1, 1}};
    cudaLaunchAttribute together = {.id = cudaLaunchAttributeCooperative,
                                    .val.cooperative = 1};
    cudaLaunchConfig_t config = {.gridDim = l->grid,
                                 .blockDim = l->block,
                                 .dynamicSmemBytes = l->shared,
                                 .stream = l->stream,
                                 .attrs = l->cluster > 1 ? &cluster : &together,
                                 .numAttrs = l->cluster != 1};

    return cudaLaunchKernelExC(&config, l->kernel, l->arguments);
}

cudaError_t bm_launch_packed(cudaStream_t stream, char *bytes)
{
    const head *h = (const head *)(const void *)bytes;
    void *arguments[MOST_ARGUMENTS];
    bm_launch l = {.stream = stream,
                   .kernel = h->kernel,
                   .grid = {h->grid[0], h->grid[1], h->grid[2]},
                   .block = {h->block[0], h->block[1], h->block[2]},
                   .shared = h->shared,
                   .cluster = h->cluster,
                   .arguments = arguments};

    unpack(bytes, arguments);
    return bm_launch_now(&l);
}

cudaError_t bm_launch_change(cudaGraphExec_t replay, cudaGraphNode_t node,
                             char *bytes)
{
    const head *h = (const head *)(const void *)bytes;
    void *arguments[MOST_ARGUMENTS];
    struct cudaKernelNodeParams p = {
        .func = h->kernel,
        .gridDim = {h->grid[0], h->grid[1], h->grid[2]},
        .blockDim = {h->block[0], h->block[1], h->block[2]},
        .sharedMemBytes = (unsigned)h->shared,
        .kernelParams = arguments};

    unpack(bytes, arguments);
    return cudaGraphExecKernelNodeSetParams(replay, node, &p);
}

/*
 * lstm_grid_launch.h - which kernel of lstm_grid.h takes how many units, and
 * starting it.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_LSTM_GRID_LAUNCH_H
#define BM_COMPUTE_CUDA_LSTM_LSTM_GRID_LAUNCH_H

#include "compute/cuda/kernels/kernel.h"
#include "compute/cuda/lstm/lstm_kernels.h"

#define FOR_EACH_GRID_SIZE(X) X(128), X(256), X(512), X(1024)
enum { GRID_SIZES = 4, GRID_SHARED = 227 << 10 };

/* What a kernel is told, beside the LSTM: which sequences, and where blocks
 * tell each other what. */
typedef struct grid_words {
    void *words;
    int first, tiles;
} grid_words;

/* A kernel, and how many of its blocks the device runs at once, after somebody
 * has asked. */
typedef struct grid_pass {
    void (*kernel)(bm_lstm_cluster, grid_words);
    size_t H;
    size_t weights, fixed, tile; /* bytes of shared memory; weights are there
                                    before the others */
    size_t words;                /* bytes, of a tile in a direction */
    int blocks;
} grid_pass;

/* In lstm_grid_forward.cu. */
bool bm_lstm_grid_forward_fits(size_t H, size_t R);

/* The least that holds H; NULL: none. */
static grid_pass *pass_for(grid_pass passes[GRID_SIZES], size_t H)
{
    for (int i = 0; i < GRID_SIZES && H > 0 && H % 8 == 0; i++)
        if (H <= passes[i].H)
            return &passes[i];
    return NULL;
}

static size_t shared(const grid_pass *p, size_t tiles)
{
    size_t bytes = p->fixed + p->tile * tiles;
    return bytes > p->weights ? bytes : p->weights;
}

/* Tiles at a time. */
static size_t most_tiles(const grid_pass *p)
{
    return (GRID_SHARED - p->fixed) / p->tile;
}

static cudaError_t ask(grid_pass *p)
{
    const void *kernel = (const void *)p->kernel;
    size_t most = shared(p, most_tiles(p));
    int device = 0, processors = 0, each = 0;
    cudaError_t error = cudaGetDevice(&device);

    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&processors,
                                       cudaDevAttrMultiProcessorCount, device);
    if (error == cudaSuccess)
        error = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most);
    if (error == cudaSuccess)
        error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel,
                                                              256, most);
    p->blocks = each * processors;
    return error;
}

static bool fits(grid_pass passes[GRID_SIZES], size_t H, size_t R)
{
    grid_pass *p = pass_for(passes, H);

    if (p != NULL && p->blocks == 0 && ask(p) != cudaSuccess) {
        (void)cudaGetLastError(); /* asked and answered */
        p->blocks = 0;
    }
    return p != NULL && R * p->H / 16 <= (size_t)p->blocks;
}

static size_t tiles_of(const grid_pass *p, const bm_lstm_cluster *l,
                       size_t first)
{
    size_t tiles = (l->B - first + 7) / 8, most = most_tiles(p);
    return tiles < most ? tiles : most;
}

static bm_lstm_grid needs(grid_pass passes[GRID_SIZES],
                          const bm_lstm_cluster *l)
{
    const grid_pass *p = pass_for(passes, l->H);
    return (bm_lstm_grid){8 * most_tiles(p),
                          l->R * tiles_of(p, l, 0) * p->words};
}

static cudaError_t launch(grid_pass passes[GRID_SIZES], cudaStream_t stream,
                          const bm_lstm_cluster *l, size_t first, void *room)
{
    const grid_pass *p = pass_for(passes, l->H);
    grid_words w = {};
    size_t tiles = 0;

    if (!fits(passes, l->H, l->R))
        return cudaErrorNotSupported;
    if (l->T == 0 || first >= l->B)
        return cudaSuccess;
    if ((uintptr_t)l->gates % 16 != 0 || (uintptr_t)l->cells % 16 != 0)
        return cudaErrorMisalignedAddress;
    tiles = tiles_of(p, l, first);
    w.words = room;
    w.first = (int)first;
    w.tiles = (int)tiles;
    return BM_LAUNCH_TOGETHER(stream, p->kernel, (unsigned)(l->R * p->H / 16),
                              256, shared(p, tiles), *l, w);
}

#endif

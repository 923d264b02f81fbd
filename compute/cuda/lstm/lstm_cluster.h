/*
 * lstm_cluster.h - kernels that take all frames of an LSTM in clusters:
 * lstm_cluster_forward.cu and lstm_cluster_backward.cu, for sm_90.
 *
 * A cluster of C blocks computes some tiles, of eight sequences each, in one
 * direction from the first frame to the last. Clusters do not communicate. Each
 * block has U = H / C cells, with all their gates, and keeps their rows of wh
 * [4 U, H] in registers. Blocks send from shared memory to shared memory. The
 * receiver counts bytes (bm_arrivals) and has two buffers, for odd and even
 * steps: a block sends for step s + 1 after it has received step s from all
 * blocks, which they sent after they had read step s - 1.
 *
 * Tiles are independent. A block takes them in turn, so that data of one tile
 * are in flight while it multiplies for the others.
 *
 * Forward, a block sends its h in bf16 to all: 16 H bytes arrive at each block
 * in a step of a tile. Its warps are W = U / 8 groups of eight cells times two
 * halves of the sum over H.
 *
 *     gates = x + wh h        h [8, H] of all blocks
 *
 * Backward, the gates' gradients would be 64 H bytes, all of which every warp
 * would read. Instead a block multiplies those of its own cells and sends sums
 * over them, in fp32, to the blocks that have the cells: 32 H bytes arrive, and
 * wh is divided as it is forward. A warp has C / 4 times 16 cells of all H.
 *
 *     dh = dy + sum over blocks of (wh' dgates)
 *
 * Warps form two groups of W. The first has tiles 0, 2, .., the second the
 * others: warp w of the group keeps c or dc of eight cells, and applies the
 * nonlinearities.
 *
 * H is padded to the next size of a kernel, with cells that stay zero. Up to
 * 512, wh fits into half of the registers of 16 blocks, the biggest cluster.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_LSTM_CLUSTER_H
#define BM_COMPUTE_CUDA_LSTM_LSTM_CLUSTER_H

#include "compute/cuda/lstm/lstm_tile.h"

template <int H_, int C_> struct shape {
    enum {
        H = H_,
        C = C_,
        EIGHTS = H / 8,
        U = H / C,
        W = U / 8,
        THREADS = 64 * W,

        /* Weights are in shared memory before all others. Their rows begin at
         * odd multiples of 16 bytes: in different banks for eight lanes. */
        H_LD = H + 8,
        WEIGHTS = 4 * U * H_LD * 2,
    };
};

struct cluster_task : task {
    int group, w; /* of the warp */
};

template <typename S>
BM_INLINE cluster_task begin(const bm_lstm_cluster &l, int tiles)
{
    int cluster = (int)blockIdx.x / S::C;
    cluster_task k;

    k.l = l;
    k.B = (unsigned)l.B;
    k.H = (unsigned)l.H;
    k.R = (unsigned)l.R;
    k.r = (unsigned)cluster % k.R;
    k.rank = (int)bm_cluster_rank();
    k.b0 = (int)((unsigned)cluster / k.R) * tiles * TILE;
    k.tiles = min(tiles, ((int)k.B - k.b0 + TILE - 1) / TILE);
    k.steps = 0;
    k.warp = (int)threadIdx.x / 32;
    k.lane = (int)threadIdx.x % 32;
    k.group = k.warp / S::W;
    k.w = k.warp % S::W;
    k.u = (unsigned)(k.rank * S::U + 8 * k.w);
    k.exists = k.u < k.H;
    return k;
}

/* After this, other blocks may send to these tiles. */
template <typename Tile> BM_INLINE void prepare(task *k, Tile *tiles)
{
    __syncthreads(); /* weights were here */
    for (int i = (int)threadIdx.x; i < k->tiles * TILE; i += (int)blockDim.x) {
        int b = k->b0 + i;
        Tile &tile = tiles[i / TILE];

        tile.frames[i % TILE] =
            b < (int)k->B ? min(k->l.frames[b], (int)k->l.T) : 0;
        if (i % TILE < 2)
            bm_arrivals_open(&tile.arrivals[i % TILE], 1);
    }
    bm_cluster_sync();
    for (int i = 0; i < k->tiles * TILE; i++)
        k->steps = max(k->steps, tiles[i / TILE].frames[i % TILE]);
}

#endif

/*
 * lstm_grid.h - kernels that take all frames of an LSTM which no cluster has
 * room for: lstm_grid_forward.cu and lstm_grid_backward.cu, for sm_90.
 *
 * H / 16 blocks follow all sequences in one direction. Each has 16 units and
 * 64 H of wh's numbers in registers, and all run at once. What they tell each
 * other are words in global memory, that is in the L2 cache, which say
 * themselves that they are there: who needs one listens until it is.
 *
 * Step s of a tile comes after step s - 1 of the same tile, in all blocks, and
 * after nothing else. Blocks take tiles in turn, so that words of one are under
 * way while they work at others; and warps wait for each other as little as can
 * be.
 *
 * Forward, warp j multiplies by its eighth of h, which is P = H / 128 blocks'
 * units; sums of all warps meet in shared memory, in one of some rooms. Warp
 * tile % 8 adds them up, keeps c of all 16 units, and tells h: 16 H bytes come
 * to each block in a step of a tile.
 *
 *     gates = x + sum over warps of (wh h)
 *
 * Backward, blocks stand in a matrix [P, 8]. Block (a, b) has the rows of wh of
 * all units of blocks (a, 0..7), and the columns of blocks (0..P - 1, b). It
 * hears the gradients of the former, 8192 bytes, and tells the latter sums over
 * them, eight for each (where P is less, several warps share the rows): 4096
 * bytes go, and as many come.
 *
 *     dh = dy + sum of eight (wh' dgates)
 *
 * Two numbers in bf16 are a word that is not all ones, for that is no number
 * that anything here comes to: its complement is told, and 0 says nothing. Such
 * words have eight places in turn. Who tells one for step s clears his place of
 * step s + 4: with a fence in each step, that is done for who gets there.
 * A sum in fp32 has four places in turn, and its last bit says in which round
 * of them it was told.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_LSTM_GRID_H
#define BM_COMPUTE_CUDA_LSTM_LSTM_GRID_H

#include "compute/cuda/lstm/lstm_tile.h"

enum { PLACES = 8, CLEARED = 4, SUM_PLACES = 4 };

template <int H_> struct grid_shape {
    enum {
        H = H_,
        P = H / 128,
        U = 16,
        EIGHTS = H / 8,
        BLOCKS = H / 16,
        THREADS = 256,

        H_LD = H + 8,
        WEIGHTS = 4 * U * H_LD * 2,
        COLUMNS = 16 * P, /* of wh backward, in 512 rows */
        COLUMNS_LD = COLUMNS + 8,
        WEIGHTS_BACK = 512 * COLUMNS_LD * 2,
    };
};

template <typename S>
BM_INLINE task begin_grid(const bm_lstm_cluster &l, int first, int tiles)
{
    task k;

    k.l = l;
    k.B = (unsigned)l.B;
    k.H = (unsigned)l.H;
    k.R = (unsigned)l.R;
    k.r = blockIdx.x / S::BLOCKS;
    k.rank = (int)(blockIdx.x % S::BLOCKS);
    k.b0 = first;
    k.tiles = tiles;
    k.steps = 0;
    k.warp = (int)threadIdx.x / 32;
    k.lane = (int)threadIdx.x % 32;
    k.u = (unsigned)(16 * k.rank);
    k.exists = k.u < k.H;
    return k;
}

/* For eight e of the block's two. */
BM_INLINE task eight_of(task k, int e)
{
    k.u = (unsigned)(16 * k.rank + 8 * e);
    k.exists = k.u < k.H;
    return k;
}

template <typename Tile> BM_INLINE void prepare_grid(task *k, Tile *tiles)
{
    __syncthreads(); /* weights were here */
    for (int i = (int)threadIdx.x; i < k->tiles * TILE; i += (int)blockDim.x) {
        int b = k->b0 + i;

        tiles[i / TILE].frames[i % TILE] =
            b < (int)k->B ? min(k->l.frames[b], (int)k->l.T) : 0;
    }
    __syncthreads();
    for (int i = 0; i < k->tiles * TILE; i++)
        k->steps = max(k->steps, tiles[i / TILE].frames[i % TILE]);
}

#endif

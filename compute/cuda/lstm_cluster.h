/*
 * lstm_cluster.h - what the kernels that take all frames of an LSTM share:
 * lstm_cluster_forward.cu and lstm_cluster_backward.cu, for sm_90.
 *
 * A cluster of C blocks follows some tiles, of eight sequences each, in one
 * direction from the first frame to the last; clusters know nothing of each
 * other. Each block has U = H / C units, with all their gates, and keeps their
 * rows of wh [4 U, H] in registers. What blocks tell each other goes from
 * shared memory to shared memory, is counted by the one that waits for it
 * (bm_arrivals), and has two buffers, for odd and even steps: who sends for
 * step s + 1 has had the words for step s of all blocks, and they were sent
 * after step s - 1 was read.
 *
 * Tiles have nothing to do with each other. A block takes them in turn, so
 * that words of one are under way while it multiplies for the others.
 *
 * Forward, a block sends its h in bf16 to all: 16 H bytes arrive at each block
 * in a step of a tile. Its warps are W = U / 8 eights of units times two halves
 * of the sum over H.
 *
 *     gates = x + wh h        h [8, H] of all blocks
 *
 * Backward, sending the gates' gradients would be 64 H bytes, of which every
 * warp would read all. Instead a block multiplies those of its own units and
 * sends sums over them, in fp32, to the blocks that have the units: 32 H bytes
 * arrive, and wh is cut as it is forward. A warp has C / 4 times 16 units of
 * all H.
 *
 *     dh = dy + sum over blocks of (wh' dgates)
 *
 * Warps are two groups of W. Tiles 0, 2, .. are the first's, and the others the
 * second's: warp w of the group keeps c or dc of eight units, and applies the
 * nonlinearities. There, lane 4 g + q has unit g, sequences 2 q and 2 q + 1, as
 * products leave them.
 *
 * bf16 lie in pieces of 16 bytes, eight units of a sequence. Those of eight
 * sequences, one behind the other, are a matrix for bm_matrices_get, and lie in
 * different banks. Gates reach and leave a warp through a ring of slots:
 *
 *     slot [5, 8] pieces: i, f, g, o in and out, then y out or dy in
 *
 * and lane 8 k + n carries piece n of gate k between there and global memory.
 *
 * Nonlinearities: tanh.approx, error 2^-11 of the value, for i, g, o and c,
 * which are rounded to bf16 (2^-8) or go into what is. f multiplies c step by
 * step and has all of fp32's digits but two, as all there is backward.
 *
 * H is padded to the next size that there is, with units that stay zero. Up to
 * 512, wh fits into half of the registers of 16 blocks, the biggest cluster;
 * for 1024 it would take 64 blocks a direction, a barrier of the grid in each
 * step instead of messages, and h from global memory.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_CLUSTER_H
#define BM_COMPUTE_CUDA_LSTM_CLUSTER_H

#include "compute/cuda/lstm_kernels.h"
#include "compute/cuda/sm90.h"

enum { TILE = 8, SLOTS = 4 }; /* of the ring: three steps ahead are under way */

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

typedef uint4 slot[5][TILE];

/* What this thread works on. */
struct task {
    bm_lstm_cluster l;
    unsigned B, H, R, r; /* of l; direction */
    int rank;            /* of the block */
    int b0, tiles;       /* first sequence */
    int steps;           /* frames of the longest sequence */
    int warp, lane, group, w;
    unsigned u;  /* first of the warp's eight units */
    bool exists; /* they are not padding */
};

template <typename S> BM_INLINE task begin(const bm_lstm_cluster &l, int tiles)
{
    int cluster = (int)blockIdx.x / S::C;
    task k;

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

BM_INLINE bool aligned16(const void *x)
{
    return (uintptr_t)x % 16 == 0;
}

/* Eight numbers between shared memory and a place that may be anywhere. */
BM_INLINE void fetch_piece(void *shared, const bm_bf16 *x, bool aligned)
{
    if (aligned) {
        bm_copy_begin(shared, x);
    } else {
#pragma unroll 1
        for (int i = 0; i < 8; i++)
            ((bm_bf16 *)shared)[i] = x[i];
    }
}

BM_INLINE void store_piece(bm_bf16 *x, uint4 piece, bool aligned)
{
    if (aligned) {
        bm_put16(x, piece);
    } else {
        const uint32_t pairs[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
        for (int i = 0; i < 8; i++)
            x[i].bits = (uint16_t)(pairs[i / 2] >> 16 * (i % 2));
    }
}

/* This block's rows of wh -> weights [4 U, H_LD], for all its threads. */
template <typename S>
BM_INLINE void fetch_weights(const task &k, bm_bf16 *weights)
{
    bool aligned = aligned16(k.l.wh);

    for (int i = (int)threadIdx.x; i < S::U * S::H / 2; i += S::THREADS) {
        int row = i / S::EIGHTS, column = i % S::EIGHTS * 8;
        unsigned u = (unsigned)(k.rank * S::U + row % S::U);
        size_t from = (size_t)((k.r * 4 + (unsigned)(row / S::U)) * k.H + u);
        bm_bf16 *to = weights + row * S::H_LD + column;

        if (u < k.H && column < (int)k.H)
            fetch_piece(to, k.l.wh + from * k.H + column, aligned);
        else
            bm_put16(to, make_uint4(0, 0, 0, 0));
    }
    bm_copies_commit();
    bm_copies_wait<0>();
    __syncthreads();
}

/* After this, others may send to these tiles. */
template <typename Tile> BM_INLINE void prepare(task *k, Tile *tiles)
{
    __syncthreads(); /* weights were here */
    for (int i = (int)threadIdx.x; i < k->tiles * TILE; i += (int)blockDim.x) {
        int b = k->b0 + i;
        Tile &tile = tiles[i / TILE];

        tile.frames[i % TILE] =
            b < (int)k->B ? min(k->l.frames[b], (int)k->l.T) : 0;
        if (i % TILE < 2)
            bm_arrivals_open(&tile.arrivals[i % TILE]);
    }
    bm_cluster_sync();
    for (int i = 0; i < k->tiles * TILE; i++)
        k->steps = max(k->steps, tiles[i / TILE].frames[i % TILE]);
}

/* Forward; backward goes from the last step to the first. */
BM_INLINE int frame(const task &k, int step)
{
    return k.r == 0 ? step : k.steps - 1 - step;
}

/* Number of frame t of a tile's sequence n, among all frames of all sequences
 * and directions. */
BM_INLINE size_t row(const task &k, int tile, int n, int t)
{
    return ((unsigned)t * k.B + (unsigned)(k.b0 + TILE * tile + n)) * k.R + k.r;
}

/* Where this warp's units lie in a row of gates, or of others [T, B, R, H]. */
BM_INLINE size_t in_gates(const task &k, size_t row, int gate)
{
    return (row * 4 + (size_t)gate) * k.H + k.u;
}

BM_INLINE size_t in_others(const task &k, size_t row)
{
    return row * k.H + k.u;
}

/* Whether there is a sequence n in a tile. */
BM_INLINE bool has(const task &k, int tile, int n)
{
    return k.b0 + TILE * tile + n < (int)k.B;
}

/* Begins to fetch what is read of a tile at frame t: gates, and dy backward. */
BM_INLINE void fetch(const task &k, int tile, const int *frames, slot &to,
                     int t, const bm_bf16 *dy)
{
    int gate = k.lane / TILE, n = k.lane % TILE;
    size_t at = row(k, tile, n, t);

    if (!k.exists || t >= frames[n])
        return;
    bm_copy_begin(&to[gate][n], k.l.gates + in_gates(k, at, gate));
    if (dy != nullptr && gate == 0)
        fetch_piece(&to[4][n], dy + in_others(k, at), aligned16(dy));
}

/* What is left in a slot at the end of a step. */
BM_INLINE void store(const task &k, int tile, const slot &from, int t)
{
    int gate = k.lane / TILE, n = k.lane % TILE;

    if (k.exists && has(k, tile, n))
        bm_put16(k.l.gates + in_gates(k, row(k, tile, n, t), gate),
                 bm_get16(&from[gate][n]));
}

/* Zeros past the end of all sequences of a tile. */
BM_INLINE void store_end(const task &k, int tile)
{
    int gate = k.lane / TILE, n = k.lane % TILE;

    for (int t = k.steps; k.exists && has(k, tile, n) && t < (int)k.l.T; t++)
        bm_put16(k.l.gates + in_gates(k, row(k, tile, n, t), gate),
                 make_uint4(0, 0, 0, 0));
}

BM_INLINE float number(uint32_t pair, int upper)
{
    return __int_as_float((int)(upper ? pair & 0xffff0000u : pair << 16));
}

BM_INLINE uint32_t pair_of(const float x[2])
{
    __nv_bfloat162 rounded = __floats2bfloat162_rn(x[0], x[1]);
    uint32_t pair;

    memcpy(&pair, &rounded, sizeof pair);
    return pair;
}

BM_INLINE float sigmoid(float x)
{
    return __fdividef(1, 1 + __expf(-x));
}

BM_INLINE float sigmoid_quick(float x)
{
    return 0.5f + 0.5f * bm_tanh_quick(0.5f * x);
}

#endif

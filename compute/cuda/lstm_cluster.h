/*
 * lstm_cluster.h - what the kernels that take all frames of an LSTM share:
 * lstm_cluster_forward.cu and lstm_cluster_backward.cu, for sm_90.
 *
 * A cluster of C blocks follows N = 8 or 16 sequences in one direction from the
 * first frame to the last; clusters know nothing of each other. Each block has
 * U = H / C units, with all their gates, and keeps their rows of wh [4 U, H] in
 * registers. What blocks tell each other goes from shared memory to shared
 * memory, is counted by the one that waits for it (bm_arrivals), and has two
 * buffers, for odd and even steps: who sends for step s + 1 has had the words
 * for step s of all blocks, and they were sent after step s - 1 was read.
 *
 * Forward, a block sends its h [N, U] in bf16 to all: 2 N H bytes arrive at
 * each block in a step. Its warps are W = U / 8 eights of units times two
 * halves of the sum over H.
 *
 *     gates = x + wh h        h [N, H] of all blocks
 *
 * Backward, sending the gates' gradients would be 8 N H bytes, of which every
 * warp would read all. Instead a block multiplies those of its own units and
 * sends sums over them, in fp32, to the blocks that have the units: 4 N H bytes
 * arrive, and wh is cut as it is forward. A warp has C / 4 times 16 units of
 * all H.
 *
 *     dh = dy + sum over blocks of (wh' dgates)
 *
 * Each eight of units times eight sequences (a tile) has a warp that keeps its
 * c or dc and applies the nonlinearities: lane 4 g + q has unit g, sequences
 * 2 q and 2 q + 1, as products leave them. Gates reach and leave it through a
 * ring of slots in shared memory, in rows of 16-byte pieces:
 *
 *     slot [N, SLOT_LD]: i, f, g, o [4, U] in and out, then y out or dy in [U]
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

enum { SLOTS = 4 }; /* of the ring: two steps ahead are under way */

template <int H_, int C_, int TILES_> struct shape {
    enum {
        H = H_,
        C = C_,
        TILES = TILES_,
        U = H / C,
        W = U / 8,
        N = 8 * TILES,
        THREADS = 64 * W,
        PIECES = N * W, /* of one gate, in a slot */

        /* A warp with few products at hand adds up even and odd terms beside
         * each other, not to wait for each sum before the next. */
        CHAINS = TILES == 1 || THREADS <= 256 ? 2 : 1,

        /* Rows that begin at odd multiples of 16 bytes lie in different banks
         * for eight lanes; c's in rows of 4 or 12 more than 16 floats. */
        H_LD = H + 8,
        SLOT_LD = (5 * W | 1) * 8,
        CELL_LD = U + 4,

        /* Bytes of shared memory. Weights are there before all others. */
        WEIGHTS = 4 * U * H_LD * 2,
        HEAD = 2 * 8 + N * 4,
        RING = SLOTS * N * SLOT_LD * 2,
        FORWARD = HEAD + RING + 2 * N * H_LD * 2 + TILES * W * 2 * 32 * 16,
        BACKWARD = HEAD + RING + SLOTS * N * CELL_LD * 4 + 2 * N * H * 4,
        FORWARD_BYTES = WEIGHTS > FORWARD ? WEIGHTS : FORWARD,
        BACKWARD_BYTES = WEIGHTS > BACKWARD ? WEIGHTS : BACKWARD,
    };
};

/* What this block works on. */
struct task {
    bm_lstm_cluster l;
    int B, H, R;             /* of l */
    int rank, r, b0, u0;     /* block, direction, first sequence and unit */
    int steps;               /* frames of the longest sequence */
    bm_arrivals *arrivals;   /* [2] */
    int *frames;             /* [N] */
    bm_bf16 *slots;          /* [SLOTS, N, SLOT_LD] */
    unsigned char *the_rest; /* of shared memory */
};

/* Which part of a tile is this thread's. */
struct seat {
    int warp, lane, w, tile;
    bool tile_exists; /* all sit somewhere; half may have nothing to do */
    int u, sequence;  /* the unit, the first of two sequences */
};

template <typename S> BM_INLINE seat own_seat(const task &k)
{
    seat s;

    s.warp = (int)threadIdx.x / 32;
    s.lane = (int)threadIdx.x % 32;
    s.w = s.warp % S::W;
    s.tile = s.warp / S::W;
    s.tile_exists = s.tile < S::TILES;
    s.u = k.u0 + 8 * s.w + s.lane / 4;
    s.sequence = 8 * s.tile + s.lane % 4 * 2;
    return s;
}

template <typename S>
BM_INLINE task begin(const bm_lstm_cluster &l, unsigned char *room)
{
    int cluster = (int)blockIdx.x / S::C;
    task k;

    k.l = l;
    k.B = (int)l.B;
    k.H = (int)l.H;
    k.R = (int)l.R;
    k.rank = (int)bm_cluster_rank();
    k.r = cluster % k.R;
    k.b0 = cluster / k.R * S::N;
    k.u0 = k.rank * S::U;
    k.steps = 0;
    k.arrivals = (bm_arrivals *)(void *)room;
    k.frames = (int *)(void *)(room + 16);
    k.slots = (bm_bf16 *)(void *)(room + S::HEAD);
    k.the_rest = room + S::HEAD + S::RING;
    return k;
}

BM_INLINE bool aligned16(const void *x)
{
    return (uintptr_t)x % 16 == 0;
}

/* Eight numbers between shared memory and a place that may be anywhere. */
BM_INLINE void fetch_piece(bm_bf16 *shared, const bm_bf16 *x, bool aligned)
{
    if (aligned) {
        bm_copy_begin(shared, x);
    } else {
#pragma unroll 1
        for (int i = 0; i < 8; i++)
            shared[i] = x[i];
    }
}

BM_INLINE void store_piece(bm_bf16 *x, const bm_bf16 *shared, bool aligned)
{
    if (aligned) {
        bm_put16(x, bm_get16(shared));
    } else {
#pragma unroll 1
        for (int i = 0; i < 8; i++)
            x[i] = shared[i];
    }
}

/* This block's rows of wh -> weights [4 U, H_LD], for all its threads. */
template <typename S>
BM_INLINE void fetch_weights(const task &k, bm_bf16 *weights)
{
    bool aligned = aligned16(k.l.wh);

    for (int i = (int)threadIdx.x; i < S::U * S::H / 2; i += S::THREADS) {
        int row = i / (S::H / 8), u = k.u0 + row % S::U;
        int column = i % (S::H / 8) * 8;
        size_t from = (size_t)((k.r * 4 + row / S::U) * k.H + u) * k.l.H;
        bm_bf16 *to = weights + row * S::H_LD + column;

        if (u < k.H && column < k.H)
            fetch_piece(to, k.l.wh + from + column, aligned);
        else
            bm_put16(to, make_uint4(0, 0, 0, 0));
    }
    bm_copies_commit();
    bm_copies_wait<0>();
    __syncthreads();
}

/* After this, others may send. */
template <typename S> BM_INLINE void prepare(task *k)
{
    int n = (int)threadIdx.x;

    __syncthreads(); /* weights were here */
    if (n < S::N)
        k->frames[n] =
            k->b0 + n < k->B ? min(k->l.frames[k->b0 + n], (int)k->l.T) : 0;
    if (n == 0) {
        bm_arrivals_open(&k->arrivals[0]);
        bm_arrivals_open(&k->arrivals[1]);
    }
    bm_cluster_sync();
    for (int i = 0; i < S::N; i++)
        k->steps = max(k->steps, k->frames[i]);
}

/* Forward; backward goes from the last step to the first. */
BM_INLINE int frame(const task &k, int step)
{
    return k.r == 0 ? step : k.steps - 1 - step;
}

/* What begins at frame t of the first sequence, among all frames of all
 * sequences and directions; the next sequence is R further. */
BM_INLINE size_t row(const task &k, int t)
{
    return ((size_t)t * k.l.B + (size_t)k.b0) * k.l.R + (size_t)k.r;
}

template <typename S> BM_INLINE bm_bf16 *slot(const task &k, int step)
{
    return k.slots + step % SLOTS * (S::N * S::SLOT_LD);
}

/* Piece i of a slot: of a gate, or of y or dy (gate 4). */
struct piece {
    int gate, n, u, offset; /* sequence, unit, place in the slot */
    bool exists;            /* not of a unit or a sequence that is padding */
};

template <typename S> BM_INLINE piece piece_of(const task &k, int i)
{
    int j = i % S::W * 8;
    piece p;

    p.gate = i / S::PIECES;
    p.n = i / S::W % S::N;
    p.u = k.u0 + j;
    p.offset = p.n * S::SLOT_LD + p.gate * S::U + j;
    p.exists = p.u < k.H && k.b0 + p.n < k.B;
    return p;
}

/* Where it lies in frame t of gates, or of others [T, B, R, H]. */
BM_INLINE size_t in_gates(const task &k, size_t row, const piece &p)
{
    return row * 4 * k.l.H + (size_t)((p.n * k.R * 4 + p.gate) * k.H + p.u);
}

BM_INLINE size_t in_others(const task &k, size_t row, const piece &p)
{
    return row * k.l.H + (size_t)(p.n * k.R * k.H + p.u);
}

BM_INLINE float *cells_of(const task &k, int t)
{
    return k.l.cells + row(k, t) * k.l.H;
}

/* Begins to fetch what is read at frame t: gates, and dy backward. */
template <typename S>
BM_INLINE void fetch(const task &k, bm_bf16 *slot, int t, const bm_bf16 *dy)
{
    int n = dy != nullptr ? 5 : 4;
    bool aligned = aligned16(dy);

#pragma unroll 1
    for (int i = (int)threadIdx.x; i < n * S::PIECES; i += S::THREADS) {
        piece p = piece_of<S>(k, i);

        if (!p.exists || t >= k.frames[p.n])
            continue;
        if (p.gate < 4)
            bm_copy_begin(slot + p.offset,
                          k.l.gates + in_gates(k, row(k, t), p));
        else
            fetch_piece(slot + p.offset, dy + in_others(k, row(k, t), p),
                        aligned);
    }
}

/* What a slot holds at the end of a step: gates, and y forward. */
template <typename S>
BM_INLINE void store(const task &k, const bm_bf16 *slot, int t, bm_bf16 *y)
{
    int n = y != nullptr ? 5 : 4;
    bool aligned = aligned16(y);

#pragma unroll 1
    for (int i = (int)threadIdx.x; i < n * S::PIECES; i += S::THREADS) {
        piece p = piece_of<S>(k, i);

        if (!p.exists)
            continue;
        if (p.gate < 4)
            bm_put16(k.l.gates + in_gates(k, row(k, t), p),
                     bm_get16(slot + p.offset));
        else
            store_piece(y + in_others(k, row(k, t), p), slot + p.offset,
                        aligned);
    }
}

/* Zeros past the end of all sequences, in what `store` writes. */
template <typename S> BM_INLINE void store_end(const task &k, bm_bf16 *y)
{
    for (int i = (int)threadIdx.x; i < S::N * S::SLOT_LD / 8; i += S::THREADS)
        bm_put16(k.slots + 8 * i, make_uint4(0, 0, 0, 0));
    __syncthreads();
    for (int t = k.steps; t < (int)k.l.T; t++)
        store<S>(k, k.slots, t, y);
    __syncthreads();
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

/* Where this lane's row of matrices of its tile begins in a slot: of all gates,
 * or of what is behind them (lanes 0 to 7). */
template <typename S>
BM_INLINE bm_bf16 *tile_gates(bm_bf16 *slot, const seat &s)
{
    return slot + (8 * s.tile + s.lane % 8) * S::SLOT_LD + s.lane / 8 * S::U +
           8 * s.w;
}

template <typename S>
BM_INLINE bm_bf16 *tile_others(bm_bf16 *slot, const seat &s)
{
    return slot + (8 * s.tile + s.lane % 8) * S::SLOT_LD + 4 * S::U + 8 * s.w;
}

#endif

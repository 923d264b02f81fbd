/*
 * lstm_tile.h - a tile of the kernels in lstm_cluster_*.cu, for sm_90: eight
 * sequences, of which a warp computes eight cells.
 *
 * Of c, dc and the inputs and outputs of gates, lane 4 g + q has cell g of
 * sequences 2 q and 2 q + 1, which is the layout of products.
 *
 * bf16 are stored in pieces of 16 bytes, eight cells of a sequence. Those of
 * eight sequences, one after the other, are a matrix for bm_matrices_get, and
 * are in different banks. Gates reach and leave a warp through a ring of slots:
 *
 *     slot [5, 8] pieces: i, f, g, o in and out, then y out or dy in
 *
 * and lane 8 k + n carries piece n of gate k between there and global memory.
 *
 * Nonlinearities: tanh.approx, with a relative error of 2^-11, for i, g, o and
 * c, which are rounded to bf16 (2^-8) or go into numbers that are. f multiplies
 * c in each step, and has all of fp32's digits but two, as everything backward.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_LSTM_TILE_H
#define BM_COMPUTE_CUDA_LSTM_LSTM_TILE_H

#include "compute/cuda/kernels/sm90.h"
#include "compute/cuda/lstm/lstm_kernels.h"

enum { TILE = 8, SLOTS = 4 }; /* of the ring: loads run three steps ahead */

typedef uint4 slot[5][TILE];

/* The work of this thread. */
struct task {
    bm_lstm_cluster l;
    unsigned B, H, R, r; /* of l; direction */
    int rank;            /* of the block among those of the cluster */
    int b0, tiles;       /* first sequence */
    int steps;           /* frames of the longest sequence */
    int warp, lane;
    unsigned u;  /* first of the warp's eight cells */
    bool exists; /* they are not padding */
};

BM_INLINE bool aligned16(const void *x)
{
    return (uintptr_t)x % 16 == 0;
}

/* Copies eight numbers between shared and global memory, aligned or not. */
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

/* Copies this block's rows of wh to weights [4 U, H_LD]. */
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

/* The index of this warp's cells in gates, or in another array [T, B, R, H]. */
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

/* Starts to fetch a tile at frame t: gates, and dy backward. */
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

/* Stores a slot at the end of a step. */
BM_INLINE void store(const task &k, int tile, const slot &from, int t)
{
    int gate = k.lane / TILE, n = k.lane % TILE;

    if (k.exists && has(k, tile, n))
        bm_put16(k.l.gates + in_gates(k, row(k, tile, n, t), gate),
                 bm_get16(&from[gate][n]));
}

BM_INLINE void store_y(const task &k, int tile, uint4 piece, int t)
{
    int n = k.lane;

    if (n < TILE && k.exists && has(k, tile, n))
        store_piece(k.l.y + in_others(k, row(k, tile, n, t)), piece,
                    aligned16(k.l.y));
}

BM_INLINE void store_cells(const task &k, int tile, int t, const float c[2])
{
    int n = k.lane % 4 * 2;

    for (int j = 0; j < 2; j++)
        if (k.exists && has(k, tile, n + j))
            k.l.cells[in_others(k, row(k, tile, n + j, t)) +
                      (unsigned)(k.lane / 4)] = c[j];
}

/* Zeros past the end of all sequences of a tile. */
BM_INLINE void store_end(const task &k, int tile)
{
    int gate = k.lane / TILE, n = k.lane % TILE;

    for (int t = k.steps; k.exists && has(k, tile, n) && t < (int)k.l.T; t++)
        bm_put16(k.l.gates + in_gates(k, row(k, tile, n, t), gate),
                 make_uint4(0, 0, 0, 0));
}

/* ---- forward ------------------------------------------------------------- */

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

/* Gates and c of two sequences, from what goes into the gates: x + sum. */
BM_INLINE void step_forward(uint32_t x[4], const float (&sum)[2][4],
                            const bool live[2], float c[2], float h[2])
{
    float gates[4][2];

#pragma unroll
    for (int j = 0; j < 2; j++) {
        float i = sigmoid_quick(number(x[0], j) + sum[0][j]);
        float f = sigmoid(number(x[1], j) + sum[0][2 + j]);
        float g = bm_tanh_quick(number(x[2], j) + sum[1][j]);
        float o = sigmoid_quick(number(x[3], j) + sum[1][2 + j]);

        c[j] = live[j] ? f * c[j] + i * g : 0;
        h[j] = live[j] ? o * bm_tanh_quick(c[j]) : 0;
        gates[0][j] = live[j] ? i : 0;
        gates[1][j] = live[j] ? f : 0;
        gates[2][j] = live[j] ? g : 0;
        gates[3][j] = live[j] ? o : 0;
    }
    for (int i = 0; i < 4; i++)
        x[i] = pair_of(gates[i]);
}

/* The results of a step of a warp's cells at frame t. */
struct step_done {
    uint32_t x[4]; /* gates */
    float c[2];
    uint4 h; /* piece number lane % 8 */
};

/* From gates in a slot, what else goes into them, and c before, which becomes
 * c. */
BM_INLINE step_done follow(const task &k, slot &at, float2 &kept,
                           const int *frames, int t, const float (&sum)[2][4])
{
    int n = k.lane % 4 * 2;
    bool live[2] = {k.exists && t < frames[n], k.exists && t < frames[n + 1]};
    float h[2];
    step_done d;

    d.c[0] = kept.x;
    d.c[1] = kept.y;
    bm_matrices_get_transposed(d.x, &at[0][0] + k.lane);
    step_forward(d.x, sum, live, d.c, h);
    bm_matrix_put(&at[4][k.lane % TILE], pair_of(h));
    kept = make_float2(d.c[0], d.c[1]);
    __syncwarp();
    d.h = bm_get16(&at[4][k.lane % TILE]);
    return d;
}

/* Stores to global memory, without waiting. */
BM_INLINE void store_step(const task &k, int tile, slot &at, int t,
                          const step_done &d)
{
    bm_matrices_put(&at[0][0] + k.lane, d.x);
    store_y(k, tile, d.h, t);
    store_cells(k, tile, t, d.c);
    __syncwarp();
    store(k, tile, at, t);
}

/* Before the first step: zeros past the last. */
BM_INLINE void start(const task &k, int tile, float2 &kept)
{
    const float none[2] = {0, 0};

    kept = make_float2(0, 0);
    store_end(k, tile);
    for (int t = k.steps; t < (int)k.l.T; t++) {
        store_y(k, tile, make_uint4(0, 0, 0, 0), t);
        store_cells(k, tile, t, none);
    }
}

/* ---- backward ------------------------------------------------------------ */

typedef float cell_slot[TILE][8]; /* c of the frame before */

/* Steps backward: the last of those forward is 0. */
BM_INLINE int frame_back(const task &k, int step)
{
    return frame(k, k.steps - 1 - step);
}

/* The gates' gradients of two sequences from dh: x holds i, f, g, o before and
 * gradients after. c: of this frame and, c0, of the one before. */
BM_INLINE void step_backward(uint32_t x[4], const bool live[2],
                             const float dh[2], const float c[2],
                             const float c0[2], float dc[2])
{
    float gates[4][2];

#pragma unroll
    for (int j = 0; j < 2; j++) {
        float i = number(x[0], j), f = number(x[1], j);
        float g = number(x[2], j), o = number(x[3], j);
        float rest = 2 * sigmoid(-2 * c[j]); /* 1 - tanh(c) */
        float d = dc[j] + dh[j] * o * rest * (2 - rest);

        gates[0][j] = live[j] ? d * g * i * (1 - i) : 0;
        gates[1][j] = live[j] ? d * c0[j] * f * (1 - f) : 0;
        gates[2][j] = live[j] ? d * i * (1 - g * g) : 0;
        gates[3][j] = live[j] ? dh[j] * (1 - rest) * o * (1 - o) : 0;
        dc[j] = live[j] ? d * f : 0;
    }
    for (int i = 0; i < 4; i++)
        x[i] = pair_of(gates[i]);
}

/* The step of a warp's cells; `add` adds the gradients from the step before to
 * dh of two sequences. kept: c and dc. */
template <typename Add>
BM_INLINE void follow_back(const task &k, slot &at, const cell_slot &before,
                           float4 &kept, const int *frames, int step, Add add)
{
    int n = k.lane % 4 * 2, t = frame_back(k, step);
    int t0 = frame_back(k, step + 1);
    float c[2] = {kept.x, kept.y}, dc[2] = {kept.z, kept.w}, c0[2], dh[2];
    bool live[2];
    uint32_t x[4], dy = bm_matrix_get_transposed(&at[4][k.lane % TILE]);

    bm_matrices_get_transposed(x, &at[0][0] + k.lane);
#pragma unroll
    for (int j = 0; j < 2; j++) {
        int last = k.exists ? frames[n + j] : 0;

        live[j] = t < last;
        c0[j] = step + 1 < k.steps && t0 < last ? before[n + j][k.lane / 4] : 0;
        dh[j] = number(dy, j);
    }
    add(dh);
    step_backward(x, live, dh, c, c0, dc);
    bm_matrices_put(&at[0][0] + k.lane, x);
    kept = make_float4(c0[0], c0[1], dc[0], dc[1]);
}

/* Starts to fetch what a step reads: gates, dy and c of the frame before. */
BM_INLINE void fetch_back(const task &k, int tile, const int *frames, slot &to,
                          cell_slot &before, int step)
{
    int n = k.lane / 2, half = k.lane % 2 * 4, t0 = frame_back(k, step + 1);

    fetch(k, tile, frames, to, frame_back(k, step), k.l.dy);
    if (step + 1 < k.steps && n < TILE && k.exists && t0 < frames[n])
        bm_copy_begin(&before[n][half],
                      k.l.cells + in_others(k, row(k, tile, n, t0)) + half);
}

/* Before the first step. */
BM_INLINE void start_back(const task &k, int tile, const int *frames,
                          float4 &kept)
{
    int n = k.lane % 4 * 2, t = frame_back(k, 0);
    float c[2] = {0, 0};

    for (int j = 0; j < 2; j++)
        if (k.exists && k.steps > 0 && t < frames[n + j])
            c[j] = k.l.cells[in_others(k, row(k, tile, n + j, t)) +
                             (unsigned)(k.lane / 4)];
    kept = make_float4(c[0], c[1], 0, 0);
    store_end(k, tile);
}

#endif

/*
 * lstm_cluster.cu - all frames of an LSTM in one kernel, for sm_90.
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
 * H is padded to the next size that there is, with units that stay zero.
 * Registers hold no more than H = 512 so: for 1024, wh would fill those of 128
 * blocks with both directions, which no cluster spans.
 */
#include "compute/cuda/lstm_kernels.h"
#include "compute/cuda/sm90.h"

/* wh, gates and cells of the padding are never read, nor written. */
#define FOR_EACH_SIZE(X)                                                       \
    X(64, 4) X(128, 4) X(192, 8) X(256, 8) X(320, 8) X(384, 8) X(512, 16)

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

/* ---- forward ---- */

/* The warp's half of wh h, for i, f (0) and g, o (1) of its units. */
template <typename S, int K>
BM_INLINE void multiply_forward(const uint32_t (&wh)[K][2][4], const bm_bf16 *h,
                                int lane, float (&sum)[S::TILES][2][4])
{
    float odd[S::TILES][2][4] = {};

#pragma unroll
    for (int k = 0; k < K; k += 2)
#pragma unroll
        for (int n = 0; n < S::TILES; n++) {
            uint32_t b[4];
            bm_matrices_get(b, h + (8 * n + lane % 8) * S::H_LD + 16 * k +
                                   lane / 8 * 8);
#pragma unroll
            for (int m = 0; m < 2; m++) {
                bm_multiply_add(sum[n][m], wh[k][m], b[0], b[1]);
                bm_multiply_add(odd[n][m], wh[k + 1][m], b[2], b[3]);
            }
        }
#pragma unroll
    for (int i = 0; i < S::TILES * 8; i++)
        (&sum[0][0][0])[i] += (&odd[0][0][0])[i];
}

/* Both halves of the own tile: warps of one half give what they have of the
 * other's. */
template <typename S>
BM_INLINE void add_halves(float4 *room, const seat &s,
                          const float (&sum)[S::TILES][2][4],
                          float (&own)[2][4])
{
#pragma unroll
    for (int n = 0; n < S::TILES; n++)
#pragma unroll
        for (int m = 0; m < 2; m++) {
            const float *x = sum[n][m];
            if (n == s.tile)
                for (int i = 0; i < 4; i++)
                    own[m][i] = x[i];
            else
                room[((n * S::W + s.w) * 2 + m) * 32 + s.lane] =
                    make_float4(x[0], x[1], x[2], x[3]);
        }
    __syncthreads();
    if (s.tile_exists)
#pragma unroll
        for (int m = 0; m < 2; m++) {
            float4 x = room[((s.tile * S::W + s.w) * 2 + m) * 32 + s.lane];
            own[m][0] += x.x;
            own[m][1] += x.y;
            own[m][2] += x.z;
            own[m][3] += x.w;
        }
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

/* h of this block's units, to all blocks, itself among them. */
template <typename S>
BM_INLINE void send_h(const task &k, const bm_bf16 *from, bm_bf16 *h,
                      bm_arrivals *bar)
{
    for (int i = (int)threadIdx.x; i < S::C * S::PIECES; i += S::THREADS) {
        int n = i / S::W % S::N, j = i % S::W * 8;
        unsigned to = (unsigned)(k.rank + i / S::PIECES) % S::C;

        bm_send16(h + n * S::H_LD + k.u0 + j,
                  bm_get16(from + n * S::SLOT_LD + 4 * S::U + j), bar, to);
    }
}

template <typename S>
BM_INLINE void store_cells(const task &k, const seat &s, int t,
                           const float c[2])
{
    for (int j = 0; j < 2; j++)
        if (s.u < k.H && k.b0 + s.sequence + j < k.B)
            cells_of(k, t)[(s.sequence + j) * k.R * k.H + s.u] = c[j];
}

template <int H, int C, int TILES>
__global__ static void __launch_bounds__(shape<H, C, TILES>::THREADS, 1)
    forward(bm_lstm_cluster l)
{
#if BM_SM90
    typedef shape<H, C, TILES> S;
    enum { K = H / 32 };
    BM_SHARED(unsigned char, room);
    task k = begin<S>(l, room);
    seat s = own_seat<S>(k);
    bm_bf16 *h = (bm_bf16 *)(void *)k.the_rest; /* [2, N, H_LD] */
    float4 *halves = (float4 *)(void *)(h + 2 * S::N * S::H_LD);
    int half = s.warp / S::W, length[2] = {0, 0};
    uint32_t wh[K][2][4], x[4] = {};
    float c[2] = {0, 0};

    bm_bf16 *weights = (bm_bf16 *)(void *)room;
    fetch_weights<S>(k, weights);
#pragma unroll
    for (int i = 0; i < K; i++)
#pragma unroll
        for (int m = 0; m < 2; m++)
            bm_matrices_get(
                wh[i][m],
                weights +
                    ((2 * m + s.lane / 8 % 2) * S::U + 8 * s.w + s.lane % 8) *
                        S::H_LD +
                    (half * K + i) * 16 + s.lane / 16 * 8);
    prepare<S>(&k);
    if (s.tile_exists && s.u < k.H)
        for (int j = 0; j < 2; j++)
            length[j] = k.frames[s.sequence + j];

    store_end<S>(k, l.y);
    for (int t = k.steps; t < (int)l.T; t++)
        if (s.tile_exists)
            store_cells<S>(k, s, t, c);
    for (int step = 0; step < SLOTS - 1; step++) {
        if (step < k.steps)
            fetch<S>(k, slot<S>(k, step), frame(k, step), nullptr);
        bm_copies_commit();
    }
    bm_copies_wait<SLOTS - 2>();
    __syncthreads();

    for (int step = 0; step < k.steps; step++) {
        int t = frame(k, step), now = step % 2, next = 1 - now;
        bool more = step + 1 < k.steps,
             live[2] = {t < length[0], t < length[1]};
        float own[2][4] = {}, sum[TILES][2][4] = {}, y[2];

        if (s.tile_exists)
            bm_matrices_get_transposed(x, tile_gates<S>(slot<S>(k, step), s));
        if (step > 0) {
            bm_arrivals_wait(&k.arrivals[now], (step - 1) / 2 % 2);
            multiply_forward<S>(wh, h + now * S::N * S::H_LD + half * K * 16,
                                s.lane, sum);
            add_halves<S>(halves, s, sum, own);
        }
        if (s.tile_exists) {
            step_forward(x, own, live, c, y);
            bm_matrix_put(tile_others<S>(slot<S>(k, step), s), pair_of(y));
            bm_matrices_put(tile_gates<S>(slot<S>(k, step), s), x);
        }
        if (more && threadIdx.x == 0)
            bm_arrivals_expect(&k.arrivals[next], S::N * H * 2);
        bm_copies_wait<SLOTS - 3>();
        __syncthreads();

        if (more)
            send_h<S>(k, slot<S>(k, step), h + next * S::N * S::H_LD,
                      &k.arrivals[next]);
        store<S>(k, slot<S>(k, step), t, l.y);
        if (s.tile_exists)
            store_cells<S>(k, s, t, c);
        if (step + SLOTS - 1 < k.steps)
            fetch<S>(k, slot<S>(k, step + SLOTS - 1),
                     frame(k, step + SLOTS - 1), nullptr);
        bm_copies_commit();
    }
#endif
}

/* ---- backward ---- */

/* Steps backward: the last of those forward is 0. */
BM_INLINE int frame_back(const task &k, int step)
{
    return frame(k, k.steps - 1 - step);
}

template <typename S> BM_INLINE float *cell_slot(float *cells, int step)
{
    return cells + step % SLOTS * (S::N * S::CELL_LD);
}

/* Begins to fetch what a step reads: gates, dy and, in a slot [N, CELL_LD] of
 * its own, c of the frame before. */
template <typename S>
BM_INLINE void fetch_back(const task &k, float *cells, int step)
{
    float *to = cell_slot<S>(cells, step);
    int t = 0;

    if (step < k.steps)
        fetch<S>(k, slot<S>(k, step), frame_back(k, step), k.l.dy);
    if (step + 1 >= k.steps)
        return;
    t = frame_back(k, step + 1);
    for (int i = S::THREADS - 1 - (int)threadIdx.x; i < 2 * S::PIECES;
         i += S::THREADS) {
        int n = i / (2 * S::W), j = i % (2 * S::W) * 4;

        if (k.u0 + j < k.H && t < k.frames[n])
            bm_copy_begin(to + n * S::CELL_LD + j,
                          cells_of(k, t) + n * k.R * k.H + k.u0 + j);
    }
}

/* wh' dgates of this block's gates, for units of all blocks; to the blocks that
 * have them, as sums [C, W, TILES, 32] of two sequences. */
template <typename S, int K, int M>
BM_INLINE void multiply_backward(const task &k, const uint32_t (&wh)[K][M][4],
                                 const bm_bf16 *slot, const seat &s,
                                 float2 *sums, bm_arrivals *bar)
{
    float even[S::TILES][M][4] = {}, odd[S::TILES][M][4] = {};

#pragma unroll
    for (int i = 0; i < K; i += 2)
#pragma unroll
        for (int n = 0; n < S::TILES; n++) {
            uint32_t b[4];
            bm_matrices_get(b, slot + (8 * n + s.lane % 8) * S::SLOT_LD +
                                   16 * i + s.lane / 8 * 8);
#pragma unroll
            for (int m = 0; m < M; m++) {
                bm_multiply_add(even[n][m], wh[i][m], b[0], b[1]);
                bm_multiply_add(odd[n][m], wh[i + 1][m], b[2], b[3]);
            }
        }
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            int eight = (s.warp * M + m) * 2 + j / 2;
            int place = (k.rank * S::W + eight % S::W) * S::TILES;
#pragma unroll
            for (int n = 0; n < S::TILES; n++)
                bm_send8(sums + (place + n) * 32 + s.lane,
                         make_float2(even[n][m][j] + odd[n][m][j],
                                     even[n][m][j + 1] + odd[n][m][j + 1]),
                         bar, (unsigned)(eight / S::W));
        }
}

/* dh += the sums of all blocks. */
template <typename S>
BM_INLINE void add_sums(const float2 *sums, const seat &s, float dh[2])
{
#pragma unroll
    for (int c = 0; c < S::C; c++) {
        float2 x = sums[((c * S::W + s.w) * S::TILES + s.tile) * 32 + s.lane];
        dh[0] += x.x;
        dh[1] += x.y;
    }
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

template <int H, int C, int TILES>
__global__ static void __launch_bounds__(shape<H, C, TILES>::THREADS, 1)
    backward(bm_lstm_cluster l)
{
#if BM_SM90
    typedef shape<H, C, TILES> S;
    enum { K = S::U / 4, M = C / 4, SUMS = S::N * H / 2 };
    BM_SHARED(unsigned char, room);
    task k = begin<S>(l, room);
    seat s = own_seat<S>(k);
    float *cells = (float *)(void *)k.the_rest; /* [SLOTS, N, CELL_LD] */
    float2 *sums = (float2 *)(void *)(cells + SLOTS * S::N * S::CELL_LD);
    int length[2] = {0, 0};
    uint32_t wh[K][M][4];
    float c[2] = {0, 0}, dc[2] = {0, 0};

    bm_bf16 *weights = (bm_bf16 *)(void *)room;
    fetch_weights<S>(k, weights);
#pragma unroll
    for (int i = 0; i < K; i++)
#pragma unroll
        for (int m = 0; m < M; m++)
            bm_matrices_get_transposed(
                wh[i][m],
                weights + (16 * i + s.lane % 8 + s.lane / 16 * 8) * S::H_LD +
                    (s.warp * M + m) * 16 + s.lane / 8 % 2 * 8);
    prepare<S>(&k);
    if (s.tile_exists && s.u < k.H)
        for (int j = 0; j < 2; j++)
            length[j] = k.frames[s.sequence + j];

    store_end<S>(k, nullptr);
    for (int step = 0; step < SLOTS - 1; step++) {
        fetch_back<S>(k, cells, step);
        bm_copies_commit();
    }
    for (int j = 0; j < 2; j++)
        if (k.steps > 0 && frame_back(k, 0) < length[j])
            c[j] = cells_of(
                k, frame_back(k, 0))[(s.sequence + j) * k.R * k.H + s.u];
    bm_copies_wait<SLOTS - 2>();
    __syncthreads();

    for (int step = 0; step < k.steps; step++) {
        int t = frame_back(k, step), now = step % 2, next = 1 - now;
        bool more = step + 1 < k.steps;

        if (s.tile_exists) {
            bool live[2] = {t < length[0], t < length[1]};
            uint32_t x[4], dy = bm_matrix_get_transposed(
                               tile_others<S>(slot<S>(k, step), s));
            float dh[2] = {number(dy, 0), number(dy, 1)}, c0[2];

            bm_matrices_get_transposed(x, tile_gates<S>(slot<S>(k, step), s));
            for (int j = 0; j < 2; j++)
                c0[j] = more && frame_back(k, step + 1) < length[j]
                            ? cell_slot<S>(cells,
                                           step)[(s.sequence + j) * S::CELL_LD +
                                                 8 * s.w + s.lane / 4]
                            : 0;
            if (step > 0) {
                bm_arrivals_wait(&k.arrivals[now], (step - 1) / 2 % 2);
                add_sums<S>(sums + now * SUMS, s, dh);
            }
            step_backward(x, live, dh, c, c0, dc);
            bm_matrices_put(tile_gates<S>(slot<S>(k, step), s), x);
            c[0] = c0[0];
            c[1] = c0[1];
        }
        if (more && threadIdx.x == 0)
            bm_arrivals_expect(&k.arrivals[next], SUMS * 8);
        bm_copies_wait<SLOTS - 3>();
        __syncthreads();

        if (more)
            multiply_backward<S>(k, wh, slot<S>(k, step), s, sums + next * SUMS,
                                 &k.arrivals[next]);
        store<S>(k, slot<S>(k, step), t, nullptr);
        fetch_back<S>(k, cells, step + SLOTS - 1);
        bm_copies_commit();
    }
#endif
}

/* ---- launchers ---- */

/* A kernel, and how many of its clusters the device runs at once, as soon as
 * somebody has asked. */
typedef struct variant {
    void (*kernel)(bm_lstm_cluster);
    int bytes, clusters;
} variant;

typedef struct size {
    size_t H;
    unsigned cluster;
    variant forward[2], backward[2]; /* of 8 and 16 sequences */
} size;

#define VARIANT(pass, bytes, H, C, TILES)                                      \
    {                                                                          \
        pass<H, C, TILES>, shape<H, C, TILES>::bytes, 0                        \
    }
#define SIZE(H, C)                                                             \
    {H,                                                                        \
     C,                                                                        \
     {VARIANT(forward, FORWARD_BYTES, H, C, 1),                                \
      VARIANT(forward, FORWARD_BYTES, H, C, 2)},                               \
     {VARIANT(backward, BACKWARD_BYTES, H, C, 1),                              \
      VARIANT(backward, BACKWARD_BYTES, H, C, 2)}},

static size sizes[] = {FOR_EACH_SIZE(SIZE)};

/* The least that holds H; NULL: none. */
static size *size_for(size_t H)
{
    for (size &s : sizes)
        if (H <= s.H && H > 0 && H % 8 == 0)
            return &s;
    return NULL;
}

static unsigned threads(const size *s)
{
    return (unsigned)(8 * s->H / s->cluster);
}

static cudaError_t ask(const size *s, variant *v)
{
    const void *kernel = (const void *)v->kernel;
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {};
    cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, v->bytes);

    if (error == cudaSuccess && s->cluster > 8)
        error = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (error != cudaSuccess)
        return error;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {s->cluster, 1, 1};
    config = {dim3(s->cluster), dim3(threads(s)),
              (size_t)v->bytes, NULL,
              &attribute,       1};
    return cudaOccupancyMaxActiveClusters(&v->clusters, kernel, &config);
}

static bool has_room(const size *s, variant *v)
{
    if (v->clusters == 0 && ask(s, v) != cudaSuccess) {
        cudaGetLastError(); /* asked and answered */
        v->clusters = 0;
    }
    return v->clusters > 0;
}

bool bm_kernel_lstm_cluster_fits(int major, size_t H)
{
    size *s = size_for(H);

    return major >= 9 && s != NULL && has_room(s, &s->forward[0]) &&
           has_room(s, &s->forward[1]) && has_room(s, &s->backward[0]) &&
           has_room(s, &s->backward[1]);
}

/* Eight sequences a cluster if all clusters run at once then, else 16: a step
 * takes less than twice as long. */
static cudaError_t launch(cudaStream_t stream, const bm_lstm_cluster *l,
                          const size *s, variant v[2])
{
    size_t eights = (l->B + 7) / 8, sixteens = (l->B + 15) / 16;
    bool few = eights * l->R <= (size_t)v[0].clusters;
    unsigned clusters = (unsigned)((few ? eights : sixteens) * l->R);
    variant chosen = v[few ? 0 : 1];

    if (l->T == 0 || l->B == 0)
        return cudaSuccess;
    return BM_LAUNCH_CLUSTER(stream, chosen.kernel, s->cluster,
                             clusters * s->cluster, threads(s),
                             (size_t)chosen.bytes, *l);
}

cudaError_t bm_kernel_lstm_cluster_forward(cudaStream_t stream,
                                           const bm_lstm_cluster *l)
{
    size *s = size_for(l->H);
    return launch(stream, l, s, s->forward);
}

cudaError_t bm_kernel_lstm_cluster_backward(cudaStream_t stream,
                                            const bm_lstm_cluster *l)
{
    size *s = size_for(l->H);
    return launch(stream, l, s, s->backward);
}

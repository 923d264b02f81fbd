/* lstm_grid_backward.cu - see lstm_grid.h. */
#include "compute/cuda/lstm/lstm_grid.h"
#include "compute/cuda/lstm/lstm_grid_launch.h"

enum { EARLY = 3, RING = 2 * EARLY }; /* turns */

struct grid_backward_tile {
    int frames[TILE];
    float4 c[2][32]; /* c, dc */
    slot slots[SLOTS][2];
    cell_slot before[SLOTS][2];
};

/* Gradients of an eight of units, as in a slot. */
typedef uint4 eight_gates[4][TILE];

/* Those of the block's rows of wh, in turns. Warps put theirs in as many turns
 * as EARLY before they multiply; to begin a turn they need what all put in for
 * the one before, so nobody is further ahead than that, and what is in the way
 * in a ring of twice as many has been read. */
struct grid_ring {
    eight_gates gates[RING][16];
    bm_arrivals full[RING];
};

typedef uint2 eight_sums[8][32];

/* Of a direction: [PLACES, tiles, EIGHTS], [SUM_PLACES, tiles, EIGHTS]. */
template <typename S> struct backward_words {
    eight_gates (*gates)[S::EIGHTS];
    eight_sums (*sums)[S::EIGHTS];
};

template <typename S>
BM_INLINE eight_gates *gates_of(const task &k, const backward_words<S> &words,
                                int step, int tile)
{
    return words.gates[step % PLACES * k.tiles + tile];
}

template <typename S>
BM_INLINE eight_sums *sums_of(const task &k, const backward_words<S> &words,
                              int step, int tile)
{
    return words.sums[step % SUM_PLACES * k.tiles + tile];
}

/* The last bit of sums for a step; at first there are zeros, and none for step
 * 0. */
BM_INLINE uint32_t round_of(int step)
{
    return (uint32_t)(1 - (step - 1) / SUM_PLACES % 2);
}

BM_INLINE uint32_t marked(float x, int step)
{
    return ((uint32_t)__float_as_int(x) & ~1u) | round_of(step);
}

/* What a warp has of wh: columns of block (i, b) in some of 16 eights of rows.
 */
struct part_of_wh {
    int to, from; /* i; the first of 2 P eights */
    int number;   /* among the eight sums that block (i, b) gets */
};

template <typename S> BM_INLINE part_of_wh own_part(const task &k)
{
    int split = k.warp / S::P;

    return {k.warp % S::P, split * 2 * S::P, k.rank / 8 * (8 / S::P) + split};
}

/* This block's rows and columns of wh -> weights [4 128, COLUMNS_LD]. */
template <typename S> BM_INLINE void fetch_part(const task &k, bm_bf16 *weights)
{
    enum { PIECES = S::COLUMNS / 8 };
    bool aligned = aligned16(k.l.wh);
    int a = k.rank / 8, b = k.rank % 8;

    for (int i = (int)threadIdx.x; i < 512 * PIECES; i += S::THREADS) {
        int row = i / PIECES, piece = i % PIECES;
        unsigned u = (unsigned)(128 * a + row % 128);
        unsigned column =
            (unsigned)(128 * (piece / 2) + 16 * b + piece % 2 * 8);
        size_t from = (size_t)((k.r * 4 + (unsigned)(row / 128)) * k.H + u);
        bm_bf16 *to = weights + row * S::COLUMNS_LD + piece * 8;

        if (u < k.H && column < k.H)
            fetch_piece(to, k.l.wh + from * k.H + column, aligned);
        else
            bm_put16(to, make_uint4(0, 0, 0, 0));
    }
    bm_copies_commit();
    bm_copies_wait<0>();
    __syncthreads();
}

/* Where block (a, warp) tells its gradients, and words of them. */
template <typename S>
BM_INLINE const uint4 *source(const task &k, const backward_words<S> &words,
                              int turn)
{
    return &gates_of(k, words, turn / k.tiles,
                     turn % k.tiles)[2 * (k.rank / 8 * 8 + k.warp)][0][0];
}

BM_INLINE void listen(const task &k, const uint4 *from, uint4 (&gates)[2])
{
#pragma unroll
    for (int e = 0; e < 2; e++)
        gates[e] = bm_hear16(from + 32 * e + k.lane);
}

BM_INLINE bool is_there(uint4 x)
{
    return x.x != 0 && x.y != 0 && x.z != 0 && x.w != 0;
}

/* After that: into the ring. */
template <typename S>
BM_INLINE void pass_on(const task &k, const backward_words<S> &words, int turn,
                       uint4 (&gates)[2], grid_ring &ring)
{
    int at = turn % RING;
    const uint4 *from = source(k, words, turn);

    while (!__all_sync(~0u, is_there(gates[0]) && is_there(gates[1]))) {
        bm_hear_later(from, 256, -1);
        listen(k, from, gates);
    }
#pragma unroll
    for (int e = 0; e < 2; e++)
        bm_put16(
            &ring.gates[at][2 * k.warp + e][0][0] + k.lane,
            make_uint4(~gates[e].x, ~gates[e].y, ~gates[e].z, ~gates[e].w));
    __syncwarp();
    if (k.lane == 0)
        bm_arrivals_come(&ring.full[at]);
}

/* The warp's part of wh' dgates, told to the block that has the units. */
template <typename S>
BM_INLINE void multiply(const task &k, const uint32_t (&wh)[4 * S::P][4],
                        grid_ring &ring, const backward_words<S> &words,
                        int turn)
{
    part_of_wh part = own_part<S>(k);
    int step = turn / k.tiles + 1, at = turn % RING;
    eight_sums *to = sums_of(k, words, step, turn % k.tiles) +
                     2 * (8 * part.to + k.rank % 8);
    float sum[4][4] = {}; /* beside each other */

    bm_arrivals_wait(&ring.full[at], turn / RING % 2);
#pragma unroll
    for (int i = 0; i < 2 * S::P; i++) {
        uint32_t b[4];

        bm_matrices_get(b, &ring.gates[at][part.from + i][0][0] + k.lane);
        bm_multiply_add(sum[2 * i % 4], wh[2 * i], b[0], b[1]);
        bm_multiply_add(sum[2 * i % 4 + 1], wh[2 * i + 1], b[2], b[3]);
    }
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float x[2];
#pragma unroll
        for (int j = 0; j < 2; j++)
            x[j] = sum[0][2 * e + j] + sum[1][2 * e + j] + sum[2][2 * e + j] +
                   sum[3][2 * e + j];
        bm_tell8(&to[e][part.number][k.lane],
                 make_uint2(marked(x[0], step), marked(x[1], step)));
    }
    __syncwarp();
}

/* The sums that came for an eight of this block's units. */
BM_INLINE void add_sums(const task &k, const eight_sums &from, int step,
                        float dh[2])
{
    uint2 x[8];
    bool there = false;

    while (!there) {
        there = true;
#pragma unroll
        for (int j = 0; j < 8; j++)
            x[j] = bm_hear8(&from[j][k.lane]);
#pragma unroll
        for (int j = 0; j < 8; j++)
            there = there && ((x[j].x ^ round_of(step)) & 1) == 0 &&
                    ((x[j].y ^ round_of(step)) & 1) == 0;
        there = __all_sync(~0u, there);
        if (!there)
            bm_hear_later(from, 8 * 64, (int)round_of(step));
    }
#pragma unroll
    for (int j = 0; j < 8; j++) {
        dh[0] += __int_as_float((int)(x[j].x & ~1u));
        dh[1] += __int_as_float((int)(x[j].y & ~1u));
    }
}

BM_INLINE void fetch_step(const task &k, grid_backward_tile *tiles, int step)
{
    int at = step % SLOTS;

    for (int i = k.warp; step < k.steps && i < k.tiles; i += 8)
        for (int e = 0; e < 2; e++)
            fetch_back(eight_of(k, e), i, tiles[i].frames,
                       tiles[i].slots[at][e], tiles[i].before[at][e], step);
    bm_copies_commit();
}

/* The step of a tile, if it is this warp's. */
template <typename S>
BM_INLINE void take_step(const task &k, const backward_words<S> &words,
                         grid_backward_tile *tiles, int turn)
{
    int i = turn % k.tiles, step = turn / k.tiles, at = step % SLOTS;
    grid_backward_tile &tile = tiles[i];

    if (i % 8 != k.warp || step >= k.steps)
        return;
    if (i < 8) { /* the first of the warp's */
        bm_copies_wait<SLOTS - 2>();
        __syncwarp();
    }
#pragma unroll
    for (int e = 0; e < 2; e++)
        follow_back(eight_of(k, e), tile.slots[at][e], tile.before[at][e],
                    tile.c[e][k.lane], tile.frames, step, [&](float dh[2]) {
                        if (step > 0)
                            add_sums(k,
                                     sums_of(k, words, step, i)[2 * k.rank + e],
                                     step, dh);
                    });
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 2 && step + 1 < k.steps; e++) {
        int own = 2 * k.rank + e;
        uint4 x = bm_get16(&tile.slots[at][e][0][0] + k.lane);

        bm_tell16(&gates_of(k, words, step, i)[own][0][0] + k.lane,
                  make_uint4(~x.x, ~x.y, ~x.z, ~x.w));
        bm_tell16(&gates_of(k, words, step + CLEARED, i)[own][0][0] + k.lane,
                  make_uint4(0, 0, 0, 0));
    }
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 2; e++)
        store(eight_of(k, e), i, tile.slots[at][e], frame_back(k, step));
    if (i + 8 >= k.tiles) /* the last */
        fetch_step(k, tiles, step + SLOTS - 1);
}

template <int H>
__global__ static void __launch_bounds__(256, 1)
    backward(bm_lstm_cluster l, grid_words w)
{
#if BM_SM90
    typedef grid_shape<H> S;
    enum { P = S::P };
    BM_SHARED(grid_ring, ring);
    grid_backward_tile *tiles = (grid_backward_tile *)(void *)(ring + 1);
    bm_bf16 *weights = (bm_bf16 *)(void *)ring;
    task k = begin_grid<S>(l, w.first, w.tiles);
    part_of_wh part = own_part<S>(k);
    eight_gates(*gates)[S::EIGHTS] = (eight_gates(*)[S::EIGHTS])w.words;
    eight_sums(*sums)[S::EIGHTS] =
        (eight_sums(*)[S::EIGHTS])(void *)(gates + k.R * PLACES * w.tiles);
    backward_words<S> words = {gates + k.r * PLACES * w.tiles,
                               sums + k.r * SUM_PLACES * w.tiles};
    int lead = k.tiles / 2; /* turns that steps are before products */
    int early = min(lead, (int)EARLY); /* and gradients are listened for */
    int turns = 0;
    uint32_t wh[4 * P][4];
    uint4 next[2];

    fetch_part<S>(k, weights);
#pragma unroll
    for (int i = 0; i < 4 * P; i++)
        bm_matrices_get_transposed(wh[i],
                                   weights +
                                       ((i % 2 * 2 + k.lane / 16) * 128 +
                                        (part.from + i / 2) * 8 + k.lane % 8) *
                                           S::COLUMNS_LD +
                                       part.to * 16 + k.lane / 8 % 2 * 8);
    __syncthreads(); /* of weights no more */
    if (threadIdx.x < RING)
        bm_arrivals_open(&ring->full[threadIdx.x], 8);
    prepare_grid(&k, tiles);
    for (int i = k.warp; i < k.tiles; i += 8)
        for (int e = 0; e < 2; e++)
            start_back(eight_of(k, e), i, tiles[i].frames,
                       tiles[i].c[e][k.lane]);
    for (int step = 0; step < SLOTS - 1; step++)
        fetch_step(k, tiles, step);

    turns = max(k.steps - 1, 0) * k.tiles; /* of products */
    for (int turn = 0; turn < lead; turn++)
        take_step(k, words, tiles, turn);
    for (int turn = 0; turn < early && turn < turns; turn++) {
        listen(k, source(k, words, turn), next);
        if (turn + 1 < early)
            pass_on(k, words, turn, next, *ring);
    }
#pragma unroll 1
    for (int turn = 0; turn < turns; turn++) {
        int late = turn + max(early - 1, 0);

        if (turn % k.tiles == 0)
            bm_fence();
        take_step(k, words, tiles, turn + lead);
        if (early == 0)
            listen(k, source(k, words, turn), next);
        if (late < turns)
            pass_on(k, words, late, next, *ring);
        if (early > 0 && turn + early < turns)
            listen(k, source(k, words, turn + early), next);
        multiply<S>(k, wh, *ring, words, turn);
    }
    for (int turn = turns + lead; turn < turns + k.tiles; turn++)
        take_step(k, words, tiles, turn);
#endif
}

#define PASS(H)                                                                \
    {                                                                          \
        backward<H>, H, grid_shape<H>::WEIGHTS_BACK, sizeof(grid_ring),        \
            sizeof(grid_backward_tile),                                        \
            PLACES * sizeof(eight_gates[grid_shape<H>::EIGHTS]) +              \
                SUM_PLACES * sizeof(eight_sums[grid_shape<H>::EIGHTS]),        \
            0                                                                  \
    }
static grid_pass passes[] = {FOR_EACH_GRID_SIZE(PASS)};

bool bm_kernel_lstm_grid_fits(int major, size_t H, size_t R)
{
    return major >= 9 && bm_lstm_grid_forward_fits(H, R) && fits(passes, H, R);
}

bm_lstm_grid bm_kernel_lstm_grid_backward_needs(const bm_lstm_cluster *l)
{
    return needs(passes, l);
}

cudaError_t bm_kernel_lstm_grid_backward(cudaStream_t stream,
                                         const bm_lstm_cluster *l, size_t first,
                                         void *room)
{
    return launch(passes, stream, l, first, room);
}

/* lstm_grid_forward.cu - see lstm_grid.h. */
#include "compute/cuda/lstm/lstm_grid.h"
#include "compute/cuda/lstm/lstm_grid_launch.h"

enum { ROOMS = 6 };

struct grid_forward_tile {
    int frames[TILE];
    float2 c[2][32];
    slot slots[SLOTS][2];
};

/* Sums over eighths of h: of each warp, for i, f (0) and g, o (1) of eights. */
typedef float4 grid_room[8][2][2][32];

/* h of 16 units, for lane 4 g + q of a product's B: of sequence g, units 4 q
 * and 4 q + 1, which take the places of rows 2 q and 2 q + 1, and 4 q + 2 and
 * 4 q + 3, of rows 2 q + 8 and 2 q + 9. */
typedef uint2 sixteen[32];

/* [PLACES, tiles, BLOCKS] of a direction. */
template <typename S> struct forward_words {
    sixteen (*h)[S::BLOCKS];
};

template <typename S>
BM_INLINE sixteen *words_of(const task &k, const forward_words<S> &words,
                            int step, int tile)
{
    return words.h[step % PLACES * k.tiles + tile];
}

/* The warp's eighth of wh h, for both eights of units. */
template <int P>
BM_INLINE void multiply(const uint32_t (&wh)[P][4][4], const uint2 (&h)[P],
                        float (&sum)[2][2][4])
{
#pragma unroll
    for (int k = 0; k < P; k++)
#pragma unroll
        for (int m = 0; m < 4; m++)
            bm_multiply_add(sum[m / 2][m % 2], wh[k][m], ~h[k].x, ~h[k].y);
}

/* Words of a warp's eighth of h, or what there is of them. */
template <int P>
BM_INLINE void listen(const task &k, const sixteen *from, uint2 (&h)[P])
{
#pragma unroll
    for (int i = 0; i < P; i++)
        h[i] = bm_hear8(&from[i][k.lane]);
}

/* After that. */
template <int P>
BM_INLINE void hear_all(const task &k, const sixteen *from, uint2 (&h)[P])
{
    for (;;) {
        bool there = true;

#pragma unroll
        for (int i = 0; i < P; i++)
            there = there && h[i].x != 0 && h[i].y != 0;
        if (__all_sync(~0u, there))
            return;
        bm_hear_later(from, P * 64, -1);
        listen(k, from, h);
    }
}

/* Until a room has been read by who was the last to take it; `turn` counts who
 * takes rooms. */
BM_INLINE void wait_for_room(const task &k, int turn)
{
    if (turn >= ROOMS && k.warp != (turn - ROOMS) % k.tiles % 8)
        bm_meeting_wait(1 + ROOMS + turn % ROOMS, 256);
}

/* All warps' sums, for the owner of the tile; turns of all there will be. */
BM_INLINE void add_up(const task &k, grid_room *rooms, int turn, int turns,
                      int owner, float (&sum)[2][2][4])
{
    grid_room &room = rooms[turn % ROOMS];

    wait_for_room(k, turn);
#pragma unroll
    for (int m = 0; m < 4; m++) {
        const float *x = sum[m / 2][m % 2];
        room[k.warp][m / 2][m % 2][k.lane] =
            make_float4(x[0], x[1], x[2], x[3]);
    }
    if (k.warp != owner) {
        bm_meeting_come(1 + turn % ROOMS, 256);
        return;
    }
    bm_meeting_wait(1 + turn % ROOMS, 256);
#pragma unroll
    for (int m = 0; m < 4; m++) {
        float4 all = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int w = 0; w < 8; w++) {
            float4 x = room[w][m / 2][m % 2][k.lane];
            all.x += x.x;
            all.y += x.y;
            all.z += x.z;
            all.w += x.w;
        }
        sum[m / 2][m % 2][0] = all.x;
        sum[m / 2][m % 2][1] = all.y;
        sum[m / 2][m % 2][2] = all.z;
        sum[m / 2][m % 2][3] = all.w;
    }
    if (turn + ROOMS < turns)
        bm_meeting_come(1 + ROOMS + turn % ROOMS, 256);
}

/* The step of a tile that is this warp's. */
template <typename S>
BM_INLINE void take_step(const task &k, const forward_words<S> &words,
                         grid_forward_tile &tile, int i, int step,
                         const float (&sum)[2][2][4])
{
    slot *at = tile.slots[step % SLOTS];
    int t = frame(k, step), q = k.lane % 4;
    step_done done[2];
    uint2 h;

#pragma unroll
    for (int e = 0; e < 2; e++)
        done[e] = follow(eight_of(k, e), at[e], tile.c[e][k.lane], tile.frames,
                         t, sum[e]);
    if (step + 1 < k.steps) {
        memcpy(&h, (const uint2 *)&at[q / 2][4][k.lane / 4] + q % 2, sizeof h);
        bm_tell8(&words_of(k, words, step + 1, i)[k.rank][k.lane],
                 make_uint2(~h.x, ~h.y));
        bm_tell8(&words_of(k, words, step + 1 + CLEARED, i)[k.rank][k.lane],
                 make_uint2(0, 0));
    }
    __syncwarp();
#pragma unroll
    for (int e = 0; e < 2; e++)
        store_step(eight_of(k, e), i, at[e], t, done[e]);
}

BM_INLINE void fetch_step(const task &k, grid_forward_tile *tiles, int step)
{
    for (int i = k.warp; step < k.steps && i < k.tiles; i += 8)
        for (int e = 0; e < 2; e++)
            fetch(eight_of(k, e), i, tiles[i].frames,
                  tiles[i].slots[step % SLOTS][e], frame(k, step), nullptr);
    bm_copies_commit();
}

template <int H>
__global__ static void __launch_bounds__(256, 1)
    forward(bm_lstm_cluster l, grid_words w)
{
#if BM_SM90
    typedef grid_shape<H> S;
    enum { P = S::P };
    BM_SHARED(grid_room, rooms);
    grid_forward_tile *tiles = (grid_forward_tile *)(void *)(rooms + ROOMS);
    const bm_bf16 *weights = (const bm_bf16 *)(const void *)rooms;
    task k = begin_grid<S>(l, w.first, w.tiles);
    forward_words<S> words = {(sixteen(*)[S::BLOCKS])w.words +
                              (size_t)k.r * PLACES * w.tiles};
    bool ahead = k.tiles > 1; /* else it would wait for itself */
    uint32_t wh[P][4][4];
    uint2 now[P] = {}, next[P] = {};

    fetch_weights<S>(k, (bm_bf16 *)(void *)rooms);
#pragma unroll
    for (int i = 0; i < P; i++)
#pragma unroll
        for (int m = 0; m < 4; m++)
#pragma unroll
            for (int f = 0; f < 2; f++) { /* of two gates */
                int row = (m % 2 * 2 + f) * S::U + m / 2 * 8 + k.lane / 4;
                uint2 x;

                memcpy(&x,
                       weights + row * S::H_LD + (k.warp * P + i) * 16 +
                           k.lane % 4 * 4,
                       sizeof x);
                wh[i][m][f] = x.x;
                wh[i][m][2 + f] = x.y;
            }
    prepare_grid(&k, tiles);
    for (int i = k.warp; i < k.tiles; i += 8)
        for (int e = 0; e < 2; e++)
            start(eight_of(k, e), i, tiles[i].c[e][k.lane]);
    for (int step = 0; step < SLOTS - 1; step++)
        fetch_step(k, tiles, step);

    for (int step = 0; step < k.steps; step++) {
        bm_copies_wait<SLOTS - 2>();
        __syncwarp();
        bm_fence();
#pragma unroll 1
        for (int i = 0; i < k.tiles; i++) {
            int after = i + 1 < k.tiles ? step : step + 1;
            int then = i + 1 < k.tiles ? i + 1 : 0;
            const sixteen *from = words_of(k, words, step, i) + k.warp * P;
            float sum[2][2][4] = {};

            if (!ahead && step > 0)
                listen(k, from, now);
            if (step > 0)
                hear_all(k, from, now);
            if (ahead && after > 0 && after < k.steps)
                listen(k, words_of(k, words, after, then) + k.warp * P, next);
            if (step > 0) {
                multiply<P>(wh, now, sum);
                add_up(k, rooms, (step - 1) * k.tiles + i,
                       (k.steps - 1) * k.tiles, i % 8, sum);
            }
            if (i % 8 == k.warp)
                take_step(k, words, tiles[i], i, step, sum);
            if (ahead)
#pragma unroll
                for (int j = 0; j < P; j++)
                    now[j] = next[j];
        }
        fetch_step(k, tiles, step + SLOTS - 1);
    }
#endif
}

#define PASS(H)                                                                \
    {                                                                          \
        forward<H>, H, grid_shape<H>::WEIGHTS, ROOMS * sizeof(grid_room),      \
            sizeof(grid_forward_tile),                                         \
            PLACES * sizeof(sixteen[grid_shape<H>::BLOCKS]), 0                 \
    }
static grid_pass passes[] = {FOR_EACH_GRID_SIZE(PASS)};

bool bm_lstm_grid_forward_fits(size_t H, size_t R)
{
    return fits(passes, H, R);
}

bm_lstm_grid bm_kernel_lstm_grid_forward_needs(const bm_lstm_cluster *l)
{
    return needs(passes, l);
}

cudaError_t bm_kernel_lstm_grid_forward(cudaStream_t stream,
                                        const bm_lstm_cluster *l, size_t first,
                                        void *room)
{
    return launch(passes, stream, l, first, room);
}

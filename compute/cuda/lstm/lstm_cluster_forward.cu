/* lstm_cluster_forward.cu - see lstm_cluster.h. */
#include "compute/cuda/lstm/lstm_cluster.h"
#include "compute/cuda/lstm/lstm_cluster_launch.h"

template <typename S> struct forward_tile {
    bm_arrivals arrivals[2];
    int frames[TILE];
    float2 c[S::W][32]; /* of its group's lanes */
    slot slots[SLOTS][S::W];
    uint4 h[2][S::EIGHTS][TILE];
    float4 halves[S::W][2][32]; /* sums of the other group's */
};

/* The warp's half of wh h, for i, f (0) and g, o (1) of its cells. */
template <int K>
BM_INLINE void multiply_forward(const uint32_t (&wh)[K][2][4],
                                const uint4 (*h)[TILE], int lane,
                                float (&sum)[2][4])
{
    float odd[2][4] = {};

#pragma unroll
    for (int k = 0; k < K; k += 2) {
        uint32_t b[4];
        bm_matrices_get(b, &h[2 * k][0] + lane);
#pragma unroll
        for (int m = 0; m < 2; m++) {
            bm_multiply_add(sum[m], wh[k][m], b[0], b[1]);
            bm_multiply_add(odd[m], wh[k + 1][m], b[2], b[3]);
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++)
        (&sum[0][0])[i] += (&odd[0][0])[i];
}

/* Warps of the other group store their sums of a tile; those of its own group
 * read them. */
template <typename S>
BM_INLINE void add_halves(const cluster_task &k, forward_tile<S> &tile, int i,
                          float (&sum)[2][4])
{
    float4(*halves)[32] = tile.halves[k.w];

    if (i % 2 == k.group) {
        bm_meeting_wait(1 + i, S::THREADS);
#pragma unroll
        for (int m = 0; m < 2; m++) {
            float4 x = halves[m][k.lane];
            sum[m][0] += x.x;
            sum[m][1] += x.y;
            sum[m][2] += x.z;
            sum[m][3] += x.w;
        }
    } else {
#pragma unroll
        for (int m = 0; m < 2; m++)
            halves[m][k.lane] =
                make_float4(sum[m][0], sum[m][1], sum[m][2], sum[m][3]);
        bm_meeting_come(1 + i, S::THREADS);
    }
}

/* Sends h of this warp's cells to all blocks of the cluster, four at a time,
 * 128 bytes to each. */
template <typename S>
BM_INLINE void send_h(const cluster_task &k, uint4 piece, uint4 (*h)[TILE],
                      bm_arrivals *bar)
{
    uint4 *to = &h[k.rank * S::W + k.w][k.lane % TILE];

#pragma unroll
    for (int i = 0; i < S::C; i += 4)
        bm_send16(to, piece, bar,
                  (unsigned)(k.rank + i + k.lane / TILE) % S::C);
}

/* A step of a tile of this warp's group. */
template <typename S>
BM_INLINE void take_step(const cluster_task &k, forward_tile<S> &tile, int i,
                         int step, const float (&sum)[2][4])
{
    slot &at = tile.slots[step % SLOTS][k.w];
    int t = frame(k, step), next = 1 - step % 2;
    step_done d = follow(k, at, tile.c[k.w][k.lane], tile.frames, t, sum);

    if (step + 1 < k.steps)
        send_h<S>(k, d.h, tile.h[next], &tile.arrivals[next]);
    store_step(k, i, at, t, d);
}

template <typename S>
BM_INLINE void fetch_step(const cluster_task &k, forward_tile<S> *tiles,
                          int step)
{
    for (int i = k.group; step < k.steps && i < k.tiles; i += 2)
        fetch(k, i, tiles[i].frames, tiles[i].slots[step % SLOTS][k.w],
              frame(k, step), nullptr);
    bm_copies_commit();
}

template <int H, int C>
__global__ static void __launch_bounds__(shape<H, C>::THREADS, 1)
    forward(bm_lstm_cluster l, int most)
{
#if BM_SM90
    typedef shape<H, C> S;
    enum { K = H / 32 };
    BM_SHARED(forward_tile<S>, tiles);
    bm_bf16 *weights = (bm_bf16 *)(void *)tiles;
    cluster_task k = begin<S>(l, most);
    uint32_t wh[K][2][4];

    fetch_weights<S>(k, weights);
#pragma unroll
    for (int i = 0; i < K; i++)
#pragma unroll
        for (int m = 0; m < 2; m++)
            bm_matrices_get(
                wh[i][m],
                weights +
                    ((2 * m + k.lane / 8 % 2) * S::U + 8 * k.w + k.lane % 8) *
                        S::H_LD +
                    (k.group * K + i) * 16 + k.lane / 16 * 8);
    prepare(&k, tiles);
    for (int i = k.group; i < k.tiles; i += 2)
        start(k, i, tiles[i].c[k.w][k.lane]);
    for (int step = 0; step < SLOTS - 1; step++)
        fetch_step(k, tiles, step);

    for (int step = 0; step < k.steps; step++) {
        int now = step % 2;

        bm_copies_wait<SLOTS - 2>();
        __syncwarp();
#pragma unroll 1
        for (int i = 0; i < k.tiles; i++) {
            float sum[2][4] = {};

            if (step > 0)
                bm_arrivals_wait(&tiles[i].arrivals[now], (step - 1) / 2 % 2);
            if (step + 1 < k.steps && threadIdx.x == 0)
                bm_arrivals_expect(&tiles[i].arrivals[1 - now], 16 * H);
            if (step > 0) {
                multiply_forward(wh, tiles[i].h[now] + k.group * K * 2, k.lane,
                                 sum);
                add_halves(k, tiles[i], i, sum);
            }
            if (i % 2 == k.group)
                take_step(k, tiles[i], i, step, sum);
        }
        fetch_step(k, tiles, step + SLOTS - 1);
    }
#endif
}

#define PASS(H, C)                                                             \
    {                                                                          \
        forward<H, C>, H, C, shape<H, C>::WEIGHTS,                             \
            sizeof(forward_tile<shape<H, C>>),                                 \
        {                                                                      \
        }                                                                      \
    }
static lstm_pass passes[] = {FOR_EACH_SIZE(PASS)};

/* Minimises the time of all rounds of clusters. By estimate a step takes as
 * long as its tiles and two more, during which data are in flight. */
int bm_lstm_cluster_tiles(const int at_once[], int n, size_t B, size_t R)
{
    size_t least = SIZE_MAX;
    int best = 1;

    for (int i = 0; i < n && at_once[i] > 0; i++) {
        size_t most = (size_t)at_once[i];
        size_t rounds = (needed(B, R, i + 1) + most - 1) / most;
        size_t cost = rounds * (size_t)(i + 3);

        if (cost < least)
            least = cost, best = i + 1;
    }
    return best;
}

cudaError_t bm_lstm_cluster_forward_fits(size_t H, bool *out)
{
    return fits(passes, H, out);
}

cudaError_t bm_kernel_lstm_cluster_forward(cudaStream_t stream,
                                           const bm_lstm_cluster *l)
{
    return launch(passes, stream, l);
}

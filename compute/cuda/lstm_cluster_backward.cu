/* lstm_cluster_backward.cu - see lstm_cluster.h. */
#include "compute/cuda/lstm_cluster.h"
#include "compute/cuda/lstm_cluster_launch.h"

template <typename S> struct backward_tile {
    bm_arrivals arrivals[2];
    int frames[TILE];
    float4 c[S::W][32]; /* of its group's lanes: c, dc, of two sequences */
    slot slots[SLOTS][S::W];
    float before[SLOTS][S::W][TILE][8]; /* c of the frame before */
    float2 sums[2][S::EIGHTS][32];      /* [C, W, 32], from each block */
};

/* Steps backward: the last of those forward is 0. */
BM_INLINE int frame_back(const task &k, int step)
{
    return frame(k, k.steps - 1 - step);
}

/* wh' dgates of this block's gates, for units of all blocks; to the blocks that
 * have them. */
template <typename S, int K, int M>
BM_INLINE void multiply_backward(const task &k, const uint32_t (&wh)[K][M][4],
                                 const slot *dgates, float2 (*sums)[32],
                                 bm_arrivals *bar)
{
    enum {
        CHAINS = M < 4 ? 2 : 1
    }; /* with few sums at a time, even and odd
          terms are added beside each other */
    float even[M][4] = {}, odd[M][4] = {};

#pragma unroll
    for (int i = 0; i < K; i += 2) {
        uint32_t b[4];
        bm_matrices_get(b, &dgates[i / 2][0][0] + k.lane);
#pragma unroll
        for (int m = 0; m < M; m++) {
            bm_multiply_add(even[m], wh[i][m], b[0], b[1]);
            bm_multiply_add(CHAINS == 2 ? odd[m] : even[m], wh[i + 1][m], b[2],
                            b[3]);
        }
    }
#pragma unroll
    for (int m = 0; m < M; m++)
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            int eight = (k.warp * M + m) * 2 + j / 2;

            bm_send8(&sums[k.rank * S::W + eight % S::W][k.lane],
                     make_float2(even[m][j] + odd[m][j],
                                 even[m][j + 1] + odd[m][j + 1]),
                     bar, (unsigned)(eight / S::W));
        }
}

/* dh += the sums of all blocks. */
template <typename S>
BM_INLINE void add_sums(const task &k, const float2 (*sums)[32], float dh[2])
{
#pragma unroll
    for (int c = 0; c < S::C; c++) {
        float2 x = sums[c * S::W + k.w][k.lane];
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

/* The step of a warp's units in a tile, which is its group's. */
template <typename S>
BM_INLINE void follow(const task &k, backward_tile<S> &tile, int step)
{
    int now = step % 2, n = k.lane % 4 * 2, unit = k.lane / 4;
    int t = frame_back(k, step), t0 = frame_back(k, step + 1);
    bool more = step + 1 < k.steps;
    slot &at = tile.slots[step % SLOTS][k.w];
    const float(*before)[8] = tile.before[step % SLOTS][k.w];
    float4 &kept = tile.c[k.w][k.lane];
    float c[2] = {kept.x, kept.y}, dc[2] = {kept.z, kept.w}, c0[2], dh[2];
    bool live[2];
    uint32_t x[4], dy = bm_matrix_get_transposed(&at[4][k.lane % TILE]);

    bm_matrices_get_transposed(x, &at[0][0] + k.lane);
#pragma unroll
    for (int j = 0; j < 2; j++) {
        int frames = k.exists ? tile.frames[n + j] : 0;

        live[j] = t < frames;
        c0[j] = more && t0 < frames ? before[n + j][unit] : 0;
        dh[j] = number(dy, j);
    }
    if (step > 0) {
        bm_arrivals_wait(&tile.arrivals[now], (step - 1) / 2 % 2);
        add_sums<S>(k, tile.sums[now], dh);
    }
    step_backward(x, live, dh, c, c0, dc);
    bm_matrices_put(&at[0][0] + k.lane, x);
    kept = make_float4(c0[0], c0[1], dc[0], dc[1]);
    if (more && k.w == 0 && k.lane == 0)
        bm_arrivals_expect(&tile.arrivals[1 - now], 32 * S::H);
}

/* Before the first step. */
template <typename S>
BM_INLINE void start(const task &k, backward_tile<S> &tile, int i)
{
    int n = k.lane % 4 * 2, t = frame_back(k, 0);
    float c[2] = {0, 0};

    for (int j = 0; j < 2; j++)
        if (k.exists && k.steps > 0 && t < tile.frames[n + j])
            c[j] = k.l.cells[in_others(k, row(k, i, n + j, t)) +
                             (unsigned)(k.lane / 4)];
    tile.c[k.w][k.lane] = make_float4(c[0], c[1], 0, 0);
    store_end(k, i);
}

/* Begins to fetch what a step reads: gates, dy and c of the frame before. */
template <typename S>
BM_INLINE void fetch_step(const task &k, backward_tile<S> *tiles, int step)
{
    int n = k.lane / 2, half = k.lane % 2 * 4, t0 = frame_back(k, step + 1);

    for (int i = k.group; step < k.steps && i < k.tiles; i += 2) {
        backward_tile<S> &tile = tiles[i];

        fetch(k, i, tile.frames, tile.slots[step % SLOTS][k.w],
              frame_back(k, step), k.l.dy);
        if (step + 1 < k.steps && n < TILE && k.exists && t0 < tile.frames[n])
            bm_copy_begin(&tile.before[step % SLOTS][k.w][n][half],
                          k.l.cells + in_others(k, row(k, i, n, t0)) + half);
    }
    bm_copies_commit();
}

template <int H, int C>
__global__ static void __launch_bounds__(shape<H, C>::THREADS, 1)
    backward(bm_lstm_cluster l, int most)
{
#if BM_SM90
    typedef shape<H, C> S;
    enum { K = S::U / 4, M = C / 4 };
    BM_SHARED(backward_tile<S>, tiles);
    bm_bf16 *weights = (bm_bf16 *)(void *)tiles;
    task k = begin<S>(l, most);
    uint32_t wh[K][M][4];

    fetch_weights<S>(k, weights);
#pragma unroll
    for (int i = 0; i < K; i++)
#pragma unroll
        for (int m = 0; m < M; m++)
            bm_matrices_get_transposed(
                wh[i][m], weights +
                              ((i % 2 * 2 + k.lane / 16) * S::U + i / 2 * 8 +
                               k.lane % 8) *
                                  S::H_LD +
                              (k.warp * M + m) * 16 + k.lane / 8 % 2 * 8);
    prepare(&k, tiles);
    for (int i = k.group; i < k.tiles; i += 2)
        start(k, tiles[i], i);
    for (int step = 0; step < SLOTS - 1; step++)
        fetch_step(k, tiles, step);

    for (int step = 0; step < k.steps; step++) {
        int next = 1 - step % 2;

        bm_copies_wait<SLOTS - 2>();
        __syncwarp();
#pragma unroll 1
        for (int two = 0; two < k.tiles; two += 2) {
            if (two + k.group < k.tiles)
                follow(k, tiles[two + k.group], step);
            __syncthreads();
#pragma unroll 1
            for (int i = two; i < min(two + 2, k.tiles); i++)
                if (step + 1 < k.steps)
                    multiply_backward<S>(k, wh, tiles[i].slots[step % SLOTS],
                                         tiles[i].sums[next],
                                         &tiles[i].arrivals[next]);
        }
        for (int i = k.group; i < k.tiles; i += 2)
            store(k, i, tiles[i].slots[step % SLOTS][k.w], frame_back(k, step));
        fetch_step(k, tiles, step + SLOTS - 1);
    }
#endif
}

#define PASS(H, C)                                                             \
    {                                                                          \
        backward<H, C>, H, C, shape<H, C>::WEIGHTS,                            \
            sizeof(backward_tile<shape<H, C>>),                                \
        {                                                                      \
        }                                                                      \
    }
static lstm_pass passes[] = {FOR_EACH_SIZE(PASS)};

bool bm_kernel_lstm_cluster_fits(int major, size_t H)
{
    return major >= 9 && bm_lstm_cluster_forward_fits(H) && fits(passes, H);
}

cudaError_t bm_kernel_lstm_cluster_backward(cudaStream_t stream,
                                            const bm_lstm_cluster *l)
{
    return launch(passes, stream, l);
}

/* lstm_cluster_backward.cu - see lstm_cluster.h. */
#include "compute/cuda/lstm/lstm_cluster.h"
#include "compute/cuda/lstm/lstm_cluster_launch.h"

template <typename S> struct backward_tile {
    bm_arrivals arrivals[2];
    int frames[TILE];
    float4 c[S::W][32]; /* of its group's lanes: c, dc, of two sequences */
    slot slots[SLOTS][S::W];
    cell_slot before[SLOTS][S::W];
    float2 sums[2][S::EIGHTS][32]; /* [C, W, 32], from each block */
};

/* Computes wh' dgates of this block's gates for the cells of all blocks, and
 * sends it to the blocks that have them. */
template <typename S, int K, int M>
BM_INLINE void
multiply_backward(const cluster_task &k, const uint32_t (&wh)[K][M][4],
                  const slot *dgates, float2 (*sums)[32], bm_arrivals *bar)
{
    enum {
        CHAINS = M < 4 ? 2 : 1
    }; /* with few sums at a time, even and odd
          terms have sums of their own */
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
BM_INLINE void add_sums(const cluster_task &k, const float2 (*sums)[32],
                        float dh[2])
{
#pragma unroll
    for (int c = 0; c < S::C; c++) {
        float2 x = sums[c * S::W + k.w][k.lane];
        dh[0] += x.x;
        dh[1] += x.y;
    }
}

/* A step of a tile of this warp's group. */
template <typename S>
BM_INLINE void take_step(const cluster_task &k, backward_tile<S> &tile,
                         int step)
{
    int now = step % 2;

    follow_back(k, tile.slots[step % SLOTS][k.w],
                tile.before[step % SLOTS][k.w], tile.c[k.w][k.lane],
                tile.frames, step, [&](float dh[2]) {
                    if (step == 0)
                        return;
                    bm_arrivals_wait(&tile.arrivals[now], (step - 1) / 2 % 2);
                    add_sums<S>(k, tile.sums[now], dh);
                });
    if (step + 1 < k.steps && k.w == 0 && k.lane == 0)
        bm_arrivals_expect(&tile.arrivals[1 - now], 32 * S::H);
}

template <typename S>
BM_INLINE void fetch_step(const cluster_task &k, backward_tile<S> *tiles,
                          int step)
{
    int at = step % SLOTS;

    for (int i = k.group; step < k.steps && i < k.tiles; i += 2)
        fetch_back(k, i, tiles[i].frames, tiles[i].slots[at][k.w],
                   tiles[i].before[at][k.w], step);
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
    cluster_task k = begin<S>(l, most);
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
        start_back(k, i, tiles[i].frames, tiles[i].c[k.w][k.lane]);
    for (int step = 0; step < SLOTS - 1; step++)
        fetch_step(k, tiles, step);

    for (int step = 0; step < k.steps; step++) {
        int next = 1 - step % 2;

        bm_copies_wait<SLOTS - 2>();
        __syncwarp();
#pragma unroll 1
        for (int two = 0; two < k.tiles; two += 2) {
            if (two + k.group < k.tiles)
                take_step(k, tiles[two + k.group], step);
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

cudaError_t bm_kernel_lstm_cluster_fits(int major, size_t H, bool *out)
{
    cudaError_t error = cudaSuccess;

    *out = false;
    if (major >= 9)
        error = bm_lstm_cluster_forward_fits(H, out);
    return *out ? fits(passes, H, out) : error;
}

cudaError_t bm_kernel_lstm_cluster_backward(cudaStream_t stream,
                                            const bm_lstm_cluster *l)
{
    return launch(passes, stream, l);
}

/* lstm_cluster_backward.cu - see lstm_cluster.h. */
#include "compute/cuda/lstm_cluster.h"
#include "compute/cuda/lstm_cluster_launch.h"

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
                bm_multiply_add(S::CHAINS == 2 ? odd[n][m] : even[n][m],
                                wh[i + 1][m], b[2], b[3]);
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

#define PASS(H, C, TILES)                                                      \
    {                                                                          \
        backward<H, C, TILES>, shape<H, C, TILES>::BACKWARD_BYTES, 0           \
    }
static lstm_pass passes[] = {FOR_EACH_SIZE(BOTH_PASSES)};

bool bm_kernel_lstm_cluster_fits(int major, size_t H)
{
    return major >= 9 && bm_lstm_cluster_forward_fits(H) && fits(passes, H);
}

cudaError_t bm_kernel_lstm_cluster_backward(cudaStream_t stream,
                                            const bm_lstm_cluster *l)
{
    return launch(passes, stream, l);
}

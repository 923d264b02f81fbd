/* lstm_cluster_forward.cu - see lstm_cluster.h. */
#include "compute/cuda/lstm_cluster.h"
#include "compute/cuda/lstm_cluster_launch.h"

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
                bm_multiply_add(S::CHAINS == 2 ? odd[n][m] : sum[n][m],
                                wh[k + 1][m], b[2], b[3]);
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

#define PASS(H, C, TILES)                                                      \
    {                                                                          \
        forward<H, C, TILES>, shape<H, C, TILES>::FORWARD_BYTES, 0             \
    }
static lstm_pass passes[] = {FOR_EACH_SIZE(BOTH_PASSES)};

bool bm_lstm_cluster_forward_fits(size_t H)
{
    return fits(passes, H);
}

cudaError_t bm_kernel_lstm_cluster_forward(cudaStream_t stream,
                                           const bm_lstm_cluster *l)
{
    return launch(passes, stream, l);
}

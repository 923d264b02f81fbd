/*
 * ctc.cu - connectionist temporal classification: what is parallel over the
 * frames, a warp for each, before and after the walk (ctc_walk.cu).
 */
#include "compute/cuda/ctc_wide.h"

BM_INLINE float warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(~0u, x, step);
    return x;
}

BM_INLINE float warp_most(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
    return x;
}

/* The frame of a warp: number `row` of [T, B], in its sequence. */
struct place {
    const bm_ctc_sequence *s;
    size_t b, t, W;
};

BM_INLINE place place_of(const bm_ctc_job &c, size_t row)
{
    size_t b = row % c.B;
    place p = {c.sequence + b, b, row / c.B, (size_t)c.sequence[b].labels + 1};
    return p;
}

static const unsigned warps_of_frames = 8; /* of a block of look or gradient */

static unsigned blocks_of_frames(size_t rows)
{
    size_t blocks = (rows + warps_of_frames - 1) / warps_of_frames;
    return (unsigned)(blocks < 4096 ? blocks : 4096);
}

#define EACH_ROW(row, c)                                                       \
    for (size_t row = (size_t)blockIdx.x * warps_of_frames + threadIdx.x / 32; \
         row < (c).T * (c).B; row += (size_t)gridDim.x * warps_of_frames)

/* The first class of the largest logit; any, if there are no numbers. */
BM_INLINE int best_of(const float *x, size_t C, float top, unsigned lane)
{
    int best = 0x7fffffff;

    for (size_t k = lane; k < C; k += 32)
        if (x[k] == top)
            best = min(best, (int)k);
    for (int step = 16; step > 0; step /= 2)
        best = min(best, __shfl_xor_sync(~0u, best, step));
    return best;
}

__global__ static void look(bm_ctc_job c)
{
    unsigned lane = threadIdx.x % 32;

    EACH_ROW(row, c)
    {
        place p = place_of(c, row);
        const float *x = c.y + row * c.C;
        const int32_t *labels = c.labels + p.s->label_at;
        wide *emit = c.emit + p.s->pair_at + p.t * p.W;
        float top = -INFINITY, sum = 0;
        bool numbers = true;
        int best = 0;

        if (p.t >= (size_t)p.s->frames)
            continue;
        for (size_t k = lane; k < c.C; k += 32)
            top = fmaxf(top, x[k]);
        top = warp_most(top);
        for (size_t k = lane; k < c.C; k += 32)
            sum += narrow(wide_exp(x[k] - top));
        sum = warp_sum(sum);
        best = best_of(x, c.C, top, lane);
        numbers = isfinite(sum);
        for (size_t i = lane; i < p.W; i += 32) {
            size_t k = i + 1 < p.W ? (size_t)labels[i] : 0;
            emit[i] = numbers ? wide_exp(x[k] - top) : make_wide(1, NEVER);
        }
        if (lane == 0) {
            bm_ctc_frame f = {top, sum, narrow(wide_exp(x[0] - top)) / sum,
                              best};
            c.frame[p.s->frame_at + p.t] = f;
        }
    }
}

cudaError_t bm_kernel_ctc_look(cudaStream_t stream, const bm_ctc_job *c)
{
    size_t rows = c->T * c->B;
    bm_ctc_job job = *c;

    if (rows == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, look, blocks_of_frames(rows), 32 * warps_of_frames,
                     0, job);
}

BM_INLINE void store(float *y, float x)
{
    *y = x;
}

BM_INLINE void store(bm_bf16 *y, float x)
{
    *y = bm_to_bf16(x);
}

/* A frame of the gradient: first of all classes as if none were a label, then
 * of those that are. */
template <typename OUT>
BM_INLINE void gradient_row(const bm_ctc_job &c, const place &p, size_t row,
                            float factor, OUT *dy, int lane)
{
    const bm_ctc_sequence &s = *p.s;
    const bm_ctc_frame f = c.frame[s.frame_at + p.t];
    const float *x = c.y + row * c.C;
    const int32_t *labels = c.labels + s.label_at;
    const float *blanks = c.posterior + 2 * (s.pair_at + p.t * p.W);
    const float *symbols = blanks + p.W;
    float blank = 0, rest = 0, part = 0;

    for (int i = lane; i <= s.labels; i += 32)
        blank += blanks[i];
    for (int i = lane; i < s.labels; i += 32)
        rest += symbols[i];
    blank = warp_sum(blank);
    rest = warp_sum(rest);
    part = 1 / (blank + rest);
    for (size_t k = (size_t)lane; k < c.C; k += 32) {
        float g = narrow(wide_exp(x[k] - f.top)) / f.sum;
        store(dy + k, (k == 0 ? g - blank * part : g) * factor);
    }
    __syncwarp();
    for (int h = lane; h < s.heads; h += 32) {
        int i = c.heads[s.label_at + (size_t)h], k = labels[i];
        float g = narrow(wide_exp(x[k] - f.top)) / f.sum, sum = 0;

        for (; i >= 0; i = c.next[s.label_at + (size_t)i])
            sum += symbols[i];
        store(dy + k, (g - sum * part) * factor);
    }
}

/* Of the sequences that count. */
BM_INLINE int count_all(const bm_ctc_job &c)
{
    __shared__ int room[32];
    int n = 0;

    for (size_t b = threadIdx.x; b < c.B; b += blockDim.x)
        n += c.verdict[b].counts;
    return bm_block_sum(n, room);
}

template <typename OUT> __global__ static void gradient(bm_ctc_job c, OUT *dy)
{
    int n = count_all(c), lane = (int)(threadIdx.x % 32);
    float factor = n > 0 ? (float)(1.0 / n) : 0;

    EACH_ROW(row, c)
    {
        place p = place_of(c, row);
        OUT *out = dy + row * c.C;

        if (p.t < (size_t)p.s->frames && p.s->feasible && c.verdict[p.b].counts)
            gradient_row(c, p, row, factor, out, lane);
        else
            for (size_t k = (size_t)lane; k < c.C; k += 32)
                store(out + k, 0);
    }
}

cudaError_t bm_kernel_ctc_gradient(cudaStream_t stream, const bm_ctc_job *c,
                                   float *dy, bm_bf16 *dy16)
{
    size_t rows = c->T * c->B;
    unsigned blocks = blocks_of_frames(rows), threads = 32 * warps_of_frames;
    bm_ctc_job job = *c;

    if (rows == 0)
        return cudaSuccess;
    if (dy16 != NULL)
        return BM_LAUNCH(stream, gradient, blocks, threads, 0, job, dy16);
    return BM_LAUNCH(stream, gradient, blocks, threads, 0, job, dy);
}

BM_INLINE bm_score score_of(const bm_ctc_job &c, size_t b)
{
    const bm_ctc_sequence &s = c.sequence[b];
    bm_ctc_verdict v = c.verdict[b];
    bm_ctc_sums sums = c.sums[b];
    bm_score own;

    memset(&own, 0, sizeof own);
    if (!v.counts) {
        own.skipped = 1;
        return own;
    }
    if (s.feasible) {
        own.loss = sums.log_sum - log(v.end) - v.scale * log(2.0);
        own.chance = s.chance;
    }
    own.errors = sums.errors;
    own.count = s.labels;
    own.sequences = 1;
    own.zeroed = !s.feasible;
    own.frames = s.frames;
    own.blank = sums.blank;
    return own;
}

/* Sequences first, side by side; then a thread for every field. */
__global__ static void score(bm_ctc_job c, bm_score *out)
{
    const unsigned fields = sizeof *out / sizeof(double);
    double *sum = (double *)out + threadIdx.x, all = 0;

    for (size_t b = threadIdx.x; b < c.B; b += blockDim.x)
        c.own[b] = score_of(c, b);
    __syncthreads();
    if (threadIdx.x >= fields)
        return;
    for (size_t b = 0; b < c.B; b++)
        all += ((const double *)(c.own + b))[threadIdx.x];
    *sum += all;
}

cudaError_t bm_kernel_ctc_score(cudaStream_t stream, const bm_ctc_job *c,
                                bm_score *out)
{
    bm_ctc_job job = *c;

    return BM_LAUNCH(stream, score, 1, bm_block, 0, job, out);
}

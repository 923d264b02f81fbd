/*
 * ctc.cu - connectionist temporal classification: the kernels that are parallel
 * over frames, a warp for each, before and after the recursion (ctc_walk.cu).
 */
#include "compute/cuda/loss/ctc_wide.h"

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

/* A block has frames of one sequence, a warp every eighth of them. */
static const unsigned warps_of_frames = 8, frames_of_warp = 4;

static dim3 grid_of_frames(const bm_ctc_job &c)
{
    size_t frames = (size_t)warps_of_frames * frames_of_warp;
    size_t blocks = (c.T + frames - 1) / frames;
    return dim3((unsigned)c.B, (unsigned)min(blocks, (size_t)65535));
}

#define EACH_FRAME(t, n)                                                       \
    for (size_t t = (size_t)blockIdx.y * warps_of_frames + threadIdx.x / 32;   \
         t < (n); t += (size_t)gridDim.y * warps_of_frames)

/* The first class of the largest logit; undefined if one is NaN. */
BM_INLINE int best_of(const float *x, size_t C, float top, size_t lane)
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
    const bm_ctc_sequence s = c.sequence[blockIdx.x];
    const int32_t *labels = c.labels + s.label_at;
    size_t W = (size_t)s.labels + 1, lane = threadIdx.x % 32;

    EACH_FRAME(t, (size_t)s.frames)
    {
        const float *x = c.y + (t * c.B + blockIdx.x) * c.C;
        wide *emit = c.emit + s.pair_at + t * W;
        float top = -INFINITY, sum = 0;
        bool numbers = true;
        int best = 0;

        for (size_t k = lane; k < c.C; k += 32)
            top = fmaxf(top, x[k]);
        top = warp_most(top);
        for (size_t k = lane; k < c.C; k += 32)
            sum += narrow(wide_exp(x[k] - top));
        sum = warp_sum(sum);
        best = best_of(x, c.C, top, lane);
        numbers = isfinite(sum);
        for (size_t i = lane; i < W; i += 32) {
            size_t k = i + 1 < W ? (size_t)labels[i] : 0;
            emit[i] = numbers ? wide_exp(x[k] - top) : make_wide(1, NEVER);
        }
        if (lane == 0) {
            float blank = narrow(wide_exp(x[0] - top)) / sum;
            bm_ctc_frame f = {top, sum, blank, best};
            c.frame[s.frame_at + t] = f;
        }
    }
}

cudaError_t bm_kernel_ctc_look(cudaStream_t stream, const bm_ctc_job *c)
{
    bm_ctc_job job = *c;

    if (c->T == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, look, grid_of_frames(job), 32 * warps_of_frames, 0,
                     job);
}

BM_INLINE void store(float *y, float x)
{
    *y = x;
}

BM_INLINE void store(bm_bf16 *y, float x)
{
    *y = bm_to_bf16(x);
}

/* Frame t of the gradient: of all classes as if none were a label, then of the
 * labels. x and dy [C]. */
template <typename OUT>
BM_INLINE void gradient_row(const bm_ctc_job &c, const bm_ctc_sequence &s,
                            size_t t, float factor, const float *x, OUT *dy,
                            int lane)
{
    const bm_ctc_frame f = c.frame[s.frame_at + t];
    const int32_t *labels = c.labels + s.label_at;
    const int32_t *heads = c.heads + s.label_at, *next = c.next + s.label_at;
    size_t W = (size_t)s.labels + 1;
    const float *blanks = c.posterior + 2 * (s.pair_at + t * W);
    const float *symbols = blanks + W;
    float keep = 1 - c.smoothing, each = c.smoothing / (float)s.frames;
    float scale = keep + each, other = each / (float)c.C;
    float blank = 0, rest = 0, part = 0;

    for (int i = lane; i <= s.labels; i += 32)
        blank += blanks[i];
    for (int i = lane; i < s.labels; i += 32)
        rest += symbols[i];
    blank = warp_sum(blank);
    rest = warp_sum(rest);
    part = keep / (blank + rest);
    for (size_t k = (size_t)lane; k < c.C; k += 32) {
        float g = narrow(wide_exp(x[k] - f.top)) / f.sum * scale - other;
        store(dy + k, (k == 0 ? g - blank * part : g) * factor);
    }
    __syncwarp();
    for (int h = lane; h < s.heads; h += 32) {
        int k = labels[heads[h]];
        float g = narrow(wide_exp(x[k] - f.top)) / f.sum * scale - other;
        float sum = 0;

        for (int i = heads[h]; i >= 0; i = next[i])
            sum += symbols[i];
        store(dy + k, (g - sum * part) * factor);
    }
}

/* The sum over sequences that are not skipped. */
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
    const bm_ctc_sequence s = c.sequence[blockIdx.x];
    bool known = s.feasible && c.verdict[blockIdx.x].counts;
    int n = count_all(c), lane = (int)(threadIdx.x % 32);
    float factor = n > 0 ? (float)(1.0 / n) : 0;

    EACH_FRAME(t, c.T)
    {
        size_t row = (t * c.B + blockIdx.x) * c.C;

        if (known && t < (size_t)s.frames)
            gradient_row(c, s, t, factor, c.y + row, dy + row, lane);
        else
            for (size_t k = (size_t)lane; k < c.C; k += 32)
                store(dy + row + k, 0);
    }
}

cudaError_t bm_kernel_ctc_gradient(cudaStream_t stream, const bm_ctc_job *c,
                                   float *dy, bm_bf16 *dy16)
{
    bm_ctc_job job = *c;
    dim3 grid = grid_of_frames(job);
    unsigned threads = 32 * warps_of_frames;

    if (c->T == 0)
        return cudaSuccess;
    if (dy16 != NULL)
        return BM_LAUNCH(stream, gradient<bm_bf16>, grid, threads, 0, job,
                         dy16);
    return BM_LAUNCH(stream, gradient<float>, grid, threads, 0, job, dy);
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

/* First a thread for each sequence, then a thread for each field. */
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

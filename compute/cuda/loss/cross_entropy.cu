/*
 * cross_entropy.cu - cross entropy with a class for each frame: loss -log y,
 * dy = (y - target) / frames, where the target is (1 - e) onehot + e / C. Some
 * threads take a frame. They read it once for its largest logit and the sum of
 * exponentials, and again, from a cache, for the gradient. Whether a sequence is
 * skipped is known at the end; if one is, all gradients are computed again.
 */
#include "compute/cuda/kernels/vec4.h"

#include <float.h>

/* The largest of some logits, the first class that has it, and the sum of
 * exp(x - top). */
struct peak {
    float top, sum;
    unsigned at;
};

/* Commutative: no a * b + c is fused. */
BM_INLINE peak merge(peak a, peak b)
{
    float top = a.top > b.top ? a.top : b.top;
    unsigned at = a.top > b.top ? a.at : b.at;

    return {top,
            __fadd_rn(__fmul_rn(a.sum, expf(a.top - top)),
                      __fmul_rn(b.sum, expf(b.top - top))),
            a.top == b.top ? min(a.at, b.at) : at};
}

/* Of the logits x [n], from class i on. */
BM_INLINE peak add(peak p, bm_vec4 x, unsigned i, size_t n)
{
    float before = p.top;

    for (unsigned k = 0; k < 4; k++)
        if (i + k < n && x.x[k] > p.top) {
            p.top = x.x[k];
            p.at = i + k;
        }
    p.sum *= expf(before - p.top);
    for (unsigned k = 0; k < 4; k++)
        if (i + k < n)
            p.sum += expf(x.x[k] - p.top);
    return p;
}

/* Over all `threads` of a frame, a warp or the block, on each of them. */
template <unsigned threads> __device__ static peak merge_all(peak p)
{
    __shared__ peak room[threads / 32];

    for (int step = 16; step > 0; step /= 2)
        p = merge(p, {__shfl_xor_sync(~0u, p.top, step),
                      __shfl_xor_sync(~0u, p.sum, step),
                      __shfl_xor_sync(~0u, p.at, step)});
    if (threads == 32)
        return p;
    __syncthreads(); /* other threads may still read room */
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = p;
    __syncthreads();
    p = room[0];
    for (unsigned w = 1; w < threads / 32; w++)
        p = merge(p, room[w]);
    return p;
}

/* The state of one frame. */
template <typename DY> struct job {
    bm_cross c;
    DY *dy;
    bool wide;
};

/* Frame t of sequence b, by `threads` threads of which this is number i / 4. */
template <unsigned threads, typename DY>
__device__ static void frame(const job<DY> &j, size_t t, size_t b, unsigned i,
                             float factor)
{
    size_t C = j.c.C, row = (t * j.c.B + b) * C;
    const float *x = j.c.y + row;
    size_t k = (size_t)j.c.classes[(size_t)j.c.begins[b] + t];
    peak p = {-FLT_MAX, 0, 0};
    float part;

    for (unsigned at = i; at < C; at += 4 * threads)
        p = add(p, bm_load(x, at, C, j.wide), at, C);
    p = merge_all<threads>(p);
    part = 1 / p.sum;
    if (i == 0)
        j.c.of_frames[b * j.c.T + t] = {
            log((double)p.sum) - (double)(x[k] - p.top), p.at != k ? 1.0 : 0.0};
    for (unsigned at = i; j.dy != NULL && at < C; at += 4 * threads) {
        bm_vec4 q = bm_load(x, at, C, j.wide);
        for (unsigned l = 0; l < 4; l++)
            q.x[l] = (expf(q.x[l] - p.top) * part - j.c.other -
                      (at + l == k ? j.c.on : 0.f)) *
                     factor;
        bm_store(j.dy + row, at, C, j.wide, q);
    }
}

/* All frames. `again`: the second time, if a sequence is skipped. */
template <unsigned threads, typename DY>
__global__ static void frames(job<DY> j, bool again)
{
    unsigned i = 4 * (threadIdx.x % threads);
    float factor = j.c.factor;

    if (again && j.c.verdict->skipped == 0)
        return;
    if (again)
        factor = (float)(1 / fmax(j.c.verdict->frames, 1.0));
    for (size_t f = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / threads;
         f < j.c.T * j.c.B; f += (size_t)gridDim.x * blockDim.x / threads) {
        size_t t = f / j.c.B, b = f % j.c.B, C = j.c.C;

        if (t < (size_t)j.c.frames[b] &&
            !(again && isnan(j.c.of_sequences[b].loss))) {
            frame<threads>(j, t, b, i, factor);
            continue;
        }
        for (unsigned at = i; j.dy != NULL && at < C; at += 4 * threads)
            bm_store(j.dy + f * C, at, C, j.wide, bm_vec4());
    }
}

/* Sums over the frames of each sequence, a warp for each. NaN: skipped. */
__global__ static void sequences(bm_cross c)
{
    unsigned lane = threadIdx.x % 32;
    size_t b = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    double loss = 0, errors = 0;

    if (b >= c.B)
        return;
    for (size_t t = lane; t < (size_t)c.frames[b]; t += 32) {
        loss += c.of_frames[b * c.T + t].loss;
        errors += c.of_frames[b * c.T + t].errors;
    }
    for (int step = 16; step > 0; step /= 2) {
        loss += __shfl_xor_sync(~0u, loss, step);
        errors += __shfl_xor_sync(~0u, errors, step);
    }
    if (lane == 0)
        c.of_sequences[b] = {
            c.frames[b] > 0 && isfinite(loss) ? loss : (double)NAN, errors};
}

/* Adds the sequences to the score, on one block. */
__global__ static void judge(bm_cross c)
{
    __shared__ double room[32];
    double loss = 0, errors = 0, n_frames = 0, counted = 0;

    for (size_t b = threadIdx.x; b < c.B; b += blockDim.x) {
        if (isnan(c.of_sequences[b].loss))
            continue;
        loss += c.of_sequences[b].loss;
        errors += c.of_sequences[b].errors;
        n_frames += (double)c.frames[b];
        counted += 1;
    }
    loss = bm_block_sum(loss, room);
    errors = bm_block_sum(errors, room);
    n_frames = bm_block_sum(n_frames, room);
    counted = bm_block_sum(counted, room);
    if (threadIdx.x != 0)
        return;
    *c.verdict = {n_frames, (double)c.B - counted};
    c.score->loss += loss;
    c.score->chance += n_frames * c.chance;
    c.score->errors += errors;
    c.score->count += n_frames;
    c.score->sequences += counted;
    c.score->skipped += (double)c.B - counted;
    c.score->frames += n_frames;
}

template <unsigned threads, typename DY>
static cudaError_t launch_frames(cudaStream_t stream, const job<DY> &of,
                                 bool again)
{
    const job<DY> j = of;
    size_t n = j.c.T * j.c.B * threads;

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, (frames<threads, DY>), bm_grid(n), bm_block, 0, j,
                     again);
}

template <typename DY>
static cudaError_t launch(cudaStream_t stream, const bm_cross &c, DY *dy,
                          bool again)
{
    job<DY> j = {c, dy, bm_is_wide(c.y) && bm_is_wide(dy) && c.C % 4 == 0};

    return c.C <= 1024 ? launch_frames<32>(stream, j, again)
                       : launch_frames<256>(stream, j, again);
}

static cudaError_t pass(cudaStream_t stream, const bm_cross &c, bool again)
{
    return c.dy.half ? launch(stream, c, (bm_bf16 *)c.dy.x, again)
                     : launch(stream, c, (float *)c.dy.x, again);
}

cudaError_t bm_kernel_cross_entropy(cudaStream_t stream, const bm_cross *of)
{
    const bm_cross c = *of;
    cudaError_t error = pass(stream, c, false);

    if (error == cudaSuccess && c.B > 0)
        error = BM_LAUNCH(stream, sequences, (unsigned)((c.B + 7) / 8),
                          bm_block, 0, c);
    if (error == cudaSuccess)
        error = BM_LAUNCH(stream, judge, 1, bm_block, 0, c);
    if (error == cudaSuccess && c.dy.x != NULL)
        error = pass(stream, c, true);
    return error;
}

/*
 * ctc.cu - connectionist temporal classification. The mathematics is that of
 * cpu_ctc.c, and so are the numbers: m 2^e, an exponent for every state. Here m
 * is brought back to 1 .. 2 only every 8 frames, in which it grows to at most
 * 2^22: factors that are powers of two round nothing, so that this costs no
 * bits, and leaves an exponent's path from frame to frame two instructions.
 *
 *     look      a warp for each frame: softmax, emissions of the labels
 *     walk      a block for each sequence and direction, a thread for each pair
 *               of a blank and a symbol
 *     gradient  a warp for each frame
 *     score     one block
 *
 * The walk is what takes the time: T steps, one after the other. The backward
 * probabilities are the forward ones of the sequence read backwards, pair j for
 * the symbol L - 1 - j and the blank behind it, so that both directions take
 * one symbol from the neighbour on the left and nothing else. Within a warp it
 * comes by a shuffle. A warp goes over CHUNK frames while the one on its left
 * is a chunk ahead and has left there what it needs: one barrier for CHUNK
 * steps. Pairs that are more than the threads are taken in strips, one after
 * the other, which hand on their edges through device memory.
 *
 * Bytes for every pair and frame: 16 written by each direction and read by the
 * gradient, 8 of emissions written and read: 80 in all.
 */
#include "compute/cuda/ctc_kernels.h"
#include "compute/cuda/kernel.h"

enum {
    CHUNK = 8,      /* frames */
    MOST_WARPS = 16 /* of a walk's block */
};

/* As in cpu_loss_loops.h. */
enum { NEVER = -(1 << 28), LEAST = NEVER / 8 };

typedef bm_ctc_wide wide;
typedef bm_ctc_pair pair;

BM_INLINE wide make_wide(float m, int e)
{
    wide x = {m, e};
    return x;
}

/* 2^n for n <= 127, and 0 below 2^-126. */
BM_INLINE float power(int n)
{
    return __int_as_float(max(n, -127) * (1 << 23) + (127 << 23));
}

/* The same number with 1 <= m < 2. */
BM_INLINE wide put(wide x)
{
    int bits = __float_as_int(x.m);

    return make_wide(__int_as_float((bits & 0x007fffff) | 0x3f800000),
                     x.e + (bits >> 23) - 127);
}

/* exp(d) for d <= 0, see cpu_exp.h; below -2e6 it is 0. */
BM_INLINE wide wide_exp(float d)
{
    const float least = -2e6f, turn = 12582912.0f;
    float x = d < least ? least : d; /* no number stays none */
    float turned = __fmaf_rn(x, 1.44269504f, turn), whole = turned - turn;
    float r =
        __fmaf_rn(whole, 2.12194440e-4f, __fmaf_rn(whole, -0.693359375f, x));
    float p = 1.9875691500e-4f;

    p = __fmaf_rn(p, r, 1.3981999507e-3f);
    p = __fmaf_rn(p, r, 8.3334519073e-3f);
    p = __fmaf_rn(p, r, 4.1665795894e-2f);
    p = __fmaf_rn(p, r, 1.6666665459e-1f);
    p = __fmaf_rn(p, r, 5.0000001201e-1f);
    p = __fmaf_rn(p, __fmul_rn(r, r), r);
    return make_wide(p + 1, d > least
                                ? __float_as_int(turned) - __float_as_int(turn)
                                : (int)NEVER);
}

BM_INLINE float narrow(wide x)
{
    return x.m * power(x.e);
}

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

/* One frame on: what a pair becomes before the emissions. `left`: the symbol of
 * the pair before it; skip: NEVER if a path cannot come from there. */
BM_INLINE pair move(pair x, wide left, int skip)
{
    int third = left.e + skip;
    int blank = max(x.blank.e, left.e);
    int symbol = max(max(x.symbol.e, x.blank.e), third);
    pair y;

    y.blank.m =
        x.blank.m * power(x.blank.e - blank) + left.m * power(left.e - blank);
    y.blank.e = blank;
    y.symbol.m = x.symbol.m * power(x.symbol.e - symbol) +
                 x.blank.m * power(x.blank.e - symbol) +
                 left.m * power(third - symbol);
    y.symbol.e = symbol;
    return y;
}

BM_INLINE wide times(wide x, wide u)
{
    return make_wide(x.m * u.m, max(x.e + u.e, (int)NEVER));
}

/* The lane on the left's; anything on lane 0. */
BM_INLINE wide from_left(wide x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits = __shfl_up_sync(~0u, bits, 1);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* What a warp finds for each frame of a chunk; two chunks take turns. */
struct feed {
    wide left;  /* the symbol on the left of its first pair, before the frame */
    wide blank; /* emission */
};
typedef feed feeds_of_warp[2][CHUNK];

/* A sequence in one direction; frames count from where that begins. */
template <bool BACKWARD> struct course {
    int T, L, W;
    const wide *emit; /* its first row */
    pair *rows;       /* likewise */
    ptrdiff_t next;   /* from row to row */
    const int32_t *labels;
    wide *edges;

    /* Symbol i, or whatever else is in the row. */
    __device__ __forceinline__ int symbol(int i) const
    {
        return i >= L ? L : BACKWARD ? L - 1 - i : i;
    }
    __device__ __forceinline__ int skip(int i) const
    {
        return i > 0 && i < L && labels[symbol(i)] == labels[symbol(i - 1)]
                   ? (int)NEVER
                   : 0;
    }
};

template <bool BACKWARD>
BM_INLINE course<BACKWARD> course_of(const bm_ctc_job &c,
                                     const bm_ctc_sequence &s)
{
    course<BACKWARD> w;
    size_t first = s.pair_at;

    w.T = s.frames;
    w.L = s.labels;
    w.W = s.labels + 1;
    w.next = BACKWARD ? -w.W : w.W;
    if (BACKWARD)
        first += (size_t)(w.T - 1) * (size_t)w.W;
    w.emit = c.emit + first;
    w.rows = (BACKWARD ? c.backward : c.forward) + first;
    w.labels = c.labels + s.label_at;
    w.edges = c.edges + 2 * s.frame_at + (BACKWARD ? s.frames : 0);
    return w;
}

/* A thread on its way. */
struct walker {
    pair x;
    wide ahead[CHUNK]; /* emissions of its symbol: of the next CHUNK frames */
    const wide *emit;  /* and the one after */
    pair *row;
    int skip;
    bool first, last; /* of its warp */
    bool stores;
};

/* A chunk of frames; if not WHOLE, there are only `left` until the end. The
 * feeds of this warp and of the next, for this chunk. */
template <bool BACKWARD, bool WHOLE>
BM_INLINE void walk_chunk(walker &w, ptrdiff_t next, int left, const feed *own,
                          feed *onward)
{
    for (int k = 0; k < CHUNK; k++) {
        wide u = w.ahead[k], near = from_left(w.x.symbol);
        feed f;
        pair y;

        if (!WHOLE && k >= left)
            break;
        f = own[k];
        if (WHOLE || k + CHUNK < left)
            w.ahead[k] = *w.emit;
        w.emit += next;
        if (w.last)
            onward[k].left = w.x.symbol;
        y = move(w.x, w.first ? f.left : near, w.skip);
        w.x.blank = times(y.blank, f.blank);
        w.x.symbol = times(y.symbol, u);
        if (w.stores)
            *w.row = BACKWARD ? y : w.x;
        w.row += next;
    }
    w.x.blank = put(w.x.blank);
    w.x.symbol = put(w.x.symbol);
}

/* All frames of one strip of pairs, by `warps` warps of the block. What the
 * last one feeds to nobody goes to the edges. */
template <bool BACKWARD>
BM_INLINE void walk_strip(const course<BACKWARD> &c, int strip, int warps,
                          feeds_of_warp *feeds)
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int i = (strip * warps + warp) * 32 + lane;
    int chunks = (c.T + CHUNK - 1) / CHUNK;
    bool edged = strip > 0 && warp == 0;
    const wide *blanks = c.emit + lane * c.next + c.L; /* of a chunk */
    walker w;

    w.x.blank = make_wide(1, i == 0 ? 0 : (int)NEVER);
    w.x.symbol = make_wide(1, NEVER);
    w.emit = c.emit + c.symbol(i);
    w.row = c.rows + i;
    w.skip = c.skip(i);
    w.first = lane == 0;
    w.last = lane == 31;
    w.stores = i < c.W;
    for (int k = 0; k < CHUNK; k++) {
        w.ahead[k] = k < c.T ? *w.emit : make_wide(1, NEVER);
        w.emit += c.next;
    }
    if (lane < CHUNK && lane < c.T) {
        feed f = {edged ? c.edges[lane] : make_wide(1, NEVER), *blanks};
        feeds[warp][0][lane].blank = f.blank;
        if (warp == 0)
            feeds[0][0][lane].left = f.left;
    }
    __syncthreads();
    for (int tick = 0; tick < chunks + warps - 1; tick++) {
        int chunk = tick - warp, left = c.T - chunk * CHUNK, turn = chunk & 1;
        bool fetches = lane < CHUNK && lane + CHUNK < left;
        feed *then = &feeds[warp][1 - turn][lane % CHUNK];
        feed f = {make_wide(1, NEVER), make_wide(1, NEVER)};

        if (chunk >= 0 && chunk < chunks) {
            blanks += CHUNK * c.next;
            if (fetches)
                f.blank = *blanks;
            if (fetches && edged)
                f.left = c.edges[(chunk + 1) * CHUNK + lane];
            if (left >= 2 * CHUNK)
                walk_chunk<BACKWARD, true>(w, c.next, left, feeds[warp][turn],
                                           feeds[warp + 1][turn]);
            else
                walk_chunk<BACKWARD, false>(w, c.next, left, feeds[warp][turn],
                                            feeds[warp + 1][turn]);
            if (fetches)
                then->blank = f.blank;
            if (fetches && warp == 0)
                then->left = f.left;
            if (warp + 1 == warps) {
                __syncwarp();
                if (lane < CHUNK && lane < left)
                    c.edges[chunk * CHUNK + lane] =
                        feeds[warps][turn][lane].left;
            }
        }
        __syncthreads();
    }
}

template <bool BACKWARD>
BM_INLINE void walk_sequence(const bm_ctc_job &c, const bm_ctc_sequence &s,
                             feeds_of_warp *feeds)
{
    course<BACKWARD> w = course_of<BACKWARD>(c, s);
    int warps = (int)blockDim.x / 32;
    int strips = (w.W + 32 * warps - 1) / (32 * warps);

    if (strips == 1) /* a shorter one than others: the rest wait for nobody */
        warps = (w.W + 31) / 32;
    if ((int)threadIdx.x >= 32 * warps)
        return;
    for (int strip = 0; strip < strips; strip++)
        walk_strip(w, strip, warps, feeds);
}

/* On one thread, when all rows are there. */
BM_INLINE bm_ctc_verdict judge(const bm_ctc_job &c, const bm_ctc_sequence &s)
{
    const pair *end =
        c.forward + s.pair_at + (size_t)s.frames * ((size_t)s.labels + 1);
    wide blank = make_wide(1, 0), symbol = make_wide(1, NEVER);
    bm_ctc_verdict v;

    if (s.frames > 0)
        blank = put(end[-1].blank);
    if (s.labels > 0)
        symbol = put(end[-2].symbol);
    v.scale = max(blank.e, symbol.e);
    v.end = ldexp((double)blank.m, blank.e - v.scale);
    if (s.labels > 0)
        v.end += ldexp((double)symbol.m, symbol.e - v.scale);
    v.counts = v.scale >= LEAST;
    return v;
}

/* A sequence without a path, if it is to count: has it numbers? */
BM_INLINE bm_ctc_verdict judge_infeasible(const bm_ctc_job &c,
                                          const bm_ctc_sequence &s)
{
    bm_ctc_verdict v = {1, 0, 0};
    int bad = !c.zero_infeasible;

    for (int t = (int)threadIdx.x; t < s.frames; t += (int)blockDim.x)
        bad |= !isfinite(c.frame[s.frame_at + (size_t)t].sum);
    v.counts = !__syncthreads_or(bad);
    return v;
}

__global__ static void __launch_bounds__(32 * MOST_WARPS) walk(bm_ctc_job c)
{
    __shared__ feeds_of_warp feeds[MOST_WARPS + 1];
    const bm_ctc_sequence s = c.sequence[blockIdx.x];
    bm_ctc_verdict *verdict = &c.verdict[blockIdx.x];

    if (!s.feasible) {
        bm_ctc_verdict v = judge_infeasible(c, s);
        if (blockIdx.y == 0 && threadIdx.x == 0)
            *verdict = v;
        return;
    }
    if (blockIdx.y == 1) {
        if (s.frames > 0)
            walk_sequence<true>(c, s, feeds);
        return;
    }
    if (s.frames > 0)
        walk_sequence<false>(c, s, feeds);
    if (threadIdx.x == 0)
        *verdict = judge(c, s);
}

cudaError_t bm_kernel_ctc_walk(cudaStream_t stream, const bm_ctc_job *c,
                               bool backward)
{
    size_t warps = (c->most_labels + 1 + 31) / 32;
    size_t strips = (warps + MOST_WARPS - 1) / MOST_WARPS;
    dim3 grid((unsigned)c->B, backward ? 2 : 1);
    bm_ctc_job job = *c;

    warps = (warps + strips - 1) / strips;
    return BM_LAUNCH(stream, walk, grid, (unsigned)(32 * warps), 0, job);
}

BM_INLINE void store(float *y, float x)
{
    *y = x;
}

BM_INLINE void store(bm_bf16 *y, float x)
{
    *y = bm_to_bf16(x);
}

/* The rows of a frame, as posteriors: not normalised, of state blank or symbol
 * i. */
struct posterior {
    const pair *a, *b; /* [W] */
    int L, scale;

    __device__ __forceinline__ float of(wide x, wide y) const
    {
        return x.m * y.m * power(x.e + y.e - scale);
    }
    __device__ __forceinline__ float blank(int i) const
    {
        return of(a[i].blank, b[L - i].blank);
    }
    __device__ __forceinline__ float symbol(int i) const
    {
        return of(a[i].symbol, b[L - 1 - i].symbol);
    }
};

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
    size_t at = s.pair_at + p.t * p.W;
    posterior q = {c.forward + at, c.backward + at, s.labels,
                   c.verdict[p.b].scale};
    float blank = 0, rest = 0, part = 0;

    for (int i = lane; i <= q.L; i += 32)
        blank += q.blank(i);
    for (int i = lane; i < q.L; i += 32)
        rest += q.symbol(i);
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
            sum += q.symbol(i);
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

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
    MOST_WARPS = 12 /* of a walk's block: registers for no more */
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

/* What a walk is for: the loss alone; or states of the first half of the frames
 * of each direction, then posteriors where the other one has been. */
enum role { PASS, STORE, MEET };

/* Some frames of a sequence in one direction. Rows begin with the first one. */
template <bool BACKWARD> struct course {
    int from, T, L, W; /* frames before these, and of these */
    const wide *emit;
    pair *rows;
    float *posterior;
    ptrdiff_t next; /* from row to row */
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

template <bool BACKWARD, role ROLE>
BM_INLINE course<BACKWARD> course_of(const bm_ctc_job &c,
                                     const bm_ctc_sequence &s)
{
    int half = BACKWARD ? s.frames / 2 : s.frames - s.frames / 2;
    course<BACKWARD> w;
    ptrdiff_t first = (ptrdiff_t)s.pair_at;

    w.from = ROLE == MEET ? half : 0;
    w.T = ROLE == STORE ? half : s.frames - w.from;
    w.L = s.labels;
    w.W = s.labels + 1;
    w.next = BACKWARD ? -w.W : w.W;
    first += (BACKWARD ? s.frames - 1 - w.from : w.from) * (ptrdiff_t)w.W;
    w.emit = c.emit + first;
    w.rows = c.states + first;
    w.posterior = c.posterior + 2 * first;
    w.labels = c.labels + s.label_at;
    w.edges = c.edges + 2 * s.frame_at + (BACKWARD ? s.frames : 0);
    return w;
}

/* Pair i before the first frame. */
template <bool BACKWARD> BM_INLINE pair begin(const course<BACKWARD> &c, int i)
{
    const wide *u = c.emit - c.next;
    pair x = {make_wide(1, i == 0 ? 0 : (int)NEVER), make_wide(1, NEVER)};

    if (c.from > 0 && i < c.W) {
        x = (c.rows - c.next)[i];
        if (BACKWARD) {
            x.blank = times(x.blank, u[c.L]);
            x.symbol = times(x.symbol, u[c.symbol(i)]);
        }
        x.blank = put(x.blank);
        x.symbol = put(x.symbol);
    }
    return x;
}

/* A thread on its way. */
struct walker {
    pair x;
    wide ahead[CHUNK]; /* emissions of its symbol: of the next CHUNK frames */
    const wide *emit;  /* and the one after */
    pair *row;         /* its own; to meet, the other direction's, likewise */
    wide blank[CHUNK], symbol[CHUNK];
    float *posterior;
    int skip, scale;
    bool first, last;         /* of its warp */
    bool is_blank, is_symbol; /* it has one */
};

/* The posterior of one state, over 2^scale. */
BM_INLINE float meet(wide x, wide y, int scale)
{
    return x.m * y.m * power(x.e + y.e - scale);
}

/* Numbers of the other direction: blank L - i and symbol L - 1 - i. */
BM_INLINE void look_ahead(walker &w, int k, ptrdiff_t next)
{
    if (w.is_blank)
        w.blank[k] = w.row->blank;
    if (w.is_symbol)
        w.symbol[k] = w.row[-1].symbol;
    w.row += next;
}

/* A chunk of frames; if not WHOLE, there are only `left` until the end. The
 * feeds of this warp and of the next, for this chunk. */
template <bool BACKWARD, role ROLE, bool WHOLE>
BM_INLINE void walk_chunk(walker &w, const course<BACKWARD> &c, int left,
                          const feed *own, feed *onward)
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
        w.emit += c.next;
        if (w.last)
            onward[k].left = w.x.symbol;
        y = move(w.x, w.first ? f.left : near, w.skip);
        w.x.blank = times(y.blank, f.blank);
        w.x.symbol = times(y.symbol, u);
        y = BACKWARD ? y : w.x;
        if (ROLE == STORE) {
            if (w.is_blank)
                *w.row = y;
            w.row += c.next;
        } else if (ROLE == MEET) {
            if (w.is_blank)
                *w.posterior = meet(y.blank, w.blank[k], w.scale);
            if (w.is_symbol)
                w.posterior[BACKWARD ? c.L : c.W] =
                    meet(y.symbol, w.symbol[k], w.scale);
            w.posterior += 2 * c.next;
            if (WHOLE || k + CHUNK < left)
                look_ahead(w, k, c.next);
        }
    }
    w.x.blank = put(w.x.blank);
    w.x.symbol = put(w.x.symbol);
}

/* All frames of one strip of pairs, by the block's warps. What the last one
 * feeds to nobody goes to the edges. end: the last pair. */
template <bool BACKWARD, role ROLE>
BM_INLINE void walk_strip(const course<BACKWARD> &c, int strip, int warps,
                          int scale, feeds_of_warp *feeds, pair *end)
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int i = (strip * warps + warp) * 32 + lane;
    int chunks = (c.T + CHUNK - 1) / CHUNK;
    int busy = min(warps, (c.W + 31) / 32 - strip * warps);
    bool edged = strip > 0 && warp == 0;
    const wide *blanks = c.emit + lane * c.next + c.L; /* of a chunk */
    walker w;

    w.x = begin(c, i);
    w.emit = c.emit + c.symbol(i);
    w.row = c.rows + (ROLE == MEET ? c.L - i : i);
    w.posterior = c.posterior + (BACKWARD ? c.L - i : i);
    w.skip = c.skip(i);
    w.scale = scale;
    w.first = lane == 0;
    w.last = lane == 31;
    w.is_blank = i < c.W;
    w.is_symbol = i < c.L;
    for (int k = 0; k < CHUNK; k++) {
        w.ahead[k] = w.blank[k] = w.symbol[k] = make_wide(1, NEVER);
        if (k < c.T)
            w.ahead[k] = *w.emit;
        w.emit += c.next;
        if (ROLE == MEET && k < c.T)
            look_ahead(w, k, c.next);
    }
    if (lane < CHUNK && lane < c.T) {
        feeds[warp][0][lane].blank = *blanks;
        if (warp == 0)
            feeds[0][0][lane].left =
                edged ? c.edges[lane] : make_wide(1, NEVER);
    }
    __syncthreads();
    for (int tick = 0; tick < chunks + busy - 1; tick++) {
        int chunk = tick - warp, left = c.T - chunk * CHUNK, turn = chunk & 1;
        bool fetches = lane < CHUNK && lane + CHUNK < left;
        feed *now = feeds[warp][turn], *onward = feeds[warp + 1][turn];
        feed *then = &feeds[warp][1 - turn][lane % CHUNK];
        feed f = {make_wide(1, NEVER), make_wide(1, NEVER)};

        if (chunk >= 0 && chunk < chunks && warp < busy) {
            blanks += CHUNK * c.next;
            if (fetches)
                f.blank = *blanks;
            if (fetches && edged)
                f.left = c.edges[(chunk + 1) * CHUNK + lane];
            if (left >= 2 * CHUNK)
                walk_chunk<BACKWARD, ROLE, true>(w, c, left, now, onward);
            else
                walk_chunk<BACKWARD, ROLE, false>(w, c, left, now, onward);
            if (fetches)
                then->blank = f.blank;
            if (fetches && warp == 0)
                then->left = f.left;
            if (warp + 1 == warps) {
                __syncwarp();
                if (lane < CHUNK && lane < left)
                    c.edges[chunk * CHUNK + lane] = onward[lane].left;
            }
        }
        __syncthreads();
    }
    if (i == c.L)
        end->blank = w.x.blank;
    if (i + 1 == c.L)
        end->symbol = w.x.symbol;
}

/* The exponent of the most probable state at the first frame, where the other
 * direction has been; on all threads. */
template <bool BACKWARD>
BM_INLINE int scale_of(const course<BACKWARD> &c, int *room)
{
    if (threadIdx.x == 0)
        *room = 2 * NEVER;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < c.W && c.T > 0; i += (int)blockDim.x) {
        wide left = i > 0 ? begin(c, i - 1).symbol : make_wide(1, NEVER);
        pair y = move(begin(c, i), left, c.skip(i));
        int blank = put(c.rows[c.L - i].blank).e, most = 0;

        if (!BACKWARD) {
            y.blank = times(y.blank, c.emit[c.L]);
            y.symbol = times(y.symbol, c.emit[c.symbol(i)]);
        }
        most = put(y.blank).e + blank;
        if (i < c.L)
            most =
                max(most, put(y.symbol).e + put(c.rows[c.L - 1 - i].symbol).e);
        atomicMax(room, most);
    }
    __syncthreads();
    return *room;
}

template <bool BACKWARD, role ROLE>
BM_INLINE void walk_sequence(const bm_ctc_job &c, const bm_ctc_sequence &s,
                             feeds_of_warp *feeds, pair *end, int *room)
{
    course<BACKWARD> w = course_of<BACKWARD, ROLE>(c, s);
    int scale = ROLE == MEET ? scale_of(w, room) : 0;
    int warps = (int)blockDim.x / 32;

    for (int strip = 0; strip * 32 * warps < w.W; strip++)
        walk_strip<BACKWARD, ROLE>(w, strip, warps, scale, feeds, end);
}

/* On one thread, from the last pair's numbers after the last frame. */
BM_INLINE bm_ctc_verdict judge(const bm_ctc_sequence &s, pair end)
{
    wide blank = put(end.blank);
    wide symbol = s.labels > 0 ? put(end.symbol) : make_wide(1, NEVER);
    bm_ctc_verdict v;

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

template <role ROLE>
__global__ static void __launch_bounds__(32 * MOST_WARPS) walk(bm_ctc_job c)
{
    __shared__ feeds_of_warp feeds[MOST_WARPS + 1];
    __shared__ pair end;
    __shared__ int room;
    const bm_ctc_sequence s = c.sequence[blockIdx.x];
    bm_ctc_verdict v;

    if (blockIdx.y == 1) {
        if (s.feasible)
            walk_sequence<true, ROLE>(c, s, feeds, &end, &room);
        return;
    }
    if (s.feasible)
        walk_sequence<false, ROLE>(c, s, feeds, &end, &room);
    if (ROLE == STORE)
        return;
    __syncthreads();
    v = s.feasible ? judge(s, end) : judge_infeasible(c, s);
    if (threadIdx.x == 0)
        c.verdict[blockIdx.x] = v;
}

cudaError_t bm_kernel_ctc_walk(cudaStream_t stream, const bm_ctc_job *c,
                               bool posteriors)
{
    size_t warps = (c->most_labels + 1 + 31) / 32;
    size_t strips = (warps + MOST_WARPS - 1) / MOST_WARPS;
    unsigned threads = (unsigned)(32 * ((warps + strips - 1) / strips));
    dim3 one((unsigned)c->B, 1), both((unsigned)c->B, 2);
    bm_ctc_job job = *c;
    cudaError_t error = cudaSuccess;

    if (!posteriors)
        return BM_LAUNCH(stream, walk<PASS>, one, threads, 0, job);
    error = BM_LAUNCH(stream, walk<STORE>, both, threads, 0, job);
    if (error != cudaSuccess)
        return error;
    return BM_LAUNCH(stream, walk<MEET>, both, threads, 0, job);
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

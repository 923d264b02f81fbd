/*
 * ctc_walk.cu - the recursion of CTC. The mathematics is that of cpu_ctc.c.
 *
 * Its T steps depend on each other, and take most of the time of CTC. There is
 * a block for each sequence and direction, and a thread for each pair of a
 * blank and a symbol. The backward probabilities are the forward ones of the
 * reversed sequence, with pair j for symbol L - 1 - j and the blank after it,
 * so that a thread of either direction needs one symbol, from its left
 * neighbour. Within a warp a shuffle brings it. A warp works on CHUNK frames
 * while the warp on its left is a chunk ahead and has stored what it needs: one
 * barrier for CHUNK steps. If there are more pairs than threads, they are taken
 * in strips, one after the other, whose edges are in device memory.
 *
 * Each direction stores the states of its half of the frames. A second kernel
 * continues over the other half, and computes posteriors from both directions.
 * That writes and reads 16 bytes for each pair and frame, the last ones first
 * while they are in the cache, and 8 bytes of posteriors for the gradient.
 * States of both directions for all frames would be 32.
 */
#include "compute/cuda/loss/ctc_wide.h"

enum {
    CHUNK = 8,      /* frames */
    MOST_WARPS = 12 /* of a block; registers limit it */
};

/* A pair at the next frame, before the emissions. `left`: the symbol of the
 * pair on its left; skip: NEVER if no path comes from there. */
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

/* The value of the lane on the left; undefined on lane 0. */
BM_INLINE wide from_left(wide x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits = __shfl_up_sync(~0u, bits, 1);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* What a warp reads for each frame of a chunk. Two chunks take turns. */
struct feed {
    wide left;  /* the symbol on the left of its first pair, before the frame */
    wide blank; /* emission */
};
typedef feed feeds_of_warp[2][CHUNK];

/* What a walk computes: only the loss; or the states of the first half of each
 * direction; or posteriors in the second half. */
enum role { PASS, STORE, MEET };

/* Some frames of a sequence in one direction, the first one first. */
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

/* The state of a thread. */
struct walker {
    pair x;
    wide ahead[CHUNK]; /* emissions of its symbol: of the next CHUNK frames */
    const wide *emit;  /* and the one after */
    pair *row;         /* its own; for posteriors, the other direction's */
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

/* The other direction has blank L - i and symbol L - 1 - i. */
BM_INLINE void look_ahead(walker &w, int k, ptrdiff_t next)
{
    if (w.is_blank)
        w.blank[k] = w.row->blank;
    if (w.is_symbol)
        w.symbol[k] = w.row[-1].symbol;
    w.row += next;
}

/* A chunk of frames; only `left` of them if not WHOLE. The feeds are those of
 * this warp and of the next. */
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

/* All frames of one strip of pairs, by the warps of the block. The last warp
 * writes to the edges. end: the last pair. */
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

/* The exponent of the most probable state of the other direction at the first
 * frame, on all threads. */
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

/* On one thread, from the last pair after the last frame. */
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

/* True if an infeasible sequence that is not skipped has finite logits. */
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
        if (s.feasible && s.frames > 0)
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

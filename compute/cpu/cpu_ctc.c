/*
 * cpu_ctc.c - connectionist temporal classification (Graves et al. 2006).
 *
 * A label sequence of L symbols has 2 L + 1 states, blank l_0 blank l_1 ...
 * blank, kept as two arrays: blank i stands before symbol i, and blank L ends
 * the row. A path that is in state s at frame t came from s or s - 1, or from
 * s - 2 where that skips a blank between two different symbols:
 *
 *     a_t(s) = u_t(s) (a_t-1(s) + a_t-1(s-1) + a_t-1(s-2)),  u_t = exp(x - max)
 *     b_t(s) = the same from the end, without u_t(s)
 *     dy_t(k) = y_t(k) - sum over the states s of class k of
 *               a_t(s) b_t(s) / sum over all states
 *
 * With label smoothing e the gradient of a sequence of T frames is
 *
 *     (1 - e) dy_t(k) + e / T (y_t(k) - 1 / C)
 *
 * These numbers leave the range of floats within a few frames and that of
 * doubles within a few hundred, so each has an exponent of its own (bm_wide).
 * That keeps 24 bits of every state, where logarithms in floats lose the bits
 * of their integer parts, and needs neither exp nor log per state. Only states
 * that are reachable from the start and from the end are computed.
 */
#define _DEFAULT_SOURCE /* lgamma_r */
#include "compute/cpu/cpu.h"
#include "compute/cpu/cpu_loss.h"
#include "core/size.h"

#include <math.h>
#include <string.h>

/* The states of one frame. symbol[0] is zero; symbol i is at i + 1. */
typedef struct row {
    bm_wide blank, symbol; /* [W] */
} row;

/* One sequence and its scratch. */
typedef struct sequence {
    size_t T, L, W;        /* W = L + 1 */
    size_t repeats;        /* r */
    const int32_t *labels; /* [L] */
    const bm_loss_loops *loops;
    float keep;     /* 1 - e: factor of the gradient without smoothing */
    float whole;    /* 1 - e + e / T: of y in it */
    float other;    /* e / (T C) */
    double log_sum; /* over the frames, of the logarithm of the sum of u */
    float *a;       /* [T + 1] rows: after t frames */
    float *emit;    /* [T] wides [W]: u of the symbols, then of the blank */
    row b[2];       /* b u, of frames of even and odd number */
    float *q;       /* [2 W]: posteriors, not normalised */
    int32_t *skip;  /* [W]: 0 if symbol i may follow i - 1, else BM_NEVER */
    bm_wide u;      /* [C]: of every class */
    float *p;       /* [C]: u in a float */
    int32_t *path;  /* [T]: best path, repeats and blanks left out */
    size_t n_path;
    int32_t *distance; /* [W] */
} sequence;

static bm_wide wide(float *memory, size_t n)
{
    bm_wide x = {memory, (int32_t *)(void *)(memory + n)};
    return x;
}

static row row_of(float *memory, size_t W)
{
    row r = {wide(memory, W), wide(memory + 2 * W, W)};
    return r;
}

static size_t room(size_t T, size_t L, size_t C)
{
    size_t W = L + 1;
    size_t rows = bm_size_mul(6 * T + 4, W); /* a and emit */
    return bm_size_add(rows, 2 * 4 * W + 2 * W + W + 3 * C + T + W);
}

size_t bm_cpu_ctc_work(bm_backend *be, bm_extent e, bm_targets t,
                       size_t n_classes)
{
    size_t most = 0;

    for (size_t b = 0; b < e.B; b++) {
        size_t n = room((size_t)e.frames[b], (size_t)t.count[b], n_classes);
        most = n > most ? n : most;
    }
    return bm_size_mul(most, bm_thread_pool_threads(bm_cpu_of(be)->pool));
}

static sequence lay_out(size_t T, const int32_t *labels, size_t L, size_t C,
                        float smoothing, float *work)
{
    size_t W = L + 1;
    float each = T > 0 ? smoothing / (float)T : 0;
    sequence s = {.T = T,
                  .L = L,
                  .W = W,
                  .keep = 1 - smoothing,
                  .whole = 1 - smoothing + each,
                  .other = each / (float)C,
                  .repeats = bm_ctc_repeats(labels, L),
                  .labels = labels};

    s.a = work;
    s.emit = s.a + (T + 1) * 4 * W;
    s.b[0] = row_of(s.emit + T * 2 * W, W);
    s.b[1] = row_of(s.b[0].blank.m + 4 * W, W);
    s.q = s.b[1].blank.m + 4 * W;
    s.skip = (int32_t *)(void *)(s.q + 2 * W);
    s.u = wide(s.q + 3 * W, C);
    s.p = s.u.m + 2 * C;
    s.path = (int32_t *)(void *)(s.p + C);
    s.distance = s.path + T;
    for (size_t i = 0; i < W; i++) {
        bool repeated = i > 0 && i < L && labels[i] == labels[i - 1];
        s.skip[i] = repeated ? BM_NEVER : 0;
    }
    return s;
}

/* After t frames. */
static row a_of(const sequence *s, size_t t)
{
    return row_of(s->a + t * 4 * s->W, s->W);
}

static bm_wide emit_of(const sequence *s, size_t t)
{
    return wide(s->emit + t * 2 * s->W, s->W);
}

/* The loss of equal logits: T ln C - ln binomial(T + L - r, 2 L). */
static double chance(const sequence *s, size_t n_classes)
{
    double n = (double)(s->T + s->L - s->repeats), k = 2 * (double)s->L;
    int sign = 0; /* lgamma keeps it in a global, which is not thread-safe */
    double paths = lgamma_r(n + 1, &sign) - lgamma_r(k + 1, &sign) -
                   lgamma_r(n - k + 1, &sign);

    return (double)s->T * log((double)n_classes) - paths;
}

/* The Levenshtein distance of the best path from the labels. */
static double errors(const sequence *s)
{
    int32_t *d = s->distance;

    for (size_t i = 0; i <= s->L; i++)
        d[i] = (int32_t)i;
    for (size_t j = 0; j < s->n_path; j++) {
        int32_t diagonal = d[0]++;

        for (size_t i = 1; i <= s->L; i++) {
            int32_t best = diagonal + (s->labels[i - 1] != s->path[j]);

            diagonal = d[i];
            if (d[i] + 1 < best)
                best = d[i] + 1;
            if (d[i - 1] + 1 < best)
                best = d[i - 1] + 1;
            d[i] = best;
        }
    }
    return d[s->L];
}

/* Computes emissions, the best path, and y in place of the gradient. Returns
 * false if a frame has logits that are not finite. */
static bool look(sequence *s, size_t b, bm_tensor y, bm_tensor dy,
                 bm_score *own)
{
    size_t last = 0, C = y.dim[2];

    for (size_t t = 0; t < s->T; t++) {
        const float *x = bm_cpu_frame(y, t, b);
        float *dx = bm_cpu_frame(dy, t, b);
        float top = s->loops->largest(C, x);
        float sum = s->loops->exp(C, x, top, s->u, s->p);
        size_t best = bm_cpu_best(C, x, top);
        bm_wide emit = emit_of(s, t);

        if (!isfinite(sum))
            return false;
        for (size_t i = 0; i < s->L; i++) {
            emit.m[i] = s->u.m[s->labels[i]];
            emit.e[i] = s->u.e[s->labels[i]];
        }
        emit.m[s->L] = s->u.m[0];
        emit.e[s->L] = s->u.e[0];
        for (size_t k = 0; dx != NULL && k < C; k++)
            dx[k] = s->p[k] / sum * s->whole - s->other;
        s->log_sum += log((double)sum);
        own->blank += (double)(s->p[0] / sum);
        if (best != 0 && best != last)
            s->path[s->n_path++] = (int32_t)best;
        last = best;
    }
    return true;
}

static void set_zero(size_t n, bm_wide x)
{
    for (size_t i = 0; i < n; i++) {
        x.m[i] = 1;
        x.e[i] = BM_NEVER;
    }
}

/* The states that a path can be in at frame t, numbers of blanks and symbols and the
 * first of each: a parallelogram, since a frame adds one symbol at most and all L
 * have to be there at the end. */
typedef struct window {
    size_t blank_from, blanks, symbol_from, symbols;
} window;

static window alive(const sequence *s, size_t t)
{
    size_t left = s->T - t; /* frames, with this one */
    size_t from = s->L > left ? s->L - left : 0;
    window w = {s->L + 1 > left ? s->L + 1 - left : 0, 0, from, 0};

    w.blanks = (t < s->L ? t + 1 : s->L + 1) - w.blank_from;
    w.symbols = (t < s->L ? t + 1 : s->L) - w.symbol_from;
    return w;
}

/* Computes a; returns log p(labels), and the exponent of p in *scale. */
static double forward(const sequence *s, int32_t *scale)
{
    size_t L = s->L;
    row a = a_of(s, 0);
    double end = 0;

    set_zero(s->W, a.blank);
    set_zero(s->W, a.symbol);
    a.blank.e[0] = 0;
    for (size_t t = 0; t < s->T; t++) {
        window w = alive(s, t);
        size_t i = w.blank_from, j = w.symbol_from;
        bm_wide u = emit_of(s, t);
        row from = a;

        a = a_of(s, t + 1);
        set_zero(1, a.symbol);
        if (t + 1 <= L) { /* unreachable, but read by the next frame */
            set_zero(1, bm_wide_at(a.blank, t + 1));
            set_zero(t + 2 <= L, bm_wide_at(a.symbol, t + 2));
        }
        s->loops->forward_blank(w.blanks, bm_wide_at(from.blank, i),
                                bm_wide_at(from.symbol, i), u.m[L], u.e[L],
                                bm_wide_at(a.blank, i));
        s->loops->forward_symbol(w.symbols, bm_wide_at(from.symbol, j + 1),
                                 bm_wide_at(from.blank, j),
                                 bm_wide_at(from.symbol, j), s->skip + j,
                                 bm_wide_at(u, j), bm_wide_at(a.symbol, j + 1));
    }
    *scale = a.blank.e[L] > a.symbol.e[L] ? a.blank.e[L] : a.symbol.e[L];
    end = ldexp((double)a.blank.m[L], a.blank.e[L] - *scale);
    if (L > 0)
        end += ldexp((double)a.symbol.m[L], a.symbol.e[L] - *scale);
    return log(end) + *scale * log(2) - s->log_sum;
}

/* Subtracts the posteriors q of frame t from its row of the gradient. */
static void subtract(const sequence *s, window w, float *dy)
{
    const float *q = s->q + s->W;
    const int32_t *labels = s->labels + w.symbol_from;
    float blank = s->loops->sum(w.blanks, s->q);
    float part = s->keep / (blank + s->loops->sum(w.symbols, q));

    dy[0] -= blank * part;
    for (size_t i = 0; i < w.symbols; i++)
        dy[labels[i]] -= q[i] * part;
}

static void backward(const sequence *s, int32_t scale, size_t b, bm_tensor dy)
{
    size_t L = s->L;
    row to = s->b[s->T % 2];

    set_zero(s->W, to.blank);
    set_zero(s->W, to.symbol);
    to.blank.e[L] = 0;
    for (size_t t = s->T; t-- > 0;) {
        window w = alive(s, t);
        size_t i = w.blank_from, j = w.symbol_from;
        row a = a_of(s, t + 1), from = to;
        bm_wide u = emit_of(s, t);

        to = s->b[t % 2];
        set_zero(1, bm_wide_at(to.symbol, L));
        if (i > 0) /* cannot reach the end, but the frame before reads it */
            set_zero(1, bm_wide_at(to.blank, i - 1));
        if (j > 0)
            set_zero(1, bm_wide_at(to.symbol, j - 1));
        s->loops->backward_blank(w.blanks, bm_wide_at(from.blank, i),
                                 bm_wide_at(from.symbol, i),
                                 bm_wide_at(a.blank, i), scale, u.m[L], u.e[L],
                                 s->q, bm_wide_at(to.blank, i));
        s->loops->backward_symbol(
            w.symbols, bm_wide_at(from.symbol, j),
            bm_wide_at(from.blank, j + 1), bm_wide_at(from.symbol, j + 1),
            s->skip + j + 1, bm_wide_at(a.symbol, j + 1), scale,
            bm_wide_at(u, j), s->q + s->W, bm_wide_at(to.symbol, j));
        subtract(s, w, bm_cpu_frame(dy, t, b));
    }
}

/* The score of sequence b; sets its rows of dy for the sum of losses. */
static bm_score run(sequence *s, size_t b, bm_infeasible policy, bm_tensor y,
                    bm_tensor dy)
{
    bm_score own = {
        .sequences = 1, .frames = (double)s->T, .count = (double)s->L};
    bool can = s->T > 0 && s->T >= s->L + s->repeats,
         counts = can || policy == BM_INFEASIBLE_ZERO;
    int32_t scale = 0;

    if (counts)
        counts = look(s, b, y, dy, &own);
    if (counts && can) {
        own.loss = -forward(s, &scale);
        own.chance = chance(s, y.dim[2]);
    }
    if (counts)
        own.errors = errors(s);
    own.zeroed = counts && !can;
    if (!counts || scale < BM_LEAST)
        own = (bm_score){.skipped = 1};
    if (can && own.skipped == 0 && dy.data != NULL)
        backward(s, scale, b, dy);
    else
        bm_cpu_clear_sequence(dy, b);
    return own;
}

/* A batch, and scratch for each part of it. */
typedef struct job {
    const bm_loss_loops *loops;
    bm_extent e;
    bm_targets t;
    bm_infeasible policy;
    float smoothing;
    bm_tensor y, dy;
    float *work;
    size_t floats; /* of scratch for each part */
} job;

static bm_score one(const void *self, size_t part, size_t b)
{
    const job *j = self;
    sequence s = lay_out((size_t)j->e.frames[b], bm_cpu_labels(j->t, b),
                         (size_t)j->t.count[b], j->y.dim[2], j->smoothing,
                         j->work + part * j->floats);

    s.loops = j->loops;
    return run(&s, b, j->policy, j->y, j->dy);
}

void bm_cpu_ctc(bm_backend *be, bm_extent e, bm_targets t, bm_infeasible policy,
                float smoothing, bm_tensor y, bm_tensor dy, float *work,
                bm_score *score)
{
    size_t floats = bm_cpu_ctc_work(be, e, t, y.dim[2]) /
                    bm_thread_pool_threads(bm_cpu_of(be)->pool);
    job j = {
        bm_cpu_isa(be)->loss, e, t, policy, smoothing, y, dy, work, floats};
    bm_score all = bm_cpu_score(be, e.B, &j, one);

    bm_score_add(score, &all);
    bm_cpu_mean_gradient(be, e, dy, all.sequences);
}

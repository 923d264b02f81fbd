/*
 * cpu_ctc.c - connectionist temporal classification (Graves et al. 2006).
 *
 * A label sequence of L symbols has 2 L + 1 states, blank l_0 blank l_1 ...
 * blank, kept as two arrays: blank i stands before symbol i, and blank L ends
 * the row. A path that ends in state s at frame t came from s or s - 1, or from
 * s - 2 where that skips a blank between two different symbols:
 *
 *     a_t(s) = log p_t(s) + log(exp a(s) + exp a(s-1) + exp a(s-2))   at t - 1
 *     b_t(s) = the same from the end, without log p_t(s)
 *     dy_t(k) = y_t(k) - sum over the states s of class k of
 *               exp(a_t(s) + b_t(s)) / sum over all states
 *
 * All in float log space. Every row has its largest element subtracted, and
 * the posterior is normalised frame by frame: so what is lost does not grow
 * with the loss. Only states are looked at that both have been reached and can
 * still reach the end; a better path that goes nowhere costs no digits.
 */
#include "compute/cpu_loss.h"

#include <math.h>
#include <string.h>

static const float never = -1e30f; /* log 0, such that never - never is one */

/* One sequence and the scratch it is worked out in. Rows of states are [2, W]:
 * W = L + 1 blanks, then as many symbols: with a `never` in front of them in a
 * and behind them in b, so that every state has neighbours. */
typedef struct sequence {
    size_t T, L, W;
    const int32_t *labels; /* [L] */
    float *skip;           /* [W]: 0 if symbol i may follow i - 1, else never */
    float *emit;           /* [T, W]: log p of the symbols, then of the blank */
    float *a;              /* [T, 2, W] */
    float *b, *next;       /* [2, W] of this frame and of the one after it */
    float *q;              /* [2, W]: posterior of every state */
    int32_t *path;         /* [T]: best path, repeats and blanks left out */
    int32_t *distance;     /* [W] */
    size_t n_path;
} sequence;

static size_t room(size_t frames, size_t labels)
{
    size_t W = labels + 1;
    return W + 3 * frames * W + 3 * 2 * W + frames + W;
}

size_t bm_ctc_work(bm_extent e, bm_targets t, size_t n_classes)
{
    size_t most = 0;

    (void)n_classes;
    for (size_t b = 0; b < e.B; b++) {
        size_t n = room((size_t)e.frames[b], (size_t)t.count[b]);
        most = n > most ? n : most;
    }
    return most;
}

static sequence lay_out(size_t frames, const int32_t *labels, size_t n_labels,
                        float *work)
{
    size_t W = n_labels + 1;
    sequence s = {.T = frames, .L = n_labels, .W = W, .labels = labels};

    s.skip = work;
    s.emit = s.skip + W;
    s.a = s.emit + frames * W;
    s.b = s.a + frames * 2 * W;
    s.next = s.b + 2 * W;
    s.q = s.next + 2 * W;
    s.path = (int32_t *)(void *)(s.q + 2 * W);
    s.distance = s.path + frames;
    for (size_t i = 0; i < W; i++) {
        bool repeated = i > 0 && i < s.L && labels[i] == labels[i - 1];
        s.skip[i] = repeated ? never : 0;
    }
    return s;
}

static bool feasible(const sequence *s)
{
    size_t needed = s->L;

    for (size_t i = 1; i < s->L; i++)
        needed += s->labels[i] == s->labels[i - 1];
    return s->T >= needed;
}

/* Levenshtein's distance of the best path from the labels. */
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

/* Emissions, the best path, and y where the gradient will be. */
static void look(sequence *s, size_t b, bm_tensor y, bm_tensor dy,
                 bm_score *own)
{
    size_t last = 0;

    for (size_t t = 0; t < s->T; t++) {
        const float *x = bm_cpu_frame(y, t, b);
        float *emit = s->emit + t * s->W;
        bm_softmax p = bm_cpu_softmax(y.dim[2], x, bm_cpu_frame(dy, t, b));

        for (size_t i = 0; i < s->L; i++)
            emit[i] = fmaxf(x[s->labels[i]] - p.top - p.log_sum, never);
        emit[s->L] = fmaxf(x[0] - p.top - p.log_sum, never);
        if (isnan(p.sum))
            own->loss = NAN;
        own->blank += exp((double)emit[s->L]);
        if (p.best != 0 && p.best != last)
            s->path[s->n_path++] = (int32_t)p.best;
        last = p.best;
    }
}

static float log_add(float x, float y, float z)
{
    float top = fmaxf(x, fmaxf(y, z));
    return top + logf(expf(x - top) + expf(y - top) + expf(z - top));
}

/* Subtracts the largest element, which is returned. */
static float normalise(size_t n, float *x)
{
    float top = never;

    for (size_t i = 0; i < n; i++)
        top = fmaxf(top, x[i]);
    for (size_t i = 0; i < n; i++)
        x[i] = fmaxf(x[i] - top, never);
    return top;
}

static void clear(size_t n, float *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = never;
}

/* The states of frame t that a path can be in: blanks from blank_from and
 * symbols from symbol_from on, both up to and without `to`. */
typedef struct window {
    size_t blank_from, symbol_from, to;
} window;

static window alive(const sequence *s, size_t t)
{
    size_t left = s->T - t; /* frames, this one too */
    window w = {0, 0, t + 1};

    if (s->L + 1 > left)
        w.blank_from = s->L + 1 - left;
    if (s->L > left)
        w.symbol_from = s->L - left;
    return w;
}

/* Returns log p(labels). */
static double forward(const sequence *s)
{
    size_t W = s->W, L = s->L;
    double scale = 0;

    for (size_t t = 0; t < s->T; t++) {
        const float *emit = s->emit + t * W;
        float *blank = s->a + t * 2 * W, *symbol = blank + W;
        const float *blank0 = blank - 2 * W, *symbol0 = symbol - 2 * W;
        window w = alive(s, t);

        clear(2 * W, blank);
        if (t == 0 && w.blank_from == 0)
            blank[0] = emit[L];
        if (t == 0 && w.symbol_from == 0 && L > 0)
            symbol[1] = emit[0];
        for (size_t i = w.blank_from; t > 0 && i < w.to && i <= L; i++)
            blank[i] = emit[L] + log_add(blank0[i], symbol0[i], never);
        for (size_t i = w.symbol_from; t > 0 && i < w.to && i < L; i++)
            symbol[i + 1] = emit[i] + log_add(symbol0[i + 1], blank0[i],
                                              symbol0[i] + s->skip[i]);
        scale += (double)normalise(2 * W, blank);
    }
    if (s->T == 0)
        return 0;
    return scale + (double)log_add(s->a[(s->T - 1) * 2 * W + L],
                                   s->a[(s->T - 1) * 2 * W + W + L], never);
}

/* b of frame t from that of frame t + 1, to which p_t+1 is added on the way. */
static void step_back(sequence *s, size_t t)
{
    size_t W = s->W, L = s->L;
    const float *emit = s->emit + (t + 1) * W;
    float *next = s->b, *b = s->next;
    window w = alive(s, t);

    for (size_t i = 0; i <= L; i++)
        next[i] += emit[L];
    for (size_t i = 0; i < L; i++)
        next[W + i] += emit[i];
    clear(2 * W, b);
    for (size_t i = w.blank_from; i < w.to && i <= L; i++)
        b[i] = log_add(next[i], next[W + i], never);
    for (size_t i = w.symbol_from; i < w.to && i < L; i++)
        b[W + i] =
            log_add(next[W + i], next[i + 1], next[W + i + 1] + s->skip[i + 1]);
    normalise(2 * W, b);
    s->b = b;
    s->next = next;
}

/* Takes the posterior of frame t off its row of the gradient. */
static void subtract_posterior(const sequence *s, size_t t, float *dy)
{
    size_t W = s->W, L = s->L;
    const float *a = s->a + t * 2 * W, *b = s->b;
    float *q = s->q, sum = 0;

    for (size_t i = 0; i <= L; i++)
        q[i] = a[i] + b[i];
    for (size_t i = 0; i < L; i++)
        q[W + i] = a[W + i + 1] + b[W + i];
    q[W + L] = never;
    normalise(2 * W, q);
    for (size_t i = 0; i < 2 * W; i++) {
        q[i] = expf(q[i]);
        sum += q[i];
    }
    for (size_t i = 0; i <= L; i++)
        dy[0] -= q[i] / sum;
    for (size_t i = 0; i < L; i++)
        dy[s->labels[i]] -= q[W + i] / sum;
}

static void backward(sequence *s, size_t b, bm_tensor dy)
{
    size_t W = s->W, L = s->L;

    clear(2 * W, s->b);
    s->b[L] = 0;
    if (L > 0)
        s->b[W + L - 1] = 0;
    for (size_t t = s->T; t-- > 0;) {
        if (t + 1 < s->T)
            step_back(s, t);
        subtract_posterior(s, t, bm_cpu_frame(dy, t, b));
    }
}

/* The score of sequence b by itself; its rows of dy for the sum of losses. */
static bm_score run(sequence *s, size_t b, bm_infeasible policy, bm_tensor y,
                    bm_tensor dy)
{
    bm_score own = {
        .sequences = 1, .frames = (double)s->T, .count = (double)s->L};
    bool can = feasible(s);
    double log_p = 0;

    if (can || policy == BM_INFEASIBLE_ZERO) {
        look(s, b, y, dy, &own);
        log_p = can ? forward(s) : 0;
        own.errors = errors(s);
        own.loss -= log_p;
    }
    if ((!can && policy == BM_INFEASIBLE_SKIP) || !isfinite(own.loss) ||
        log_p < (double)never / 2)
        own = (bm_score){.skipped = 1};
    if (can && own.skipped == 0 && dy.data != NULL)
        backward(s, b, dy);
    else
        bm_cpu_clear_sequence(dy, b);
    return own;
}

void bm_cpu_ctc(bm_backend *be, bm_extent e, bm_targets t, bm_infeasible policy,
                bm_tensor y, bm_tensor dy, float *work, bm_score *score)
{
    const int32_t *labels = t.classes;
    double sequences = 0;

    (void)be;
    for (size_t b = 0; b < e.B; labels += t.count[b++]) {
        sequence s =
            lay_out((size_t)e.frames[b], labels, (size_t)t.count[b], work);
        bm_score own = run(&s, b, policy, y, dy);

        sequences += own.sequences;
        bm_score_add(score, &own);
    }
    bm_cpu_mean_gradient(e, dy, sequences);
}

/*
 * align.c - Viterbi's algorithm in two passes. The first keeps the scores of all
 * states before every segment of K frames, and no back pointers. The second goes
 * from the last segment to the first and repeats it with back pointers: a path
 * moves by two states a frame at most, so that only 2 K states below the last
 * one matter. K^3 = frames x states makes both memories about equal.
 *
 * Scores are doubles: of an hour of frames they keep 10 digits.
 */
#include "models/align.h"

#include "core/size.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct lattice {
    const float *y;
    size_t frames, stride;
    const int32_t *labels;
    size_t states;  /* 2 n + 1 */
    size_t segment; /* K */
    double *sum;    /* [frames]: ln of the sum of exp(logit) */
    double *row;    /* [states]: scores of the frame that was reached last */
    double *kept;   /* [segments, states]: row before each; 0 is not used */
    unsigned char *back; /* [segment, 2 segment + 1]: states that a step rose */
} lattice;

static double log_sum(const float *y, size_t n)
{
    double most = y[0], sum = 0;

    for (size_t c = 1; c < n; c++)
        most = y[c] > most || isnan(y[c]) ? y[c] : most;
    for (size_t c = 0; c < n; c++)
        sum += exp(y[c] - most);
    return most + log(sum);
}

/* ln p of the label of a state: even ones are blanks. */
static double log_p_of(const lattice *a, size_t t, size_t s)
{
    size_t class = s % 2 == 0 ? 0 : (size_t)a->labels[s / 2];

    return a->y[t * a->stride + class] - a->sum[t];
}

/* A label may follow another one without a blank between them. */
static bool may_skip(const lattice *a, size_t s)
{
    return s % 2 == 1 && s >= 3 && a->labels[s / 2] != a->labels[s / 2 - 1];
}

/* The states from which the end can be reached, of those that the start
 * reaches. */
static size_t lowest(const lattice *a, size_t t)
{
    size_t left = 2 * (a->frames - t);

    return a->states > left ? a->states - left : 0;
}

static size_t highest(const lattice *a, size_t t)
{
    return 2 * t + 1 < a->states ? 2 * t + 1 : a->states - 1;
}

/* a->row <- scores of frame t in states [low, high], from those of frame t - 1;
 * back[s - low] <- how many states the best step rose. back may be NULL. Of
 * equal scores the lowest state wins. */
static void advance(const lattice *a, size_t t, size_t low, size_t high,
                    unsigned char *back)
{
    double *row = a->row;

    for (size_t s = high + 1; s-- > low;) {
        double best = row[s];
        unsigned char rise = 0;

        if (s >= 1 && !(row[s - 1] < best)) {
            best = row[s - 1];
            rise = 1;
        }
        if (may_skip(a, s) && !(row[s - 2] < best)) {
            best = row[s - 2];
            rise = 2;
        }
        row[s] = best + log_p_of(a, t, s);
        if (back != NULL)
            back[s - low] = rise;
    }
}

static void begin(const lattice *a)
{
    for (size_t s = 0; s < a->states; s++)
        a->row[s] = s < 2 ? log_p_of(a, 0, s) : -INFINITY;
}

static void forward(const lattice *a)
{
    begin(a);
    for (size_t t = 1; t < a->frames; t++) {
        if (t % a->segment == 0)
            memcpy(a->kept + t / a->segment * a->states, a->row,
                   a->states * sizeof *a->row);
        advance(a, t, lowest(a, t), highest(a, t), NULL);
    }
}

static void note(const lattice *a, size_t t, size_t s, bm_label_span *spans)
{
    bm_label_span *of = &spans[s / 2];

    if (s % 2 == 0)
        return;
    if (of->last < 0)
        of->last = (int32_t)t;
    of->first = (int32_t)t;
    of->log_p += log_p_of(a, t, s);
}

/* The path in frames [from, to), which ends in state s. Returns the state of
 * frame from - 1, or 0 at the start. */
static size_t trace(const lattice *a, size_t from, size_t to, size_t s,
                    bm_label_span *spans)
{
    size_t last = s, width = 2 * a->segment + 1;
    size_t first = from > 0 ? from : 1; /* the first frame with a step to it */

    if (from > 0)
        memcpy(a->row, a->kept + from / a->segment * a->states,
               a->states * sizeof *a->row);
    else
        begin(a);
    for (size_t t = first; t < to; t++) {
        size_t reach = 2 * (to - 1 - t), low = lowest(a, t),
               high = highest(a, t);

        low = last > reach && last - reach > low ? last - reach : low;
        high = high < last ? high : last;
        advance(a, t, low, high, a->back + (t - from) * width);
    }
    for (size_t t = to; t-- > first;) {
        size_t reach = 2 * (to - 1 - t), low = lowest(a, t);

        low = last > reach && last - reach > low ? last - reach : low;
        note(a, t, s, spans);
        s -= a->back[(t - from) * width + s - low];
    }
    if (from == 0)
        note(a, 0, s, spans);
    return s;
}

static void trace_all(const lattice *a, size_t s, bm_label_span *spans)
{
    size_t n = a->states / 2, to = a->frames;

    for (size_t i = 0; i < n; i++)
        spans[i] = (bm_label_span){-1, -1, 0};
    while (to > 0) {
        size_t from = (to - 1) / a->segment * a->segment;

        s = trace(a, from, to, s, spans);
        to = from;
    }
    for (size_t i = 0; i < n; i++)
        spans[i].log_p /= spans[i].last - spans[i].first + 1;
}

static bm_status make_lattice(lattice *a)
{
    size_t segments = 0;

    a->segment = (size_t)cbrt((double)a->frames * (double)a->states) + 1;
    segments = a->frames / a->segment + 1;
    a->sum = calloc(a->frames, sizeof *a->sum);
    a->row = calloc(a->states, sizeof *a->row);
    a->kept = calloc(segments, bm_size_mul(a->states, sizeof *a->kept));
    a->back = calloc(a->segment, 2 * a->segment + 1);
    if (a->sum == NULL || a->row == NULL || a->kept == NULL || a->back == NULL)
        return BM_FAIL(BM_ERR_MEMORY,
                       "no memory to align %zu frames with %zu labels",
                       a->frames, a->states / 2);
    return BM_OK;
}

bm_status bm_ctc_align(const float *y, size_t frames, size_t stride,
                       size_t n_classes, const int32_t *labels, size_t n,
                       bm_label_span *spans, double *log_p)
{
    lattice a = {.y = y,
                 .frames = frames,
                 .stride = stride,
                 .labels = labels,
                 .states = 2 * n + 1};
    size_t s = a.states - 1;
    bm_status status = BM_OK;

    *log_p = -INFINITY;
    if (frames == 0 || frames < n)
        return BM_OK;
    BM_TRY_DONE(make_lattice(&a));
    for (size_t t = 0; t < frames; t++)
        a.sum[t] = log_sum(y + t * stride, n_classes);
    forward(&a);
    if (s > 0 && !(a.row[s - 1] < a.row[s]))
        s--;
    *log_p = a.row[s];
    if (isfinite(*log_p))
        trace_all(&a, s, spans);
done:
    free(a.sum);
    free(a.row);
    free(a.kept);
    free(a.back);
    return status;
}

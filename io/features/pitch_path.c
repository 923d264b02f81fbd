/*
 * pitch_path.c - a step of Viterbi's algorithm asks, for each state i, for the
 * least f(j) + a (i - j)^2 over states j: the lower envelope of equal parabolas,
 * which is made from left to right in linear time (P. Felzenszwalb and
 * D. Huttenlocher, "Distance transforms of sampled functions", Theory of
 * Computing 8, 2012). The parabolas meet in double, but costs are floats, as
 * Kaldi's are: where they differ little, rounding chooses the state.
 */
#include "io/features/pitch_path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bm_pitch_path {
    size_t states, frames, room; /* frames: added; room: in back */
    double penalty;
    float
        *forward; /* [states]: cost of the best path to here, less the least */
    float *next;  /* [states]: forward of the next frame */
    float *jump;  /* [states]: a d^2 of a distance d */
    double *inverse; /* [states]: 1 / (2 a d) of a distance d > 0 */
    double *raised;  /* [states]: f(j) + a j^2 */
    double *from;   /* [states + 1]: where parabola k begins to be the lowest */
    size_t *lowest; /* [states]: the state j of parabola k */
    uint16_t *back; /* [room, states]: the state of the frame before */
};

bm_status bm_pitch_path_new(bm_pitch_path **out, size_t states, double penalty)
{
    bm_pitch_path *p = calloc(1, sizeof *p);
    bm_status status = BM_OK;

    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a path");
    BM_ASSERT(states > 0 && states <= UINT16_MAX && penalty > 0);
    p->states = states;
    p->penalty = penalty;
    p->forward = calloc(states, sizeof *p->forward);
    p->next = calloc(states, sizeof *p->next);
    p->jump = calloc(states, sizeof *p->jump);
    p->inverse = calloc(states, sizeof *p->inverse);
    p->raised = calloc(states, sizeof *p->raised);
    p->from = calloc(states + 1, sizeof *p->from);
    p->lowest = calloc(states, sizeof *p->lowest);
    if (!p->forward || !p->next || !p->jump || !p->inverse || !p->raised ||
        !p->from || !p->lowest)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu states", states);
    for (size_t d = 1; d < states; d++) {
        p->jump[d] = (float)penalty * (float)(d * d);
        p->inverse[d] = 1 / (2 * penalty * (double)d);
    }
    *out = p;
    p = NULL;
done:
    bm_pitch_path_free(p);
    return status;
}

void bm_pitch_path_free(bm_pitch_path *p)
{
    if (p == NULL)
        return;
    free(p->forward);
    free(p->next);
    free(p->jump);
    free(p->inverse);
    free(p->raised);
    free(p->from);
    free(p->lowest);
    free(p->back);
    free(p);
}

bm_status bm_pitch_path_start(bm_pitch_path *p, size_t frames)
{
    p->frames = 0;
    memset(p->forward, 0, p->states * sizeof *p->forward);
    if (frames <= p->room)
        return BM_OK;
    free(p->back);
    p->room = 0;
    p->back = NULL;
    if (frames <= SIZE_MAX / sizeof *p->back / p->states)
        p->back = malloc(frames * p->states * sizeof *p->back);
    if (p->back == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a path of %zu frames",
                       frames);
    p->room = frames;
    return BM_OK;
}

/* Where the parabola of state j becomes lower than that of state i < j. */
static double crossing(const bm_pitch_path *p, size_t i, size_t j)
{
    return (p->raised[j] - p->raised[i]) * p->inverse[j - i];
}

/* The parabolas of the envelope, from left to right. */
static void make_envelope(bm_pitch_path *p)
{
    size_t k = 0;

    for (size_t j = 0; j < p->states; j++)
        p->raised[j] = p->forward[j] + p->penalty * (double)j * (double)j;
    p->lowest[0] = 0;
    p->from[0] = -INFINITY;
    for (size_t j = 1; j < p->states; j++) {
        double from = crossing(p, p->lowest[k], j);

        while (k > 0 && from <= p->from[k])
            from = crossing(p, p->lowest[--k], j);
        p->lowest[++k] = j;
        p->from[k] = from;
    }
    p->from[k + 1] = INFINITY;
}

/* next(i) <- the least over j of forward(j) + a (i - j)^2; j -> back */
static void step(bm_pitch_path *p, uint16_t *back)
{
    size_t k = 0;

    make_envelope(p);
    for (size_t i = 0; i < p->states; i++) {
        size_t j;

        while (p->from[k + 1] < (double)i)
            k++;
        j = p->lowest[k];
        back[i] = (uint16_t)j;
        p->next[i] = p->jump[i > j ? i - j : j - i] + p->forward[j];
    }
}

void bm_pitch_path_add(bm_pitch_path *p, const float *cost)
{
    float least = INFINITY;

    BM_ASSERT(p->frames < p->room);
    step(p, p->back + p->frames++ * p->states);
    for (size_t i = 0; i < p->states; i++) {
        p->next[i] += cost[i];
        least = p->next[i] < least ? p->next[i] : least;
    }
    for (size_t i = 0; i < p->states; i++)
        p->forward[i] = p->next[i] - least;
}

void bm_pitch_path_end(const bm_pitch_path *p, uint16_t *out)
{
    size_t best = 0;

    for (size_t i = 1; i < p->states; i++)
        if (p->forward[i] < p->forward[best])
            best = i;
    for (size_t t = p->frames; t-- > 0;) {
        out[t] = (uint16_t)best;
        best = p->back[t * p->states + best];
    }
}

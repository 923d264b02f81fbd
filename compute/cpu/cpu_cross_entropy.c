/* cpu_cross_entropy.c - one class for each frame: loss -log y, dy = y - target,
 * where the target is (1 - e) onehot + e / C (Szegedy et al. 2016). */
#include "compute/cpu/cpu.h"
#include "compute/cpu/cpu_loss.h"

#include <math.h>

/* The sum of exp(x - top); y [n], unless NULL, becomes its terms. */
static double exp_sum(const bm_loss_loops *loops, size_t n, const float *x,
                      float top, float *y)
{
    enum { PART = 256 };
    float terms[PART], m[PART];
    int32_t e[PART];
    double sum = 0;

    for (size_t from = 0; from < n; from += PART) {
        size_t part = n - from < PART ? n - from : PART;

        sum += (double)loops->exp(part, x + from, top, (bm_wide){m, e},
                                  y != NULL ? y + from : terms);
    }
    return sum;
}

/* Scores one frame of class k; dx [n], unless NULL, becomes its gradient. */
static void frame(const bm_loss_loops *loops, size_t n, const float *x,
                  size_t k, float smoothing, float *dx, bm_score *score)
{
    float top = loops->largest(n, x);
    double sum = exp_sum(loops, n, x, top, dx);
    float part = (float)(1 / sum), other = smoothing / (float)n;

    score->loss += log(sum) - (double)(x[k] - top);
    score->errors += bm_cpu_best(n, x, top) != k;
    if (dx == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        dx[i] = dx[i] * part - other;
    dx[k] -= 1 - smoothing;
}

typedef struct job {
    const bm_loss_loops *loops;
    bm_extent e;
    bm_targets t;
    float smoothing;
    bm_tensor y, dy;
} job;

/* The score of sequence b; sets its rows of dy for the sum of losses. */
static bm_score one(const void *self, size_t part, size_t b)
{
    const job *j = self;
    const int32_t *classes = bm_cpu_labels(j->t, b);
    size_t frames = (size_t)j->e.frames[b], C = j->y.dim[2];
    bm_score own = {.chance = (double)frames * log((double)C),
                    .sequences = 1,
                    .frames = (double)frames,
                    .count = (double)frames};

    (void)part;
    for (size_t t = 0; t < frames; t++)
        frame(j->loops, C, bm_cpu_frame(j->y, t, b), (size_t)classes[t],
              j->smoothing, bm_cpu_frame(j->dy, t, b), &own);
    if (frames > 0 && isfinite(own.loss))
        return own;
    bm_cpu_clear_sequence(j->dy, b);
    return (bm_score){.skipped = 1};
}

void bm_cpu_cross_entropy(bm_backend *be, bm_extent e, bm_targets t,
                          float smoothing, bm_tensor y, bm_tensor dy,
                          bm_score *score)
{
    job j = {bm_cpu_isa(be)->loss, e, t, smoothing, y, dy};
    bm_score all = bm_cpu_score(be, e.B, &j, one);

    bm_score_add(score, &all);
    bm_cpu_mean_gradient(be, e, dy, all.frames);
}

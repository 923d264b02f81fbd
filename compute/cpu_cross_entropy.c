/* cpu_cross_entropy.c - a class for every frame: loss -log y, dy = y - onehot,
 * one sequence after the other. */
#include "compute/cpu.h"
#include "compute/cpu_loss.h"

#include <math.h>

/* Sum of exp(x - top); y [n], unless NULL, gets its terms. */
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

/* One frame of class k: its loss and whether another class is the best. */
static void frame(const bm_loss_loops *loops, size_t n, const float *x,
                  size_t k, float *dx, bm_score *score)
{
    float top = loops->largest(n, x);
    double sum = exp_sum(loops, n, x, top, dx);
    float part = (float)(1 / sum);

    score->loss += log(sum) - (double)(x[k] - top);
    score->errors += bm_cpu_best(n, x, top) != k;
    if (dx == NULL)
        return;
    for (size_t i = 0; i < n; i++)
        dx[i] *= part;
    dx[k] -= 1;
}

/* The score of sequence b by itself; its rows of dy for the sum of losses. */
static bm_score sequence(const bm_loss_loops *loops, bm_extent e, size_t b,
                         const int32_t *classes, bm_tensor y, bm_tensor dy)
{
    size_t frames = (size_t)e.frames[b];
    bm_score own = {.chance = (double)frames * log((double)y.dim[2]),
                    .sequences = 1,
                    .frames = (double)frames,
                    .count = (double)frames};

    for (size_t t = 0; t < frames; t++)
        frame(loops, y.dim[2], bm_cpu_frame(y, t, b), (size_t)classes[t],
              bm_cpu_frame(dy, t, b), &own);
    return own;
}

void bm_cpu_cross_entropy(bm_backend *be, bm_extent e, bm_targets t,
                          bm_tensor y, bm_tensor dy, bm_score *score)
{
    const int32_t *classes = t.classes;
    double frames = 0;

    for (size_t b = 0; b < e.B; classes += t.count[b++]) {
        bm_score own = sequence(bm_cpu_isa(be)->loss, e, b, classes, y, dy);

        if (!isfinite(own.loss)) {
            own = (bm_score){.skipped = 1};
            bm_cpu_clear_sequence(dy, b);
        }
        frames += own.frames;
        bm_score_add(score, &own);
    }
    bm_cpu_mean_gradient(e, dy, frames);
}

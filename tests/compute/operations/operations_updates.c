/* operations_updates.c - momentum, AdamW, RMSProp and unit norm. */
#include "tests/compute/operations/subjects.h"

#include <math.h>

/* {n, statistics, kind, floats that vectors begin behind their memory, which t}
 */
enum { STEP_G, STEP_V, STEP_W, STEP_SKIPPED, STEP_M, STEP_T };

static const bm_momentum momentum_kinds[] = {
    {0.125F, 0.75F, 0, 0, false},       {0.125F, 0.75F, 0, 0, true},
    {0.125F, 0.75F, 0.03125F, 0, true}, {0.125F, 0.5F, 0.03125F, 5, false},
    {0.5F, 0, 0, 1e6F, false},
};

/* The arrays g, v, w and skipped. v has numbers beside the statistics too, which
 * must not change. */
static void make_step(trial *t)
{
    size_t n = t->shape[3] + t->shape[0], statistics = t->shape[1];

    for (int k = STEP_G; k <= STEP_W; k++)
        drawn(t, k == STEP_G ? CONSUMED : UPDATED, n + statistics);
    zeroed(t, UPDATED, true, 1);
}

static double clip_of(const trial *t, const double *g, double clip)
{
    double norm = 0;

    for (size_t i = 0; i < t->shape[0]; i++)
        norm += g[i] * g[i];
    return clip > 0 && sqrt(norm) > clip ? clip / sqrt(norm) : 1;
}

static void queue_momentum(bm_backend *be, trial *t, float *const *x)
{
    size_t off = t->shape[3];

    bm_momentum_step(be, &momentum_kinds[t->shape[2]], t->shape[0], t->shape[1],
                     x[STEP_G] + off, x[STEP_V] + off, x[STEP_W] + off,
                     (double *)(void *)x[STEP_SKIPPED]);
}

static void momentum(const trial *t, double *const *x)
{
    const bm_momentum *m = &momentum_kinds[t->shape[2]];
    size_t n = t->shape[0], off = t->shape[3];
    double *g = x[STEP_G] + off, *v = x[STEP_V] + off, *w = x[STEP_W] + off;
    double scale = clip_of(t, g, m->clip);

    for (size_t i = 0; i < n; i++) {
        double step = m->rate * (scale * g[i] + m->decay * w[i]);

        v[i] = m->momentum * v[i] - step;
        w[i] += m->nesterov ? m->momentum * v[i] - step : v[i];
    }
    for (size_t i = n; i < n + t->shape[1]; i++)
        w[i] -= g[i];
}

/* {n, floats that x begins behind its memory, whether x is 0} */
enum { UNIT_X, UNIT_Y };

static void make_unit(trial *t)
{
    array *x = drawn(t, INPUT, t->shape[1] + t->shape[0]);

    for (size_t i = 0; t->shape[2] && i < x->n; i++)
        x->x[i] = 0;
    output(t, t->shape[0]);
}

static void queue_unit(bm_backend *be, trial *t, float *const *x)
{
    bm_unit(be, t->shape[0], x[UNIT_X] + t->shape[1], x[UNIT_Y]);
}

static void unit(const trial *t, double *const *x)
{
    const double *from = x[UNIT_X] + t->shape[1];
    double sum = 0;

    for (size_t i = 0; i < t->shape[0]; i++)
        sum += from[i] * from[i];
    for (size_t i = 0; i < t->shape[0]; i++)
        x[UNIT_Y][i] = sum > 0 ? from[i] / sqrt(sum) : 0;
}

static const bm_adam adam_kinds[] = {
    {0.01, 0.9, 0.999, 1e-8, 0, 0, false},
    {0.01, 0.9, 0.999, 1e-8, 0.5, 0, false},
    {0.01, 0.5, 0.9, 0.1, 0.1, 10, false},
    {0.01, 0, 0, 1e-3, 0, 100, false},
    {0, 0.9, 0.999, 1e-8, 0.5, 1, false},
    {0.01, 0, 0.99, 1e-8, 0, 0, true},
    {0.01, 0.9, 0.9, 0.1, 0.25, 10, true},
};

static void make_adam(trial *t)
{
    static const double counts[] = {0, 100, 2.625};

    make_step(t);
    for (size_t i = 0; i < t->arrays[STEP_V].n; i++)
        t->arrays[STEP_V].x[i] = fabs(t->arrays[STEP_V].x[i]);
    drawn(t, UPDATED, t->arrays[STEP_V].n);
    zeroed(t, UPDATED, false, 1)->x[0] = counts[t->shape[4]];
}

static void queue_adam(bm_backend *be, trial *t, float *const *x)
{
    size_t off = t->shape[3];

    bm_adam_step(be, &adam_kinds[t->shape[2]], t->shape[0], t->shape[1],
                 x[STEP_G] + off, x[STEP_M] + off, x[STEP_V] + off,
                 x[STEP_W] + off, x[STEP_T], (double *)(void *)x[STEP_SKIPPED]);
}

static void adam_number(const bm_adam *a, double count, double d, double *m,
                        double *v, double *w)
{
    *m = a->beta1 * *m + (1 - a->beta1) * d;
    *v = a->beta2 * *v + (1 - a->beta2) * d * d;
    *w -= a->rate * (a->decay * *w +
                     *m / (1 - pow(a->beta1, count)) /
                         (sqrt(*v / (1 - pow(a->beta2, count))) + a->epsilon));
}

static void rms_number(const bm_adam *a, double d, double *m, double *v,
                       double *w)
{
    d += a->decay * *w;
    *v = a->beta2 * *v + (1 - a->beta2) * d * d;
    *m = a->beta1 * *m + d / (sqrt(*v) + a->epsilon);
    *w -= a->rate * *m;
}

static void adam(const trial *t, double *const *x)
{
    const bm_adam *a = &adam_kinds[t->shape[2]];
    size_t n = t->shape[0], off = t->shape[3];
    double *g = x[STEP_G] + off, *m = x[STEP_M] + off, *v = x[STEP_V] + off;
    double *w = x[STEP_W] + off, count = *x[STEP_T] += 1;
    double scale = clip_of(t, g, a->clip);

    for (size_t i = 0; i < n; i++)
        if (a->rms)
            rms_number(a, scale * g[i], &m[i], &v[i], &w[i]);
        else
            adam_number(a, count, scale * g[i], &m[i], &v[i], &w[i]);
    for (size_t i = n; i < n + t->shape[1]; i++)
        w[i] -= g[i];
}

static const subject rows[] = {
    {"momentum_step",
     false,
     make_step,
     queue_momentum,
     momentum,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-6,
     {{1003, 0, 0},
      {1003, 7, 1, 1},
      {70, 1, 2},
      {5003, 2, 3, 1},
      {5003, 3, 4}}},
    {"adam_step",
     false,
     make_adam,
     queue_adam,
     adam,
     0,
     0,
     {{0, 0}},
     1e-5,
     1e-6,
     {{1003, 0, 0},
      {1003, 7, 1, 1, 1},
      {70, 1, 2, 1, 2},
      {5003, 2, 3},
      {5003, 3, 4, 0, 2},
      {1003, 7, 5, 1},
      {5003, 2, 6}}},
    {"unit",
     false,
     make_unit,
     queue_unit,
     unit,
     0,
     0,
     {{0, 0}},
     1e-6,
     1e-6,
     {{1}, {1003}, {1003, 1}, {40007, 3}, {5, 0, 1}}},
};

const subjects updates_subjects = {rows, sizeof rows / sizeof *rows};

/*
 * cpu_norm.c - batch normalisation, channels last.
 *
 * Sums go over pieces of the batch that stay in the L1 cache: floats within a
 * piece, doubles from piece to piece (Chan, Golub and LeVeque 1983). Channels
 * are few, so that rows of `fold` positions are looked at as one, [fold C].
 */
#include "compute/cpu.h"

#include <math.h>
#include <string.h>

enum { ROW = 256, PIECE = 1 << 13, LINE = 64 / sizeof(float) }; /* floats */

/* Of the batch, and views of `kept`. */
typedef struct pass {
    const bm_norm *n;
    const bm_image_loops *loops;
    bm_extent e;
    size_t fold;
    double *count;              /* positions */
    double *mean, *squares;     /* [C]; sums of (x - mean)^2 */
    double *slope, *slope_x;    /* [C]: sums of dy, and of dy (x - mean) */
    float *a, *b, *c;           /* [fold C]: factors */
    float *center, *sum, *more; /* [fold C]: about the mean; of a piece */
} pass;

enum { DOUBLES = 4, FLOATS = 6 };

static pass view(bm_backend *be, const bm_norm *n, bm_extent e, float *kept)
{
    size_t C = n->channels, fold = C < ROW ? ROW / C : 1, row = fold * C;
    pass p = {.n = n, .loops = bm_cpu_isa(be)->image, .e = e, .fold = fold};
    float *floats = kept + LINE + 2 * DOUBLES * C;

    p.count = (double *)(void *)kept;
    p.mean = (double *)(void *)(kept + LINE);
    p.squares = p.mean + C;
    p.slope = p.squares + C;
    p.slope_x = p.slope + C;
    p.a = floats;
    p.b = floats + row;
    p.c = floats + 2 * row;
    p.center = floats + 3 * row;
    p.sum = floats + 4 * row;
    p.more = floats + 5 * row;
    return p;
}

size_t bm_cpu_norm_kept(bm_backend *be, const bm_norm *n)
{
    (void)be;
    return LINE + 2 * DOUBLES * n->channels + FLOATS * (n->channels + ROW);
}

/* Frames without padding that lie one behind the other. */
typedef struct piece {
    size_t at;             /* number of the first frame, t B + b */
    size_t frames;         /* 0: there are no more */
    size_t positions;      /* in them */
    size_t rows, rest;     /* positions / fold, and the floats left over */
    size_t begin, rest_at; /* floats */
} piece;

static bool valid(bm_extent e, size_t frame)
{
    return frame / e.B < (size_t)e.frames[frame % e.B];
}

/* The one after `last`, which is {0} at first. */
static piece next(const pass *p, piece last)
{
    size_t C = p->n->channels, frame = p->n->positions * C;
    size_t end = p->e.T * p->e.B, most = PIECE / frame > 0 ? PIECE / frame : 1;
    piece x = {.at = last.at + last.frames};

    while (x.at < end && !valid(p->e, x.at))
        x.at++;
    while (x.frames < most && x.at + x.frames < end &&
           valid(p->e, x.at + x.frames))
        x.frames++;
    x.positions = x.frames * p->n->positions;
    x.rows = x.positions / p->fold;
    x.rest = x.positions % p->fold * C;
    x.begin = x.at * frame;
    x.rest_at = x.begin + x.rows * p->fold * C;
    return x;
}

static void clear(const pass *p, float *sum)
{
    memset(sum, 0, p->fold * p->n->channels * sizeof *sum);
}

/* The sum over the fold, of channel c. */
static double folded(const pass *p, const float *sum, size_t c)
{
    double all = 0;

    for (size_t k = 0; k < p->fold; k++)
        all += sum[k * p->n->channels + c];
    return all;
}

/* The same number for every position of a row. */
static void set(const pass *p, float *row, size_t c, double value)
{
    for (size_t k = 0; k < p->fold; k++)
        row[k * p->n->channels + c] = (float)value;
}

/* Mean and sum of squares of a piece, and of all that came before. */
static void join(const pass *p, const piece *x)
{
    double n = (double)x->positions, all = *p->count + n;

    for (size_t c = 0; c < p->n->channels; c++) {
        double off = p->center[c] - p->mean[c];
        p->squares[c] +=
            folded(p, p->more, c) + off * off * n * *p->count / all;
        p->mean[c] += off * n / all;
    }
    *p->count = all;
}

static void find_moments(const pass *p, const float *x)
{
    size_t C = p->n->channels, row = p->fold * C;

    *p->count = 0;
    memset(p->mean, 0, 2 * C * sizeof *p->mean); /* and squares */
    for (piece i = next(p, (piece){0}); i.frames > 0; i = next(p, i)) {
        clear(p, p->sum);
        clear(p, p->more);
        p->loops->sums(i.rows, row, x + i.begin, p->sum);
        p->loops->sums(1, i.rest, x + i.rest_at, p->sum);
        for (size_t c = 0; c < C; c++)
            set(p, p->center, c, folded(p, p->sum, c) / (double)i.positions);
        p->loops->squares(i.rows, row, x + i.begin, p->center, p->more);
        p->loops->squares(1, i.rest, x + i.rest_at, p->center, p->more);
        join(p, &i);
    }
}

static double variance(const pass *p, size_t c)
{
    return *p->count > 0 ? p->squares[c] / *p->count : 0;
}

static double invert(double var)
{
    return 1 / sqrt(fmax(var, 0) + BM_NORM_EPSILON);
}

static void clear_padding(bm_backend *be, const bm_norm *n, bm_extent e,
                          float *x)
{
    bm_tensor all = {x, 3, {e.T, e.B, n->positions * n->channels, 1}};
    bm_cpu_clear_padding(be, e, all);
}

void bm_cpu_norm_forward(bm_backend *be, const bm_norm *n, bm_extent e,
                         bool training, const float *x, float *y, float *kept)
{
    pass p = view(be, n, e, kept);
    size_t row = p.fold * n->channels;

    if (training)
        find_moments(&p, x);
    for (size_t c = 0; c < n->channels; c++) {
        double mean = training ? p.mean[c] : n->mean[c];
        double a = n->gamma[c] * invert(training ? variance(&p, c) : n->var[c]);

        set(&p, p.center, c, mean);
        set(&p, p.a, c, a);
        set(&p, p.b, c, n->beta[c] + a * (p.center[c] - mean));
    }
    for (piece i = next(&p, (piece){0}); i.frames > 0; i = next(&p, i)) {
        p.loops->scale(i.rows, row, p.a, p.center, p.b, x + i.begin,
                       y + i.begin);
        p.loops->scale(1, i.rest, p.a, p.center, p.b, x + i.rest_at,
                       y + i.rest_at);
    }
    clear_padding(be, n, e, y);
}

static void find_slopes(const pass *p, const float *x, const float *dy)
{
    size_t C = p->n->channels, row = p->fold * C;

    memset(p->slope, 0, 2 * C * sizeof *p->slope); /* and slope_x */
    for (size_t c = 0; c < C; c++)
        set(p, p->center, c, p->mean[c]);
    for (piece i = next(p, (piece){0}); i.frames > 0; i = next(p, i)) {
        clear(p, p->sum);
        clear(p, p->more);
        p->loops->products(i.rows, row, dy + i.begin, x + i.begin, p->center,
                           p->sum, p->more);
        p->loops->products(1, i.rest, dy + i.rest_at, x + i.rest_at, p->center,
                           p->sum, p->more);
        for (size_t c = 0; c < C; c++) {
            double sum = folded(p, p->sum, c);
            p->slope[c] += sum;
            p->slope_x[c] +=
                folded(p, p->more, c) + sum * (p->center[c] - p->mean[c]);
        }
    }
}

/*
 *     dx = gamma r (dy - mean of dy - (x - mean) r^2 mean of dy (x - mean))
 *
 * with r = 1 / sqrt(var + epsilon).
 */
static void follow(const pass *p, const float *x, const float *dy, float *dx)
{
    size_t row = p->fold * p->n->channels;

    for (size_t c = 0; c < p->n->channels; c++) {
        double r = invert(variance(p, c)), a = p->n->gamma[c] * r;
        double b = -a * r * r * p->slope_x[c] / *p->count;

        set(p, p->a, c, a);
        set(p, p->b, c, b);
        set(p, p->c, c,
            b * (p->center[c] - p->mean[c]) - a * p->slope[c] / *p->count);
    }
    for (piece i = next(p, (piece){0}); i.frames > 0; i = next(p, i)) {
        p->loops->mix(i.rows, row, p->a, p->b, p->center, p->c, dy + i.begin,
                      x + i.begin, dx + i.begin);
        p->loops->mix(1, i.rest, p->a, p->b, p->center, p->c, dy + i.rest_at,
                      x + i.rest_at, dx + i.rest_at);
    }
}

void bm_cpu_norm_backward(bm_backend *be, const bm_norm *n, bm_extent e,
                          const float *x, const float *dy, float *kept,
                          float *dx, float *dgamma, float *dbeta,
                          float *mean_off, float *var_off)
{
    pass p = view(be, n, e, kept);
    bool empty = *p.count == 0;

    find_slopes(&p, x, dy);
    for (size_t c = 0; c < n->channels; c++) {
        dgamma[c] = (float)(p.slope_x[c] * invert(variance(&p, c)));
        dbeta[c] = (float)p.slope[c];
        mean_off[c] = empty ? 0 : (float)(n->mean[c] - p.mean[c]);
        var_off[c] = empty ? 0 : (float)(n->var[c] - variance(&p, c));
    }
    if (dx == NULL)
        return;
    follow(&p, x, dy, dx);
    clear_padding(be, n, e, dx);
}

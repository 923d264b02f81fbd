/*
 * cpu_norm.c - batch normalisation, channels last.
 *
 * Sums go over pieces of the batch that stay in the L1 cache: floats within a
 * piece, doubles from piece to piece (Chan, Golub and LeVeque 1983). Channels
 * are few, so that rows of `fold` positions are looked at as one, [fold C].
 *
 * Threads take groups of frames. There are always as many of them, joined in
 * one order, so that the number of threads changes no bit.
 */
#include "compute/cpu.h"

#include <math.h>
#include <string.h>

enum { ROW = 256, PIECE = 1 << 13, LINE = 64 / sizeof(float) }; /* floats */
enum { GROUPS = 16 };

/* Of the batch, and views of `kept`. */
typedef struct pass {
    const bm_norm *n;
    const bm_image_loops *loops;
    bm_extent e;
    size_t threads, fold, row; /* row = fold C */
    const float *x, *dy;
    float *out;
    double *sums;   /* [1 + GROUPS, 1 + 2 C]: of the batch, then of groups */
    double *slopes; /* [2, C]: sums of dy, and of dy (x - mean) */
    float *a, *b, *c, *center; /* [row]: factors, and about the mean */
    float *own;                /* [threads, 3, row] */
} pass;

static size_t round_up(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

/* Floats from view to view. */
static size_t room_for_sums(size_t C)
{
    return round_up((1 + GROUPS) * (1 + 2 * C) * 2);
}

static size_t room_for_slopes(size_t C)
{
    return round_up(2 * C * 2);
}

static pass view(bm_backend *be, const bm_norm *n, bm_extent e, float *kept)
{
    size_t C = n->channels, fold = C < ROW ? ROW / C : 1;
    pass p = {.n = n,
              .loops = bm_cpu_isa(be)->image,
              .e = e,
              .threads = bm_pool_threads(bm_cpu_of(be)->pool),
              .fold = fold,
              .row = fold * C};

    p.sums = (double *)(void *)kept;
    kept += room_for_sums(C);
    p.slopes = (double *)(void *)kept;
    kept += room_for_slopes(C);
    p.a = kept;
    p.b = p.a + p.row;
    p.c = p.b + p.row;
    p.center = p.c + p.row;
    p.own = p.center + p.row;
    return p;
}

size_t bm_cpu_norm_kept(bm_backend *be, const bm_norm *n)
{
    size_t C = n->channels, row = C < ROW ? ROW : C;
    size_t threads = bm_pool_threads(bm_cpu_of(be)->pool);

    return room_for_sums(C) + room_for_slopes(C) + (4 + 3 * threads) * row;
}

/* ---- pieces ------------------------------------------------------------- */

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

/* The first piece of a group from frame `at` on. */
static piece find(const pass *p, size_t group, size_t at)
{
    size_t C = p->n->channels, frame = p->n->positions * C;
    size_t end = bm_part(p->e.T * p->e.B, 1, GROUPS, group + 1);
    size_t most = PIECE / frame > 0 ? PIECE / frame : 1;
    piece x = {.at = at};

    while (x.at < end && !valid(p->e, x.at))
        x.at++;
    while (x.frames < most && x.at + x.frames < end &&
           valid(p->e, x.at + x.frames))
        x.frames++;
    x.positions = x.frames * p->n->positions;
    x.rows = x.positions / p->fold;
    x.rest = x.positions % p->fold * C;
    x.begin = x.at * frame;
    x.rest_at = x.begin + x.rows * p->row;
    return x;
}

static piece first(const pass *p, size_t group)
{
    return find(p, group, bm_part(p->e.T * p->e.B, 1, GROUPS, group));
}

static piece next(const pass *p, size_t group, piece last)
{
    return find(p, group, last.at + last.frames);
}

/* ---- rows --------------------------------------------------------------- */

/* One of a thread's own. */
static float *own(const pass *p, size_t part, size_t which)
{
    return p->own + (3 * part + which) * p->row;
}

static void clear(const pass *p, float *row)
{
    memset(row, 0, p->row * sizeof *row);
}

/* The sum over the fold, of channel c. */
static double folded(const pass *p, const float *row, size_t c)
{
    double all = 0;

    for (size_t k = 0; k < p->fold; k++)
        all += row[k * p->n->channels + c];
    return all;
}

/* The same number for every position of a row. */
static void set(const pass *p, float *row, size_t c, double value)
{
    for (size_t k = 0; k < p->fold; k++)
        row[k * p->n->channels + c] = (float)value;
}

/* ---- forward ------------------------------------------------------------ */

/* Of so many positions: means, and sums of squares about them. */
typedef struct moments {
    double *count, *mean, *squares; /* [1], [C], [C] */
} moments;

/* Number 0 is the batch, the others are its groups. */
static moments moments_of(const pass *p, size_t i)
{
    size_t C = p->n->channels;
    double *row = p->sums + i * (1 + 2 * C);

    return (moments){row, row + 1, row + 1 + C};
}

static void begin(const pass *p, moments m)
{
    memset(m.count, 0, (1 + 2 * p->n->channels) * sizeof *m.count);
}

/* n > 0 positions more, of channel c; m.count is to follow. */
static void join(moments m, size_t c, double n, double mean, double squares)
{
    double all = *m.count + n, off = mean - m.mean[c];

    m.squares[c] += squares + off * off * n * *m.count / all;
    m.mean[c] += off * n / all;
}

static void measure(const pass *p, const piece *i, size_t part, moments m)
{
    float *sum = own(p, part, 0), *center = own(p, part, 1);
    float *squares = own(p, part, 2);
    double n = (double)i->positions;

    clear(p, sum);
    clear(p, squares);
    p->loops->sums(i->rows, p->row, p->x + i->begin, sum);
    p->loops->sums(1, i->rest, p->x + i->rest_at, sum);
    for (size_t c = 0; c < p->n->channels; c++)
        set(p, center, c, folded(p, sum, c) / n);
    p->loops->squares(i->rows, p->row, p->x + i->begin, center, squares);
    p->loops->squares(1, i->rest, p->x + i->rest_at, center, squares);
    for (size_t c = 0; c < p->n->channels; c++)
        join(m, c, n, center[c], folded(p, squares, c));
    *m.count += n;
}

static void measure_part(void *self, size_t part)
{
    const pass *p = self;

    for (size_t g = part; g < GROUPS; g += p->threads) {
        moments m = moments_of(p, 1 + g);

        begin(p, m);
        for (piece i = first(p, g); i.frames > 0; i = next(p, g, i))
            measure(p, &i, part, m);
    }
}

static void find_moments(bm_backend *be, pass *p)
{
    moments all = moments_of(p, 0);

    bm_cpu_run(be, p->threads, measure_part, p);
    begin(p, all);
    for (size_t g = 0; g < GROUPS; g++) {
        moments m = moments_of(p, 1 + g);

        for (size_t c = 0; c<p->n->channels && * m.count> 0; c++)
            join(all, c, *m.count, m.mean[c], m.squares[c]);
        *all.count += *m.count;
    }
}

static double variance(moments m, size_t c)
{
    return *m.count > 0 ? m.squares[c] / *m.count : 0;
}

static double invert(double var)
{
    return 1 / sqrt(fmax(var, 0) + BM_NORM_EPSILON);
}

static void scale_part(void *self, size_t part)
{
    const pass *p = self;

    for (size_t g = part; g < GROUPS; g += p->threads)
        for (piece i = first(p, g); i.frames > 0; i = next(p, g, i)) {
            p->loops->scale(i.rows, p->row, p->a, p->center, p->b,
                            p->x + i.begin, p->out + i.begin);
            p->loops->scale(1, i.rest, p->a, p->center, p->b, p->x + i.rest_at,
                            p->out + i.rest_at);
        }
}

/* Runs the work that writes p->out, and clears what it leaves. */
static void write_out(bm_backend *be, pass *p,
                      void (*part)(void *self, size_t part))
{
    bm_tensor all = {
        p->out, 3, {p->e.T, p->e.B, p->n->positions * p->n->channels, 1}};

    bm_cpu_run(be, p->threads, part, p);
    bm_cpu_clear_padding(be, p->e, all);
}

void bm_cpu_norm_forward(bm_backend *be, const bm_norm *n, bm_extent e,
                         bool training, const float *x, float *y, float *kept)
{
    pass p = view(be, n, e, kept);
    moments m = moments_of(&p, 0);

    p.x = x;
    p.out = y;
    if (training)
        find_moments(be, &p);
    for (size_t c = 0; c < n->channels; c++) {
        double mean = training ? m.mean[c] : n->mean[c];
        double a = n->gamma[c] * invert(training ? variance(m, c) : n->var[c]);

        set(&p, p.center, c, mean);
        set(&p, p.a, c, a);
        set(&p, p.b, c, n->beta[c] + a * (p.center[c] - mean));
    }
    write_out(be, &p, scale_part);
}

/* ---- backward ----------------------------------------------------------- */

/* A group's row of p->sums is of slopes now: [2, C]. */
static void slopes_part(void *self, size_t part)
{
    const pass *p = self;
    size_t C = p->n->channels;
    float *sum = own(p, part, 0), *product = own(p, part, 1);

    for (size_t g = part; g < GROUPS; g += p->threads) {
        double *slopes = moments_of(p, 1 + g).mean;

        memset(slopes, 0, 2 * C * sizeof *slopes);
        for (piece i = first(p, g); i.frames > 0; i = next(p, g, i)) {
            clear(p, sum);
            clear(p, product);
            p->loops->products(i.rows, p->row, p->dy + i.begin, p->x + i.begin,
                               p->center, sum, product);
            p->loops->products(1, i.rest, p->dy + i.rest_at, p->x + i.rest_at,
                               p->center, sum, product);
            for (size_t c = 0; c < C; c++) {
                slopes[c] += folded(p, sum, c);
                slopes[C + c] += folded(p, product, c);
            }
        }
    }
}

/* About the mean itself, from which p->center is off by rounding. */
static void find_slopes(bm_backend *be, pass *p)
{
    size_t C = p->n->channels;
    moments m = moments_of(p, 0);

    bm_cpu_run(be, p->threads, slopes_part, p);
    memset(p->slopes, 0, 2 * C * sizeof *p->slopes);
    for (size_t g = 0; g < GROUPS; g++)
        for (size_t i = 0; i < 2 * C; i++)
            p->slopes[i] += moments_of(p, 1 + g).mean[i];
    for (size_t c = 0; c < C; c++)
        p->slopes[C + c] += p->slopes[c] * (p->center[c] - m.mean[c]);
}

static void mix_part(void *self, size_t part)
{
    const pass *p = self;

    for (size_t g = part; g < GROUPS; g += p->threads)
        for (piece i = first(p, g); i.frames > 0; i = next(p, g, i)) {
            p->loops->mix(i.rows, p->row, p->a, p->b, p->center, p->c,
                          p->dy + i.begin, p->x + i.begin, p->out + i.begin);
            p->loops->mix(1, i.rest, p->a, p->b, p->center, p->c,
                          p->dy + i.rest_at, p->x + i.rest_at,
                          p->out + i.rest_at);
        }
}

/*
 *     dx = gamma r (dy - mean of dy - (x - mean) r^2 mean of dy (x - mean))
 *
 * with r = 1 / sqrt(var + epsilon).
 */
static void follow(bm_backend *be, pass *p)
{
    size_t C = p->n->channels;
    moments m = moments_of(p, 0);

    for (size_t c = 0; c < C; c++) {
        double r = invert(variance(m, c)), a = p->n->gamma[c] * r;
        double b = -a * r * r * p->slopes[C + c] / *m.count;

        set(p, p->a, c, a);
        set(p, p->b, c, b);
        set(p, p->c, c,
            b * (p->center[c] - m.mean[c]) - a * p->slopes[c] / *m.count);
    }
    write_out(be, p, mix_part);
}

void bm_cpu_norm_backward(bm_backend *be, const bm_norm *n, bm_extent e,
                          const float *x, const float *dy, float *kept,
                          float *dx, float *dgamma, float *dbeta,
                          float *mean_off, float *var_off)
{
    pass p = view(be, n, e, kept);
    moments m = moments_of(&p, 0);
    bool empty = *m.count == 0;
    size_t C = n->channels;

    p.x = x;
    p.dy = dy;
    p.out = dx;
    find_slopes(be, &p);
    for (size_t c = 0; c < C; c++) {
        dgamma[c] = (float)(p.slopes[C + c] * invert(variance(m, c)));
        dbeta[c] = (float)p.slopes[c];
        mean_off[c] = empty ? 0 : (float)(n->mean[c] - m.mean[c]);
        var_off[c] = empty ? 0 : (float)(n->var[c] - variance(m, c));
    }
    if (dx != NULL)
        follow(be, &p);
}

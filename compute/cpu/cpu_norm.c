/*
 * cpu_norm.c - batch normalisation, channels last, with the activation and the
 * windows after it.
 *
 * A few frames at a time are normalised, activated and pooled in the L1 cache;
 * only y and the position of each window's maximum are stored. The backward
 * pass computes the gradient in front of the windows there twice: for the sums
 * over the batch, and for dx.
 *
 * Sums go over pieces of the batch that fit in the L1 cache: in floats within a
 * piece, in doubles across pieces (Chan, Golub and LeVeque 1983). Channels are
 * few, so that rows of `fold` positions are treated as one, [fold C].
 *
 * Threads take groups of frames. The number of groups is fixed, and they are
 * merged in one order, so that the number of threads changes no bit.
 */
#include "compute/cpu/cpu.h"

#include <math.h>
#include <string.h>

enum { ROW = 256, PIECE = 1 << 13, LINE = 64 / sizeof(float) }; /* floats */
enum { GROUPS = 16 };

/* The arguments, and views of `kept`. */
typedef struct pass {
    const bm_norm *n;
    const bm_loops *loops;
    const bm_image_loops *image;
    bm_extent in, out;
    size_t frame, out_frame;   /* floats, of x and of y */
    size_t threads, fold, row; /* row = fold C */
    const float *x, *top, *dy; /* top: y of the forward pass */
    float *y, *dx;
    double *sums;   /* [1 + GROUPS, 1 + 2 C]: the batch's, then the groups' */
    double *slopes; /* [2, C]: sums of dz, and of dz (x - mean) */
    float *a, *b, *c, *center; /* [row]: factors, and nearly the mean */
    float *own; /* [threads, own_floats]: three rows, a piece, a frame of y */
    size_t own_floats;
    int32_t *places; /* [T', B, out_frame]; NULL: windows of one place */
} pass;

static size_t round_up(size_t n)
{
    return (n + LINE - 1) / LINE * LINE;
}

/* The sizes of the views: floats. */
static size_t room_for_sums(size_t C)
{
    return round_up((1 + GROUPS) * (1 + 2 * C) * 2);
}

static size_t room_for_slopes(size_t C)
{
    return round_up(2 * C * 2);
}

static bool has_windows(const bm_norm *n)
{
    return n->time.size * n->rows.size > 1;
}

static pass measured(bm_backend *be, const bm_norm *n)
{
    size_t C = n->channels, fold = C < ROW ? ROW / C : 1;
    pass p = {.n = n,
              .loops = bm_cpu_isa(be)->loops,
              .image = bm_cpu_isa(be)->image,
              .frame = n->height * C,
              .out_frame = bm_windows(n->rows, n->height) * C,
              .threads = bm_thread_pool_threads(bm_cpu_of(be)->pool),
              .fold = fold,
              .row = fold * C};
    size_t piece = p.frame < PIECE ? PIECE : p.frame;

    p.own_floats = round_up(3 * p.row + piece + p.out_frame);
    return p;
}

static pass view(bm_backend *be, const bm_norm *n, bm_extent in, bm_extent out,
                 float *kept)
{
    pass p = measured(be, n);
    size_t C = n->channels;

    p.in = in;
    p.out = out;
    p.sums = (double *)(void *)kept;
    kept += room_for_sums(C);
    p.slopes = (double *)(void *)kept;
    kept += room_for_slopes(C);
    p.a = kept;
    p.b = p.a + p.row;
    p.c = p.b + p.row;
    p.center = p.c + p.row;
    p.own = p.center + p.row;
    kept = p.own + p.threads * p.own_floats;
    p.places = has_windows(n) ? (int32_t *)(void *)kept : NULL;
    return p;
}

size_t bm_cpu_norm_kept(bm_backend *be, const bm_norm *n, bm_extent out)
{
    pass p = measured(be, n);
    size_t places = has_windows(n) ? out.T * out.B * p.out_frame : 0;

    return room_for_sums(n->channels) + room_for_slopes(n->channels) +
           4 * p.row + p.threads * p.own_floats + places;
}

/* ---- pieces ------------------------------------------------------------- */

/* Frames that are contiguous, without padding. */
typedef struct piece {
    size_t at;             /* number of the first frame, t B + b */
    size_t frames;         /* 0: the end */
    size_t positions;      /* in them */
    size_t rows, rest;     /* positions / fold, and the floats left over */
    size_t begin, rest_at; /* floats: of x, and of the piece */
} piece;

static bool valid(bm_extent e, size_t frame)
{
    return frame / e.B < (size_t)e.frames[frame % e.B];
}

/* The first piece of a group from frame `at` on. */
static piece find(const pass *p, size_t group, size_t at)
{
    size_t end = bm_part(p->in.T * p->in.B, 1, GROUPS, group + 1);
    size_t most = PIECE / p->frame > 0 ? PIECE / p->frame : 1;
    piece x = {.at = at};

    while (x.at < end && !valid(p->in, x.at))
        x.at++;
    while (x.frames < most && x.at + x.frames < end &&
           valid(p->in, x.at + x.frames))
        x.frames++;
    x.positions = x.frames * p->n->height;
    x.rows = x.positions / p->fold;
    x.rest = x.positions % p->fold * p->n->channels;
    x.begin = x.at * p->frame;
    x.rest_at = x.rows * p->row;
    return x;
}

static piece first(const pass *p, size_t group)
{
    return find(p, group, bm_part(p->in.T * p->in.B, 1, GROUPS, group));
}

static piece next(const pass *p, size_t group, piece last)
{
    return find(p, group, last.at + last.frames);
}

/* ---- rows --------------------------------------------------------------- */

/* A row of a thread's buffers. */
static float *own(const pass *p, size_t part, size_t which)
{
    return p->own + part * p->own_floats + which * p->row;
}

/* Its buffer for a piece of x or a frame, behind the three rows. */
static float *own_piece(const pass *p, size_t part)
{
    return own(p, part, 3);
}

static float *own_frame(const pass *p, size_t part)
{
    return p->own + (part + 1) * p->own_floats - p->out_frame;
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

/* Numbers of positions, means, and sums of squares about these. */
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

/* Adds n > 0 positions to channel c; the caller updates m.count. */
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
    const float *x = p->x + i->begin;
    double n = (double)i->positions;

    clear(p, sum);
    clear(p, squares);
    p->loops->add_rows(i->rows, p->row, p->row, x, sum);
    p->loops->add_rows(1, i->rest, 0, x + i->rest_at, sum);
    for (size_t c = 0; c < p->n->channels; c++)
        set(p, center, c, folded(p, sum, c) / n);
    p->image->squares(i->rows, p->row, x, center, squares);
    p->image->squares(1, i->rest, x + i->rest_at, center, squares);
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

/* f(z) of a frame. */
static void activate(const pass *p, const float *x, float *z)
{
    size_t rows = p->n->height / p->fold, done = rows * p->row;

    p->image->scale(rows, p->row, p->a, p->center, p->b, x, z);
    p->image->scale(1, p->frame - done, p->a, p->center, p->b, x + done,
                    z + done);
    if (p->n->f != BM_IDENTITY)
        p->loops->activate(p->n->f, p->frame, z, z);
}

/* The windows of a column: the full ones, and one of the remaining rows, if
 * any. */
typedef struct column {
    size_t full, rows;      /* rows: of each */
    size_t last, last_rows; /* 0 or 1 */
    size_t z, y;            /* where that begins: floats */
} column;

static column column_of(const pass *p)
{
    size_t C = p->n->channels, H = p->n->height, rows = p->n->rows.size;
    size_t full = H / rows;

    return (column){full,
                    rows,
                    p->out_frame / C - full,
                    H - full * rows,
                    full * rows * C,
                    full * C};
}

/* Number k of the frames under one of y. */
static void raise(const pass *p, size_t k, const float *z, float *y,
                  int32_t *place)
{
    column c = column_of(p);
    int32_t at = (int32_t)(k * c.rows);

    p->image->raise(c.full, c.rows, p->n->channels, at, z, y, place);
    p->image->raise(c.last, c.last_rows, p->n->channels, at, z + c.z, y + c.y,
                    place + c.y);
}

static void write_frame(const pass *p, size_t part, size_t t, size_t b)
{
    size_t at = bm_cpu_at(p->out, t, b, p->out_frame);
    size_t from = t * p->n->time.size, end = from + p->n->time.size;
    float *z = own_piece(p, part);

    end = end < (size_t)p->in.frames[b] ? end : (size_t)p->in.frames[b];
    if (p->places == NULL)
        activate(p, p->x + at, p->y + at);
    else
        for (size_t i = from; i < end; i++) {
            activate(p, p->x + bm_cpu_at(p->in, i, b, p->frame), z);
            raise(p, i - from, z, p->y + at, p->places + at);
        }
}

static void write_part(void *self, size_t part)
{
    const pass *p = self;
    size_t to = bm_part(p->out.T, 1, p->threads, part + 1);

    for (size_t t = bm_part(p->out.T, 1, p->threads, part); t < to; t++)
        for (size_t b = 0; b < p->out.B; b++)
            if (t < (size_t)p->out.frames[b])
                write_frame(p, part, t, b);
}

void bm_cpu_norm_forward(bm_backend *be, const bm_norm *n, bm_extent in,
                         bm_extent out, bool training, const float *x, float *y,
                         float *kept)
{
    pass p = view(be, n, in, out, kept);
    moments m = moments_of(&p, 0);
    bm_tensor all = {y, 3, {out.T, out.B, p.out_frame, 1}};

    p.x = x;
    p.y = y;
    if (training)
        find_moments(be, &p);
    for (size_t c = 0; c < n->channels; c++) {
        double mean = training ? m.mean[c] : n->mean[c];
        double a = n->gamma[c] * invert(training ? variance(m, c) : n->var[c]);

        set(&p, p.center, c, mean);
        set(&p, p.a, c, a);
        set(&p, p.b, c, n->beta[c] + a * (p.center[c] - mean));
    }
    bm_cpu_run(be, p.threads, write_part, &p);
    bm_cpu_clear_padding(be, out, all);
}

/* ---- backward ----------------------------------------------------------- */

/* The gradient by z, dz, of frame t of sequence b. */
static void lower(const pass *p, size_t part, size_t t, size_t b, float *dz)
{
    size_t at = bm_cpu_at(p->out, t / p->n->time.size, b, p->out_frame);
    column c = column_of(p);
    int32_t k = (int32_t)(t % p->n->time.size * c.rows);
    const int32_t *place = p->places + at;
    float *dy = own_frame(p, part);

    p->loops->activate_back(p->n->f, p->out_frame, p->top + at, p->dy + at, dy);
    p->image->lower(c.full, c.rows, p->n->channels, k, place, dy, dz);
    p->image->lower(c.last, c.last_rows, p->n->channels, k, place + c.y,
                    dy + c.y, dz + c.z);
}

/* dz of a piece. */
static const float *differentiate(const pass *p, size_t part, const piece *i)
{
    float *dz = own_piece(p, part);

    if (p->places == NULL && p->n->f == BM_IDENTITY)
        return p->dy + i->begin;
    if (p->places == NULL)
        p->loops->activate_back(p->n->f, i->frames * p->frame,
                                p->top + i->begin, p->dy + i->begin, dz);
    else
        for (size_t k = 0; k < i->frames; k++)
            lower(p, part, (i->at + k) / p->in.B, (i->at + k) % p->in.B,
                  dz + k * p->frame);
    return dz;
}

/* In the backward pass a group's row of p->sums holds slopes: [2, C]. */
static void slopes_part(void *self, size_t part)
{
    const pass *p = self;
    size_t C = p->n->channels;
    float *sum = own(p, part, 0), *product = own(p, part, 1);

    for (size_t g = part; g < GROUPS; g += p->threads) {
        double *slopes = moments_of(p, 1 + g).mean;

        memset(slopes, 0, 2 * C * sizeof *slopes);
        for (piece i = first(p, g); i.frames > 0; i = next(p, g, i)) {
            const float *x = p->x + i.begin, *dz = differentiate(p, part, &i);

            clear(p, sum);
            clear(p, product);
            p->image->products(i.rows, p->row, dz, x, p->center, sum, product);
            p->image->products(1, i.rest, dz + i.rest_at, x + i.rest_at,
                               p->center, sum, product);
            for (size_t c = 0; c < C; c++) {
                slopes[c] += folded(p, sum, c);
                slopes[C + c] += folded(p, product, c);
            }
        }
    }
}

/* Corrects for p->center, which is the mean rounded to floats. */
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
            const float *x = p->x + i.begin, *dz = differentiate(p, part, &i);
            float *dx = p->dx + i.begin;

            p->image->mix(i.rows, p->row, p->a, p->b, p->center, p->c, dz, x,
                          dx);
            p->image->mix(1, i.rest, p->a, p->b, p->center, p->c,
                          dz + i.rest_at, x + i.rest_at, dx + i.rest_at);
        }
}

/*
 *     dx = gamma r (dz - mean of dz - (x - mean) r^2 mean of dz (x - mean))
 *
 * with r = 1 / sqrt(var + epsilon).
 */
static void follow(bm_backend *be, pass *p)
{
    size_t C = p->n->channels;
    moments m = moments_of(p, 0);
    bm_tensor all = {p->dx, 3, {p->in.T, p->in.B, p->frame, 1}};

    for (size_t c = 0; c < C; c++) {
        double r = invert(variance(m, c)), a = p->n->gamma[c] * r;
        double b = -a * r * r * p->slopes[C + c] / *m.count;

        set(p, p->a, c, a);
        set(p, p->b, c, b);
        set(p, p->c, c,
            b * (p->center[c] - m.mean[c]) - a * p->slopes[c] / *m.count);
    }
    bm_cpu_run(be, p->threads, mix_part, p);
    bm_cpu_clear_padding(be, p->in, all);
}

void bm_cpu_norm_backward(bm_backend *be, const bm_norm *n, bm_extent in,
                          bm_extent out, const float *x, const float *y,
                          const float *dy, float *kept, float *dx,
                          float *dgamma, float *dbeta, float *mean_off,
                          float *var_off)
{
    pass p = view(be, n, in, out, kept);
    moments m = moments_of(&p, 0);
    bool empty = *m.count == 0;
    size_t C = n->channels;

    p.x = x;
    p.top = y;
    p.dy = dy;
    p.dx = dx;
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

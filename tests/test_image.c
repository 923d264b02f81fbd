/*
 * Convolution, pooling and batch normalisation of columns of pixels, against
 * sums over all places in double precision, for every instruction set of the
 * CPU, or on the backend that the first argument names, in fp32, or bf16 if
 * that is the second.
 */
#include "core/rng.h"
#include "tests/support.h"
#include "tests/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 9, B = 4 };

/* Out of order, one empty, one of one frame, one of all. */
static const int32_t lengths[B] = {6, 0, 9, 1};

static const char *backend = "cpu";
static bm_precision precision = BM_FP32;

/* An instruction set of the CPU, or nothing to choose from. */
static const char *const set_names[] = {"baseline", "avx2", "avx512", ""};

/* The backend with that set; NULL: not on this machine. */
static bm_backend *open_set(const char *name)
{
    bm_backend *be = NULL;

    if ((name[0] == '\0') != (strcmp(backend, "cpu") != 0))
        return NULL;
    setenv("BMUF_ISA", name, 1);
    if (bm_backend_open(&be, backend, 0) != BM_OK)
        be = NULL;
    unsetenv("BMUF_ISA");
    if (be != NULL)
        assert_ok(bm_backend_use(be, 1, precision));
    return be;
}

#define FOR_EACH_SET(be)                                                       \
    FOR_EACH (be##_number, set_names)                                          \
        for (bm_backend *be = open_set(set_names[be##_number]); be != NULL;    \
             bm_backend_close(be), be = NULL)

/* Frames of n numbers on the host, with padding in which no number is one. */
typedef struct frames {
    bm_extent e;
    int32_t lengths[B];
    size_t n;
    float *x;
} frames;

static size_t count(const frames *f)
{
    return f->e.T * B * f->n;
}

/* A normal number that is one of bf16, too. */
static float draw_one(bm_rng *rng)
{
    float x = (float)bm_rng_normal(rng);
    uint32_t bits = 0;

    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* As many frames as there are windows over those of the batch. */
static frames *draw(bm_window time, size_t n, uint64_t seed)
{
    bm_rng rng = bm_rng_make(seed, "image", 0);
    frames *f = calloc(1, sizeof *f);

    assert_non_null(f);
    for (int b = 0; b < B; b++)
        f->lengths[b] = (int32_t)bm_windows(time, (size_t)lengths[b]);
    f->e = (bm_extent){bm_windows(time, T), B, f->lengths};
    f->n = n;
    f->x = malloc((count(f) + 1) * sizeof *f->x);
    assert_non_null(f->x);
    for (size_t i = 0; i < count(f); i++)
        f->x[i] = inside(&f->e, i, n) ? draw_one(&rng) : NAN;
    return f;
}

static void discard(frames *f)
{
    free(f->x);
    free(f);
}

static float *draw_weights(size_t n)
{
    bm_rng rng = bm_rng_make(3, "weights", 0);
    float *w = malloc((n + 1) * sizeof *w);

    assert_non_null(w);
    for (size_t i = 0; i < n; i++)
        w[i] = draw_one(&rng);
    return w;
}

static double *doubles(size_t n)
{
    double *x = calloc(n + 1, sizeof *x);

    assert_non_null(x);
    return x;
}

/* What a backend left in place of a tensor like f; padding is zero. */
static void check_frames(bm_backend *be, const frames *f, const float *x,
                         const double *expected, double tolerance)
{
    float *got = fetch(be, x, count(f));

    for (size_t i = 0; i < count(f); i++)
        assert_true(inside(&f->e, i, f->n)
                        ? near(got[i], expected[i], tolerance)
                        : got[i] == 0);
    free(got);
}

static void check(bm_backend *be, size_t n, const float *x,
                  const double *expected, double tolerance)
{
    float *got = fetch(be, x, n);

    for (size_t i = 0; i < n; i++)
        assert_true(near(got[i], expected[i], tolerance));
    free(got);
}

/* "Same" and other padding, strides, kernels of one, even and odd ones; enough
 * channels for tiles of every width. w and b are not set. */
static const bm_conv convolutions[] = {
    {1, 1, 1, {1, 1, 0, 0}, {1, 1, 0, 0}, NULL, NULL},
    {5, 1, 16, {3, 1, 1, 1}, {3, 1, 1, 1}, NULL, NULL},
    {6, 3, 5, {3, 1, 1, 1}, {3, 1, 1, 1}, NULL, NULL},
    {4, 2, 33, {2, 1, 0, 1}, {2, 1, 0, 1}, NULL, NULL},
    {9, 16, 32, {3, 1, 1, 1}, {3, 1, 1, 1}, NULL, NULL},
    {7, 4, 20, {3, 2, 1, 1}, {3, 2, 1, 1}, NULL, NULL},
    {8, 2, 3, {5, 3, 2, 2}, {1, 2, 0, 0}, NULL, NULL},
    {5, 3, 48, {3, 1, 0, 0}, {5, 1, 0, 0}, NULL, NULL},
    {6, 17, 7, {2, 2, 1, 1}, {4, 3, 3, 3}, NULL, NULL},
    {40, 1, 2, {7, 1, 3, 3}, {3, 1, 1, 1}, NULL, NULL},
    {700, 9, 4, {3, 1, 1, 1}, {3, 1, 1, 1}, NULL, NULL},
    {700, 37, 2, {3, 1, 1, 1}, {3, 1, 1, 1}, NULL, NULL}, /* in pieces, */
    {700, 2, 37, {3, 1, 1, 1}, {3, 1, 1, 1}, NULL, NULL}, /* as dy here */
};

/* Everything that the definition says, term by term. */
typedef struct convolved {
    double *y, *dx, *dw, *db;
} convolved;

/* All places in one window: of row h of frame t of y, sequence b. */
static void add_window(const bm_conv *c, const frames *x, const frames *dy,
                       size_t b, size_t t, size_t h, const convolved *out)
{
    size_t C = c->channels, N = c->out_channels;
    size_t to = ((t * B + b) * (dy->n / N) + h) * N;

    for (size_t i = 0; i < c->time.size; i++)
        for (size_t j = 0; j < c->rows.size; j++) {
            size_t at = t * c->time.stride + i - c->time.before;
            size_t down = h * c->rows.stride + j - c->rows.before;
            size_t from = ((at * B + b) * c->height + down) * C;
            size_t w = (i * c->rows.size + j) * C * N;

            if (at >= (size_t)x->lengths[b] || down >= c->height)
                continue; /* or before the first place: they wrap around */
            for (size_t k = 0; k < C * N; k++) {
                double u = x->x[from + k / N], d = dy->x[to + k % N];

                out->y[to + k % N] += c->w[w + k] * u;
                out->dx[from + k / N] += c->w[w + k] * d;
                out->dw[w + k] += u * d;
            }
        }
    for (size_t n = 0; n < N; n++) {
        out->y[to + n] += c->b[n];
        out->db[n] += dy->x[to + n];
    }
}

/* n products of about one add up to about sqrt(n), and every addition rounds
 * off half a unit in the last place of that. Products of bf16 are exact. */
static double rounding(size_t n)
{
    return fmax(1e-5, 1.5e-7 * (double)n);
}

/* In bf16 what is stored is rounded once more. */
static double stored(double tolerance)
{
    return precision == BM_BF16 ? fmax(0x1p-8, tolerance) : tolerance;
}

static void check_conv(bm_backend *be, const bm_conv *c, const frames *x,
                       const frames *dy, const convolved *expected)
{
    size_t N = c->out_channels;
    size_t n_w = c->time.size * c->rows.size * c->channels * N;
    bm_conv there = *c;
    float *w = place(be, c->w, n_w), *b = place(be, c->b, N), *work = NULL;
    float *x_there = place(be, x->x, count(x)), *y = NULL;
    float *dy_there = place(be, dy->x, count(dy));
    float *dx = place(be, x->x, count(x)); /* all of these to be overwritten */
    float *dw = place(be, c->w, n_w), *db = place(be, c->b, N);

    y = place(be, dy->x, count(dy));
    there.w = w;
    there.b = b;
    assert_ok(bm_alloc(be, bm_conv_work(be, c), &work));
    bm_conv_forward(be, &there, x->e, dy->e, x_there, y, work);
    bm_conv_backward(be, &there, x->e, dy->e, x_there, dy_there, work, NULL, dw,
                     db);
    bm_conv_backward(be, &there, x->e, dy->e, x_there, dy_there, work, dx, dw,
                     db);
    check_frames(be, dy, y, expected->y, stored(rounding(n_w / N)));
    check_frames(be, x, dx, expected->dx, stored(rounding(n_w / c->channels)));
    check(be, n_w, dw, expected->dw, rounding(16 * dy->n / N));
    check(be, N, db, expected->db, rounding(16 * dy->n / N));
    bm_free(be, w);
    bm_free(be, b);
    bm_free(be, work);
    bm_free(be, x_there);
    bm_free(be, y);
    bm_free(be, dy_there);
    bm_free(be, dx);
    bm_free(be, dw);
    bm_free(be, db);
}

static void test_convolution_is_the_sum_it_is_said_to_be(void **state)
{
    (void)state;
    FOR_EACH (k, convolutions) {
        bm_conv c = convolutions[k];
        size_t C = c.channels, N = c.out_channels;
        size_t rows = bm_windows(c.rows, c.height);
        size_t n_w = c.time.size * c.rows.size * C * N;
        float *w = draw_weights(n_w + N);
        frames *x = draw((bm_window){1, 1, 0, 0}, c.height * C, k);
        frames *dy = draw(c.time, rows * N, k + 100);
        convolved all = {doubles(count(dy)), doubles(count(x)), doubles(n_w),
                         doubles(N)};

        c.w = w;
        c.b = w + n_w;
        for (size_t b = 0; b < B; b++)
            for (size_t t = 0; t < (size_t)dy->lengths[b]; t++)
                for (size_t h = 0; h < rows; h++)
                    add_window(&c, x, dy, b, t, h, &all);
        FOR_EACH_SET(be)
        check_conv(be, &c, x, dy, &all);
        free(all.y);
        free(all.dx);
        free(all.dw);
        free(all.db);
        free(w);
        discard(x);
        discard(dy);
    }
}

/* More frames than a GPU's grid is high; numbers that are exact. */
static void test_long_sequences_are_convolved(void **state)
{
    enum { LONG = 70001 };
    const int32_t all[] = {LONG};
    const float w[] = {2, 3};
    bm_extent e = {LONG, 1, all};
    float *x = zeros(LONG, sizeof *x), *dy = zeros(LONG, sizeof *dy);
    double *y = doubles(LONG), *dx = doubles(LONG), dw[2] = {0};

    (void)state;
    for (int t = 0; t < LONG; t++) {
        x[t] = (float)(t % 7 - 3);
        dy[t] = (float)(t % 5 - 2);
        y[t] = 2 * x[t] + 3;
        dx[t] = 2 * dy[t];
        dw[0] += x[t] * dy[t];
        dw[1] += dy[t];
    }
    FOR_EACH_SET(be)
    {
        float *there = place(be, w, 2), *g = place(be, w, 2), *work = NULL;
        float *x_there = place(be, x, LONG), *dy_there = place(be, dy, LONG);
        float *out = place(be, x, LONG);
        bm_conv c = {1, 1, 1, {1, 1, 0, 0}, {1, 1, 0, 0}, there, there + 1};

        assert_ok(bm_alloc(be, bm_conv_work(be, &c), &work));
        bm_conv_forward(be, &c, e, e, x_there, out, work);
        check(be, LONG, out, y, 0);
        bm_conv_backward(be, &c, e, e, x_there, dy_there, work, out, g, g + 1);
        check(be, LONG, out, dx, 0);
        check(be, 2, g, dw, 0);
        bm_free(be, there);
        bm_free(be, g);
        bm_free(be, work);
        bm_free(be, x_there);
        bm_free(be, dy_there);
        bm_free(be, out);
    }
    free(x);
    free(dy);
    free(y);
    free(dx);
}

/* The largest number of a window, and where it is; the first of equal ones. */
static size_t find_largest(const bm_pooling *p, const frames *x, size_t b,
                           size_t t, size_t h, size_t c)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < p->time.size; i++)
        for (size_t j = 0; j < p->rows.size; j++) {
            size_t at = t * p->time.size + i, down = h * p->rows.size + j;
            size_t here = ((at * B + b) * p->height + down) * p->channels + c;

            if (at < (size_t)x->lengths[b] && down < p->height &&
                (best == SIZE_MAX || x->x[here] > x->x[best]))
                best = here;
        }
    return best;
}

static void check_pool(bm_backend *be, const bm_pooling *p, const frames *x,
                       const frames *dy)
{
    size_t rows = bm_windows(p->rows, p->height), C = p->channels;
    double *y = doubles(count(dy)), *dx = doubles(count(x));
    float *x_there = place(be, x->x, count(x));
    float *y_there = place(be, dy->x, count(dy));
    float *dy_there = place(be, dy->x, count(dy));
    float *dx_there = place(be, x->x, count(x));

    for (size_t i = 0; i < count(dy); i++)
        if (inside(&dy->e, i, dy->n)) {
            size_t frame = i / (rows * C);
            size_t best =
                find_largest(p, x, frame % B, frame / B, i / C % rows, i % C);
            y[i] = x->x[best];
            dx[best] += dy->x[i];
        }
    bm_pooling_forward(be, p, x->e, dy->e, x_there, y_there);
    bm_pooling_backward(be, p, x->e, dy->e, x_there, y_there, dy_there,
                        dx_there);
    check_frames(be, dy, y_there, y, stored(0));
    check_frames(be, x, dx_there, dx, stored(0));
    free(y);
    free(dx);
    bm_free(be, x_there);
    bm_free(be, y_there);
    bm_free(be, dy_there);
    bm_free(be, dx_there);
}

static bm_window side_by_side(size_t size)
{
    return (bm_window){size, size, 0, size - 1};
}

static void test_pooling_takes_the_first_of_the_largest(void **state)
{
    static const size_t sizes[][2] = {{2, 2}, {1, 2}, {2, 1}, {3, 4}, {1, 1}};
    static const size_t heights[] = {1, 4, 7}, channels[] = {1, 3, 16, 37};

    (void)state;
    FOR_EACH (s, sizes)
        FOR_EACH (h, heights)
            FOR_EACH (c, channels) {
                bm_pooling p = {heights[h], channels[c],
                                side_by_side(sizes[s][0]),
                                side_by_side(sizes[s][1])};
                size_t rows = bm_windows(p.rows, p.height);
                frames *x =
                    draw((bm_window){1, 1, 0, 0}, p.height * p.channels, s);
                frames *dy = draw(p.time, rows * p.channels, s + 100);

                for (size_t i = 0; i < count(x); i++)
                    x->x[i] = roundf(x->x[i]); /* some are equal */
                FOR_EACH_SET(be)
                check_pool(be, &p, x, dy);
                discard(x);
                discard(dy);
            }
}

static void test_pooling_keeps_what_is_no_number(void **state)
{
    const int32_t two[] = {2};
    const float x[] = {1, NAN, NAN, 1};
    bm_extent in = {2, 1, two}, out = {1, 1, (const int32_t[]){1}};
    bm_pooling p = {2, 1, side_by_side(2), side_by_side(2)};

    (void)state;
    FOR_EACH_SET(be)
    {
        float *there = place(be, x, 4), *y = place(be, x, 1), *got = NULL;

        bm_pooling_forward(be, &p, in, out, there, y);
        got = fetch(be, y, 1);
        assert_true(isnan(got[0]));
        free(got);
        bm_free(be, there);
        bm_free(be, y);
    }
}

/* Everything of one channel, in the order of the formulas. */
typedef struct moments {
    double n, mean, var, slope, slope_x; /* sums of dy, and of dy (x - mean) */
} moments;

static moments measure(const bm_norm *n, const frames *x, const frames *dy,
                       size_t c)
{
    moments m = {0};

    for (size_t i = c; i < count(x); i += n->channels)
        if (inside(&x->e, i, x->n)) {
            m.n++;
            m.mean += x->x[i];
        }
    m.mean /= m.n > 0 ? m.n : 1;
    for (size_t i = c; i < count(x); i += n->channels)
        if (inside(&x->e, i, x->n)) {
            double d = x->x[i] - m.mean;
            m.var += d * d / m.n;
            m.slope += dy->x[i];
            m.slope_x += dy->x[i] * d;
        }
    return m;
}

static void check_norm(bm_backend *be, const bm_norm *n, const frames *x,
                       const frames *dy)
{
    size_t C = n->channels;
    double *y = doubles(count(x)), *seen = doubles(count(x)),
           *dx = doubles(count(x));
    double *dw = doubles(4 * C); /* of gamma, beta, mean, var */
    float *x_there = place(be, x->x, count(x)), *kept = NULL, *w = NULL;
    float *dy_there = place(be, dy->x, count(x)), *g = NULL;
    float *out = place(be, x->x, count(x));
    bm_norm there = *n;

    for (size_t c = 0; c < C; c++) {
        moments m = measure(n, x, dy, c);
        double r = 1 / sqrt(m.var + 1e-5), eval = 1 / sqrt(n->var[c] + 1e-5);

        for (size_t i = c; i < count(x); i += C) {
            double d = x->x[i] - m.mean;

            y[i] = n->gamma[c] * d * r + n->beta[c];
            seen[i] = n->gamma[c] * (x->x[i] - n->mean[c]) * eval + n->beta[c];
            dx[i] = n->gamma[c] * r *
                    (dy->x[i] - m.slope / m.n - d * r * r * m.slope_x / m.n);
        }
        dw[c] = m.slope_x * r;
        dw[C + c] = m.slope;
        dw[2 * C + c] = m.n > 0 ? n->mean[c] - m.mean : 0;
        dw[3 * C + c] = m.n > 0 ? n->var[c] - m.var : 0;
    }
    w = place(be, n->gamma, 4 * C); /* the others lie behind it */
    g = place(be, n->gamma, 4 * C);
    there.gamma = w;
    there.beta = w + C;
    there.mean = w + 2 * C;
    there.var = w + 3 * C;
    assert_ok(bm_alloc(be, bm_norm_kept(be, n), &kept));
    bm_norm_forward(be, &there, x->e, false, x_there, out, kept);
    check_frames(be, x, out, seen, stored(1e-5));
    bm_norm_forward(be, &there, x->e, true, x_there, out, kept);
    check_frames(be, x, out, y, stored(1e-5));
    bm_norm_backward(be, &there, x->e, x_there, dy_there, kept, out, g, g + C,
                     g + 2 * C, g + 3 * C);
    check_frames(be, x, out, dx, stored(1e-5));
    check(be, 4 * C, g, dw, rounding(16 * n->positions));
    free(y);
    free(seen);
    free(dx);
    free(dw);
    bm_free(be, x_there);
    bm_free(be, dy_there);
    bm_free(be, kept);
    bm_free(be, out);
    bm_free(be, w);
    bm_free(be, g);
}

/* With `offset`, means are far from zero, where differences of sums of squares
 * have no digits left. */
static void test_batch_normalisation_is_what_it_is_said_to_be(void **state)
{
    static const size_t shapes[][2] = {{1, 1},  {5, 3},   {12, 16},
                                       {7, 37}, {1, 300}, {600, 20}};
    static const float offsets[] = {0, 50};

    (void)state;
    FOR_EACH (s, shapes)
        FOR_EACH (o, offsets) {
            size_t P = shapes[s][0], C = shapes[s][1];
            float *w = draw_weights(4 * C);
            bm_norm n = {P, C, w, w + C, w + 2 * C, w + 3 * C};
            frames *x = draw((bm_window){1, 1, 0, 0}, P * C, s);
            frames *dy = draw((bm_window){1, 1, 0, 0}, P * C, s + 100);

            for (size_t i = 0; i < count(x); i++)
                x->x[i] += offsets[o];
            for (size_t c = 0; c < C; c++) {
                w[2 * C + c] += offsets[o];
                w[3 * C + c] = fabsf(w[3 * C + c]);
            }
            FOR_EACH_SET(be)
            check_norm(be, &n, x, dy);
            free(w);
            discard(x);
            discard(dy);
        }
}

static void test_batch_without_frames_teaches_nothing(void **state)
{
    static const int32_t none[B] = {0};
    const float w[] = {2, 3, 4, 5}, x[2 * B] = {NAN}, g[] = {1, 1, 1, 1};
    bm_extent e = {2, B, none};
    bm_conv c = {1, 1, 1, {1, 1, 0, 0}, {1, 1, 0, 0}, NULL, NULL};

    (void)state;
    FOR_EACH_SET(be)
    {
        float *there = place(be, w, 4), *in = place(be, x, 2 * B), *kept = NULL;
        float *out = place(be, x, 2 * B), *gradient = place(be, g, 4);
        bm_norm n = {1, 1, there, there + 1, there + 2, there + 3};
        const double zero[2 * B] = {0};

        c.w = c.b = there;
        assert_ok(
            bm_alloc(be, bm_norm_kept(be, &n) + bm_conv_work(be, &c), &kept));
        bm_norm_forward(be, &n, e, true, in, out, kept);
        check(be, 2 * B, out, zero, 0);
        bm_norm_backward(be, &n, e, in, in, kept, out, gradient, gradient + 1,
                         gradient + 2, gradient + 3);
        check(be, 2 * B, out, zero, 0);
        check(be, 4, gradient, zero, 0);
        bm_put(be, gradient, g, 4);
        bm_conv_backward(be, &c, e, e, in, in, kept, out, gradient,
                         gradient + 1);
        check(be, 2 * B, out, zero, 0);
        check(be, 2, gradient, zero, 0);
        bm_free(be, there);
        bm_free(be, in);
        bm_free(be, out);
        bm_free(be, kept);
        bm_free(be, gradient);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolution_is_the_sum_it_is_said_to_be),
        cmocka_unit_test(test_long_sequences_are_convolved),
        cmocka_unit_test(test_pooling_takes_the_first_of_the_largest),
        cmocka_unit_test(test_pooling_keeps_what_is_no_number),
        cmocka_unit_test(test_batch_normalisation_is_what_it_is_said_to_be),
        cmocka_unit_test(test_batch_without_frames_teaches_nothing),
    };

    if (argc > 1)
        backend = argv[1];
    if (argc > 2 && strcmp(argv[2], "bf16") == 0)
        precision = BM_BF16;
    if (!have_backend(backend))
        return SKIPPED;
    return RUN_GROUP("image", tests);
}

/*
 * Convolution and pooling of columns of pixels, against sums over all places in
 * double: for every instruction set, or on the backend that the first argument
 * names, in the precision and with the engine that the second one names.
 */
#include "tests/support/program.h"
#include "tests/support/reference/frames.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "Same" and other padding, strides, dilation, kernels of one, even and odd
 * ones; enough channels for tiles of every width. w and b are not set. */
static const bm_conv convolutions[] = {
    {1, 1, 1, {1, 1, 0, 0}, {1, 1, 0, 0}, {1, 1}, NULL, NULL},
    {5, 1, 16, {3, 1, 1, 1}, {3, 1, 1, 1}, {1, 1}, NULL, NULL},
    {6, 3, 5, {3, 1, 1, 1}, {3, 1, 1, 1}, {1, 1}, NULL, NULL},
    {4, 2, 33, {2, 1, 0, 1}, {2, 1, 0, 1}, {1, 1}, NULL, NULL},
    {9, 16, 32, {3, 1, 1, 1}, {3, 1, 1, 1}, {1, 1}, NULL, NULL},
    {7, 4, 20, {3, 2, 1, 1}, {3, 2, 1, 1}, {1, 1}, NULL, NULL},
    {8, 2, 3, {5, 3, 2, 2}, {1, 2, 0, 0}, {1, 1}, NULL, NULL},
    {5, 3, 48, {3, 1, 0, 0}, {5, 1, 0, 0}, {1, 1}, NULL, NULL},
    {6, 17, 7, {2, 2, 1, 1}, {4, 3, 3, 3}, {1, 1}, NULL, NULL},
    {40, 1, 2, {7, 1, 3, 3}, {3, 1, 1, 1}, {1, 1}, NULL, NULL},
    {9, 3, 16, {5, 1, 2, 2}, {5, 1, 2, 2}, {2, 2}, NULL, NULL},
    {8, 16, 9, {4, 1, 1, 2}, {7, 1, 3, 3}, {3, 2}, NULL, NULL},
    {7, 5, 17, {7, 2, 3, 3}, {3, 2, 0, 1}, {3, 1}, NULL, NULL},
    {9, 2, 33, {2, 1, 1, 0}, {5, 3, 4, 2}, {1, 4}, NULL, NULL},
    {700, 9, 4, {3, 1, 1, 1}, {3, 1, 1, 1}, {1, 1}, NULL, NULL},
    {700,
     37,
     2,
     {3, 1, 1, 1},
     {3, 1, 1, 1},
     {1, 1},
     NULL,
     NULL}, /* in pieces, */
    {700,
     2,
     37,
     {3, 1, 1, 1},
     {3, 1, 1, 1},
     {1, 1},
     NULL,
     NULL}, /* as dy here */
};

/* The definition, term by term. */
typedef struct convolved {
    double *y, *dx, *dw, *db;
} convolved;

/* All places in one window: that of row h of frame t of sequence b of y. */
static void add_window(const bm_conv *c, const frames *x, const frames *dy,
                       size_t b, size_t t, size_t h, const convolved *out)
{
    size_t C = c->channels, N = c->out_channels;
    size_t to = ((t * B + b) * (dy->n / N) + h) * N;
    size_t taps[2] = {(c->time.size - 1) / c->dilation[0] + 1,
                      (c->rows.size - 1) / c->dilation[1] + 1};

    for (size_t tap = 0; tap < taps[0] * taps[1]; tap++) {
        size_t i = tap / taps[1] * c->dilation[0];
        size_t j = tap % taps[1] * c->dilation[1];
        size_t at = t * c->time.stride + i - c->time.before;
        size_t down = h * c->rows.stride + j - c->rows.before;
        size_t from = ((at * B + b) * c->height + down) * C;
        size_t w = tap * C * N;

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

/* Outputs are rounded when they are stored; cuDNN also rounds y - b, before b
 * is added. */
static double biased(double tolerance, size_t n, const float *b)
{
    double all = stored(tolerance), more = learned(tolerance), largest = 0;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabsf(b[i]));
    return more > tolerance ? all + more * (1 + largest) : all;
}

static void check_conv(bm_backend *be, const bm_conv *c, const frames *x,
                       const frames *dy, const convolved *expected)
{
    size_t N = c->out_channels;
    size_t n_w = bm_conv_taps(c) * c->channels * N;
    bm_conv there = *c;
    float *w = place(be, c->w, n_w), *b = place(be, c->b, N), *work = NULL;
    float *x_there = place(be, x->x, frames_count(x)), *y = NULL;
    float *dy_there = place(be, dy->x, frames_count(dy));
    float *dx = place(
        be, x->x,
        frames_count(x)); /* outputs start with numbers, to be overwritten */
    float *dw = place(be, c->w, n_w), *db = place(be, c->b, N);

    y = place(be, dy->x, frames_count(dy));
    there.w = w;
    there.b = b;
    assert_ok(bm_alloc(be, bm_conv_work(be, c), &work));
    bm_conv_forward(be, &there, x->e, dy->e, x_there, y, work);
    bm_conv_backward(be, &there, x->e, dy->e, x_there, dy_there, work, NULL, dw,
                     db);
    bm_conv_backward(be, &there, x->e, dy->e, x_there, dy_there, work, dx, dw,
                     db);
    check_frames(be, dy, y, expected->y, biased(rounding(n_w / N), N, c->b));
    check_frames(be, x, dx, expected->dx, stored(rounding(n_w / c->channels)));
    check_numbers(be, n_w, dw, expected->dw, learned(rounding(16 * dy->n / N)));
    check_numbers(be, N, db, expected->db, rounding(16 * dy->n / N));
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

static void compare_convolution(size_t k)
{
    bm_conv c = convolutions[k];
    size_t C = c.channels, N = c.out_channels;
    size_t rows = bm_windows(c.rows, c.height);
    size_t n_w = bm_conv_taps(&c) * C * N;
    float *w = draw_weights(n_w + N);
    frames *x = frames_draw((bm_window){1, 1, 0, 0}, c.height * C, k);
    frames *dy = frames_draw(c.time, rows * N, k + 100);
    convolved all = {doubles(frames_count(dy)), doubles(frames_count(x)),
                     doubles(n_w), doubles(N)};

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
    frames_free(x);
    frames_free(dy);
}

static void test_convolution_matches_its_definition(void **state)
{
    size_t n = sizeof convolutions / sizeof convolutions[0];

    (void)state;
    if (short_tests())
        n -= 2; /* the large ones */
    for (size_t k = 0; k < n; k++)
        compare_convolution(k);
}

/* One pixel at a time, y = 2 x + 3 of columns of H: all numbers are exact,
 * except the weight's gradient. */
static void convolve_pixels(bm_extent e, size_t H, double near_weight)
{
    size_t n = e.T * e.B * H;
    const float w[] = {2, 3};
    float *x = zeros(n, sizeof *x), *dy = zeros(n, sizeof *dy);
    double *y = doubles(n), *dx = doubles(n), dw[2] = {0};
    bm_conv c = {H, 1, 1, {1, 1, 0, 0}, {1, 1, 0, 0}, {1, 1}, NULL, NULL};

    for (size_t i = 0; i < n; i++) {
        if (!inside(&e, i, H))
            continue;
        x[i] = (float)(i % 7) - 3;
        dy[i] = (float)(i % 5) - 2;
        y[i] = 2 * x[i] + 3;
        dx[i] = 2 * dy[i];
        dw[0] += x[i] * dy[i];
        dw[1] += dy[i];
    }
    FOR_EACH_SET(be)
    {
        float *there = place(be, w, 2), *g = place(be, w, 2), *work = NULL;
        float *from = place(be, x, n), *down = place(be, dy, n);
        float *out = place(be, dy, n);

        c.w = there;
        c.b = there + 1;
        assert_ok(bm_alloc(be, bm_conv_work(be, &c), &work));
        bm_conv_forward(be, &c, e, e, from, out, work);
        check_numbers(be, n, out, y, 0);
        bm_conv_backward(be, &c, e, e, from, down, work, out, g, g + 1);
        check_numbers(be, n, out, dx, 0);
        check_numbers(be, 1, g, dw, near_weight);
        check_numbers(be, 1, g + 1, dw + 1, 0);
        bm_free(be, there);
        bm_free(be, g);
        bm_free(be, from);
        bm_free(be, down);
        bm_free(be, out);
        bm_free(be, work);
    }
    free(x);
    free(dy);
    free(y);
    free(dx);
}

/* More sequences than a GPU processes at a time. */
static void test_convolution_of_large_batches(void **state)
{
    enum { MANY = 40, LONG = 5 };
    int32_t lengths[MANY];

    (void)state;
    for (int b = 0; b < MANY; b++)
        lengths[b] = b % (LONG + 1);
    convolve_pixels((bm_extent){LONG, MANY, lengths}, 5500, learned(0));
}

/* More frames than a GPU's grid is high. */
static void test_convolution_of_long_sequences(void **state)
{
    enum { LONG = 70001 };
    const int32_t all[] = {LONG};

    (void)state;
    convolve_pixels((bm_extent){LONG, 1, all}, 1, 0);
}

enum { MOST_T = 20, MOST_H = 10 }; /* of x for pooling */

/* The place of a window's maximum; the first of equal ones. */
static size_t find_largest(const bm_pooling *p, const frames *x, size_t b,
                           size_t t, size_t h, size_t c)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < p->time.size && i < MOST_T; i++)
        for (size_t j = 0; j < p->rows.size && j < MOST_H; j++) {
            size_t at = t * p->time.stride + i - p->time.before;
            size_t down = h * p->rows.stride + j - p->rows.before;
            size_t here = ((at * B + b) * p->height + down) * p->channels + c;

            if (at < (size_t)x->lengths[b] && down < p->height &&
                (best == SIZE_MAX || x->x[here] > x->x[best]))
                best = here;
        }
    return best;
}

/* The mean of a window; dx += dy divided by its places. */
static double average(const bm_pooling *p, const frames *x, size_t b, size_t t,
                      size_t h, size_t c, double dy, double *dx)
{
    double sum = 0;
    size_t places[MOST_T * MOST_H], n = 0;

    for (size_t i = 0; i < p->time.size && i < MOST_T; i++)
        for (size_t j = 0; j < p->rows.size && j < MOST_H; j++) {
            size_t at = t * p->time.stride + i - p->time.before;
            size_t down = h * p->rows.stride + j - p->rows.before;

            if (at >= (size_t)x->lengths[b] || down >= p->height)
                continue; /* places before the first one wrap around */
            places[n] = ((at * B + b) * p->height + down) * p->channels + c;
            sum += x->x[places[n++]];
        }
    for (size_t k = 0; k < n; k++)
        dx[places[k]] += dy / (double)n;
    return sum / (double)n;
}

static void check_pool(bm_backend *be, const bm_pooling *p, const frames *x,
                       const frames *dy)
{
    size_t C = p->channels, rows = dy->n / C;
    double *y = doubles(frames_count(dy)), *dx = doubles(frames_count(x));
    float *x_there = place(be, x->x, frames_count(x));
    float *y_there = place(be, dy->x, frames_count(dy));
    float *dy_there = place(be, dy->x, frames_count(dy));
    float *dx_there = place(be, x->x, frames_count(x));
    bool exact = false;

    for (size_t i = 0; i < frames_count(dy); i++)
        if (inside(&dy->e, i, dy->n)) {
            size_t frame = i / dy->n;
            size_t b = frame % B, t = frame / B, h = i / C % rows, best = 0;

            if (p->mean) {
                y[i] = average(p, x, b, t, h, i % C, dy->x[i], dx);
                continue;
            }
            best = find_largest(p, x, b, t, h, i % C);
            y[i] = x->x[best];
            dx[best] += dy->x[i];
        }
    bm_pooling_forward(be, p, x->e, dy->e, x_there, y_there);
    bm_pooling_backward(be, p, x->e, dy->e, x_there, y_there, dy_there,
                        dx_there);
    exact = bm_pooling_is_plain(p);
    check_frames(be, dy, y_there, y, stored(p->mean ? 1e-6 : 0));
    check_frames(be, x, dx_there, dx, stored(exact ? 0 : 3e-6));
    free(y);
    free(dx);
    bm_free(be, x_there);
    bm_free(be, y_there);
    bm_free(be, dy_there);
    bm_free(be, dx_there);
}

/* cuDNN takes 45 of the sequences, then 44. The rows of the first piece are
 * summed in 1017 parts, those of the second in 1018. */
static void test_a_smaller_last_piece_needs_more_room(void **state)
{
    enum { FRAMES = 96, ROWS = 20, OUT = 96, SEQUENCES = 89 };
    enum { PIXELS = FRAMES * SEQUENCES * ROWS };
    bm_conv c = {ROWS, 1, OUT, {1, 1, 0, 0}, {1, 1, 0, 0}, {1, 1}, NULL, NULL};
    const char *engine = getenv("BMUF_CONV");
    int32_t lengths[SEQUENCES];
    bm_extent e = {FRAMES, SEQUENCES, lengths};
    float *ones = NULL, *d_x = NULL, *d_y = NULL, *d_w = NULL, *got = NULL;
    bm_backend *be = NULL;

    (void)state;
    if (engine == NULL || strcmp(engine, "cudnn") != 0 ||
        frames_precision != BM_BF16)
        skip();
    be = open_set("");
    assert_non_null(be);
    ones = zeros((size_t)PIXELS * OUT, sizeof *ones);
    for (size_t i = 0; i < (size_t)PIXELS * OUT; i++)
        ones[i] = 1;
    for (int b = 0; b < SEQUENCES; b++)
        lengths[b] = FRAMES;
    d_x = place(be, ones, PIXELS);
    d_y = place(be, ones, (size_t)PIXELS * OUT);
    d_w = place(be, ones, 2 * (size_t)OUT);
    c.w = d_w;
    c.b = d_w + OUT;
    bm_conv_backward(be, &c, e, e, d_x, d_y, NULL, NULL, d_w, d_w + OUT);
    got = fetch(be, d_w, 2 * (size_t)OUT);
    for (size_t i = 0; i < OUT; i++)
        assert_true(got[OUT + i] == PIXELS);
    bm_free(be, d_x);
    bm_free(be, d_y);
    bm_free(be, d_w);
    bm_backend_close(be); /* which frees its rooms: they are checked */
    free(got);
    free(ones);
}

static void test_pooling_takes_the_first_maximum(void **state)
{
    static const size_t sizes[][2] = {{2, 2}, {1, 2}, {2, 1}, {3, 4}, {1, 1}};
    static const size_t heights[] = {1, 4, 7}, channels[] = {1, 3, 16, 37};

    (void)state;
    FOR_EACH (s, sizes)
        FOR_EACH (h, heights)
            FOR_EACH (c, channels) {
                bm_pooling p = {heights[h], channels[c],
                                side_by_side(sizes[s][0]),
                                side_by_side(sizes[s][1]), false};
                size_t rows = bm_windows(p.rows, p.height);
                frames *x = frames_draw((bm_window){1, 1, 0, 0},
                                        p.height * p.channels, s);
                frames *dy = frames_draw(p.time, rows * p.channels, s + 100);

                for (size_t i = 0; i < frames_count(x); i++)
                    x->x[i] = roundf(x->x[i]); /* some are equal */
                FOR_EACH_SET(be)
                check_pool(be, &p, x, dy);
                frames_free(x);
                frames_free(dy);
            }
}

/* Windows that overlap, with padding; means; and one window over all. */
static void test_pooling_over_any_windows(void **state)
{
    static const struct {
        bm_window time, rows;
    } windows[] = {
        {{3, 2, 1, 1}, {3, 2, 1, 1}},
        {{3, 1, 1, 1}, {3, 1, 1, 1}},
        {{2, 2, 0, 1}, {3, 3, 0, 2}},
        {{3, 2, 0, 0}, {1, 1, 0, 0}},
        {{4, 3, 1, 2}, {2, 1, 1, 1}},
        {{1 << 30, 1 << 30, 0, (1 << 30) - 1},
         {1 << 30, 1 << 30, 0, (1 << 30) - 1}},
    };
    static const size_t heights[] = {1, 7}, channels[] = {1, 16, 21};

    (void)state;
    FOR_EACH (w, windows)
        FOR_EACH (h, heights)
            for (size_t k = 0; k < 6; k++) {
                bm_pooling p = {heights[h], channels[k / 2], windows[w].time,
                                windows[w].rows, k % 2 == 1};
                size_t rows = bm_windows(p.rows, p.height);
                frames *x = frames_draw((bm_window){1, 1, 0, 0},
                                        p.height * p.channels, w);
                frames *dy = frames_draw(p.time, rows * p.channels, w + 100);

                for (size_t i = 0; i < frames_count(x); i++)
                    x->x[i] = roundf(x->x[i]); /* some are equal */
                FOR_EACH_SET(be)
                check_pool(be, &p, x, dy);
                frames_free(x);
                frames_free(dy);
            }
}

static void test_pooling_propagates_nan(void **state)
{
    const int32_t two[] = {2};
    const float x[] = {1, NAN, NAN, 1};
    bm_extent in = {2, 1, two}, out = {1, 1, (const int32_t[]){1}};
    bm_pooling p = {2, 1, side_by_side(2), side_by_side(2), false};

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

static void test_convolution_of_no_frames_has_zero_gradients(void **state)
{
    static const int32_t none[B] = {0};
    const float w[] = {2, 3}, x[2 * B] = {NAN}, g[] = {1, 1};
    const double zero[2 * B] = {0};
    bm_extent e = {2, B, none};
    bm_conv c = {1, 1, 1, {1, 1, 0, 0}, {1, 1, 0, 0}, {1, 1}, NULL, NULL};

    (void)state;
    FOR_EACH_SET(be)
    {
        float *there = place(be, w, 2), *in = place(be, x, 2 * B), *work = NULL;
        float *out = place(be, x, 2 * B), *gradient = place(be, g, 2);

        c.w = there;
        c.b = there + 1;
        assert_ok(bm_alloc(be, bm_conv_work(be, &c), &work));
        bm_conv_backward(be, &c, e, e, in, in, work, out, gradient,
                         gradient + 1);
        check_numbers(be, 2 * B, out, zero, 0);
        check_numbers(be, 2, gradient, zero, 0);
        bm_free(be, there);
        bm_free(be, in);
        bm_free(be, out);
        bm_free(be, work);
        bm_free(be, gradient);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolution_matches_its_definition),
        cmocka_unit_test(test_convolution_of_large_batches),
        cmocka_unit_test(test_convolution_of_long_sequences),
        cmocka_unit_test(test_a_smaller_last_piece_needs_more_room),
        cmocka_unit_test(test_pooling_takes_the_first_maximum),
        cmocka_unit_test(test_pooling_over_any_windows),
        cmocka_unit_test(test_pooling_propagates_nan),
        cmocka_unit_test(test_convolution_of_no_frames_has_zero_gradients),
    };

    frames_choose(argc, argv);
    if (!have_backend(frames_backend) ||
        !have_convolution(frames_backend, frames_precision))
        return SKIPPED;
    return RUN_GROUP("image", tests);
}

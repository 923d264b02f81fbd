/*
 * LSTM, with and without projection, and GRU against their equations in double,
 * one sequence at a time, and gradients against central differences: on the CPU
 * for every instruction set, or on the backend that the first argument names,
 * with the engine (BMUF_LSTM) that the second one names, for the shapes that the
 * engine supports.
 *
 * In bf16 the norm of the difference is bounded relative to the norm of the
 * numbers: each path from an input to an output rounds its factors (x, w, b,
 * dy) once, and in each time step h, gates and their gradients, by at most 2^-9
 * each, about as often up as down.
 */
#include "compute/backend.h"
#include "core/rng.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *backend = "cpu";
static bm_backend *asked; /* whether it supports a shape */
static size_t n_checked;
static const char *const set_names[] = {"baseline", "avx2", "avx512"};

enum { MOST_B = 24, MOST_H = 64 };

static bm_precision precision = BM_FP32;
static bm_cell cell = BM_LSTM;
static bool projects;
static const struct {
    bm_cell cell;
    bool projects;
} cells[] = {{BM_LSTM, false}, {BM_LSTM, true}, {BM_GRU, false}};

typedef struct problem {
    size_t D, H, R, T, B;
    int32_t frames[MOST_B];
} problem;

/* P, and Y: outputs of a direction. */
static size_t projected(const problem *p)
{
    return projects ? (p->H + 1) / 2 : 0;
}

static size_t width(const problem *p)
{
    return projects ? projected(p) : p->H;
}

static bm_extent extent(const problem *p)
{
    return (bm_extent){p->T, p->B, p->frames};
}

/* Lengths sorted and not, with 0 and 1; sizes near those of vectors and of
 * tiles of the recurrent product. */
static const problem problems[] = {
    {3, 5, 2, 6, 4, {2, 6, 0, 1}},
    {3, 5, 1, 6, 4, {6, 5, 5, 1}},
    {1, 1, 2, 1, 1, {1}},
    {2, 3, 2, 4, 3, {3, 2, 3}}, /* longer than any sequence */
    {4, 33, 2, 5, 9, {5, 5, 4, 4, 3, 3, 3, 2, 1}},
    {7, 16, 1, 4, 17, {1, 2, 3, 4, 4, 3, 2, 1, 0, 4, 4, 4, 4, 1, 2, 3, 4}},
    {2, 4, 2, 3, 2, {0, 0}},
    {5, 24, 2, 4, 3, {4, 1, 3}},
};

/* For tests that do not depend on sizes. */
static const problem ordinary = {3, 8, 2, 5, 4, {2, 5, 0, 1}};

/* Inputs and, in the same shapes, gradients: in doubles. */
typedef struct numbers {
    size_t n_x, n_y, n_wx, n_wh, n_b, n_wr;
    double *x, *wx, *wh, *b, *wr;
} numbers;

static double *room(size_t n)
{
    double *x = calloc(n, sizeof *x);
    assert_non_null(x);
    return x;
}

static numbers draw(const problem *p)
{
    size_t R = p->R, H = p->H, D = p->D, G = cell == BM_GRU ? 3 : 4;
    numbers n = {.n_x = p->T * p->B * D,
                 .n_y = p->T * p->B * R * width(p),
                 .n_wx = R * G * H * D,
                 .n_wh = R * G * H * width(p),
                 .n_b = R * 4 * H,
                 .n_wr = R * projected(p) * H};
    bm_rng rng = bm_rng_make(1, "test", D * H);
    bm_extent e = extent(p);

    n.x = room(n.n_x);
    n.wx = room(n.n_wx);
    n.wh = room(n.n_wh);
    n.b = room(n.n_b);
    n.wr = room(n.n_wr + 1);
    for (size_t i = 0; i < n.n_x; i++)
        if (inside(&e, i, D))
            n.x[i] = (float)bm_rng_normal(&rng);
    for (size_t i = 0; i < n.n_wx; i++)
        n.wx[i] = (float)(bm_rng_normal(&rng) / sqrt((double)D));
    for (size_t i = 0; i < n.n_wh; i++)
        n.wh[i] = (float)(bm_rng_normal(&rng) / sqrt((double)H));
    for (size_t i = 0; i < n.n_b; i++)
        n.b[i] = (float)bm_rng_normal(&rng);
    for (size_t i = 0; i < n.n_wr; i++)
        n.wr[i] = (float)(bm_rng_normal(&rng) / sqrt((double)H));
    return n;
}

static void release(numbers *n)
{
    free(n->x);
    free(n->wx);
    free(n->wh);
    free(n->b);
    free(n->wr);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Row `row` of w [.., n] times x. */
static double product(const double *w, size_t row, size_t n, const double *x)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += w[row * n + i] * x[i];
    return sum;
}

/* One frame of cell j of an LSTM; returns h. */
static double lstm(const problem *p, const numbers *n, size_t r, size_t j,
                   const double *x, const double *h, double *c)
{
    double v[4], i, f, g, o;

    for (size_t k = 0; k < 4; k++) {
        size_t row = (r * 4 + k) * p->H + j;
        v[k] = product(n->wx, row, p->D, x) + product(n->wh, row, width(p), h) +
               n->b[row];
    }
    i = sigmoid(v[0]), f = sigmoid(v[1]), g = tanh(v[2]), o = sigmoid(v[3]);
    *c = f * *c + i * g;
    return o * tanh(*c);
}

/* Likewise of a GRU, as torch.nn.GRU has it; b[2] and b[3] are its b_in and
 * b_hn. */
static double gru(const problem *p, const numbers *n, size_t r, size_t j,
                  const double *x, const double *h)
{
    const double *b = n->b + r * 4 * p->H + j;
    double in[3], moved[3], reset, update, out;

    for (size_t k = 0; k < 3; k++) {
        size_t row = (r * 3 + k) * p->H + j;
        in[k] = product(n->wx, row, p->D, x);
        moved[k] = product(n->wh, row, p->H, h);
    }
    reset = sigmoid(in[0] + moved[0] + b[0]);
    update = sigmoid(in[1] + moved[1] + b[p->H]);
    out = tanh(in[2] + b[2 * p->H] + reset * (moved[2] + b[3 * p->H]));
    return (1 - update) * out + update * h[j];
}

/* h, or its projection, to the outputs of frame t. */
static void put_out(const problem *p, const numbers *n, size_t r, double *h,
                    double *y)
{
    double out[MOST_H];

    for (size_t j = 0; j < width(p); j++)
        out[j] =
            projects ? product(n->wr, r * projected(p) + j, p->H, h) : h[j];
    memcpy(h, out, width(p) * sizeof *h);
    memcpy(y, out, width(p) * sizeof *y);
}

/* One direction over one sequence, by the equations of bm_recurrent. */
static void follow(const problem *p, const numbers *n, size_t r, size_t b,
                   double *y)
{
    double h[MOST_H] = {0}, c[MOST_H] = {0}, new_h[MOST_H];
    size_t length = (size_t)p->frames[b];

    BM_ASSERT(p->H <= MOST_H);
    for (size_t step = 0; step < length; step++) {
        size_t t = r == 0 ? step : length - 1 - step;
        const double *x = n->x + (t * p->B + b) * p->D;

        for (size_t j = 0; j < p->H; j++)
            new_h[j] = cell == BM_GRU ? gru(p, n, r, j, x, h)
                                      : lstm(p, n, r, j, x, h, &c[j]);
        memcpy(h, new_h, p->H * sizeof *h);
        put_out(p, n, r, h, y + ((t * p->B + b) * p->R + r) * width(p));
    }
}

static void reference(const problem *p, const numbers *n, double *y)
{
    memset(y, 0, n->n_y * sizeof *y);
    for (size_t r = 0; r < p->R; r++)
        for (size_t b = 0; b < p->B; b++)
            follow(p, n, r, b, y);
}

/* The weight of y[i] in a linear function of all outputs. */
static double slope(size_t i)
{
    return (double)(bm_rng_at(99, i) >> 40) / 8388608 - 1;
}

static double outcome(const problem *p, const numbers *n, double *y)
{
    double sum = 0;

    reference(p, n, y);
    for (size_t i = 0; i < n->n_y; i++)
        sum += slope(i) * y[i];
    return sum;
}

typedef struct device_side {
    bm_backend *be;
    bm_recurrent l;
    bm_extent e;
    float *wx, *wh, *b, *wr, *x, *y, *dy, *dx, *dwx, *dwh, *db, *dwr, *kept;
} device_side;

/* n numbers on the backend: of x, or all of them NAN. */
static float *place_all(bm_backend *be, const double *x, size_t n)
{
    float *host = malloc((n + 1) * sizeof *host), *placed = NULL;

    assert_non_null(host);
    for (size_t i = 0; i < n; i++)
        host[i] = x != NULL ? (float)x[i] : NAN;
    placed = place(be, host, n);
    free(host);
    return placed;
}

/* Outputs hold NAN, and dy in padding, which must not be read. */
static device_side set_up(const problem *p, const numbers *n)
{
    device_side s = {.e = extent(p)};
    double *dy = room(n->n_y);

    assert_ok(bm_backend_open(&s.be, backend, 0));
    assert_ok(bm_backend_use(s.be, 1, precision));
    s.wx = place_all(s.be, n->wx, n->n_wx);
    s.wh = place_all(s.be, n->wh, n->n_wh);
    s.b = place_all(s.be, n->b, n->n_b);
    s.x = place_all(s.be, n->x, n->n_x);
    s.wr = place_all(s.be, n->wr, n->n_wr);
    s.l = (bm_recurrent){cell, p->D, p->H,         p->R, s.wx,
                         s.wh, s.b,  projected(p), s.wr};
    for (size_t i = 0; i < n->n_y; i++)
        dy[i] = inside(&s.e, i, p->R * width(p)) ? slope(i) : NAN;
    s.dy = place_all(s.be, dy, n->n_y);
    s.y = place_all(s.be, NULL, n->n_y);
    s.dx = place_all(s.be, NULL, n->n_x);
    s.kept = place_all(s.be, NULL, bm_recurrent_kept(s.be, &s.l, s.e));
    s.dwx = place_all(s.be, NULL, n->n_wx);
    s.dwh = place_all(s.be, NULL, n->n_wh);
    s.db = place_all(s.be, NULL, n->n_b);
    s.dwr = place_all(s.be, NULL, n->n_wr);
    free(dy);
    return s;
}

/* Whether the engine supports the shape. */
static bool possible(const problem *p)
{
    bm_recurrent l = {.cell = cell,
                      .n_in = p->D,
                      .n_hidden = p->H,
                      .directions = p->R,
                      .n_projected = projected(p)};
    bm_status status = BM_OK;

    assert_ok(bm_backend_use(asked, 1, precision));
    bm_recurrent_kept(asked, &l, extent(p));
    status = bm_sync(asked);
    assert_true(status == BM_OK || status == BM_ERR_UNSUPPORTED);
    if (status == BM_OK)
        n_checked++;
    return status == BM_OK;
}

static void tear_down(device_side *s)
{
    float *all[] = {s->wx, s->wh,  s->b,   s->wr, s->x,   s->y,   s->dy,
                    s->dx, s->dwx, s->dwh, s->db, s->dwr, s->kept};

    FOR_EACH (i, all)
        bm_free(s->be, all[i]);
    bm_backend_close(s->be);
}

/* Compares numbers with expected ones: each in fp32, their norms in bf16. */
typedef struct comparison {
    double tolerance; /* of fp32 */
    double off, norm; /* sums of squares */
} comparison;

static void compare(comparison *c, double got, double expected)
{
    assert_true(isfinite(got));
    assert_true(precision == BM_BF16 || near(got, expected, c->tolerance));
    c->off += (got - expected) * (got - expected);
    c->norm += expected * expected;
}

static void conclude(const comparison *c, const problem *p)
{
    double bound = (double)(p->T + 1) * 2 / 256;
    assert_true(precision != BM_BF16 || sqrt(c->off) <= bound * sqrt(c->norm));
}

/* Every `step`-th derivative by w [n], one of the arrays of `n`. In doubles the
 * differences are exact to 1e-9. */
static void check_gradient(const problem *p, const numbers *all, double *w,
                           size_t n, size_t step, bm_backend *be,
                           const float *gradient)
{
    const double h = 1e-5;
    double *y = room(all->n_y);
    float *got = fetch(be, gradient, n);
    bm_extent e = extent(p);
    comparison c = {.tolerance = 1e-5};

    for (size_t i = 0; i < n; i++) {
        double kept = w[i], up = 0, down = 0;
        bool padding = w == all->x && !inside(&e, i, p->D);

        assert_true(isfinite(got[i]));
        if (padding)
            assert_true(got[i] == 0);
        if (padding || i % step != 0)
            continue;
        w[i] = kept + h;
        up = outcome(p, all, y);
        w[i] = kept - h;
        down = outcome(p, all, y);
        w[i] = kept;
        compare(&c, got[i], (up - down) / (2 * h));
    }
    conclude(&c, p);
    free(got);
    free(y);
}

static void check(const problem *p)
{
    numbers n = draw(p);
    device_side s = set_up(p, &n);
    double *expected = room(n.n_y);
    float *y = NULL;
    size_t step = p->H > 8 ? 41 : 1;
    comparison c = {.tolerance = 2e-6};

    bm_recurrent_forward(s.be, &s.l, s.e, s.x, s.y, s.kept);
    reference(p, &n, expected);
    y = fetch(s.be, s.y, n.n_y);
    for (size_t i = 0; i < n.n_y; i++) {
        compare(&c, y[i], expected[i]);
        assert_true(expected[i] != 0 || y[i] == 0);
    }
    conclude(&c, p);
    bm_recurrent_backward(s.be, &s.l, s.e, s.x, s.y, s.dy, s.kept, s.dx, s.dwx,
                          s.dwh, s.db, s.dwr);
    check_gradient(p, &n, n.x, n.n_x, step, s.be, s.dx);
    check_gradient(p, &n, n.wx, n.n_wx, step, s.be, s.dwx);
    check_gradient(p, &n, n.wh, n.n_wh, step, s.be, s.dwh);
    check_gradient(p, &n, n.b, n.n_b, step, s.be, s.db);
    if (projects)
        check_gradient(p, &n, n.wr, n.n_wr, step, s.be, s.dwr);
    free(y);
    free(expected);
    tear_down(&s);
    release(&n);
}

/* The norm of one number is no bound in bf16: in dx of one feature and one cell
 * the two directions may cancel. */
static bool bounded(const problem *p)
{
    return precision != BM_BF16 || p->D * p->H > 1;
}

/* Kind k of cell; false: the problem has none. */
static bool choose(size_t k, const problem *p)
{
    cell = cells[k].cell;
    projects = cells[k].projects;
    return !projects || p->H > 1;
}

/* Of each cell, in each precision that the engine supports. */
static void in_each_precision(const problem *p, void (*claim)(const problem *p))
{
    const bm_precision all[] = {BM_FP32, BM_BF16};

    FOR_EACH (k, cells)
        FOR_EACH (i, all) {
            precision = all[i];
            if (choose(k, p) && bounded(p) && possible(p))
                claim(p);
        }
    precision = BM_FP32;
}

static void test_cells_match_their_equations(void **state)
{
    (void)state;
    FOR_EACH (i, problems)
        in_each_precision(&problems[i], check);
}

static void test_cells_on_every_instruction_set(void **state)
{
    (void)state;
    if (strcmp(backend, "cpu") != 0)
        skip();
    FOR_EACH (i, set_names) {
        bm_backend *be = NULL;

        setenv("BMUF_ISA", set_names[i], 1);
        if (bm_backend_open(&be, "cpu", 0) == BM_OK)
            FOR_EACH (k, problems)
                FOR_EACH (m, cells)
                    if (choose(m, &problems[k]))
                        check(&problems[k]);
        bm_backend_close(be);
    }
    unsetenv("BMUF_ISA");
}

static void leave_out_input_gradient(const problem *p)
{
    numbers n = draw(p);
    device_side s = set_up(p, &n);
    float *dx = NULL;

    bm_recurrent_forward(s.be, &s.l, s.e, s.x, s.y, s.kept);
    bm_recurrent_backward(s.be, &s.l, s.e, s.x, s.y, s.dy, s.kept, NULL, s.dwx,
                          s.dwh, s.db, s.dwr);
    dx = fetch(s.be, s.dx, n.n_x);
    for (size_t i = 0; i < n.n_x; i++)
        assert_true(isnan(dx[i])); /* as it was */
    check_gradient(p, &n, n.wh, n.n_wh, 1, s.be, s.dwh);
    free(dx);
    tear_down(&s);
    release(&n);
}

static void test_input_gradient_can_be_omitted(void **state)
{
    (void)state;
    in_each_precision(&ordinary, leave_out_input_gradient);
}

static void use_vectors_at_once(const problem *p)
{
    numbers n = draw(p);
    device_side s = set_up(p, &n);
    float *twice = place_all(s.be, NULL, n.n_wh);
    float *nothing = calloc(n.n_x, sizeof *nothing), *now = NULL, *later = NULL;

    assert_non_null(nothing);
    bm_recurrent_forward(s.be, &s.l, s.e, s.x, s.y, s.kept);
    bm_recurrent_backward(s.be, &s.l, s.e, s.x, s.y, s.dy, s.kept, NULL, s.dwx,
                          s.dwh, s.db, s.dwr);
    bm_axpby(s.be, n.n_wh, 2, s.dwh, 0, twice);
    now = fetch(s.be, twice, n.n_wh);
    later = fetch(s.be, s.dwh, n.n_wh);
    for (size_t i = 0; i < n.n_wh; i++)
        assert_true(now[i] == 2 * later[i]);

    bm_recurrent_forward(s.be, &s.l, s.e, s.x, s.y, s.kept);
    bm_recurrent_backward(s.be, &s.l, s.e, s.x, s.y, s.dy, s.kept, s.dx, s.dwx,
                          s.dwh, s.db, s.dwr);
    bm_put(s.be, s.x, nothing, n.n_x);
    bm_recurrent_forward(s.be, &s.l, s.e, s.x, s.y, s.kept);
    check_gradient(p, &n, n.x, n.n_x, 1, s.be, s.dx);
    check_gradient(p, &n, n.wx, n.n_wx, 1, s.be, s.dwx);
    check_gradient(p, &n, n.wh, n.n_wh, 1, s.be, s.dwh);
    free(now);
    free(later);
    free(nothing);
    bm_free(s.be, twice);
    tear_down(&s);
    release(&n);
}

/* The backward pass may still be running on a second stream. */
static void test_vectors_may_be_used_directly_after_backward(void **state)
{
    (void)state;
    in_each_precision(&ordinary, use_vectors_at_once);
}

/* Frames past the longest sequence. A BLAS may round differently with more
 * rows. */
static void pad(const problem *p)
{
    const double tolerance = precision == BM_BF16 ? 2.0 / 256 : 1e-6;
    problem longer = *p;
    numbers n = draw(p), m = draw(p);
    device_side s = set_up(p, &n), l;
    float *y = NULL, *more = NULL;

    longer.T += 3;
    m.n_x = longer.T * p->B * p->D;
    m.n_y = longer.T * p->B * p->R * width(p);
    free(m.x);
    m.x = room(m.n_x);
    memcpy(m.x, n.x, n.n_x * sizeof *n.x);
    l = set_up(&longer, &m);
    bm_recurrent_forward(s.be, &s.l, s.e, s.x, s.y, s.kept);
    bm_recurrent_forward(l.be, &l.l, l.e, l.x, l.y, l.kept);
    y = fetch(s.be, s.y, n.n_y);
    more = fetch(l.be, l.y, m.n_y);
    for (size_t i = 0; i < m.n_y; i++)
        assert_true(i < n.n_y ? near(more[i], y[i], tolerance) : more[i] == 0);
    free(y);
    free(more);
    tear_down(&s);
    tear_down(&l);
    release(&n);
    release(&m);
}

static void test_padding_changes_nothing(void **state)
{
    (void)state;
    in_each_precision(&problems[4], pad);
    in_each_precision(&ordinary, pad);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells_match_their_equations),
        cmocka_unit_test(test_cells_on_every_instruction_set),
        cmocka_unit_test(test_input_gradient_can_be_omitted),
        cmocka_unit_test(test_vectors_may_be_used_directly_after_backward),
        cmocka_unit_test(test_padding_changes_nothing),
    };

    int failed = 0;

    if (argc > 1)
        backend = argv[1];
    if (argc > 2)
        setenv("BMUF_LSTM", argv[2], 1);
    if (!have_backend(backend))
        return SKIPPED;
    assert_ok(bm_backend_open(&asked, backend, 0));
    failed = RUN_GROUP("lstm", tests);
    bm_backend_close(asked);
    return failed == 0 && n_checked == 0 ? SKIPPED : failed;
}

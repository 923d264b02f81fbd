/*
 * The recurrence of lstm_kernels.h, frame by frame against its equations in
 * double precision. What a frame gets from its neighbour is taken from what the
 * kernel left there, so that bounds need to hold for a frame only: bf16 rounds
 * to 2^-8 of a number, tanh.approx to 2^-11, and a sum in fp32 of n terms errs
 * by n 2^-23 of the sum of their sizes.
 */
#include "compute/cuda/cuda.h"
#include "compute/cuda/lstm_kernels.h"
#include "core/rng.h"
#include "tests/support.h"
#include "tests/support_backend.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_B = 56 };

static const double BF16 = 0x1p-8, QUICK = 0x1p-11, TINY = 0x1p-18;

typedef cudaError_t launcher(cudaStream_t, const bm_lstm_cluster *);

static bm_backend *be;
static launcher *run_forward, *run_backward;

typedef struct problem {
    size_t H, R, T, B;
    size_t shift; /* of what callers give: numbers it begins behind a line */
    int32_t frames[MOST_B];
} problem;

/* A kernel's arrays, on the host. */
typedef struct arrays {
    size_t n_gates, n_y, n_wh;
    bm_bf16 *gates, *y, *wh, *dy;
    float *cells;
} arrays;

static double value(bm_bf16 x)
{
    uint32_t bits = (uint32_t)x.bits << 16;
    float y;

    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Cut off: any number will do. */
static bm_bf16 number(double x)
{
    float y = (float)x;
    uint32_t bits;

    memcpy(&bits, &y, sizeof bits);
    return (bm_bf16){(uint16_t)(bits >> 16)};
}

static const bm_bf16 none = {0xffff}; /* not a number */

static size_t row(const problem *p, size_t t, size_t b, size_t r)
{
    return (t * p->B + b) * p->R + r;
}

static bool live(const problem *p, size_t t, size_t b)
{
    return (size_t)p->frames[b] > t;
}

static arrays draw(const problem *p)
{
    size_t H = p->H, rows = p->T * p->B * p->R;
    arrays a = {rows * 4 * H, rows * H, p->R * 4 * H * H, 0, 0, 0, 0, 0};
    bm_rng rng = bm_rng_make(7, "test", H * 1000 + p->B);

    a.gates = zeros(a.n_gates, sizeof *a.gates);
    a.y = zeros(a.n_y, sizeof *a.y);
    a.dy = zeros(a.n_y, sizeof *a.dy);
    a.wh = zeros(a.n_wh, sizeof *a.wh);
    a.cells = zeros(a.n_y, sizeof *a.cells);
    for (size_t i = 0; i < a.n_wh; i++)
        a.wh[i] = number(2 * bm_rng_normal(&rng) / sqrt((double)H));
    for (size_t i = 0; i < a.n_gates; i++)
        a.gates[i] = number(1.5 * bm_rng_normal(&rng));
    for (size_t i = 0; i < a.n_y; i++) {
        a.dy[i] = number(bm_rng_normal(&rng));
        a.y[i] = none;
        a.cells[i] = NAN;
    }
    for (size_t t = 0; t < p->T; t++) /* what nobody may read */
        for (size_t b = 0; b < p->B; b++)
            for (size_t i = 0; i < p->R * H && !live(p, t, b); i++) {
                for (size_t k = 0; k < 4; k++)
                    a.gates[row(p, t, b, 0) * 4 * H + 4 * i + k] = none;
                a.dy[row(p, t, b, 0) * H + i] = none;
            }
    return a;
}

static void release(arrays *a)
{
    free(a->gates);
    free(a->y);
    free(a->dy);
    free(a->wh);
    free(a->cells);
}

static void *copy_of(const void *x, size_t bytes)
{
    void *y = zeros(bytes, 1);
    memcpy(y, x, bytes);
    return y;
}

/* ---- on the device ---- */

/* Bytes there, `shift` of them behind the beginning of a line; free with
 * bm_free(be, *kept). Floats are what a backend moves, bytes that they stand
 * for arrive as they are. */
static void *put(const void *x, size_t bytes, size_t shift, float **kept)
{
    size_t floats = (bytes + shift + 3) / 4;
    float *room = zeros(floats, sizeof *room);

    memcpy((char *)room + shift, x, bytes);
    assert_ok(bm_alloc(be, floats, kept));
    bm_put(be, *kept, room, floats);
    free(room);
    return (char *)*kept + shift;
}

static void get(void *x, size_t bytes, size_t shift, const float *kept)
{
    size_t floats = (bytes + shift + 3) / 4;
    float *room = zeros(floats, sizeof *room);

    bm_get(be, room, kept, floats);
    assert_ok(bm_sync(be));
    memcpy(x, (char *)room + shift, bytes);
    free(room);
}

/* Runs a pass in place of a. */
static void run(const problem *p, launcher *pass, arrays *a)
{
    float *kept[6];
    size_t shift = p->shift * sizeof(bm_bf16);
    bm_lstm_cluster l = {p->T, p->B, p->H, p->R, 0, 0, 0, 0, 0, 0};

    l.frames = put(p->frames, p->B * sizeof *p->frames, 0, &kept[0]);
    l.wh = put(a->wh, a->n_wh * sizeof *a->wh, shift, &kept[1]);
    l.gates = put(a->gates, a->n_gates * sizeof *a->gates, 0, &kept[2]);
    l.y = put(a->y, a->n_y * sizeof *a->y, shift, &kept[3]);
    l.cells = put(a->cells, a->n_y * sizeof *a->cells, 0, &kept[4]);
    l.dy = put(a->dy, a->n_y * sizeof *a->dy, shift, &kept[5]);
    assert_int_equal(pass(bm_cuda_of(be)->stream, &l), cudaSuccess);
    get(a->gates, a->n_gates * sizeof *a->gates, 0, kept[2]);
    get(a->y, a->n_y * sizeof *a->y, shift, kept[3]);
    get(a->cells, a->n_y * sizeof *a->cells, 0, kept[4]);
    FOR_EACH (i, kept)
        bm_free(be, kept[i]);
}

/* ---- the equations ---- */

static void check(double got, double want, double bound)
{
    if (!(fabs(got - want) <= bound))
        fail_msg("%.9g instead of %.9g, which is off by more than %g", got,
                 want, bound);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The frame before t in direction r, and the one after. */
static bool before(const problem *p, size_t r, size_t t, size_t b, size_t *t0)
{
    *t0 = r == 0 ? t - 1 : t + 1;
    return r == 0 ? t > 0 : live(p, t + 1, b);
}

static bool after(const problem *p, size_t r, size_t t, size_t b, size_t *t1)
{
    return before(p, 1 - r, t, b, t1);
}

/* Unit u of sequence b at t, from a's x + wh h + b, c and h of the frame before
 * in `got`. */
static void check_unit(const problem *p, const arrays *a, const arrays *got,
                       size_t t, size_t b, size_t r, size_t u)
{
    size_t H = p->H, at = row(p, t, b, r), t0;
    bool first = !before(p, r, t, b, &t0);
    const bm_bf16 *h0 = first ? NULL : got->y + row(p, t0, b, r) * H;
    double c0 = first ? 0 : got->cells[row(p, t0, b, r) * H + u];
    double z[4], e[4], c = got->cells[at * H + u];

    for (size_t k = 0; k < 4; k++) {
        const bm_bf16 *wh = a->wh + ((r * 4 + k) * H + u) * H;
        double x = value(a->gates[(at * 4 + k) * H + u]), size = fabs(x);

        z[k] = x;
        for (size_t j = 0; j < H && !first; j++) {
            double term = value(wh[j]) * value(h0[j]);
            z[k] += term;
            size += fabs(term);
        }
        e[k] = (double)(H + 8) * 0x1p-23 * size;
    }
    double i = sigmoid(z[0]), f = sigmoid(z[1]), g = tanh(z[2]);
    double o = sigmoid(z[3]);
    double ei = e[0] / 4 + QUICK / 2 + TINY, ef = e[1] / 4 + TINY;
    double eg = e[2] + QUICK * fabs(g) + TINY, eo = e[3] / 4 + QUICK / 2 + TINY;
    const bm_bf16 *gates = got->gates + at * 4 * H + u;

    check(value(gates[0]), i, ei + BF16 * (i + ei));
    check(value(gates[H]), f, ef + BF16 * (f + ef));
    check(value(gates[2 * H]), g, eg + BF16 * (fabs(g) + eg));
    check(value(gates[3 * H]), o, eo + BF16 * (o + eo));
    check(c, f * c0 + i * g,
          ef * fabs(c0) + i * eg + ei * (fabs(g) + eg) + TINY * fabs(c) +
              1e-30);
    double h = o * tanh(c), eh = fabs(tanh(c)) * (eo + o * QUICK) + TINY;
    check(value(got->y[at * H + u]), h, eh + BF16 * (fabs(h) + eh));
}

static void check_forward(const problem *p, const arrays *a, const arrays *got)
{
    size_t H = p->H;

    for (size_t t = 0; t < p->T; t++)
        for (size_t b = 0; b < p->B; b++)
            for (size_t i = 0; i < p->R * H; i++)
                if (live(p, t, b)) {
                    check_unit(p, a, got, t, b, i / H, i % H);
                } else {
                    check(value(got->y[row(p, t, b, 0) * H + i]), 0, 0);
                    check(got->cells[row(p, t, b, 0) * H + i], 0, 0);
                }
}

/* dy + wh' dgates of the frame after, and its bound. */
static double gradient(const problem *p, const arrays *a, const arrays *got,
                       size_t t, size_t b, size_t r, size_t u, double *bound)
{
    size_t H = p->H, t1;
    double sum = value(a->dy[row(p, t, b, r) * H + u]), size = fabs(sum);

    if (after(p, r, t, b, &t1))
        for (size_t k = 0; k < 4 * H; k++) {
            double term = value(a->wh[(r * 4 * H + k) * H + u]) *
                          value(got->gates[row(p, t1, b, r) * 4 * H + k]);
            sum += term;
            size += fabs(term);
        }
    *bound = (double)(4 * H + 16) * 0x1p-23 * size;
    return sum;
}

/* All frames of a unit, from what a holds: gates, cells, dy. */
static void check_unit_back(const problem *p, const arrays *a,
                            const arrays *got, size_t b, size_t r, size_t u)
{
    size_t H = p->H, n = (size_t)p->frames[b], t0;
    double dc = 0, edc = 0;

    for (size_t step = 0; step < n; step++) {
        size_t t = r == 0 ? n - 1 - step : step, at = row(p, t, b, r);
        const bm_bf16 *gates = a->gates + at * 4 * H + u;
        const bm_bf16 *d = got->gates + at * 4 * H + u;
        double i = value(gates[0]), f = value(gates[H]);
        double g = value(gates[2 * H]), o = value(gates[3 * H]);
        double c = a->cells[at * H + u], out = tanh(c), edh;
        double dh = gradient(p, a, got, t, b, r, u, &edh);
        double c0 =
            before(p, r, t, b, &t0) ? a->cells[row(p, t0, b, r) * H + u] : 0;
        double inner = dh * o * (1 - out * out), own = dc + inner;
        double e = edc + edh * o + TINY * (fabs(dc) + fabs(dh) * o);
        double want[4] = {own * g * i * (1 - i), own * c0 * f * (1 - f),
                          own * i * (1 - g * g), dh * out * o * (1 - o)};
        double slack[4] = {e * fabs(g) * i * (1 - i),
                           e * fabs(c0) * f * (1 - f), e * i * (1 - g * g),
                           (edh + TINY * fabs(dh)) * o * (1 - o)};

        for (size_t k = 0; k < 4; k++)
            check(value(d[k * H]), want[k],
                  slack[k] + (BF16 + TINY) * (fabs(want[k]) + slack[k]) +
                      1e-30);
        dc = own * f;
        edc = e * f;
    }
}

static void check_backward(const problem *p, const arrays *a, const arrays *got)
{
    size_t H = p->H;

    for (size_t b = 0; b < p->B; b++)
        for (size_t i = 0; i < p->R * H; i++)
            check_unit_back(p, a, got, b, i / H, i % H);
    for (size_t t = 0; t < p->T; t++)
        for (size_t b = 0; b < p->B; b++)
            for (size_t i = 0; i < p->R * 4 * H && !live(p, t, b); i++)
                check(value(got->gates[row(p, t, b, 0) * 4 * H + i]), 0, 0);
}

/* ---- tests ---- */

static arrays copy(const arrays *a)
{
    arrays b = *a;

    b.gates = copy_of(a->gates, a->n_gates * sizeof *a->gates);
    b.y = copy_of(a->y, a->n_y * sizeof *a->y);
    b.dy = copy_of(a->dy, a->n_y * sizeof *a->dy);
    b.wh = copy_of(a->wh, a->n_wh * sizeof *a->wh);
    b.cells = copy_of(a->cells, a->n_y * sizeof *a->cells);
    return b;
}

static void solve(const problem *p)
{
    arrays a = draw(p), forward = copy(&a), backward;

    run(p, run_forward, &forward);
    check_forward(p, &a, &forward);
    backward = copy(&forward);
    run(p, run_backward, &backward);
    check_backward(p, &forward, &backward);
    release(&backward);
    release(&forward);
    release(&a);
}

/* Lengths out of order, among them T, 0 and 1. */
static problem with(size_t H, size_t R, size_t T, size_t B)
{
    problem p = {H, R, T, B, 0, {0}};
    const int32_t lengths[] = {(int32_t)T, 1, 0, (int32_t)(T + 1) / 2};

    for (size_t b = 0; b < B; b++)
        p.frames[b] = lengths[(b + B / 8) % 4];
    return p;
}

static void test_all_batches(void **state)
{
    const size_t Bs[] = {1, 7, 8, 9, 17, 33, 56}, Ts[] = {1, 2, 5};

    (void)state;
    FOR_EACH (i, Bs)
        FOR_EACH (j, Ts)
            for (size_t R = 1; R <= 2; R++) {
                problem p = with(64, R, Ts[j], Bs[i]);
                solve(&p);
            }
}

static void test_many_frames(void **state)
{
    (void)state;
    for (size_t R = 1; R <= 2; R++) {
        problem p = with(64, R, 17, 9);
        solve(&p);
    }
}

/* Thousands of fibers: not all where they are slow. */
static void test_all_sizes(void **state)
{
    const size_t Hs[] = {8, 72, 128, 192, 256, 320, 384, 448, 512};
    size_t most = getenv("BMUF_TEST_SHORT") != NULL ? 192 : 512;

    (void)state;
    for (size_t i = 0; i < sizeof Hs / sizeof *Hs && Hs[i] <= most; i++) {
        problem few = with(Hs[i], 1, 3, 5), many = with(Hs[i], 2, 2, 9);
        solve(&few);
        solve(&many);
    }
}

static void test_no_sequence_has_a_frame(void **state)
{
    problem p = {.H = 64, .R = 2, .T = 3, .B = 3};

    (void)state;
    solve(&p);
}

static void test_nothing_is_nothing(void **state)
{
    bm_lstm_cluster no_frames = {.H = 64, .R = 1, .B = 1};
    bm_lstm_cluster no_sequences = {.H = 64, .R = 1, .T = 1};
    cudaStream_t stream = bm_cuda_of(be)->stream;

    (void)state;
    assert_int_equal(run_forward(stream, &no_frames), cudaSuccess);
    assert_int_equal(run_backward(stream, &no_sequences), cudaSuccess);
    assert_ok(bm_sync(be));
}

static void test_tensors_of_callers_may_begin_anywhere(void **state)
{
    problem p = with(72, 2, 4, 9);

    (void)state;
    p.shift = 3;
    solve(&p);
}

static void test_two_runs_have_the_same_bits(void **state)
{
    problem p = with(128, 2, 5, 9);
    arrays a = draw(&p), x = copy(&a), y = copy(&a);

    (void)state;
    run(&p, run_forward, &x);
    run(&p, run_forward, &y);
    assert_memory_equal(x.gates, y.gates, x.n_gates * sizeof *x.gates);
    assert_memory_equal(x.y, y.y, x.n_y * sizeof *x.y);
    assert_memory_equal(x.cells, y.cells, x.n_y * sizeof *x.cells);
    run(&p, run_backward, &x);
    run(&p, run_backward, &y);
    assert_memory_equal(x.gates, y.gates, x.n_gates * sizeof *x.gates);
    release(&y);
    release(&x);
    release(&a);
}

/* ---- */

static void *symbol(void *plugin, const char *name)
{
    void *x = dlsym(plugin, name);
    assert_non_null(x);
    return x;
}

static int load(void **state)
{
    char path[4096];
    void *plugin = NULL;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/libbmuf_cuda.so",
                   getenv("BMUF_PLUGINS"));
    plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(plugin);
    *(void **)&run_forward = symbol(plugin, "bm_kernel_lstm_cluster_forward");
    *(void **)&run_backward = symbol(plugin, "bm_kernel_lstm_cluster_backward");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_nothing),
        cmocka_unit_test(test_no_sequence_has_a_frame),
        cmocka_unit_test(test_all_batches),
        cmocka_unit_test(test_many_frames),
        cmocka_unit_test(test_all_sizes),
        cmocka_unit_test(test_tensors_of_callers_may_begin_anywhere),
        cmocka_unit_test(test_two_runs_have_the_same_bits),
    };
    int failed = SKIPPED;

    if (!have_backend("cuda"))
        return SKIPPED;
    assert_ok(bm_backend_open(&be, "cuda", 0));
    if (bm_cuda_of(be)->major < 9)
        printf("skipped: no clusters on this device\n");
    else
        failed = cmocka_run_group_tests_name("lstm_cluster", tests, load, NULL);
    bm_backend_close(be);
    return failed;
}

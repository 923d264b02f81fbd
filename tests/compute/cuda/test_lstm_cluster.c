/*
 * Kernels that take all frames of an LSTM, in clusters or, with "grid" as
 * second argument, in blocks that all run at once: see
 * tests/support/recurrence.h.
 */
#include "compute/cuda/cuda.h"
#include "compute/cuda/lstm/lstm_kernels.h"
#include "tests/fakes/emulated.h"
#include "tests/support/recurrence.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <stdlib.h>
#include <string.h>

typedef cudaError_t launcher(cudaStream_t, const bm_lstm_cluster *);
typedef cudaError_t grid_launcher(cudaStream_t, const bm_lstm_cluster *, size_t,
                                  void *);
typedef bm_lstm_grid asker(const bm_lstm_cluster *);

static bm_backend *be;
static bool grid, quick;     /* quick: where fibers are slow */
static launcher *cluster[2]; /* forward, backward */
static grid_launcher *in_grid[2];
static asker *needs[2];

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

static void run_in_grid(int pass, const bm_lstm_cluster *l)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_lstm_grid n = needs[pass](l);
    char *room = zeros(n.room, 1);
    float *kept = NULL;

    for (size_t first = 0; first < l->B; first += n.most) {
        void *there = put(room, n.room, 0, &kept);

        assert_int_equal(in_grid[pass](stream, l, first, there), cudaSuccess);
        assert_ok(bm_sync(be));
        bm_free(be, kept);
    }
    free(room);
}

/* Runs a pass in place of a. */
static void run(const recurrence *p, int pass, arrays *a)
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
    if (grid)
        run_in_grid(pass, &l);
    else
        assert_int_equal(cluster[pass](bm_cuda_of(be)->stream, &l),
                         cudaSuccess);
    get(a->gates, a->n_gates * sizeof *a->gates, 0, kept[2]);
    get(a->y, a->n_y * sizeof *a->y, shift, kept[3]);
    get(a->cells, a->n_y * sizeof *a->cells, 0, kept[4]);
    FOR_EACH (i, kept)
        bm_free(be, kept[i]);
}

/* ---- tests ---- */

static void solve(const recurrence *p)
{
    arrays a = arrays_draw(p), forward = arrays_copy(&a), backward;

    run(p, 0, &forward);
    check_forward(p, &a, &forward);
    backward = arrays_copy(&forward);
    run(p, 1, &backward);
    check_backward(p, &forward, &backward);
    arrays_free(&backward);
    arrays_free(&forward);
    arrays_free(&a);
}

static void test_all_batches(void **state)
{
    const size_t Bs[] = {1, 9, 75, 8, 17, 33}, Ts[] = {1, 5, 2};

    (void)state;
    for (size_t i = 0; i < (grid ? quick ? 2 : 3 : 6); i++)
        for (size_t j = 0; j < (grid ? 2 : 3); j++)
            for (size_t R = 1; R <= 2; R++) {
                recurrence p = recurrence_with(64, R, Ts[j], Bs[i]);
                solve(&p);
            }
}

/* Where warps of a block get ahead of each other, and read what others have
 * brought. */
static void test_many_tiles(void **state)
{
    recurrence p = recurrence_with(200, 1, quick ? 2 : 4, 64);

    (void)state;
    solve(&p);
}

/* More than a grid takes at once. */
static void test_very_many_sequences(void **state)
{
    recurrence p = recurrence_with(8, 1, 3, MOST_SEQUENCES);

    (void)state;
    if (quick)
        skip();
    solve(&p);
}

static void test_many_frames(void **state)
{
    (void)state;
    for (size_t R = 1; R <= 2; R++) {
        recurrence p = recurrence_with(64, R, 17, 9);
        solve(&p);
    }
}

/* Thousands of fibers: not all where they are slow. */
static void test_all_sizes(void **state)
{
    const size_t in_clusters[] = {8, 72, 128, 192, 256, 320, 384, 448, 512};
    const size_t in_grids[] = {8, 128, 136, 256, 512, 1000};
    const size_t *Hs = grid ? in_grids : in_clusters;
    size_t n = grid ? 6 : 9;
    size_t most = quick ? 192 : 1000;

    (void)state;
    for (size_t i = 0; i < n && Hs[i] <= most; i++) {
        bool big = grid && Hs[i] >= 256;
        recurrence few = recurrence_with(Hs[i], 1, big ? 2 : 3, 5);
        recurrence many = recurrence_with(Hs[i], 2, 2, 9);

        solve(&few);
        if (!big)
            solve(&many);
    }
}

static void test_no_sequence_has_a_frame(void **state)
{
    recurrence p = {.H = 64, .R = 2, .T = 3, .B = 3};

    (void)state;
    solve(&p);
}

static void test_nothing_is_nothing(void **state)
{
    bm_lstm_cluster no_frames = {.H = 64, .R = 1, .B = 1};
    bm_lstm_cluster no_sequences = {.H = 64, .R = 1, .T = 1};
    cudaStream_t stream = bm_cuda_of(be)->stream;

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(grid ? in_grid[pass](stream, &no_frames, 0, NULL)
                              : cluster[pass](stream, &no_frames),
                         cudaSuccess);
        assert_int_equal(grid ? in_grid[pass](stream, &no_sequences, 0, NULL)
                              : cluster[pass](stream, &no_sequences),
                         cudaSuccess);
    }
    assert_ok(bm_sync(be));
}

static void test_tensors_of_callers_may_begin_anywhere(void **state)
{
    recurrence p = recurrence_with(72, 2, 4, 9);

    (void)state;
    p.shift = 3;
    solve(&p);
}

static void test_two_runs_have_the_same_bits(void **state)
{
    recurrence p = recurrence_with(128, 2, 5, 9);
    arrays a = arrays_draw(&p), x = arrays_copy(&a), y = arrays_copy(&a);

    (void)state;
    run(&p, 0, &x);
    run(&p, 0, &y);
    assert_memory_equal(x.gates, y.gates, x.n_gates * sizeof *x.gates);
    assert_memory_equal(x.y, y.y, x.n_y * sizeof *x.y);
    assert_memory_equal(x.cells, y.cells, x.n_y * sizeof *x.cells);
    run(&p, 1, &x);
    run(&p, 1, &y);
    assert_memory_equal(x.gates, y.gates, x.n_gates * sizeof *x.gates);
    arrays_free(&y);
    arrays_free(&x);
    arrays_free(&a);
}

/* ---- */

static void *symbol(const char *kind, int pass, const char *what)
{
    char name[64];
    void *x = NULL;

    (void)snprintf(name, sizeof name, "bm_kernel_lstm_%s_%s%s", kind,
                   pass == 0 ? "forward" : "backward", what);
    x = emulated_symbol(name);
    assert_non_null(x);
    return x;
}

static int load(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        *(void **)&cluster[i] = symbol("cluster", i, "");
        *(void **)&in_grid[i] = symbol("grid", i, "");
        *(void **)&needs[i] = symbol("grid", i, "_needs");
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_nothing),
        cmocka_unit_test(test_no_sequence_has_a_frame),
        cmocka_unit_test(test_all_batches),
        cmocka_unit_test(test_many_tiles),
        cmocka_unit_test(test_very_many_sequences),
        cmocka_unit_test(test_many_frames),
        cmocka_unit_test(test_all_sizes),
        cmocka_unit_test(test_tensors_of_callers_may_begin_anywhere),
        cmocka_unit_test(test_two_runs_have_the_same_bits),
    };
    int failed = SKIPPED;

    grid = argc > 2 && strcmp(argv[2], "grid") == 0;
    quick = getenv("BMUF_TEST_SHORT") != NULL;
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

/*
 * The cluster kernels of the LSTM against tests/support/reference/recurrence.h.
 */
#include "compute/cuda/device/cuda_context.h"
#include "compute/cuda/lstm/lstm_kernels.h"
#include "tests/support/reference/recurrence.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cudaError_t launcher(cudaStream_t, const bm_lstm_cluster *);

static bm_backend *be;
static bool quick;           /* the emulated device is slow */
static launcher *cluster[2]; /* forward, backward */

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
    assert_int_equal(cluster[pass](bm_cuda_of(be)->stream, &l), cudaSuccess);
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
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 3; j++)
            for (size_t R = 1; R <= 2; R++) {
                recurrence p = recurrence_with(64, R, Ts[j], Bs[i]);
                solve(&p);
            }
}

/* Warps of a block get ahead of each other, and read what others have
 * fetched. */
static void test_many_tiles(void **state)
{
    recurrence p = recurrence_with(200, 1, quick ? 2 : 4, 64);

    (void)state;
    solve(&p);
}

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

/* The large ones take thousands of emulated threads. */
static void test_all_sizes(void **state)
{
    const size_t Hs[] = {8, 72, 128, 192, 256, 320, 384, 448, 512};
    size_t most = quick ? 192 : 512;

    (void)state;
    for (size_t i = 0; i < 9 && Hs[i] <= most; i++) {
        recurrence few = recurrence_with(Hs[i], 1, 3, 5);
        recurrence many = recurrence_with(Hs[i], 2, 2, 9);

        solve(&few);
        solve(&many);
    }
}

static void test_no_sequence_has_a_frame(void **state)
{
    recurrence p = {.H = 64, .R = 2, .T = 3, .B = 3};

    (void)state;
    solve(&p);
}

static void test_an_empty_batch_is_a_no_op(void **state)
{
    bm_lstm_cluster no_frames = {.H = 64, .R = 1, .B = 1};
    bm_lstm_cluster no_sequences = {.H = 64, .R = 1, .T = 1};
    cudaStream_t stream = bm_cuda_of(be)->stream;

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(cluster[pass](stream, &no_frames), cudaSuccess);
        assert_int_equal(cluster[pass](stream, &no_sequences), cudaSuccess);
    }
    assert_ok(bm_sync(be));
}

static void test_tensors_need_no_alignment(void **state)
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

static void *symbol(void *plugin, int pass)
{
    char name[64];
    void *x = NULL;

    (void)snprintf(name, sizeof name, "bm_kernel_lstm_cluster_%s",
                   pass == 0 ? "forward" : "backward");
    x = dlsym(plugin, name);
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
    for (int i = 0; i < 2; i++)
        *(void **)&cluster[i] = symbol(plugin, i);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_batch_is_a_no_op),
        cmocka_unit_test(test_no_sequence_has_a_frame),
        cmocka_unit_test(test_all_batches),
        cmocka_unit_test(test_many_tiles),
        cmocka_unit_test(test_very_many_sequences),
        cmocka_unit_test(test_many_frames),
        cmocka_unit_test(test_all_sizes),
        cmocka_unit_test(test_tensors_need_no_alignment),
        cmocka_unit_test(test_two_runs_have_the_same_bits),
    };
    int failed = SKIPPED;

    quick = getenv("BMUF_TEST_SHORT") != NULL;
    if (!have_backend("cuda"))
        return SKIPPED;
    assert_ok(bm_backend_open(&be, "cuda", 0));
    if (bm_cuda_of(be)->major < 9)
        printf("skipped: this device has no clusters\n");
    else
        failed = cmocka_run_group_tests_name("lstm_cluster", tests, load, NULL);
    bm_backend_close(be);
    return failed;
}

/*
 * Checkpoints with values from a formula, saved in some slices and loaded in
 * others; a failure to save on one rank fails on all.
 */
#include "io/model/safetensors.h"
#include "tests/support/checkpoints.h"
#include "tests/support/support.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- saved one way, loaded another ----------------------------------------
 */

static void check_any_layout(bm_comm *comm, size_t n)
{
    scratch s = meet_in_scratch();
    bm_comm *alone = NULL;
    char own[32];
    const char *path = scratch_file(&s, "saved"), *single = NULL;

    snprintf(own, sizeof own, "alone-%d", bm_comm_rank(comm));
    single = scratch_file(&s, own);
    assert_ok(bm_comm_open_alone(&alone));
    save_as(WHOLE, alone, single, n);
    for (int how = 0; how < LAYOUTS; how++) {
        save_as((state_layout)how, comm, path, n);
        assert_same_bytes(path, single);
        for (int other = 0; other < LAYOUTS; other++)
            load_as((state_layout)other, comm, path, n);
        load_as(SLICES, alone, path, n);
    }
    bm_comm_close(alone);
    leave_scratch(&s);
}

static void test_any_ranks_write_the_same_file_and_read_it(void **state)
{
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    check_any_layout(comm, N);
    check_any_layout(comm,
                     3); /* no checkpoint_segments, slices without elements */
    check_any_layout(comm, 0);
    bm_comm_close(comm);
}

static void test_long_states_are_sent_in_chunks(void **state)
{
    enum { LONG = (5 << 19) + 3 };
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network_of(LONG);
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    size_t from = cut_of(comm, bm_comm_rank(comm), LONG);
    size_t to = cut_of(comm, bm_comm_rank(comm) + 1, LONG);
    bm_state out = make_part(1, from, to - from), in = make_part(1, 0, LONG);
    bm_checkpoint c = describe_checkpoint(&params, &out, 1);
    fill_parts(&out, 1);
    assert_ok(bm_checkpoint_save(BM_ONE_PATH(path), comm, &c, NULL));
    c.states = &in;
    assert_ok(bm_checkpoint_load(path, comm, &c));
    check_parts(&in, 1);
    free(in.x);
    free(out.x);
    bm_comm_close(comm);
    leave_scratch(&s);
}

static void test_states_may_be_on_a_backend(void **state)
{
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network_of(N);
    bm_backend *be = NULL;
    bm_comm *comm = NULL;
    bm_state host = make_part(0, 0, N), device = host;
    bm_checkpoint c = describe_checkpoint(&params, &device, 1);

    (void)state;
    assert_ok(bm_comm_open(&comm));
    assert_ok(bm_backend_open(&be, "cpu", 0));
    device.be = be;
    assert_ok(bm_alloc(be, N, &device.x));
    fill_parts(&host, 1);
    bm_put(be, device.x, host.x, N);
    assert_ok(bm_sync(be));
    assert_ok(bm_checkpoint_save(BM_ONE_PATH(path), comm, &c, NULL));
    bm_axpby(be, N, 0, device.x, 0, device.x);
    assert_ok(bm_checkpoint_load(path, comm, &c));
    memset(host.x, 0, N * sizeof *host.x);
    bm_get(be, host.x, device.x, N);
    assert_ok(bm_sync(be));
    check_parts(&host, 1);
    bm_free(be, device.x);
    free(host.x);
    bm_backend_close(be);
    bm_comm_close(comm);
    leave_scratch(&s);
}

static void test_the_model_is_stored_by_segment(void **state)
{
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "saved");
    bm_comm *comm = NULL;
    bm_st_file *f = NULL;
    const bm_st_tensor *t = NULL;
    float x[40];
    int64_t at[2];

    (void)state;
    assert_ok(bm_comm_open(&comm));
    save_as(SLICES, comm, path, N);
    assert_ok(bm_st_open(&f, path, true));
    assert_int_equal(bm_st_count(f), 2 + 4 + 1 + 2 * WORKERS);
    t = bm_st_find(f, "model.10.linear.w");
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->dim[0], 4);
    assert_int_equal(t->dim[1], 10);
    assert_ok(bm_st_read(f, t, 0, 40, x));
    for (size_t i = 0; i < 40; i++)
        assert_true(x[i] == element_of(0, 24 + i));
    t = bm_st_find(f, "state.sgd.v.4");
    assert_ok(bm_st_read(f, t, 30, 40, x));
    for (size_t i = 0; i < 40; i++)
        assert_true(x[i] == element_of(6, 30 + i));
    t = bm_st_find(f, "state.adam.t.4");
    assert_int_equal(t->count, 1);
    assert_ok(bm_st_read(f, t, 0, 1, x));
    assert_true(x[0] == element_of(11, 0));
    assert_ok(bm_st_read(f, bm_st_find(f, "position"), 0, 2, at));
    assert_int_equal(at[0], 7);
    assert_string_equal(bm_st_text(f, "manifest"), "fedcba9876543210");
    assert_string_equal(bm_st_text(f, "config"), checkpoint_texts[0].text);
    bm_st_free(f);
    bm_comm_close(comm);
    leave_scratch(&s);
}

/* ---- failures on one rank --------------------------------------------------
 */

/* Saves `states` and expects a failure, and the older file to be unchanged. */
static void check_save_fails(bm_comm *comm, const bm_state *states, size_t n,
                             bm_status expected, const char *word)
{
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network_of(N);
    bm_checkpoint c = describe_checkpoint(&params, states, n);
    bm_saved saved = {.bytes = 99};

    save_as(WHOLE, comm, path, N);
    assert_int_equal(bm_checkpoint_save(BM_ONE_PATH(path), comm, &c, &saved),
                     expected);
    assert_non_null(strstr(bm_last_error(), word));
    assert_int_equal(saved.bytes, 99);
    load_as(SLICES, comm, path, N);
    assert_int_equal(scratch_count(&s, false), 1);
    leave_scratch(&s);
}

static void test_a_state_that_is_not_finite_fails_on_all_ranks(void **state)
{
    bm_state states[VECTORS];
    bm_comm *comm = NULL;
    size_t n = 0;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    n = lay_out(SLICES, comm, N, states);
    fill_parts(states, n);
    if (bm_comm_rank(comm) == bm_comm_size(comm) - 1)
        states[n - 1].x[5] = NAN; /* the last worker's v */
    check_save_fails(comm, states, n, BM_ERR_NUMERIC,
                     "element 5 of state.sgd.v.4");
    free_parts(states, n);
    bm_comm_close(comm);
}

static void test_slices_that_do_not_cover_a_state_are_rejected(void **state)
{
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    int size = bm_comm_size(comm), rank = bm_comm_rank(comm);
    size_t from = cut_of(comm, rank, N), to = cut_of(comm, rank + 1, N);
    bm_state delta = make_part(1, from, to - from - (rank == size - 1));
    check_save_fails(comm, &delta, 1, BM_ERR_ARG, "no rank has element 69");
    delta.count = to - from + (rank == size - 1);
    check_save_fails(comm, &delta, 1, BM_ERR_ARG, "71 of 70");
    delta.count = to - from;
    delta.whole = N + (size_t)(rank == size - 1);
    check_save_fails(comm, &delta, 1, BM_ERR_ARG,
                     size > 1 ? "bmuf.delta has 70 elements on rank 0, but 71"
                              : "no rank has element 70");
    free(delta.x);
    bm_comm_close(comm);
}

static void test_a_full_disk_fails_on_all_ranks(void **state)
{
    bm_state states[VECTORS];
    bm_comm *comm = NULL;
    struct rlimit before, small;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network_of(N);
    bm_status status = BM_OK;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    size_t n = lay_out(SLICES, comm, N, states);
    bm_checkpoint c = describe_checkpoint(&params, states, n);
    fill_parts(states, n);
    save_as(WHOLE, comm, path, N);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){2000, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = bm_checkpoint_save(BM_ONE_PATH(path), comm, &c, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, BM_ERR_IO);
    assert_non_null(strstr(bm_last_error(), "ulimit -f"));
    load_as(WHOLE, comm, path, N);
    assert_int_equal(scratch_count(&s, false), 1);
    assert_int_equal(
        bm_checkpoint_save(BM_ONE_PATH(scratch_file(&s, "no/saved")), comm, &c,
                           NULL),
        BM_ERR_CREATE);
    free_parts(states, n);
    bm_comm_close(comm);
    leave_scratch(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_ranks_write_the_same_file_and_read_it),
        cmocka_unit_test(test_long_states_are_sent_in_chunks),
        cmocka_unit_test(test_states_may_be_on_a_backend),
        cmocka_unit_test(test_the_model_is_stored_by_segment),
        cmocka_unit_test(test_a_state_that_is_not_finite_fails_on_all_ranks),
        cmocka_unit_test(test_slices_that_do_not_cover_a_state_are_rejected),
        cmocka_unit_test(test_a_full_disk_fails_on_all_ranks),
    };
    return RUN_GROUP_MPI("checkpoint", tests);
}

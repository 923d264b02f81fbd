/*
 * Loading checkpoints and models that do not match or are damaged changes
 * nothing on any rank; a model can be imported from a checkpoint.
 */
#include "io/model/model_file.h"
#include "io/model/safetensors.h"
#include "tests/support/checkpoints.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- files that do not match -----------------------------------------------
 */

static void check_load_fails(const char *path, bm_comm *comm,
                             const bm_params *params, bm_state *states,
                             size_t n, bm_status expected, const char *word)
{
    bm_checkpoint c = {.params = params, .states = states, .n_states = n};

    assert_int_equal(bm_checkpoint_load(path, comm, &c), expected);
    if (strstr(bm_last_error(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, bm_last_error());
    check_parts_are_zero(states, n);
    assert_int_equal(c.position.epoch, 0);
    assert_true(c.numbers[0] == 0 && c.manifest == 0);
}

static void test_files_that_do_not_match_change_no_state(void **state)
{
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "saved");
    bm_state states[VECTORS + 1];
    bm_params params = network_of(N), other = params;
    bm_segment turned[4];
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    save_as(WHOLE, comm, path, N);
    size_t n = lay_out(SLICES, comm, N, states);
    bool last = bm_comm_rank(comm) == bm_comm_size(comm) - 1;

    states[n] = make_part(6, 0, N);
    snprintf(states[n].name, sizeof states[n].name, "residual");
    check_load_fails(path, comm, &params, states, n + last, BM_ERR_FORMAT,
                     "state.residual");
    check_load_fails(path, comm, &params, states, n - last, BM_ERR_FORMAT,
                     "state.sgd.v.4");
    memcpy(turned, checkpoint_segments, sizeof turned);
    turned[0] = (bm_segment){"0.conv.w", 0, 24, 3, {3, 2, 4}, 0};
    other.segments = turned;
    check_load_fails(path, comm, &other, states, n, BM_ERR_FORMAT,
                     "[2, 3, 4], but the network has [3, 2, 4]");
    turned[0] = (bm_segment){"0.dense.w", 0, 24, 3, {2, 3, 4}, 0};
    check_load_fails(path, comm, &other, states, n, BM_ERR_FORMAT,
                     "model.0.dense.w");
    check_load_fails(scratch_file(&s, "none"), comm, &params, states, n,
                     BM_ERR_MISSING, "none");
    free_parts(states, n + 1);

    other = network_of(N + 1);
    n = lay_out(SLICES, comm, N + 1, states);
    check_load_fails(path, comm, &other, states, n, BM_ERR_FORMAT, "model");
    check_load_fails(path, comm, &other, states + 1, n - 1, BM_ERR_FORMAT,
                     "has 70 elements, not 71");
    free_parts(states, n);

    states[0] = make_part(2 + WORKERS, 0, 2);
    states[0].whole = 2;
    check_load_fails(path, comm, &params, states, 1, BM_ERR_FORMAT,
                     "state.adam.t.0 has 1 elements, not 2");
    free_parts(states, 1);
    bm_comm_close(comm);
    leave_scratch(&s);
}

static void test_a_damaged_file_changes_no_state(void **state)
{
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "saved");
    bm_state states[VECTORS];
    bm_params params = network_of(N);
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    save_as(WHOLE, comm, path, N);
    size_t n = lay_out(WHOLE, comm, N, states);
    damage_sealed(path, 36, "\1", 1, false);
    check_load_fails(path, comm, &params, states, n, BM_ERR_FORMAT, "checksum");
    /* The last element of the last state, with a valid checksum. */
    damage_sealed(path, 36, &(float){INFINITY}, 4, true);
    check_load_fails(path, comm, &params, states, n, BM_ERR_FORMAT,
                     "element 69 of state.sgd.v.4");
    damage_sealed(path, 36, &(float){element_of(6, 69)}, 4, true);
    load_as(WHOLE, comm, path, N);
    free_parts(states, n);
    bm_comm_close(comm);
    leave_scratch(&s);
}

/* Numbers that training would count on from, in files with a valid checksum. */
static void test_numbers_out_of_range_are_damage(void **state)
{
    static const bm_position positions[] = {
        {INT64_MAX, 0}, {0, INT64_MAX}, {-1, 0}};
    static const double numbers[] = {1e300, -1e18};
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "forged.safetensors");
    bm_state states[VECTORS], kept[VECTORS];
    bm_params params = network_of(N);
    bm_comm *comm = NULL;
    size_t n = 0;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    (void)lay_out(WHOLE, comm, N, states);
    n = lay_out(WHOLE, comm, N, kept);
    fill_parts(kept, n);
    FOR_EACH (i, positions) {
        bm_checkpoint c = describe_checkpoint(&params, kept, n);

        c.position = positions[i];
        assert_ok(bm_checkpoint_save(BM_ONE_PATH(path), comm, &c, NULL));
        check_load_fails(path, comm, &params, states, n, BM_ERR_FORMAT,
                         "is not a count");
    }
    FOR_EACH (i, numbers) {
        bm_checkpoint c = describe_checkpoint(&params, kept, n);

        c.numbers[i] = numbers[i];
        assert_ok(bm_checkpoint_save(BM_ONE_PATH(path), comm, &c, NULL));
        check_load_fails(path, comm, &params, states, n, BM_ERR_FORMAT,
                         "is out of range");
    }
    free_parts(states, n);
    free_parts(kept, n);
    bm_comm_close(comm);
    leave_scratch(&s);
}

/* ---- models ----------------------------------------------------------------
 */

static bm_status import(const char *path, const bm_params *params, float *x)
{
    bool checkpoint = false;
    bm_st_file *f = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_model_open(&f, path, &checkpoint));
    status = bm_model_check_tensors(f, path, checkpoint, params);
    if (status == BM_OK)
        status = bm_model_load(f, checkpoint, params, x);
    bm_st_free(f);
    return status;
}

static void test_a_model_is_exported_and_imported(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "model.safetensors");
    bm_params params = network_of(N), flat = {.n = N};
    float x[N], y[N] = {0};
    char *text = NULL;
    bm_st_file *f = NULL;

    (void)state;
    for (size_t i = 0; i < N; i++)
        x[i] = element_of(0, i);
    assert_ok(bm_model_export(path, &params, x, checkpoint_texts));
    assert_ok(bm_st_open(&f, path, false));
    assert_int_equal(bm_st_count(f), 4);
    assert_string_equal(bm_st_at(f, 0)->name, "0.conv.w");
    bm_st_free(f);
    assert_ok(bm_st_open(&f, path, false));
    assert_ok(bm_model_text(f, path, "config", &text));
    assert_string_equal(text, checkpoint_texts[0].text);
    free(text);
    assert_int_equal(bm_model_text(f, path, "license", &text), BM_ERR_FORMAT);
    bm_st_free(f);
    assert_ok(import(path, &params, y));
    assert_memory_equal(x, y, sizeof x);
    assert_ok(bm_model_export(scratch_file(&s, "again"), &params, y,
                              checkpoint_texts));
    assert_same_bytes(path, scratch_file(&s, "again"));

    memset(y, 0, sizeof y);
    params.n_segments = 3;
    params.n = 64;
    assert_int_equal(import(path, &params, y), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "10.linear.b"));
    assert_int_equal(import(path, &flat, y), BM_ERR_FORMAT);
    assert_ok(bm_model_export(path, &flat, x, NULL));
    params = network_of(N);
    assert_int_equal(import(path, &params, y), BM_ERR_FORMAT);
    for (int i = 0; i < N; i++)
        assert_true(y[i] == 0);
    assert_ok(import(path, &flat, y));
    assert_memory_equal(x, y, sizeof x);
    scratch_close(&s);
}

static void test_a_model_is_imported_from_a_checkpoint(void **state)
{
    scratch s = meet_in_scratch();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network_of(N);
    bm_comm *comm = NULL;
    float x[N] = {0};

    (void)state;
    assert_ok(bm_comm_open(&comm));
    save_as(SLICES, comm, path, N);
    assert_ok(import(path, &params, x));
    for (size_t i = 0; i < N; i++)
        assert_true(x[i] == element_of(0, i));
    damage_sealed(path, 36, "\1", 1, false);
    assert_int_equal(import(path, &params, x), BM_ERR_FORMAT);
    bm_comm_close(comm);
    leave_scratch(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_that_do_not_match_change_no_state),
        cmocka_unit_test(test_a_damaged_file_changes_no_state),
        cmocka_unit_test(test_numbers_out_of_range_are_damage),
        cmocka_unit_test(test_a_model_is_exported_and_imported),
        cmocka_unit_test(test_a_model_is_imported_from_a_checkpoint),
    };
    return RUN_GROUP_MPI("checkpoint_load", tests);
}

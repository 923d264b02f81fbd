/*
 * Models of bmuf export --weights, with weights of fewer bits: how far they are
 * from the right ones, and what is computed with them.
 */
#include "io/model/model_file.h"
#include "models/model.h"
#include "tests/cli/export/networks.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes the model with such weights, reads it back, and gives both vectors;
 * free(*x), free(*y). */
static bm_model *narrowed(const char *type, float **x, float **y)
{
    bm_model *m = network(every_layer);
    const bm_params *p = bm_model_params(m);
    bm_st_file *f = NULL;
    bool checkpoint = true;

    assert_code(BMUF("export", "every.safetensors", "--weights", type, "--out",
                     "narrow.safetensors"),
                0);
    *x = zeros(p->n, sizeof **x);
    *y = zeros(p->n, sizeof **y);
    memcpy(*x, p->w, p->n * sizeof **x);
    assert_ok(bm_model_open(&f, in_folder("narrow.safetensors"), &checkpoint));
    assert_false(checkpoint);
    assert_ok(bm_model_check_tensors(f, "narrow", false, p));
    assert_ok(bm_model_load(f, false, p, *y));
    bm_st_free(f);
    return m;
}

/* At most half a step: the largest weight of a row is 127 steps. */
static void test_bytes_are_within_half_a_step(void **_)
{
    float *x = NULL, *y = NULL;
    bm_model *m = narrowed("int8", &x, &y);
    const bm_params *p = bm_model_params(m);
    size_t different = 0;

    (void)_;
    for (size_t s = 0; s < p->n_segments; s++) {
        const bm_segment *seg = &p->segments[s];
        size_t row = seg->dim[seg->rank - 1];

        for (size_t i = 0; i < seg->count; i++) {
            const float *from = x + seg->offset + i / row * row;
            double most = 0;

            for (size_t k = 0; k < row; k++)
                most = fmax(most, fabs((double)from[k]));
            if (seg->rank == 1)
                assert_true(y[seg->offset + i] == x[seg->offset + i]);
            else
                assert_true(
                    fabs((double)y[seg->offset + i] - x[seg->offset + i]) <=
                    most / 254 * (1 + 1e-5));
            different += y[seg->offset + i] != x[seg->offset + i];
        }
    }
    assert_true(different > p->n / 2);
    free(x);
    free(y);
    bm_model_free(m);
}

/* 11 bits: a relative error of 2^-11, below 2^-14 an absolute one of 2^-25. */
static void test_halves_are_rounded_to_nearest(void **_)
{
    float *x = NULL, *y = NULL;
    bm_model *m = narrowed("fp16", &x, &y);
    const bm_params *p = bm_model_params(m);
    size_t different = 0;

    (void)_;
    for (size_t i = 0; i < p->n; i++) {
        double error = fabs((double)y[i] - x[i]);

        assert_true(error <= fmax(fabs((double)x[i]) * 0x1p-11, 0x1p-25));
        different += error > 0;
    }
    assert_true(different > p->n / 2);
    free(x);
    free(y);
    bm_model_free(m);
}

/* Bytes and the floats of their rows; a matrix alone. */
static void test_a_narrow_file_is_smaller(void **_)
{
    static const struct {
        const char *type;
        double least, most; /* of the file, in bytes per weight */
    } cases[] = {{"int8", 1, 1.3}, {"fp16", 2, 2.3}};
    const double n = 900 * 12 + 900 * 3; /* without 903 biases */

    (void)_;
    write_model("wide.safetensors", "linear:900 linear", settings);
    FOR_EACH (i, cases) {
        size_t size = 0;

        assert_code(BMUF("export", "wide.safetensors", "--weights",
                         cases[i].type, "--out", "small.safetensors"),
                    0);
        free(slurp(in_folder("small.safetensors"), &size));
        size -= 4 * 903 + 1024; /* biases; the header, about */
        if (i == 0)
            size -= 4 * 903; /* scales */
        assert_true((double)size / n > cases[i].least - 0.1);
        assert_true((double)size / n < cases[i].most);
    }
}

/* The logits of three sequences; free them. */
static float *logits_of(bm_model *m, size_t *n)
{
    enum { T = 21, B = 3 };
    static const int32_t lengths[B] = {T, 17, 5};
    bm_batch b = {.extent = {T, B, lengths}};
    float *x = zeros(T * B * FEATURES, sizeof *x), *copy = NULL;
    bm_extent e = {0};
    bm_tensor y;

    for (size_t i = 0; i < T * B * FEATURES; i++)
        x[i] = i / FEATURES / B < (size_t)lengths[i / FEATURES % B]
                   ? (float)uniform(i)
                   : 0;
    b.x = (bm_tensor){x, 3, {T, B, FEATURES, 1}};
    bm_model_forward(m, &b);
    assert_ok(bm_sync(host()));
    y = bm_model_output(m, &e);
    *n = bm_count(y);
    copy = zeros(*n, sizeof *copy);
    memcpy(copy, y.data, *n * sizeof *copy);
    free(x);
    return copy;
}

/* With bm_hold matrices are packed once: the same bits, or nearly the same
 * numbers in bytes. */
static void test_weights_that_are_held_give_the_same_logits(void **_)
{
    bm_model *m = network(every_layer);
    const bm_params *p = bm_model_params(m);
    size_t n = 0;
    float *x = logits_of(m, &n), *y = NULL;
    double most = 0, apart = 0;

    (void)_;
    bm_hold(host(), p->w, p->n, false);
    for (int turn = 0; turn < 2; turn++) { /* packed, and packed before */
        y = logits_of(m, &n);
        assert_memory_equal(x, y, n * sizeof *x);
        free(y);
    }
    bm_hold(host(), p->w, p->n, true);
    y = logits_of(m, &n);
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)x[i]));
        apart = fmax(apart, fabs((double)x[i] - y[i]));
    }
    assert_true(apart > 0 && apart < 0.06 * most);
    free(y);
    bm_hold(host(), NULL, 0, false);
    y = logits_of(m, &n);
    assert_memory_equal(x, y, n * sizeof *x);
    free(y);
    free(x);
    bm_model_free(m);
}

/* One matrix of bytes, as another program may have made it. */
static bm_status write_steps(bm_dtype scale_type, size_t rows, float step)
{
    static const int8_t q[] = {-127, 0, 127, 1, 2, 3};
    bm_st_tensor scale = {"0.linear.w.scale", scale_type, 1, {rows}, 0};
    bm_st_tensor b = {"0.linear.b", BM_F32, 1, {2}, 0};
    bm_st_tensor w = {"0.linear.w", BM_I8, 2, {2, 3}, 0};
    const float steps[] = {step, 0.25F, 0.25F}, zero[2] = {0};
    const int64_t integers[] = {1, 1};
    bm_st_writer *file = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_st_create(&file, in_folder("bytes.safetensors"), false));
    BM_TRY_DONE(bm_st_declare(file, &scale));
    BM_TRY_DONE(bm_st_declare(file, &b));
    BM_TRY_DONE(bm_st_declare(file, &w));
    if (scale_type == BM_F32)
        BM_TRY_DONE(bm_st_write(file, steps, rows * sizeof *steps));
    else
        BM_TRY_DONE(bm_st_write(file, integers, rows * sizeof *integers));
    BM_TRY_DONE(bm_st_write(file, zero, sizeof zero));
    BM_TRY_DONE(bm_st_write(file, q, sizeof q));
    BM_TRY_DONE(bm_st_commit(file, NULL));
done:
    bm_st_close(file);
    return status;
}

/* Reads such a file as the weights of "linear" with 3 features, 2 classes. */
static bm_status read_steps(float w[8])
{
    bm_model_settings set = {"linear", "ctc", "skip"};
    bm_model_shape shape = {3, 2, 1};
    bm_model *m = NULL;
    bm_st_file *f = NULL;
    bool checkpoint = false;
    bm_status status = BM_OK;

    BM_TRY(bm_model_plan(&m, &set, &shape, host()));
    BM_TRY_DONE(bm_model_open(&f, in_folder("bytes.safetensors"), &checkpoint));
    BM_TRY_DONE(bm_model_check_tensors(f, "x", false, bm_model_params(m)));
    status = bm_model_load(f, false, bm_model_params(m), w);
done:
    bm_st_free(f);
    bm_model_free(m);
    return status;
}

static void test_scales_of_a_file_are_checked(void **_)
{
    static const float right[8] = {-63.5F, 0, 63.5F, 0.25F, 0.5F, 0.75F};
    float w[8];

    (void)_;
    assert_ok(write_steps(BM_F32, 2, 0.5F));
    assert_ok(read_steps(w));
    assert_memory_equal(w, right, sizeof w);
    assert_ok(write_steps(BM_F32, 3, 0.5F)); /* too many */
    assert_int_equal(read_steps(w), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "0.linear.w.scale"));
    assert_ok(write_steps(BM_I64, 2, 0.5F)); /* not floats */
    assert_int_equal(read_steps(w), BM_ERR_FORMAT);
    assert_ok(write_steps(BM_F32, 2, 1e38F)); /* 127 of them are infinite */
    assert_int_equal(read_steps(w), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "too large"));
}

/* A changed bit of any tensor: of bytes or halves, of a step, of a bias. */
static void test_a_changed_bit_is_found(void **_)
{
    static const char *const types[] = {"fp16", "int8"};

    (void)_;
    write_model("flip.safetensors", "linear:6 linear", settings);
    FOR_EACH (i, types) {
        size_t n = 0;
        uint64_t header = 0;
        char *file = NULL;

        assert_code(BMUF("export", "flip.safetensors", "--weights", types[i],
                         "--out", "whole.safetensors"),
                    0);
        assert_code(BMUF("export", "whole.safetensors", "--npz", "whole.npz"),
                    0);
        file = slurp(in_folder("whole.safetensors"), &n);
        memcpy(&header, file, sizeof header);
        for (int part = 0; part < 3; part++) { /* first, middle, last byte */
            size_t from = sizeof header + header;
            size_t at = part == 0 ? from : part == 1 ? (from + n) / 2 : n - 1;

            file[at] ^= 1;
            spill(in_folder("flipped.safetensors"), file, n);
            file[at] ^= 1;
            assert_fails(
                BMUF("export", "flipped.safetensors", "--npz", "flipped.npz"),
                65, "flipped.safetensors is damaged: its weights have the");
        }
        free(file);
    }
}

/* No file that is read as a model of a run is replaced or added, nor the input. */
static void test_a_model_of_a_run_is_not_replaced(void **_)
{
    static const char *const places[] = {"run/model.safetensors",
                                         "run/small.safetensors",
                                         "run/checkpoints/small.safetensors"};
    size_t n = 0, m = 0;
    char *before = slurp(in_folder("every.safetensors"), &n), *after = NULL;

    (void)_;
    assert_int_equal(mkdir(in_folder("run"), 0777), 0);
    assert_int_equal(mkdir(in_folder("run/checkpoints"), 0777), 0);
    write_text("run/journal.jsonl", "");
    spill(in_folder("run/model.safetensors"), before, n);
    FOR_EACH (i, places)
        assert_fails(
            BMUF("export", "run", "--weights", "fp16", "--out", places[i]), 73,
            "run", "another");
    assert_fails(
        BMUF("export", "every.safetensors", "--npz", "./every.safetensors"), 73,
        "would replace what this command reads");
    after = slurp(in_folder("run/model.safetensors"), &m);
    assert_int_equal(m, n);
    assert_memory_equal(after, before, n);
    free(after);
    after = slurp(in_folder("every.safetensors"), &m);
    assert_memory_equal(after, before, n);
    free(after);
    free(before);
    assert_code(BMUF("export", "run", "--npz", "run/net.npz", "--weights",
                     "fp16", "--out", "half.safetensors"),
                0);
}

/* Whatever the model that is exported: model.safetensors is not that of the run. */
static void test_files_of_a_run_are_not_replaced(void **_)
{
    static const char *const names[] = {"made/model.safetensors",
                                        "made/model-best.safetensors",
                                        "made/config.ini", "made/journal.jsonl",
                                        "made/checkpoints/block-1.safetensors"};
    size_t n = 0;
    char *model = slurp(in_folder("every.safetensors"), &n), *text = NULL;

    (void)_;
    assert_int_equal(mkdir(in_folder("made"), 0777), 0);
    assert_int_equal(mkdir(in_folder("made/checkpoints"), 0777), 0);
    FOR_EACH (i, names)
        write_text(names[i], "of the run");
    spill(in_folder("made/model-best.safetensors"), model, n);
    FOR_EACH (i, names) {
        assert_fails(BMUF("export", "made", "--onnx", names[i]), 73, names[i],
                     "give another file");
        assert_fails(BMUF("export", "made", "--npz", names[i]), 73, names[i],
                     "give another file");
        text = slurp(in_folder(names[i]), &n);
        if (i != 1)
            assert_string_equal(text, "of the run");
        free(text);
    }
    assert_int_equal(mkdir(in_folder("made/small"), 0777), 0);
    for (int turn = 0; turn < 2; turn++) /* its own output is replaced */
        assert_code(BMUF("export", "made", "--npz", "made/net.npz", "--weights",
                         "int8", "--out", "made/small/int8.safetensors"),
                    0);
    free(model);
}

/* One path, or two paths of one file that is there or not. */
static void test_two_outputs_are_not_one_file(void **_)
{
    (void)_;
    for (int turn = 0; turn < 2; turn++) {
        assert_fails(
            BMUF("export", "every.safetensors", "--onnx", "x", "--npz", "./x"),
            73, "--onnx and --npz would both write ./x");
        assert_fails(BMUF("export", "every.safetensors", "--npz", "x",
                          "--weights", "int8", "--out", "x"),
                     73, "--npz and --out would both write x");
        assert_int_equal(access(in_folder("x"), F_OK), turn == 0 ? -1 : 0);
        write_text("x", "an older file");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_are_within_half_a_step),
        cmocka_unit_test(test_halves_are_rounded_to_nearest),
        cmocka_unit_test(test_a_narrow_file_is_smaller),
        cmocka_unit_test(test_weights_that_are_held_give_the_same_logits),
        cmocka_unit_test(test_scales_of_a_file_are_checked),
        cmocka_unit_test(test_a_changed_bit_is_found),
        cmocka_unit_test(test_a_model_of_a_run_is_not_replaced),
        cmocka_unit_test(test_files_of_a_run_are_not_replaced),
        cmocka_unit_test(test_two_outputs_are_not_one_file),
    };

    return cmocka_run_group_tests_name("export_weights", tests,
                                       make_every_layer, folder_remove);
}

/*
 * Shards of every store reach a device as they are, and become the mini-batches
 * that they become on the host: number for number, however their sequences are
 * mixed.
 */
#include "io/batch/reader.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = 6, N = 24, LONGEST = 40 };

static const char *backend = "cuda";

/* Multiples of 1/8 below 32: in every store. Sequence 5 is none in one place,
 * which bytes cannot say. */
static void add(bm_shard_writer *w, size_t id, const char *store)
{
    size_t frames = 1 + id * 29 % LONGEST;
    int32_t label = (int32_t)(1 + id % 2);
    float x[LONGEST * D];
    char tag[32];

    for (size_t i = 0; i < frames * D; i++)
        x[i] = (float)((id * 131 + i * 7) % 256) / 8;
    if (id == 5 && store[0] == 'f')
        x[3] = NAN;
    snprintf(tag, sizeof tag, "%s-%zu", store, id);
    assert_ok(bm_shard_writer_add(w, tag, NULL, x, frames, &label, 1));
}

static void write_set(const char *directory, const char *store)
{
    bm_shard_settings set = {
        .unit_frames = 100, .shard_mb = 0.005, .store = store};
    bm_shard_meta meta = {
        .features = D, .features_text = "", .quant_scale = 1. / 8};
    bm_shard_writer *w = NULL;
    bm_vocab *v = NULL;
    size_t shards = 0;

    assert_ok(bm_vocab_new(&v, false));
    assert_ok(bm_vocab_learn(v, "ab"));
    meta.vocab = v;
    assert_ok(bm_shard_writer_open(&w, directory, store, &set, &meta));
    for (size_t id = 0; id < N; id++)
        add(w, id, store);
    assert_ok(bm_shard_writer_finish(w, &shards));
    bm_shard_writer_close(w);
    bm_vocab_free(v);
}

/* One side of the comparison. */
typedef struct side {
    bm_dataset *d;
    bm_backend *be;
    bm_reader *r;
} side;

static side open_side(const char *directory, const char *name)
{
    bm_reader_settings s = {.plan = {.sequences = 5,
                                     .order = BM_ORDER_RANDOM,
                                     .buckets = 4,
                                     .frames_per_worker = 400},
                            .workers = 1,
                            .last = 1,
                            .seed = 3};
    side x = {0};

    assert_ok(bm_dataset_open(&x.d, directory));
    assert_ok(bm_backend_open(&x.be, name, 0));
    assert_ok(bm_reader_open(&x.r, x.d, x.be, &s, (bm_position){0, 0}));
    return x;
}

static void close_side(side *x)
{
    bm_reader_close(x->r);
    bm_backend_close(x->be);
    bm_dataset_close(x->d);
}

/* The device's T may be the longer one: then zeros follow. */
static void compare(const side *a, const bm_batch *x, const side *b,
                    const bm_batch *y)
{
    size_t frame = x->extent.B * D, n = x->extent.T * frame;
    float *host = fetch(a->be, x->x.data, n);
    float *device = fetch(b->be, y->x.data, y->extent.T * frame);

    assert_int_equal(x->extent.B, y->extent.B);
    assert_true(y->extent.T >= x->extent.T);
    assert_true(16 * y->extent.T <= 17 * x->extent.T);
    assert_memory_equal(x->id, y->id, x->extent.B * sizeof *x->id);
    assert_memory_equal(x->extent.frames, y->extent.frames,
                        x->extent.B * sizeof *x->extent.frames);
    assert_memory_equal(host, device, n * sizeof *host);
    for (size_t i = n; i < y->extent.T * frame; i++)
        assert_true(device[i] == 0);
    free(host);
    free(device);
}

static void check(const char *directory)
{
    side host = open_side(directory, "cpu");
    side device = open_side(directory, backend);
    int64_t blocks = bm_reader_blocks(host.r), steps[2] = {0}, batches = 0;

    for (int64_t k = 0; k < blocks; k++) {
        assert_ok(bm_reader_block(host.r, (bm_position){0, k}, &steps[0]));
        assert_ok(bm_reader_block(device.r, (bm_position){0, k}, &steps[1]));
        assert_int_equal(steps[0], steps[1]);
        for (int64_t i = 0; i < steps[0]; i++, batches++) {
            const bm_batch *x = NULL, *y = NULL;

            assert_ok(bm_reader_batch(host.r, 0, i, &x));
            assert_ok(bm_reader_batch(device.r, 0, i, &y));
            assert_non_null(x);
            assert_non_null(y);
            compare(&host, x, &device, y);
        }
    }
    assert_true(batches >= 5);
    close_side(&host);
    close_side(&device);
}

static void test_floats_make_the_same_mini_batches(void **state)
{
    (void)state;
    write_set(in_folder("f32"), "f32");
    check(in_folder("f32"));
}

static void test_halves_make_the_same_mini_batches(void **state)
{
    (void)state;
    write_set(in_folder("f16"), "f16");
    check(in_folder("f16"));
}

static void test_bytes_make_the_same_mini_batches(void **state)
{
    (void)state;
    write_set(in_folder("u8"), "u8");
    check(in_folder("u8"));
}

static void test_shards_of_several_stores_meet_in_a_mini_batch(void **state)
{
    (void)state;
    write_set(in_folder("all"), "f32");
    write_set(in_folder("all"), "f16");
    write_set(in_folder("all"), "u8");
    check(in_folder("all"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats_make_the_same_mini_batches),
        cmocka_unit_test(test_halves_make_the_same_mini_batches),
        cmocka_unit_test(test_bytes_make_the_same_mini_batches),
        cmocka_unit_test(test_shards_of_several_stores_meet_in_a_mini_batch),
    };

    if (argc > 1)
        backend = argv[1];
    if (!have_backend(backend))
        return SKIPPED;
    return cmocka_run_group_tests_name("stored", tests, folder_make,
                                       folder_remove);
}

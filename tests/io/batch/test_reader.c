/*
 * The reader over real shards. Features and labels are functions of the
 * sequence's number, so that every mini-batch can be checked by itself; its
 * sequences must be those of the plan.
 */
#include "core/clock.h"
#include "core/rng.h"
#include "io/batch/reader.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { D = 3, N = 150, LONGEST = 25, WORKERS = 3 };

/* ---- the data set ------------------------------------------------------ */

static int32_t frames_of(int64_t id)
{
    return (int32_t)(bm_rng_at(1, (uint64_t)id) % (LONGEST + 1));
}

static int32_t labels_of(int64_t id)
{
    return (int32_t)(bm_rng_at(2, (uint64_t)id) % 5);
}

static float feature(int64_t id, int64_t t, int64_t d)
{
    return (float)(id * 1000 + t * 10 + d + 1);
}

static int32_t label(int64_t id, int64_t i)
{
    return (int32_t)((id + i) % 4 + 1);
}

/* Differences of a data set from the usual one. */
typedef struct flaws {
    bool per_frame;
    int64_t nan, inf; /* sequences with such a feature; 0: none */
} flaws;

static void add(bm_shard_writer *w, int64_t id, const flaws *f)
{
    int32_t frames = frames_of(id), labels[LONGEST];
    int32_t n = f->per_frame ? frames : labels_of(id);
    float x[LONGEST * D];
    char tag[32];

    for (int32_t t = 0; t < frames; t++)
        for (int32_t d = 0; d < D; d++)
            x[t * D + d] = feature(id, t, d);
    if (id > 0 && id == f->nan)
        x[frames * D - 1] = NAN;
    if (id > 0 && id == f->inf)
        x[0] = -INFINITY;
    for (int32_t i = 0; i < n; i++)
        labels[i] = label(id, i);
    snprintf(tag, sizeof tag, "sequence-%lld", (long long)id);
    assert_ok(bm_shard_writer_add(w, tag, NULL, x, (size_t)frames, labels,
                                  (size_t)n));
}

/* Several shards of several units. */
static void write_set(const char *directory, const flaws *f)
{
    bm_shard_settings set = {
        .unit_frames = 50, .shard_mb = 0.005, .store = "f32"};
    bm_shard_meta meta = {
        .features = D, .features_text = "", .per_frame = f->per_frame};
    bm_shard_writer *w = NULL;
    bm_vocab *v = NULL;
    size_t shards = 0;

    assert_ok(bm_vocab_new(&v, false));
    assert_ok(bm_vocab_learn(v, "abcd"));
    meta.vocab = v;
    assert_ok(bm_shard_writer_open(&w, directory, "test", &set, &meta));
    for (int64_t id = 0; id < N; id++)
        add(w, id, f);
    assert_ok(bm_shard_writer_finish(w, &shards));
    assert_true(shards > 2);
    bm_shard_writer_close(w);
    bm_vocab_free(v);
}

static void remove_set(const char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *entry = NULL;
    char path[512];

    assert_non_null(d);
    while ((entry = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (entry->d_name[0] != '.')
            assert_int_equal(unlink(path), 0);
    }
    closedir(d);
    assert_int_equal(rmdir(directory), 0);
}

/* The objects of a test. */
typedef struct fixture {
    char directory[32];
    bm_dataset *d;
    bm_backend *be;
} fixture;

static fixture make(const flaws *f)
{
    fixture x = {.directory = "/tmp/bmuf-reader-XXXXXX"};

    assert_non_null(mkdtemp(x.directory));
    write_set(x.directory, f);
    assert_ok(bm_dataset_open(&x.d, x.directory));
    assert_int_equal(x.d->n, N);
    assert_ok(bm_backend_open(&x.be, "cpu", 0));
    return x;
}

static void drop(fixture *x)
{
    bm_backend_close(x->be);
    bm_dataset_close(x->d);
    remove_set(x->directory);
}

static const flaws none = {0};

/* ---- readers ----------------------------------------------------------- */

static bm_reader_settings settings(int first, int last)
{
    return (bm_reader_settings){
        .plan = {.frames = 80,
                 .order = BM_ORDER_RANDOM,
                 .buckets = 3,
                 .frames_per_worker = 130},
        .workers = WORKERS,
        .first = first,
        .last = last,
        .seed = 9,
    };
}

static bm_reader *open_at(fixture *x, int first, int last, bm_position from)
{
    bm_reader_settings s = settings(first, last);
    bm_reader *r = NULL;

    assert_ok(bm_reader_open(&r, x->d, x->be, &s, from));
    return r;
}

static bm_plan *plan_of(const fixture *x, int64_t epoch)
{
    bm_reader_settings s = settings(0, WORKERS);
    bm_plan *p = NULL;

    assert_ok(bm_plan_new(&p, x->d, &s.plan, s.workers, s.seed, epoch));
    return p;
}

/* The batch is these sequences, as they were written, padded with zeros. */
static void check_batch(fixture *x, const bm_batch *batch, const int64_t *ids,
                        size_t n)
{
    bm_extent e = batch->extent;
    const int32_t *classes = batch->targets.classes;
    float *host = calloc(e.T * e.B * D + 1, sizeof *host);
    size_t longest = 0;

    assert_int_equal(e.B, n);
    assert_int_equal(batch->x.rank, 3);
    assert_int_equal(batch->x.dim[0], e.T);
    assert_int_equal(batch->x.dim[1], e.B);
    assert_int_equal(batch->x.dim[2], D);
    bm_get(x->be, host, batch->x.data, e.T * e.B * D);
    assert_ok(bm_sync(x->be));
    for (size_t b = 0; b < n; b++) {
        size_t frames = (size_t)frames_of(ids[b]);

        assert_int_equal(batch->id[b], ids[b]);
        assert_int_equal(e.frames[b], frames);
        assert_int_equal(batch->targets.count[b], labels_of(ids[b]));
        for (int32_t i = 0; i < labels_of(ids[b]); i++)
            assert_int_equal(*classes++, label(ids[b], i));
        for (size_t t = 0; t < e.T; t++)
            for (size_t d = 0; d < D; d++)
                assert_true(
                    host[(t * e.B + b) * D + d] ==
                    (t < frames ? feature(ids[b], (int64_t)t, (int64_t)d) : 0));
        longest = frames > longest ? frames : longest;
    }
    assert_int_equal(e.T, longest);
    free(host);
}

/* All mini-batches of a worker's share are those of the plan. */
static void check_share(fixture *x, bm_reader *r, const bm_plan *p,
                        int64_t block, int worker)
{
    const bm_batch *batch = NULL;
    bm_cut cut = {0};

    assert_ok(bm_plan_cut(p, block, worker, &cut));
    for (size_t m = 0, from = 0; m < cut.n_batches; from = cut.ends[m++]) {
        assert_ok(bm_reader_batch(r, worker, (int64_t)m, &batch));
        assert_non_null(batch);
        check_batch(x, batch, cut.sequences + from, cut.ends[m] - from);
    }
    assert_ok(bm_reader_batch(r, worker, (int64_t)cut.n_batches, &batch));
    assert_null(batch);
    bm_cut_free(&cut);
}

/* Moves to a block and checks it, for workers [first, last). */
static void check_block(fixture *x, bm_reader *r, bm_position at, int first,
                        int last)
{
    bm_plan *p = plan_of(x, at.epoch);
    int64_t steps = -1, expected = 0;

    assert_ok(bm_reader_block(r, at, &steps));
    assert_ok(bm_plan_steps(p, at.block, &expected));
    assert_int_equal(steps, expected);
    for (int k = first; steps > 0 && k < last; k++)
        check_share(x, r, p, at.block, k);
    bm_plan_free(p);
}

/* ---- tests ------------------------------------------------------------- */

static void test_batches_have_the_written_data_in_every_epoch(void **state)
{
    fixture x = make(&none);
    bm_reader *r = open_at(&x, 0, WORKERS, (bm_position){0, 0});
    int64_t blocks = bm_reader_blocks(r);

    (void)state;
    assert_true(blocks > 3);
    for (int64_t epoch = 0; epoch < 3; epoch++)
        for (int64_t b = 0; b < blocks + 1; b++) /* and one past the end */
            check_block(&x, r, (bm_position){epoch, b}, 0, WORKERS);
    bm_reader_close(r);
    drop(&x);
}

static void test_reading_continues_into_the_next_epoch(void **state)
{
    fixture x = make(&none);
    bm_reader *r = open_at(&x, 0, WORKERS, (bm_position){0, 0});
    int64_t blocks = bm_reader_blocks(r);

    (void)state;
    for (int64_t i = 0; i < 3 * blocks; i++)
        check_block(&x, r, (bm_position){i / blocks, i % blocks}, 0, WORKERS);
    bm_reader_close(r);
    drop(&x);
}

static void test_an_epoch_has_every_sequence_once(void **state)
{
    fixture x = make(&none);
    bm_reader *r = open_at(&x, 0, WORKERS, (bm_position){0, 0});
    int seen[N] = {0};
    int64_t steps = 0;

    (void)state;
    for (int64_t b = 0; b < bm_reader_blocks(r); b++) {
        assert_ok(bm_reader_block(r, (bm_position){0, b}, &steps));
        for (int k = 0; k < WORKERS; k++)
            for (int64_t m = 0; m < steps; m++) {
                const bm_batch *batch = NULL;

                assert_ok(bm_reader_batch(r, k, m, &batch));
                for (size_t i = 0; batch != NULL && i < batch->extent.B; i++)
                    seen[batch->id[i]]++;
            }
    }
    for (int i = 0; i < N; i++)
        assert_int_equal(seen[i], 1);
    bm_reader_close(r);
    drop(&x);
}

/* Blocks three times as large in epoch 1: read in sequence, over the ends of
 * epochs, and from a block of it on. */
static void test_an_epoch_has_the_blocks_of_its_size(void **state)
{
    fixture x = make(&none);
    bm_reader_settings s = settings(0, WORKERS);
    int64_t steps = 0;

    (void)state;
    s.plan.sizes =
        (bm_series){.n = 3, .value = {130, 390, 130}, .from = {0, 1, 2}};
    for (int64_t from = 0; from < 2; from++) {
        bm_reader *r = NULL;
        bm_position at = {from, from};

        assert_ok(bm_reader_open(&r, x.d, x.be, &s, at));
        assert_true(bm_reader_blocks_of(r, 1) <= bm_reader_blocks_of(r, 0) / 2);
        for (; at.epoch < 4; at = (bm_position){at.epoch + 1, 0}) {
            bm_plan *p = NULL;
            int64_t blocks = bm_reader_blocks_of(r, at.epoch);

            assert_ok(
                bm_plan_new(&p, x.d, &s.plan, s.workers, s.seed, at.epoch));
            assert_int_equal(bm_plan_blocks(p), blocks);
            for (; at.block < blocks; at.block++) {
                int64_t planned = 0;

                assert_ok(bm_reader_block(r, at, &steps));
                assert_ok(bm_plan_steps(p, at.block, &planned));
                assert_int_equal(steps, planned);
            }
            assert_ok(bm_reader_block(r, at, &steps));
            assert_int_equal(steps, 0);
            bm_plan_free(p);
        }
        bm_reader_close(r);
    }
    drop(&x);
}

static void test_moving_to_any_block_works(void **state)
{
    fixture x = make(&none);
    bm_reader *r = open_at(&x, 0, WORKERS, (bm_position){0, 0});
    uint64_t blocks = (uint64_t)bm_reader_blocks(r);
    bm_rng rng = bm_rng_make(1, "moves", 0);

    (void)state;
    for (int i = 0; i < 60; i++) {
        bm_position at = {(int64_t)bm_rng_below(&rng, 3),
                          (int64_t)bm_rng_below(&rng, blocks + 1)};

        check_block(&x, r, at, 0, WORKERS);
        if (i % 3 == 0) /* once more */
            check_block(&x, r, at, 0, WORKERS);
        at.block++;
        if (i % 2 == 0)
            check_block(&x, r, at, 0, WORKERS);
    }
    bm_reader_close(r);
    drop(&x);
}

static void test_a_reader_starts_at_any_block(void **state)
{
    fixture x = make(&none);
    bm_reader *r = open_at(&x, 0, WORKERS, (bm_position){0, 0});
    int64_t blocks = bm_reader_blocks(r);

    (void)state;
    bm_reader_close(r);
    for (int64_t b = 0; b < blocks + 1; b++) {
        r = open_at(&x, 0, WORKERS, (bm_position){2, b});
        check_block(&x, r, (bm_position){2, b}, 0, WORKERS);
        if (b == blocks)
            check_block(&x, r, (bm_position){3, 0}, 0, WORKERS);
        bm_reader_close(r);
    }
    drop(&x);
}

/* Three ranks with a worker each, at once, each with its own data set. */
static void test_workers_see_the_same_on_any_rank(void **state)
{
    fixture x = make(&none);
    bm_dataset *sets[WORKERS];
    bm_reader *readers[WORKERS];
    bm_reader_settings s;

    (void)state;
    for (int k = 0; k < WORKERS; k++) {
        s = settings(k, k + 1);
        assert_ok(bm_dataset_open(&sets[k], x.directory));
        assert_ok(bm_reader_open(&readers[k], sets[k], x.be, &s,
                                 (bm_position){0, 0}));
    }
    for (int64_t b = 0; b < bm_reader_blocks(readers[0]); b++)
        for (int k = 0; k < WORKERS; k++)
            check_block(&x, readers[k], (bm_position){0, b}, k, k + 1);
    for (int k = 0; k < WORKERS; k++) {
        bm_reader_close(readers[k]);
        bm_dataset_close(sets[k]);
    }
    drop(&x);
}

static void test_once_stops_after_one_epoch(void **state)
{
    fixture x = make(&none);
    bm_reader_settings s = settings(0, WORKERS);
    bm_reader *r = NULL;
    int64_t steps = -1;

    (void)state;
    s.once = true;
    assert_ok(bm_reader_open(&r, x.d, x.be, &s, (bm_position){1, 0}));
    for (int round = 0; round < 2; round++) {
        for (int64_t b = 0; b < bm_reader_blocks(r); b++)
            check_block(&x, r, (bm_position){1, b}, 0, WORKERS);
        assert_ok(bm_reader_block(r, (bm_position){2, 0}, &steps));
        assert_int_equal(steps, 0);
    }
    bm_reader_close(r);
    drop(&x);
}

static void test_workers_without_units_have_no_batches(void **state)
{
    fixture x = make(&none);
    bm_reader_settings s = settings(0, 200);
    bm_reader *r = NULL;
    const bm_batch *batch = NULL;
    int64_t steps = 0;
    int idle = 0;

    (void)state;
    s.workers = 200;
    assert_ok(bm_reader_open(&r, x.d, x.be, &s, (bm_position){0, 0}));
    assert_int_equal(bm_reader_blocks(r), 1);
    assert_ok(bm_reader_block(r, (bm_position){0, 0}, &steps));
    for (int k = 0; k < 200; k++) {
        assert_ok(bm_reader_batch(r, k, 0, &batch));
        idle += batch == NULL;
    }
    assert_int_equal(idle, 200 - (int)x.d->n_units);
    bm_reader_close(r);
    drop(&x);
}

/* The thread reads while the caller is busy. */
static void test_blocks_are_read_ahead(void **state)
{
    struct timespec busy = {0, 20 * 1000 * 1000};
    fixture x = make(&none);
    bm_reader *r = open_at(&x, 0, WORKERS, (bm_position){0, 0});
    double start = bm_clock();
    int64_t steps = 0;

    (void)state;
    for (int64_t b = 0; b < bm_reader_blocks(r); b++) {
        nanosleep(&busy, NULL);
        assert_ok(bm_reader_block(r, (bm_position){0, b}, &steps));
    }
    assert_true(bm_reader_stall(r) < 0.5 * (bm_clock() - start));
    assert_true(bm_reader_stall(r) == 0);
    bm_reader_close(r);
    drop(&x);
}

/* Counts the sequences that the thread augments, which takes 2 ms for each. */
static bool fits_slowly(const void *self, size_t frames, const int32_t *labels,
                        size_t n_labels)
{
    static const struct timespec pause = {0, 2 * 1000 * 1000};
    atomic_int *augmented = *(atomic_int *const *)self;

    (void)frames;
    (void)labels;
    (void)n_labels;
    nanosleep(&pause, NULL);
    atomic_fetch_add(augmented, 1);
    return true;
}

/* A block has about 30 sequences, a unit about 4. The fastest of several closes
 * counts: on a busy machine the thread may read more before one. */
static void test_closing_waits_for_a_unit_not_for_a_block(void **state)
{
    enum { FEW = 15 };
    static const struct timespec pause = {0, 100 * 1000};
    fixture x = make(&none);
    bm_reader_settings s = settings(0, WORKERS);
    bm_augment_settings change;
    atomic_int augmented, *counter = &augmented;
    int least = N;

    (void)state;
    bm_config_peek(NULL, "augment", bm_augment_options, &change);
    change.speed = "0.5"; /* of all sequences, so that all must fit */
    s.augment = &change;
    s.fit = (bm_fit){fits_slowly, &counter};
    for (int i = 0; i < 10; i++) {
        bm_reader *r = NULL;

        atomic_init(&augmented, 0);
        assert_ok(bm_reader_open(&r, x.d, x.be, &s, (bm_position){i, 1}));
        while (atomic_load(&augmented) == 0)
            nanosleep(&pause, NULL);
        bm_reader_close(r);
        if (atomic_load(&augmented) < least)
            least = atomic_load(&augmented);
    }
    assert_in_range(least, 1, FEW);
    bm_reader_close(NULL);
    drop(&x);
}

static void test_sequences_have_names(void **state)
{
    fixture x = make(&none);
    bm_reader *r = open_at(&x, 0, WORKERS, (bm_position){0, 0});

    (void)state;
    assert_string_equal(bm_reader_tag(r, 0), "sequence-0");
    assert_string_equal(bm_reader_tag(r, N - 1), "sequence-149");
    bm_reader_close(r);
    drop(&x);
}

/* ---- faulty data ------------------------------------------------------- */

/* Frames and labels of a sequence according to the reader. */
static void find(bm_reader *r, int64_t id, int32_t *frames, int32_t *labels)
{
    int64_t steps = 0;

    for (int64_t b = 0; b < bm_reader_blocks(r); b++) {
        assert_ok(bm_reader_block(r, (bm_position){0, b}, &steps));
        for (int64_t k = 0; k < WORKERS * steps; k++) {
            const bm_batch *batch = NULL;

            assert_ok(bm_reader_batch(r, (int)(k / steps), k % steps, &batch));
            for (size_t i = 0; batch != NULL && i < batch->extent.B; i++)
                if (batch->id[i] == id) {
                    *frames = batch->extent.frames[i];
                    *labels = batch->targets.count[i];
                    return;
                }
        }
    }
    fail();
}

/* A sequence from `from` on that has frames and labels. */
static int64_t some_sequence(int64_t from)
{
    while (frames_of(from) == 0 || labels_of(from) == 0)
        from++;
    return from;
}

static void test_sequences_with_nan_features_have_no_frames(void **state)
{
    flaws f = {.nan = some_sequence(20), .inf = some_sequence(70)};

    (void)state;
    for (int per_frame = 0; per_frame < 2; per_frame++) {
        int64_t ids[] = {f.nan, f.inf, some_sequence(90)};
        fixture x;
        bm_reader *r = NULL;

        f.per_frame = per_frame == 1;
        x = make(&f);
        r = open_at(&x, 0, WORKERS, (bm_position){0, 0});
        FOR_EACH (i, ids) {
            int32_t frames = -1, labels = -1;
            bool usable = i == 2;

            find(r, ids[i], &frames, &labels);
            assert_int_equal(frames, usable ? frames_of(ids[i]) : 0);
            assert_int_equal(labels, f.per_frame ? frames : labels_of(ids[i]));
        }
        bm_reader_close(r);
        drop(&x);
    }
}

/* Flips a bit of a stored feature of the sequence. */
static bool damage(const char *path, int64_t id)
{
    float wanted = feature(id, 0, 1), found = 0;
    FILE *file = fopen(path, "r+b");
    bool done = false;

    assert_non_null(file);
    for (long at = 0; !done && fseek(file, at, SEEK_SET) == 0 &&
                      fread(&found, sizeof found, 1, file) == 1;
         at++)
        if (found == wanted) {
            assert_int_equal(fseek(file, at, SEEK_SET), 0);
            assert_int_equal(fputc(1, file), 1);
            done = true;
        }
    assert_int_equal(fclose(file), 0);
    return done;
}

/* The block of the sequence in the plan. */
static int64_t block_of(const fixture *x, int64_t id)
{
    bm_plan *p = plan_of(x, 0);
    int64_t found = -1;
    bm_cut cut = {0};

    for (int64_t b = 0; b < bm_plan_blocks(p); b++)
        for (int k = 0; k < WORKERS; k++) {
            assert_ok(bm_plan_cut(p, b, k, &cut));
            for (size_t i = 0; i < cut.n_sequences; i++)
                if (cut.sequences[i] == id)
                    found = b;
        }
    bm_cut_free(&cut);
    bm_plan_free(p);
    return found;
}

static void
test_a_damaged_unit_fails_its_block_and_names_the_shard(void **state)
{
    fixture x = make(&none);
    int64_t id = some_sequence(100), bad = block_of(&x, id), steps = 0;
    const char *path = NULL;
    bm_reader *r = NULL;
    int32_t shard = 0;

    (void)state;
    for (size_t u = 0; u < x.d->n_units; u++)
        if (x.d->units[u].first <= id)
            shard = x.d->units[u].shard;
    assert_true(damage(x.d->paths[shard], id));
    bm_dataset_close(x.d);
    assert_ok(bm_dataset_open(&x.d, x.directory));
    path = x.d->paths[shard];
    r = open_at(&x, 0, WORKERS, (bm_position){0, 0});
    for (int round = 0; round < 2; round++) {
        for (int64_t b = 0; b < bm_reader_blocks(r); b++) {
            if (b != bad) {
                check_block(&x, r, (bm_position){0, b}, 0, WORKERS);
                continue;
            }
            assert_int_equal(bm_reader_block(r, (bm_position){0, b}, &steps),
                             BM_ERR_FORMAT);
            assert_non_null(strstr(bm_last_error(), path));
            assert_non_null(strstr(bm_last_error(), "reader.c:"));
            assert_null(strstr(bm_last_error(), "shard_read.c:"));
        }
    }
    bm_reader_close(r);
    drop(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_have_the_written_data_in_every_epoch),
        cmocka_unit_test(test_reading_continues_into_the_next_epoch),
        cmocka_unit_test(test_an_epoch_has_every_sequence_once),
        cmocka_unit_test(test_an_epoch_has_the_blocks_of_its_size),
        cmocka_unit_test(test_moving_to_any_block_works),
        cmocka_unit_test(test_a_reader_starts_at_any_block),
        cmocka_unit_test(test_workers_see_the_same_on_any_rank),
        cmocka_unit_test(test_once_stops_after_one_epoch),
        cmocka_unit_test(test_workers_without_units_have_no_batches),
        cmocka_unit_test(test_blocks_are_read_ahead),
        cmocka_unit_test(test_closing_waits_for_a_unit_not_for_a_block),
        cmocka_unit_test(test_sequences_have_names),
        cmocka_unit_test(test_sequences_with_nan_features_have_no_frames),
        cmocka_unit_test(
            test_a_damaged_unit_fails_its_block_and_names_the_shard),
    };

    return RUN_GROUP("reader", tests);
}

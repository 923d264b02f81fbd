/*
 * What the reader reads, and when: the linker replaces H5Dread with a function
 * here that records every call and passes it to the library.
 */
#include "core/rng.h"
#include "io/batch/reader.h"
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_READ = 2000, RANKS = 4, WORKERS = 9 };

static const char inputs[] = "/inputs", labels[] = "/targets/data/classes";

/* A call: rows [first, last] of an array of a file. */
typedef struct call {
    char file[64], array[40];
    hsize_t first, last;
} call;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static call calls[MOST_READ];
static size_t n_calls, n_inputs;
static size_t most_inputs; /* the limit so far */
static bool too_many;

herr_t __real_H5Dread(hid_t id, hid_t type, hid_t memory, hid_t file,
                      hid_t plist, void *out);
herr_t __wrap_H5Dread(hid_t id, hid_t type, hid_t memory, hid_t file,
                      hid_t plist, void *out);

herr_t __wrap_H5Dread(hid_t id, hid_t type, hid_t memory, hid_t file,
                      hid_t plist, void *out)
{
    hsize_t first[2] = {0}, last[2] = {0};
    call *c = NULL;

    H5Sget_select_bounds(file, first, last);
    pthread_mutex_lock(&lock);
    if (n_calls < MOST_READ) {
        c = &calls[n_calls++];
        H5Fget_name(id, c->file, sizeof c->file);
        H5Iget_name(id, c->array, sizeof c->array);
        c->first = first[0];
        c->last = last[0];
        n_inputs += strcmp(c->array, inputs) == 0;
        too_many = too_many || n_inputs > most_inputs;
    }
    pthread_mutex_unlock(&lock);
    return __real_H5Dread(id, type, memory, file, plist, out);
}

static void forget_calls(void)
{
    n_calls = n_inputs = most_inputs = 0;
    too_many = false;
}

static void allow(size_t units)
{
    pthread_mutex_lock(&lock);
    most_inputs = units;
    pthread_mutex_unlock(&lock);
}

static size_t units_read(void)
{
    size_t n = 0;

    pthread_mutex_lock(&lock);
    n = n_inputs;
    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- the data set ------------------------------------------------------- */

typedef struct fixture {
    char *directory;
    bm_dataset *d;
    bm_backend *be;
} fixture;

/* In shards of some 50 frames: 400 sequences are more than stay open. */
static fixture make(size_t n)
{
    fixture x = {.directory = corpus_directory()};
    corpus c = corpus_make(x.directory, "set", n);

    c.settings.shard_mb = 0.001;
    corpus_write(&c);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    assert_ok(bm_dataset_open(&x.d, x.directory));
    assert_ok(bm_backend_open(&x.be, "cpu", 0));
    return x;
}

static void drop(fixture *x)
{
    bm_backend_close(x->be);
    bm_dataset_close(x->d);
    corpus_remove(x->directory);
}

static bm_reader_settings settings(int workers)
{
    return (bm_reader_settings){
        .plan = {.frames = 80,
                 .order = BM_ORDER_RANDOM,
                 .buckets = 3,
                 .frames_per_worker = 130},
        .workers = workers,
        .last = workers,
        .seed = 9,
    };
}

/* ---- one call per unit -------------------------------------------------- */

static size_t count(const char *file, const char *array, hsize_t first,
                    size_t rows)
{
    size_t n = 0;

    for (size_t i = 0; i < n_calls; i++)
        n += strcmp(calls[i].file, file) == 0 &&
             strcmp(calls[i].array, array) == 0 && calls[i].first == first &&
             calls[i].last == first + rows - 1;
    return n;
}

static void test_a_unit_takes_one_call_for_features_and_one_for_labels(void **_)
{
    fixture x = make(400);
    bm_reader_settings set = settings(3);
    bm_reader *r = NULL;
    hsize_t frame = 0, label = 0;
    int64_t steps = 0;

    (void)_;
    assert_true(x.d->n_shards > 40);
    forget_calls();
    set.once = true;
    assert_ok(bm_reader_open(&r, x.d, x.be, &set, (bm_position){0, 0}));
    for (int64_t b = 0; b < bm_reader_blocks(r); b++)
        assert_ok(bm_reader_block(r, (bm_position){0, b}, &steps));
    bm_reader_close(r);
    assert_true(n_calls < MOST_READ);
    assert_int_equal(n_calls, 2 * x.d->n_units);
    for (size_t i = 0; i < x.d->n_units; i++) {
        const bm_unit_at *at = &x.d->units[i];
        const char *path = x.d->paths[at->shard];
        bm_unit_size u =
            bm_shard_unit(x.d->shards[at->shard], (size_t)at->unit);

        frame = at->unit == 0 ? 0 : frame;
        label = at->unit == 0 ? 0 : label;
        assert_int_equal(count(path, inputs, frame, u.frames), 1);
        assert_int_equal(count(path, labels, label, u.labels), 1);
        frame += u.frames;
        label += u.labels;
    }
    drop(&x);
}

/* ---- two blocks ahead --------------------------------------------------- */

/* Units of blocks 0 to `block` of the first epoch. */
static size_t units_until(const fixture *x, const bm_reader_settings *set,
                          int64_t block)
{
    const size_t *units = NULL;
    bm_plan *p = NULL;
    size_t n = 0;

    assert_ok(bm_plan_new(&p, x->d, &set->plan, set->workers, set->seed, 0));
    for (int64_t b = 0; b <= block; b++)
        for (int k = 0; k < set->workers; k++)
            n += bm_plan_units(p, b, k, &units);
    bm_plan_free(p);
    return n;
}

/* Waits until n units are read, without using the reader. */
static void wait_for_units(size_t n)
{
    struct timespec moment = {0, 1000 * 1000};

    for (int i = 0; units_read() < n; i++) {
        if (i == 20 * 1000)
            fail_msg("%zu units are read, not %zu", units_read(), n);
        nanosleep(&moment, NULL);
    }
}

static void test_two_blocks_are_read_ahead_and_no_more(void **_)
{
    fixture x = make(400);
    bm_reader_settings set = settings(3);
    struct timespec while_idle = {0, 30 * 1000 * 1000};
    bm_reader *r = NULL;
    int64_t steps = 0;

    (void)_;
    forget_calls();
    allow(units_until(&x, &set, 2));
    assert_ok(bm_reader_open(&r, x.d, x.be, &set, (bm_position){0, 0}));
    assert_true(bm_reader_blocks(r) > 7);
    for (int64_t b = 0; b < 5; b++) {
        size_t ahead = units_until(&x, &set, b + 2);

        allow(ahead);
        assert_ok(bm_reader_block(r, (bm_position){0, b}, &steps));
        wait_for_units(ahead);
        nanosleep(&while_idle, NULL); /* time to read too much */
    }
    bm_reader_close(r);
    assert_false(too_many);
    drop(&x);
}

/* ---- the shares of all ranks -------------------------------------------- */

/* Ranks host workers [first[k], first[k + 1]). */
typedef struct job {
    int workers, ranks, first[RANKS + 1];
    bm_dataset *d[RANKS];
    bm_reader *r[RANKS];
} job;

/* Draws cuts that leave every rank at least one worker. */
static void draw(job *j, bm_rng *rng)
{
    bool cut[WORKERS + 1] = {false};
    int left = 0;

    j->workers = 1 + (int)bm_rng_below(rng, WORKERS);
    j->ranks = j->workers < RANKS ? j->workers : RANKS;
    j->ranks = 1 + (int)bm_rng_below(rng, (uint64_t)j->ranks);
    for (left = j->ranks - 1; left > 0;) {
        size_t at = 1 + bm_rng_below(rng, (uint64_t)j->workers - 1);

        left -= !cut[at];
        cut[at] = true;
    }
    for (int k = 0, rank = 0; k < j->workers; k++)
        if (k == 0 || cut[k])
            j->first[rank++] = k;
    j->first[j->ranks] = j->workers;
}

static void note_batch(const bm_batch *batch, int *seen)
{
    for (size_t i = 0; i < batch->extent.B; i++) {
        int32_t expected[CORPUS_LABELS];
        size_t id = (size_t)batch->id[i];

        seen[id]++;
        assert_int_equal(batch->extent.frames[i], corpus_frames(id));
        assert_int_equal(batch->targets.count[i], corpus_labels(id, expected));
    }
}

/* Records the sequences that a rank's workers get of a block. */
static void note_block(const job *j, int rank, bm_position at, int *seen,
                       int64_t *steps)
{
    const bm_batch *batch = NULL;

    assert_ok(bm_reader_block(j->r[rank], at, steps));
    for (int k = j->first[rank]; k < j->first[rank + 1]; k++)
        for (int64_t m = 0; m <= *steps; m++) {
            assert_ok(bm_reader_batch(j->r[rank], k, m, &batch));
            assert_true(m < *steps || batch == NULL);
            if (batch != NULL)
                note_batch(batch, seen);
        }
}

static void open_ranks(job *j, const fixture *x, bm_rng *rng, bm_position from)
{
    bm_reader_settings set = settings(j->workers);

    set.plan.frames_per_worker = 20 + (long)bm_rng_below(rng, 200);
    set.seed = bm_rng_below(rng, 100);
    for (int k = 0; k < j->ranks; k++) {
        set.first = j->first[k];
        set.last = j->first[k + 1];
        assert_ok(bm_dataset_open(&j->d[k], x->directory));
        assert_ok(bm_reader_open(&j->r[k], j->d[k], x->be, &set, from));
    }
}

static void test_the_shares_of_all_ranks_form_the_data_set(void **_)
{
    enum { N = 60, JOBS = 40 };
    fixture x = make(N);
    bm_rng rng = bm_rng_make(1, "jobs", 0);

    (void)_;
    for (int i = 0; i < JOBS; i++) {
        bm_position at = {(int64_t)bm_rng_below(&rng, 3), 0};
        int seen[N] = {0};
        job j;

        draw(&j, &rng);
        open_ranks(&j, &x, &rng, at);
        for (; at.block < bm_reader_blocks(j.r[0]); at.block++) {
            int64_t steps[RANKS];

            for (int k = 0; k < j.ranks; k++) {
                note_block(&j, k, at, seen, &steps[k]);
                assert_int_equal(steps[k], steps[0]);
            }
        }
        for (int k = 0; k < N; k++)
            if (seen[k] != 1)
                fail_msg("%d workers on %d ranks: sequence %d is read %d times",
                         j.workers, j.ranks, k, seen[k]);
        for (int k = 0; k < j.ranks; k++) {
            bm_reader_close(j.r[k]);
            bm_dataset_close(j.d[k]);
        }
    }
    drop(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_a_unit_takes_one_call_for_features_and_one_for_labels),
        cmocka_unit_test(test_two_blocks_are_read_ahead_and_no_more),
        cmocka_unit_test(test_the_shares_of_all_ranks_form_the_data_set),
    };

    return RUN_GROUP("reading", tests);
}

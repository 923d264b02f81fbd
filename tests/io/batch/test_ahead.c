/*
 * Augmentation is hidden behind training: the reader's thread does all of it, for
 * the two blocks ahead of the one in use, while the caller computes; the caller
 * itself augments nothing, and what it waits for (stall_s of the journal) is the
 * first block. The linker replaces bm_augment and bm_share_augment, which adds
 * rooms and noise too, with functions here that note their thread; a closed gate
 * holds bm_augment up. The clock counts augmented sequences, so that nothing
 * depends on how busy the machine is.
 */
#include "io/batch/reader.h"
#include "io/batch/share.h"
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { N = 120, MOST_BLOCKS = 100, PATIENCE_S = 300 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t training;       /* the test's own thread */
static size_t done, by_training; /* calls that have passed; of that thread */
static bool closed;
static bool opens; /* the gate: when training next reads the clock */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, out);
    pthread_mutex_lock(&lock);
    *out = (struct timespec){(time_t)done, 0};
    if (opens && pthread_equal(pthread_self(), training)) {
        closed = opens = false;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return 0;
}

static void note_thread(void)
{
    pthread_mutex_lock(&lock);
    by_training += pthread_equal(pthread_self(), training) != 0;
    pthread_mutex_unlock(&lock);
}

bm_status __real_bm_share_augment(bm_share *s, const bm_dataset *d, size_t i,
                                  const bm_changes *changes);
bm_status __wrap_bm_share_augment(bm_share *s, const bm_dataset *d, size_t i,
                                  const bm_changes *changes);
bm_status __real_bm_augment(bm_augmenter *a, uint64_t key,
                            const bm_augmented *in, size_t frames, float *y,
                            int32_t *targets);
bm_status __wrap_bm_augment(bm_augmenter *a, uint64_t key,
                            const bm_augmented *in, size_t frames, float *y,
                            int32_t *targets);

bm_status __wrap_bm_share_augment(bm_share *s, const bm_dataset *d, size_t i,
                                  const bm_changes *changes)
{
    note_thread();
    return __real_bm_share_augment(s, d, i, changes);
}

/* The gate does not stop the test's own thread, which alone opens it. */
bm_status __wrap_bm_augment(bm_augmenter *a, uint64_t key,
                            const bm_augmented *in, size_t frames, float *y,
                            int32_t *targets)
{
    note_thread();
    pthread_mutex_lock(&lock);
    while (closed && !pthread_equal(pthread_self(), training))
        pthread_cond_wait(&changed, &lock);
    done++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return __real_bm_augment(a, key, in, frames, y, targets);
}

static void set_gate(bool shut)
{
    pthread_mutex_lock(&lock);
    closed = shut;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static size_t calls(void)
{
    size_t n = 0;

    pthread_mutex_lock(&lock);
    n = done;
    pthread_mutex_unlock(&lock);
    return n;
}

/* Computes until so many sequences have been augmented. */
static void train_until(size_t n)
{
    struct timespec end;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&lock);
    while (done < n && error == 0)
        error = pthread_cond_timedwait(&changed, &lock, &end);
    pthread_mutex_unlock(&lock);
    if (error == ETIMEDOUT)
        fail_msg("%zu sequences are augmented, not %zu", calls(), n);
}

/* ---- the data set -------------------------------------------------------- */

typedef struct fixture {
    char *directory;
    bm_dataset *d;
    bm_backend *be;
    bm_augment_settings set;
} fixture;

static int prepare(void **state)
{
    static fixture f;
    corpus c;

    f.directory = corpus_directory();
    c = corpus_make(f.directory, "set", N);
    corpus_write(&c);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    assert_ok(bm_dataset_open(&f.d, f.directory));
    assert_ok(bm_backend_open(&f.be, "cpu", 0));
    bm_config_peek(NULL, "augment", bm_augment_options, &f.set);
    f.set.speed = "0.5:2";
    f.set.noise = 0.1;
    training = pthread_self();
    done = by_training = 0;
    closed = false;
    *state = &f;
    return 0;
}

static int clean_up(void **state)
{
    fixture *f = *state;

    bm_backend_close(f->be);
    bm_dataset_close(f->d);
    corpus_remove(f->directory);
    return 0;
}

static bm_reader *open_reader_of(fixture *f, double frames_per_worker,
                                 bool once)
{
    bm_reader_settings s = {
        .plan = {.frames = 80,
                 .order = BM_ORDER_RANDOM,
                 .buckets = 3,
                 .frames_per_worker = frames_per_worker},
        .workers = 1,
        .last = 1,
        .seed = 7,
        .augment = &f->set,
        .once = once,
    };
    bm_reader *r = NULL;

    assert_ok(bm_reader_open(&r, f->d, f->be, &s, (bm_position){0, 0}));
    return r;
}

static bm_reader *open_reader(fixture *f)
{
    return open_reader_of(f, 130, true);
}

/* Takes a block and all its mini-batches; returns its sequences with frames. */
static size_t train_position(bm_reader *r, bm_position at)
{
    int64_t steps = 0;
    size_t n = 0;

    assert_ok(bm_reader_block(r, at, &steps));
    for (int64_t m = 0; m < bm_reader_steps(r, 0); m++) {
        const bm_batch *b = NULL;

        assert_ok(bm_reader_batch(r, 0, m, &b));
        for (size_t k = 0; k < b->extent.B; k++)
            n += b->extent.frames[k] > 0;
    }
    return n;
}

static size_t train_block(bm_reader *r, int64_t block)
{
    return train_position(r, (bm_position){0, block});
}

/* ---- tests --------------------------------------------------------------- */

static void test_the_readers_thread_augments_everything(void **state)
{
    bm_reader *r = open_reader(*state);
    size_t n = 0;

    for (int64_t b = 0; b < bm_reader_blocks(r); b++)
        n += train_block(r, b);
    bm_reader_close(r);
    assert_true(n > N / 2);
    assert_int_equal(calls(), n);
    assert_int_equal(by_training, 0);
}

static void test_two_blocks_ahead_are_augmented_during_training(void **state)
{
    bm_reader *r = open_reader(*state);
    size_t sizes[MOST_BLOCKS] = {0}, before = 0;
    int64_t blocks = bm_reader_blocks(r);

    assert_true(blocks > 5 && blocks <= MOST_BLOCKS);
    for (int64_t b = 0; b < blocks; b++)
        sizes[b] = train_block(r, b);
    bm_reader_close(r);
    done = 0;
    r = open_reader(*state);
    for (int64_t b = 0; b + 3 <= blocks; b += 3) {
        assert_int_equal(train_block(r, b), sizes[b]);
        before += sizes[b] + sizes[b + 1] + sizes[b + 2];
        train_until(before);
        set_gate(true); /* from here nothing more is augmented */
        (void)bm_reader_stall(r);
        assert_int_equal(train_block(r, b + 1), sizes[b + 1]);
        assert_int_equal(train_block(r, b + 2), sizes[b + 2]);
        assert_int_equal(calls(), before);
        assert_true(bm_reader_stall(r) == 0);
        set_gate(false);
    }
    bm_reader_close(r);
    assert_int_equal(by_training, 0);
}

/* Where an epoch is one block, too. */
static void test_the_next_epochs_are_read_during_training(void **state)
{
    bm_reader *r = open_reader_of(*state, 1e6, false);
    size_t all = 0;

    assert_int_equal(bm_reader_blocks(r), 1);
    all = train_position(r, (bm_position){0, 0});
    train_until(3 * all);
    set_gate(true); /* from here nothing more is augmented */
    (void)bm_reader_stall(r);
    for (int64_t epoch = 1; epoch < 3; epoch++)
        assert_int_equal(train_position(r, (bm_position){epoch, 0}), all);
    assert_true(bm_reader_stall(r) == 0);
    set_gate(false);
    bm_reader_close(r);
    assert_int_equal(by_training, 0);
}

/* In sequences: nothing of it is augmented when the wait begins. */
static void test_waiting_for_the_first_block_is_stall(void **state)
{
    bm_reader *r = NULL;
    size_t size = 0;

    set_gate(true);
    r = open_reader(*state);
    pthread_mutex_lock(&lock);
    opens = true;
    pthread_mutex_unlock(&lock);
    size = train_block(r, 0);
    assert_true(size > 0 && bm_reader_stall(r) >= (double)size);
    bm_reader_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_the_readers_thread_augments_everything, prepare, clean_up),
        cmocka_unit_test_setup_teardown(
            test_two_blocks_ahead_are_augmented_during_training, prepare,
            clean_up),
        cmocka_unit_test_setup_teardown(
            test_the_next_epochs_are_read_during_training, prepare, clean_up),
        cmocka_unit_test_setup_teardown(
            test_waiting_for_the_first_block_is_stall, prepare, clean_up),
    };

    return RUN_GROUP("ahead", tests);
}

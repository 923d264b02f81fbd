/*
 * The reader with [augment]: every sequence of every mini-batch is what
 * bm_augment makes of the written one, in each epoch, on any rank and after a
 * restart at any block.
 */
#include "io/batch/reader.h"
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <string.h>

enum { N = 120, WORKERS = 3, D = CORPUS_D, SEED = 5, EPOCHS = 2 };

/* Half as fast up to twice as fast: up to twice the frames. */
enum { MOST_FRAMES = 2 * CORPUS_FRAMES + 1 };

/* Values of many frames depend on the key. */
static bm_augment_settings settings(void)
{
    bm_augment_settings s;

    bm_config_peek(NULL, "augment", bm_augment_options, &s);
    s.speed = "0.5:2";
    s.warp = 4;
    s.noise = 0.1;
    s.time_masks = 1;
    return s;
}

/* Refuses some lengths, by labels and frames. */
static bool fits(const void *self, size_t frames, const int32_t *labels,
                 size_t n_labels)
{
    const int *calls = self;

    assert_int_equal(*calls, 1);
    return frames >= 2 * n_labels && labels[0] != 2;
}

/* A data set on disk, the settings, and an augmenter beside the reader's. */
typedef struct fixture {
    char *directory;
    bm_dataset *d;
    bm_backend *be;
    bm_augment_settings set;
    bm_augmenter *own;
    bm_fit fit;
    bool per_frame;
    int calls;
} fixture;

static void make(fixture *x, bool per_frame)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "test", N);
    bm_layout l;

    *x = (fixture){.directory = directory,
                   .per_frame = per_frame,
                   .set = settings(),
                   .calls = 1};
    c.meta.per_frame = per_frame;
    corpus_write(&c);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    assert_ok(bm_dataset_open(&x->d, x->directory));
    assert_ok(bm_backend_open(&x->be, "cpu", 0));
    l = bm_layout_of("", D);
    assert_ok(bm_augmenter_new(&x->own, &x->set, &l, per_frame));
    x->fit = per_frame ? (bm_fit){0} : (bm_fit){fits, &x->calls};
}

static void drop(fixture *x)
{
    bm_augmenter_free(x->own);
    bm_backend_close(x->be);
    bm_dataset_close(x->d);
    corpus_remove(x->directory);
}

static bm_reader *open_at(fixture *x, int first, int last, bm_position at)
{
    bm_reader_settings s = {
        .plan = {.frames = 80,
                 .order = BM_ORDER_RANDOM,
                 .buckets = 3,
                 .frames_per_worker = 130},
        .workers = WORKERS,
        .first = first,
        .last = last,
        .seed = SEED,
        .augment = &x->set,
        .fit = x->fit,
    };
    bm_reader *r = NULL;

    assert_ok(bm_reader_open(&r, x->d, x->be, &s, at));
    return r;
}

/* What a sequence should be in an epoch. Returns the frames. */
static size_t expect(fixture *f, int64_t sequence, int64_t epoch, float *y,
                     int32_t *labels, size_t *n_labels)
{
    size_t T = corpus_frames((size_t)sequence), frames = 0;
    int32_t before[CORPUS_FRAMES];
    float x[CORPUS_FRAMES * D];
    uint64_t key = bm_augment_key(SEED, epoch, sequence);
    bm_augmented in = {x, T, before, 0};

    in.n_labels = f->per_frame ? T : corpus_labels((size_t)sequence, before);
    for (size_t t = 0; t < T; t++) {
        for (size_t d = 0; d < D; d++)
            x[t * D + d] = corpus_value((size_t)sequence, t, d);
        if (f->per_frame)
            before[t] = (int32_t)(t % 5);
    }
    frames = bm_augment_frames(f->own, key, &in, &f->fit);
    assert_true(frames < MOST_FRAMES);
    assert_ok(bm_augment(f->own, key, &in, frames, y, labels));
    if (!f->per_frame)
        memcpy(labels, before, in.n_labels * sizeof *labels);
    *n_labels = f->per_frame ? frames : in.n_labels;
    return frames;
}

/* Checks a mini-batch; returns its frames, and counts changed lengths. */
static double check_batch(fixture *f, const bm_batch *b, int64_t epoch,
                          int *resized)
{
    bm_extent e = b->extent;
    const int32_t *classes = b->targets.classes;
    double sum = 0;

    for (size_t k = 0; k < e.B; k++) {
        float y[MOST_FRAMES * D];
        int32_t labels[MOST_FRAMES];
        size_t n = 0, T = expect(f, b->id[k], epoch, y, labels, &n);

        assert_int_equal(e.frames[k], T);
        assert_int_equal(b->targets.count[k], n);
        assert_memory_equal(classes, labels, n * sizeof *labels);
        classes += n;
        for (size_t t = 0; t < e.T; t++)
            for (size_t d = 0; d < D; d++)
                assert_true(b->x.data[(t * e.B + k) * D + d] ==
                            (t < T ? y[t * D + d] : 0));
        *resized += T != corpus_frames((size_t)b->id[k]);
        sum += (double)T;
    }
    return sum;
}

/* Checks all blocks from a position to the end, for workers [first, last). */
static void check(fixture *f, int first, int last, bm_position at)
{
    bm_reader *r = open_at(f, first, last, at);
    int64_t blocks = bm_reader_blocks(r), steps = 0;
    int resized = 0;

    for (; at.epoch < EPOCHS; at = (bm_position){at.epoch + 1, 0})
        for (; at.block < blocks; at.block++) {
            assert_ok(bm_reader_block(r, at, &steps));
            for (int k = first; k < last; k++) {
                double frames = 0;

                for (int64_t m = 0; m < bm_reader_steps(r, k); m++) {
                    const bm_batch *b = NULL;

                    assert_ok(bm_reader_batch(r, k, m, &b));
                    frames += check_batch(f, b, at.epoch, &resized);
                }
                assert_true(bm_reader_frames(r, k) == frames);
            }
        }
    assert_true(resized > 0);
    bm_reader_close(r);
}

static void test_sequences_are_augmented_alike_on_any_rank(void **_)
{
    fixture f;

    (void)_;
    make(&f, false);
    check(&f, 0, WORKERS, (bm_position){0, 0});
    for (int k = 0; k < WORKERS; k++)
        check(&f, k, k + 1, (bm_position){0, 0});
    drop(&f);
}

static void test_a_restart_augments_as_before(void **_)
{
    fixture f;
    bm_reader *r = NULL;

    (void)_;
    make(&f, false);
    r = open_at(&f, 0, WORKERS, (bm_position){0, 0});
    assert_true(bm_reader_blocks(r) > 2);
    for (int64_t b = 1; b < bm_reader_blocks(r); b++)
        check(&f, 0, WORKERS, (bm_position){b % 2, b});
    bm_reader_close(r);
    drop(&f);
}

static void test_targets_of_frames_are_read_with_their_frames(void **_)
{
    fixture f;

    (void)_;
    make(&f, true);
    check(&f, 0, WORKERS, (bm_position){0, 0});
    drop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences_are_augmented_alike_on_any_rank),
        cmocka_unit_test(test_a_restart_augments_as_before),
        cmocka_unit_test(test_targets_of_frames_are_read_with_their_frames),
    };

    return RUN_GROUP("augmented", tests);
}

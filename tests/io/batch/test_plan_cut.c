/*
 * The padding of mini-batches, and the number of mini-batches in blocks.
 */
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>

/* ---- padding ----------------------------------------------------------- */

/* Frames of a block's mini-batches, padding included. */
static int64_t padded(const bm_dataset *d, const bm_plan *p, int64_t block,
                      int workers)
{
    bm_cut cut = {0};
    int64_t sum = 0;

    for (int k = 0; k < workers; k++) {
        assert_ok(bm_plan_cut(p, block, k, &cut));
        for (size_t i = 0, from = 0, m = 0; m < cut.n_batches; m++) {
            int64_t longest = 0;
            for (from = i; i < cut.ends[m]; i++)
                if (longest < d->lengths[2 * cut.sequences[i]])
                    longest = d->lengths[2 * cut.sequences[i]];
            sum += longest * (int64_t)(cut.ends[m] - from);
        }
    }
    bm_cut_free(&cut);
    return sum;
}

static void test_frames_and_padding_of_blocks_are_counted(void **state)
{
    bm_rng rng = bm_rng_make(9, "test", 0);
    bm_dataset d = lengths_random(&rng, 100, 9);
    bm_plan_settings sizes[] = {{.sequences = 5}, {.frames = 150}};
    bm_cut cut = {0};

    (void)state;
    FOR_EACH (i, sizes) {
        bm_plan *p = NULL;
        bm_filling all = {0};
        double batches = 0;

        sizes[i].order = BM_ORDER_RANDOM;
        sizes[i].buckets = 2;
        sizes[i].frames_total = 1500;
        p = plan_of(&d, &sizes[i], 3, 1, 0);
        assert_true(bm_plan_blocks(p) > 2);
        for (int64_t b = 0; b < bm_plan_blocks(p); b++) {
            bm_filling f = {0};

            assert_ok(bm_plan_fill(p, b, &f));
            assert_ok(bm_plan_fill(p, b, &all));
            assert_true(f.padded == (double)padded(&d, p, b, 3));
            assert_true(f.frames == (double)block_frames(p, &d, b, 3));
            for (int k = 0; k < 3; k++, batches += (double)cut.n_batches)
                assert_ok(bm_plan_cut(p, b, k, &cut));
        }
        assert_true(all.frames == (double)d.frames && all.batches == batches);
        bm_plan_free(p);
    }
    bm_cut_free(&cut);
    lengths_drop(&d);
}

/* The cost of a mini-batch of n sequences. */
static int64_t cost(int64_t frames, int64_t longest, size_t n)
{
    return frames + 48 * longest * (int64_t)n;
}

/* The least cost over all ways to cut ascending lengths; O(n^2). */
static int64_t least_cost(int64_t frames, const int32_t *lengths, size_t n)
{
    int64_t *least = zeros(n + 1, sizeof *least), out = 0;

    for (size_t end = 1; end <= n; end++) {
        least[end] = INT64_MAX;
        for (size_t i = 0; i < end; i++) {
            int64_t longest = lengths[end - 1], whole = 0;

            if (end - i > 1 && longest * (int64_t)(end - i) > frames)
                continue;
            whole = least[i] + cost(frames, longest, end - i);
            least[end] = whole < least[end] ? whole : least[end];
        }
    }
    out = least[n];
    free(least);
    return out;
}

static int ascending(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* The relative excess of the cost of a share in sorted order over the least. */
static double excess(const bm_dataset *d, int64_t frames)
{
    bm_plan_settings s = {.frames = (long)frames,
                          .order = BM_ORDER_SORTED,
                          .buckets = 1,
                          .frames_total = (long)d->frames};
    int32_t *lengths = zeros(d->n, sizeof *lengths);
    bm_plan *p = plan_of(d, &s, 1, 1, 0);
    bm_cut cut = {0};
    int64_t least = 0, found = 0;

    assert_ok(bm_plan_cut(p, 0, 0, &cut));
    for (size_t i = 0; i < d->n; i++)
        lengths[i] = d->lengths[2 * cut.sequences[i]];
    for (size_t b = 0, from = 0; b < cut.n_batches; from = cut.ends[b++])
        found += cost(frames, lengths[cut.ends[b] - 1], cut.ends[b] - from);
    qsort(lengths, d->n, sizeof *lengths, ascending);
    least = least_cost(frames, lengths, d->n);
    bm_cut_free(&cut);
    bm_plan_free(p);
    free(lengths);
    return (double)found / (double)least - 1;
}

static void test_sorted_sequences_are_cut_where_it_costs_least(void **state)
{
    bm_rng rng = bm_rng_make(10, "test", 0);

    (void)state;
    for (int round = 0; round < 100; round++) {
        bm_dataset d = lengths_random(&rng, 30, 6);

        if (d.frames > 0)
            assert_true(excess(&d, 1 + (int64_t)bm_rng_below(&rng, 300)) == 0);
        lengths_drop(&d);
    }
}

/* Mini-batches of hundreds of sequences, for which not every cut is tried. */
static void test_many_short_sequences_are_cut_almost_as_well(void **state)
{
    bm_rng rng = bm_rng_make(11, "test", 0);
    bm_dataset d = lengths_random(&rng, 800, 12);

    (void)state;
    for (int64_t frames = 1000; frames < 100000; frames *= 3)
        assert_true(excess(&d, frames) < 0.001);
    lengths_drop(&d);
}

static void test_buckets_save_padding(void **state)
{
    bm_rng rng = bm_rng_make(6, "test", 0);
    bm_dataset d = lengths_random(&rng, 300, 12);
    bm_plan_settings s = {.sequences = 8,
                          .order = BM_ORDER_RANDOM,
                          .frames_total = (long)d.frames};
    int64_t last = INT64_MAX;

    (void)state;
    for (s.buckets = 1; s.buckets < 200; s.buckets *= 5) {
        bm_plan *p = plan_of(&d, &s, 1, 1, 0);
        int64_t frames = padded(&d, p, 0, 1);

        assert_true(frames < last && frames >= d.frames);
        last = frames;
        bm_plan_free(p);
    }
    assert_true((double)last < 1.1 * (double)d.frames);
    lengths_drop(&d);
}

/* ---- sizes ------------------------------------------------------------- */

/* 240 sequences of 10 frames, each a unit, so that shares are equal. */
static void test_steps_are_mini_batches_per_worker(void **state)
{
    int32_t counts[240], length = 10;
    bm_plan_settings sizes[] = {{.sequences = 4}, {.frames = 45}};
    double frames = 0;
    bm_dataset d;

    (void)state;
    for (int i = 0; i < 240; i++)
        counts[i] = 1;
    d = lengths_make(240, counts, lengths_same, &length);
    FOR_EACH (i, sizes) {
        bm_plan_settings s = sizes[i];
        bm_plan *p = NULL;
        bm_cut cut = {0};

        s.order = BM_ORDER_RANDOM;
        s.buckets = 4;
        s.steps = 5;
        assert_ok(bm_plan_block_frames(&s, &d, 3, &frames));
        assert_true(near(frames, 5 * 3 * 40, 1e-12));
        p = plan_of(&d, &s, 3, 1, 0);
        assert_int_equal(bm_plan_blocks(p), 4);
        for (int64_t b = 0; b < 4; b++)
            for (int k = 0; k < 3; k++) {
                assert_ok(bm_plan_cut(p, b, k, &cut));
                assert_int_equal(cut.n_batches, 5);
            }
        bm_cut_free(&cut);
        bm_plan_free(p);
    }
    lengths_drop(&d);
}

/* Lengths of 0.5 to 10 s, as in speech. */
static int32_t spoken(void *context, int64_t i)
{
    double u = bm_rng_uniform(context);

    (void)i;
    return (int32_t)(50 + 950 * u * u);
}

static void test_steps_allow_for_unequal_lengths(void **state)
{
    bm_rng rng = bm_rng_make(8, "test", 0);
    int32_t counts[2000];
    bm_plan_settings s = {
        .frames = 8000, .order = BM_ORDER_RANDOM, .buckets = 50, .steps = 20};
    double steps_of_blocks = 0;
    bm_plan *p = NULL;
    bm_dataset d;

    (void)state;
    FOR_EACH (i, counts)
        counts[i] = 3;
    d = lengths_make(2000, counts, spoken, &rng);
    p = plan_of(&d, &s, 1, 1, 0);
    for (int64_t b = 0; b < bm_plan_blocks(p); b++) {
        int64_t steps = 0;
        assert_ok(bm_plan_steps(p, b, &steps));
        steps_of_blocks += (double)steps;
    }
    assert_true(near(steps_of_blocks / (double)bm_plan_blocks(p), 20, 0.1));
    bm_plan_free(p);
    lengths_drop(&d);
}

/* Half an hour for each of two workers, default mini-batches. */
static void test_by_default_speech_has_little_padding(void **state)
{
    bm_rng rng = bm_rng_make(12, "test", 0);
    bm_plan_settings s = {
        .order = BM_ORDER_RANDOM, .buckets = 64, .frames_per_worker = 120000};
    int32_t counts[700];
    bm_plan *p = NULL;
    bm_dataset d;

    (void)state;
    FOR_EACH (i, counts)
        counts[i] = 4;
    d = lengths_make(700, counts, spoken, &rng);
    assert_int_equal(bm_plan_sized(&s, &d).sequences, 4);
    p = plan_of(&d, &s, 2, 1, 0);
    for (int64_t b = 0; b < bm_plan_blocks(p); b++)
        assert_true(0.975 * (double)padded(&d, p, b, 2) <
                    (double)block_frames(p, &d, b, 2));
    bm_plan_free(p);
    lengths_drop(&d);
}

static void test_a_block_has_a_size_per_worker_or_in_total(void **state)
{
    bm_dataset d = {.n = 3, .frames = 100};
    bm_plan_settings per_worker = {.sequences = 1, .frames_per_worker = 70};
    bm_plan_settings total = {.sequences = 1, .frames_total = 70};
    double frames = 0;

    (void)state;
    assert_ok(bm_plan_block_frames(&per_worker, &d, 4, &frames));
    assert_true(frames == 280);
    assert_ok(bm_plan_block_frames(&total, &d, 4, &frames));
    assert_true(frames == 70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_frames_and_padding_of_blocks_are_counted),
        cmocka_unit_test(test_sorted_sequences_are_cut_where_it_costs_least),
        cmocka_unit_test(test_many_short_sequences_are_cut_almost_as_well),
        cmocka_unit_test(test_buckets_save_padding),
        cmocka_unit_test(test_steps_are_mini_batches_per_worker),
        cmocka_unit_test(test_steps_allow_for_unequal_lengths),
        cmocka_unit_test(test_by_default_speech_has_little_padding),
        cmocka_unit_test(test_a_block_has_a_size_per_worker_or_in_total),
    };

    return RUN_GROUP("plan_cut", tests);
}

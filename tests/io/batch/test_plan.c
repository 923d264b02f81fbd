/*
 * The block plan of data sets that are only lists of lengths: properties of
 * many random plans, and small plans by hand.
 */
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const bm_order orders[] = {BM_ORDER_RANDOM, BM_ORDER_SORTED,
                                  BM_ORDER_FILE, BM_ORDER_SORTAGRAD,
                                  BM_ORDER_LAPLACE};

/* ---- data sets --------------------------------------------------------- */

static int32_t given(void *context, int64_t i)
{
    return ((const int32_t *)context)[i];
}

/* ---- plans ------------------------------------------------------------- */

/* The whole epoch as one list: block, worker, then its mini-batches, each
 * sequence as 1 + its number and each end of a mini-batch as 0. */
static size_t whole(const bm_plan *p, int workers, int64_t *out)
{
    bm_cut cut = {0};
    size_t n = 0;

    for (int64_t b = 0; b < bm_plan_blocks(p); b++)
        for (int k = 0; k < workers; k++) {
            assert_ok(bm_plan_cut(p, b, k, &cut));
            for (size_t i = 0, m = 0; m < cut.n_batches; m++) {
                for (; i < cut.ends[m]; i++)
                    out[n++] = 1 + cut.sequences[i];
                out[n++] = 0;
            }
        }
    bm_cut_free(&cut);
    return n;
}

static int64_t largest_unit(const bm_dataset *d)
{
    int64_t largest = 0;

    for (size_t u = 0; u < d->n_units; u++)
        if (largest < d->units[u].frames)
            largest = d->units[u].frames;
    return largest;
}

/* ---- properties -------------------------------------------------------- */

/* Counts a share's sequences; each must be in one of its units. */
static void count(const bm_plan *p, const bm_dataset *d, int64_t block,
                  int worker, const bm_cut *cut, int *seen, int *seen_units)
{
    const size_t *units = NULL;
    size_t n = bm_plan_units(p, block, worker, &units), sequences = 0;

    for (size_t u = 0; u < n; u++) {
        seen_units[units[u]]++;
        sequences += (size_t)d->units[units[u]].sequences;
    }
    assert_int_equal(cut->n_sequences, sequences);
    for (size_t i = 0; i < cut->n_sequences; i++) {
        size_t u = 0;
        while (u < n && (cut->sequences[i] < d->units[units[u]].first ||
                         cut->sequences[i] >= d->units[units[u]].first +
                                                  d->units[units[u]].sequences))
            u++;
        assert_true(u < n);
        seen[cut->sequences[i]]++;
    }
}

static void check_sizes(const bm_dataset *d, const bm_plan_settings *s,
                        const bm_cut *cut)
{
    size_t from = 0;

    for (size_t b = 0; b < cut->n_batches; from = cut->ends[b++]) {
        int64_t n = (int64_t)(cut->ends[b] - from), longest = 0;

        assert_true(n > 0);
        for (size_t i = from; i < cut->ends[b]; i++)
            if (longest < d->lengths[2 * cut->sequences[i]])
                longest = d->lengths[2 * cut->sequences[i]];
        if (s->frames > 0)
            assert_true(n == 1 || longest * n <= s->frames);
        else
            assert_true(n <= s->sequences);
    }
    assert_int_equal(from, cut->n_sequences);
    if (s->sequences > 0) /* only one mini-batch is not full */
        assert_int_equal(cut->n_batches,
                         (cut->n_sequences + (size_t)s->sequences - 1) /
                             (size_t)s->sequences);
}

static void check_epoch(const bm_dataset *d, const bm_plan_settings *s,
                        int workers, uint64_t seed)
{
    bm_plan *p = plan_of(d, s, workers, seed, 3);
    int *seen = zeros(d->n, sizeof *seen);
    int *seen_units = zeros(d->n_units, sizeof *seen_units);
    bm_cut cut = {0};
    int64_t steps = 0;

    for (int64_t b = 0; b < bm_plan_blocks(p); b++) {
        size_t most = 0;
        for (int k = 0; k < workers; k++) {
            assert_ok(bm_plan_cut(p, b, k, &cut));
            count(p, d, b, k, &cut, seen, seen_units);
            check_sizes(d, s, &cut);
            most = cut.n_batches > most ? cut.n_batches : most;
        }
        assert_ok(bm_plan_steps(p, b, &steps));
        assert_int_equal(steps, most);
        assert_true(steps > 0); /* 0 would end the epoch here */
    }
    for (size_t i = 0; i < d->n; i++)
        assert_int_equal(seen[i], 1);
    for (size_t u = 0; u < d->n_units; u++)
        assert_int_equal(seen_units[u], d->units[u].sequences > 0);
    bm_cut_free(&cut);
    bm_plan_free(p);
    free(seen);
    free(seen_units);
}

static void test_every_sequence_is_in_one_batch_of_one_share(void **state)
{
    bm_rng rng = bm_rng_make(1, "test", 0);

    (void)state;
    for (uint64_t round = 0; round < 300; round++) {
        size_t n_units = 1 + (size_t)bm_rng_below(&rng, 60);
        bm_dataset d = lengths_random(&rng, n_units, 12);
        bm_plan_settings s = {
            .order = orders[bm_rng_below(&rng, 4)],
            .buckets = 1 + (long)bm_rng_below(&rng, 8),
            .frames_total = 1 + (long)bm_rng_below(&rng, 2000),
        };
        int workers = 1 + (int)(round % 9);

        if (round % 2 == 0)
            s.sequences = 1 + (long)bm_rng_below(&rng, 10);
        else
            s.frames = 1 + (long)bm_rng_below(&rng, 200);
        check_epoch(&d, &s, workers, round);
        lengths_drop(&d);
    }
}

static void test_blocks_are_about_equal(void **state)
{
    bm_rng rng = bm_rng_make(2, "test", 0);

    (void)state;
    for (int round = 0; round < 50; round++) {
        bm_dataset d = lengths_random(&rng, 200, 8);
        int64_t unit = largest_unit(&d);
        bm_plan_settings s = {.sequences = 4, .buckets = 4};
        int workers = 1 + round % 5;

        FOR_EACH (o, orders) {
            bm_plan *p = NULL;
            double size = 0, blocks = 0, mean = 0;

            s.order = orders[o];
            s.frames_per_worker = (long)unit + (long)bm_rng_below(&rng, 500);
            p = plan_of(&d, &s, workers, 7, 0);
            size = (double)(s.frames_per_worker * workers);
            blocks = (double)bm_plan_blocks(p);
            mean = (double)d.frames / blocks;
            /* the number that makes the size nearest to the one set */
            assert_true(fabs(blocks - (double)d.frames / size) <= 0.5);
            for (int64_t b = 0; b < bm_plan_blocks(p); b++) {
                size = (double)block_frames(p, &d, b, workers);
                assert_true(size >= mean - (double)unit);
                assert_true(size <= mean + (double)unit);
            }
            bm_plan_free(p);
        }
        lengths_drop(&d);
    }
}

/* The largest-first rule, by a search through all workers. */
static void deal(const bm_dataset *d, const bm_plan *p, int workers,
                 int64_t *loads)
{
    bool *dealt = zeros(d->n_units, sizeof *dealt);

    for (size_t i = 0; i < d->n_units; i++) {
        size_t largest = d->n_units;
        int least = 0;

        for (size_t u = 0; u < d->n_units; u++)
            if (!dealt[u] && (largest == d->n_units ||
                              d->units[u].frames > d->units[largest].frames))
                largest = u;
        dealt[largest] = true;
        for (int k = 1; k < workers; k++)
            if (loads[k] < loads[least])
                least = k;
        loads[least] += d->units[largest].frames;
    }
    for (int k = 0; k < workers; k++)
        assert_int_equal(share_frames(p, d, 0, k), loads[k]);
    free(dealt);
}

static void test_units_are_dealt_largest_first_to_the_least_loaded(void **state)
{
    static const int crews[] = {1, 2, 3, 7, 16, 100, 300};
    bm_plan_settings s = {.sequences = 4,
                          .order = BM_ORDER_RANDOM,
                          .buckets = 1,
                          .frames_total = 1000};
    bm_rng rng = bm_rng_make(3, "test", 0);

    (void)state;
    FOR_EACH (c, crews) {
        bm_dataset d = lengths_random(&rng, 150, 9);
        int64_t *loads = zeros((size_t)crews[c], sizeof *loads), largest = 0;
        bm_plan *p = NULL;

        s.frames_total = (long)d.frames; /* one block */
        p = plan_of(&d, &s, crews[c], 11, 2);
        assert_int_equal(bm_plan_blocks(p), 1);
        deal(&d, p, crews[c], loads);
        for (int k = 0; k < crews[c]; k++)
            largest = loads[k] > largest ? loads[k] : largest;
        assert_true(near(bm_plan_balance(p, 0),
                         (double)d.frames / crews[c] / (double)largest, 1e-12));
        bm_plan_free(p);
        free(loads);
        lengths_drop(&d);
    }
}

static void test_a_plan_depends_on_seed_and_epoch_alone(void **state)
{
    bm_rng rng = bm_rng_make(4, "test", 0), again = rng;
    bm_dataset d = lengths_random(&rng, 80, 9),
               copy = lengths_random(&again, 80, 9);
    bm_plan_settings s = {.frames = 150,
                          .order = BM_ORDER_RANDOM,
                          .buckets = 4,
                          .frames_total = 900};
    bm_plan *plans[] = {plan_of(&d, &s, 3, 5, 1), plan_of(&copy, &s, 3, 5, 1),
                        plan_of(&d, &s, 3, 5, 2), plan_of(&d, &s, 3, 6, 1)};
    int64_t *x = zeros(2 * d.n, sizeof *x), *y = zeros(2 * d.n, sizeof *y);
    size_t n = whole(plans[0], 3, x);

    (void)state;
    /* in another order, after other calls */
    for (int64_t b = bm_plan_blocks(plans[1]) - 1; b >= 0; b--) {
        int64_t steps = 0;
        assert_ok(bm_plan_steps(plans[1], b, &steps));
    }
    assert_int_equal(whole(plans[1], 3, y), n);
    assert_memory_equal(x, y, n * sizeof *x);
    for (int other = 2; other < 4; other++) {
        assert_int_equal(bm_plan_blocks(plans[other]),
                         bm_plan_blocks(plans[0]));
        assert_true(whole(plans[other], 3, y) != n ||
                    memcmp(x, y, n * sizeof *x) != 0);
    }
    FOR_EACH (i, plans)
        bm_plan_free(plans[i]);
    free(x);
    free(y);
    lengths_drop(&d);
    lengths_drop(&copy);
}

/* Orders that are not random are the same in every epoch. */
static void test_file_and_sorted_order_are_not_random(void **state)
{
    bm_rng rng = bm_rng_make(5, "test", 0);
    bm_dataset d = lengths_random(&rng, 40, 9);
    int64_t *x = zeros(2 * d.n, sizeof *x), *y = zeros(2 * d.n, sizeof *y);

    (void)state;
    for (int o = 1; o < 3; o++) {
        bm_plan_settings s = {.frames = 100,
                              .order = orders[o],
                              .buckets = 2,
                              .frames_total = 400};
        bm_plan *a = plan_of(&d, &s, 2, 5, 0), *b = plan_of(&d, &s, 2, 6, 1);
        size_t n = whole(a, 2, x);

        assert_int_equal(whole(b, 2, y), n);
        assert_memory_equal(x, y, n * sizeof *x);
        bm_plan_free(a);
        bm_plan_free(b);
    }
    free(x);
    free(y);
    lengths_drop(&d);
}

/* Sequences of a share are mixed over its units, and short mini-batches are not
 * first. */
static void test_random_order_mixes_units_and_lengths(void **state)
{
    bm_rng rng = bm_rng_make(7, "test", 0);
    bm_dataset d = lengths_random(&rng, 100, 12);
    bm_plan_settings s = {.sequences = 4,
                          .order = BM_ORDER_RANDOM,
                          .buckets = 1000,
                          .frames_total = (long)d.frames};
    bm_plan *p = plan_of(&d, &s, 1, 1, 0);
    bm_cut cut = {0};
    int neighbours = 0, falls = 0;

    (void)state;
    assert_ok(bm_plan_cut(p, 0, 0, &cut));
    for (size_t i = 1; i < cut.n_sequences; i++) {
        neighbours += cut.sequences[i] == cut.sequences[i - 1] + 1;
        falls += d.lengths[2 * cut.sequences[i]] <
                 d.lengths[2 * cut.sequences[i - 1]];
    }
    assert_true(neighbours < 20); /* of some 600; 1 is expected by chance */
    assert_true(falls > (int)cut.n_batches / 4); /* half is expected */
    bm_cut_free(&cut);
    bm_plan_free(p);
    lengths_drop(&d);
}

/* ---- by hand ----------------------------------------------------------- */

/* Units of 4, 2, 6 and 4 frames. */
static int32_t small_lengths[] = {3, 1, 2, 5, 1, 4};
static const int32_t small_counts[] = {2, 1, 2, 1};

static void assert_cut(const bm_plan *p, int64_t block, int worker,
                       const int64_t *sequences, size_t n, const size_t *ends,
                       size_t n_batches)
{
    bm_cut cut = {0};

    assert_ok(bm_plan_cut(p, block, worker, &cut));
    assert_int_equal(cut.n_sequences, n);
    assert_int_equal(cut.n_batches, n_batches);
    assert_memory_equal(cut.sequences, sequences, n * sizeof *sequences);
    assert_memory_equal(cut.ends, ends, n_batches * sizeof *ends);
    bm_cut_free(&cut);
}

static void test_a_plan_in_file_order_by_hand(void **state)
{
    bm_dataset d = lengths_make(4, small_counts, given, small_lengths);
    bm_plan_settings s = {
        .frames = 6, .order = BM_ORDER_FILE, .buckets = 1, .frames_total = 8};
    bm_plan *p = plan_of(&d, &s, 2, 1, 0);
    int64_t steps = -1;

    (void)state;
    assert_int_equal(bm_plan_blocks(p), 2);
    assert_cut(p, 0, 0, (int64_t[]){0, 1}, 2, (size_t[]){1, 2}, 2);
    assert_cut(p, 0, 1, (int64_t[]){2}, 1, (size_t[]){1}, 1);
    assert_cut(p, 1, 0, (int64_t[]){3, 4}, 2, (size_t[]){1, 2}, 2);
    assert_cut(p, 1, 1, (int64_t[]){5}, 1, (size_t[]){1}, 1);
    assert_true(near(bm_plan_balance(p, 0), 3. / 4, 1e-12));
    assert_true(near(bm_plan_balance(p, 1), 5. / 6, 1e-12));
    assert_ok(bm_plan_steps(p, 1, &steps));
    assert_int_equal(steps, 2);
    assert_ok(bm_plan_steps(p, 2, &steps));
    assert_int_equal(steps, 0);
    bm_plan_free(p);
    lengths_drop(&d);
}

static void test_a_plan_in_sorted_order_by_hand(void **state)
{
    bm_dataset d = lengths_make(4, small_counts, given, small_lengths);
    bm_plan_settings s = {.frames = 6,
                          .order = BM_ORDER_SORTED,
                          .buckets = 1,
                          .frames_total = 16};
    bm_plan *p = plan_of(&d, &s, 1, 1, 0);

    (void)state;
    assert_int_equal(bm_plan_blocks(p), 1);
    assert_cut(p, 0, 0, (int64_t[]){1, 4, 2, 0, 5, 3}, 6,
               (size_t[]){2, 3, 4, 5, 6}, 5);
    bm_plan_free(p);
    lengths_drop(&d);
}

/* The first blocks of an epoch have the shorter sequences. */
static void test_sorted_order_sorts_units_as_well(void **state)
{
    int32_t lengths[] = {9, 9, 1, 1, 5, 5};
    const int32_t counts[] = {2, 2, 2};
    bm_dataset d = lengths_make(3, counts, given, lengths);
    bm_plan_settings s = {.sequences = 2,
                          .order = BM_ORDER_SORTED,
                          .buckets = 1,
                          .frames_total = 10};
    bm_plan *p = plan_of(&d, &s, 1, 1, 0);

    (void)state;
    assert_int_equal(bm_plan_blocks(p), 3);
    assert_cut(p, 0, 0, (int64_t[]){2, 3}, 2, (size_t[]){2}, 1);
    assert_cut(p, 1, 0, (int64_t[]){4, 5}, 2, (size_t[]){2}, 1);
    assert_cut(p, 2, 0, (int64_t[]){0, 1}, 2, (size_t[]){2}, 1);
    bm_plan_free(p);
    lengths_drop(&d);
}

/* Units are cut into sequences, so that a long one does not take a short one of
 * its unit along. */
static void test_sorted_order_sorts_the_sequences_of_all_units(void **state)
{
    int32_t lengths[] = {9, 1, 5, 2, 8, 4};
    const int32_t counts[] = {3, 3};
    bm_plan_settings s = {.sequences = 2,
                          .order = BM_ORDER_SORTED,
                          .buckets = 1,
                          .frames_total = 10};

    (void)state;
    for (int k = 0; k < 2; k++) {
        bm_dataset d = lengths_make(2, counts, given, lengths);
        bm_plan *p = NULL;

        s.order = k == 0 ? BM_ORDER_SORTED : BM_ORDER_SORTAGRAD;
        assert_ok(bm_plan_fit(&s, &d, 1));
        assert_int_equal(d.n_units, 6);
        p = plan_of(&d, &s, 1, 1, 0);
        assert_int_equal(bm_plan_blocks(p), 3);
        assert_cut(p, 0, 0, (int64_t[]){1, 3, 5, 2}, 4, (size_t[]){2, 4}, 2);
        assert_cut(p, 1, 0, (int64_t[]){4}, 1, (size_t[]){1}, 1);
        assert_cut(p, 2, 0, (int64_t[]){0}, 1, (size_t[]){1}, 1);
        bm_plan_free(p);
        lengths_drop(&d);
    }
}

static void test_sortagrad_is_sorted_in_the_first_epoch_alone(void **state)
{
    bm_rng rng = bm_rng_make(9, "test", 0);
    bm_dataset d = lengths_random(&rng, 80, 9);
    bm_plan_settings s = {.sequences = 3,
                          .order = BM_ORDER_SORTAGRAD,
                          .buckets = 4,
                          .frames_total = 900};
    int64_t *x = zeros(2 * d.n, sizeof *x), *y = zeros(2 * d.n, sizeof *y);

    (void)state;
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        bm_plan_settings other = s;
        bm_plan *p = plan_of(&d, &s, 2, 5, epoch), *q = NULL;

        other.order = epoch == 0 ? BM_ORDER_SORTED : BM_ORDER_RANDOM;
        q = plan_of(&d, &other, 2, 5, epoch);
        assert_int_equal(whole(p, 2, x), whole(q, 2, y));
        assert_memory_equal(x, y, d.n * sizeof *x);
        bm_plan_free(p);
        bm_plan_free(q);
    }
    free(x);
    free(y);
    lengths_drop(&d);
}

/* Are lengths in order from sequence `from` of a cut to `to`? */
static bool in_order(const bm_cut *cut, const int32_t *lengths, size_t from,
                     size_t to, bool up)
{
    for (size_t i = from + 1; i < to; i++) {
        int32_t before = lengths[cut->sequences[i - 1]];
        int32_t now = lengths[cut->sequences[i]];

        if (up ? before > now : before < now)
            return false;
    }
    return true;
}

/* RETURNN's laplace: bins of 2 mini-batches of 3, up and down in turn, and so
 * are the first bins of blocks. */
static void test_laplace_order_goes_up_and_down(void **state)
{
    enum { UNITS = 8, OF_UNIT = 5, SEQUENCES = UNITS * OF_UNIT, BIN = 6 };
    int32_t counts[UNITS], lengths[SEQUENCES];
    bm_dataset d;
    bm_plan_settings s = {.sequences = 3,
                          .order = BM_ORDER_LAPLACE,
                          .buckets = 2,
                          .frames_total = SEQUENCES * (SEQUENCES + 1) / 4};
    bm_plan *p = NULL;
    bm_cut cut = {0};

    (void)state;
    for (int i = 0; i < SEQUENCES; i++)
        lengths[i] = 1 + i * 7 % SEQUENCES; /* each of 1 .. SEQUENCES */
    for (int i = 0; i < UNITS; i++)
        counts[i] = OF_UNIT;
    d = lengths_make(UNITS, counts, given, lengths);
    p = plan_of(&d, &s, 1, 4, 0);
    assert_int_equal(bm_plan_blocks(p), 2);
    for (int64_t b = 0; b < 2; b++) {
        bool up = b == 0;

        assert_ok(bm_plan_cut(p, b, 0, &cut));
        assert_true(cut.n_sequences > 2 * BIN);
        for (size_t i = 0; i < cut.n_sequences; i += BIN, up = !up) {
            size_t end = i + BIN < cut.n_sequences ? i + BIN : cut.n_sequences;

            assert_true(in_order(&cut, lengths, i, end, up));
        }
        assert_false(in_order(&cut, lengths, 0, cut.n_sequences, b == 0));
        assert_int_equal(cut.ends[0], 3);
    }
    bm_cut_free(&cut);
    bm_plan_free(p);
    lengths_drop(&d);
}

/* Of the first block. */
static void test_random_order_shuffles_the_batches_of_laplace(void **state)
{
    bm_rng rng = bm_rng_make(9, "test", 0);
    bm_dataset d = lengths_random(&rng, 80, 9);
    bm_plan_settings s = {.sequences = 3, .buckets = 4, .frames_total = 900};
    bm_order both[] = {BM_ORDER_LAPLACE, BM_ORDER_RANDOM};
    bm_cut cut[2] = {{0}, {0}};
    size_t found = 0, moved = 0, size = 3 * sizeof *cut->sequences;

    (void)state;
    for (int k = 0; k < 2; k++) {
        bm_plan *p = NULL;

        s.order = both[k];
        p = plan_of(&d, &s, 2, 5, 0);
        assert_ok(bm_plan_cut(p, 0, 0, &cut[k]));
        bm_plan_free(p);
    }
    assert_int_equal(cut[0].n_sequences, cut[1].n_sequences);
    for (size_t i = 0; i + 3 <= cut[0].n_sequences; i += 3)
        for (size_t j = 0; j + 3 <= cut[1].n_sequences; j++)
            if (memcmp(cut[0].sequences + i, cut[1].sequences + j, size) == 0) {
                found++;
                moved += i != j;
            }
    assert_int_equal(found, cut[0].n_sequences / 3);
    assert_true(moved > found / 2);
    bm_cut_free(&cut[0]);
    bm_cut_free(&cut[1]);
    lengths_drop(&d);
}

static void test_with_one_unit_the_other_workers_have_no_data(void **state)
{
    const int32_t counts[] = {3};
    int32_t lengths[] = {4, 0, 2};
    bm_dataset d = lengths_make(1, counts, given, lengths);
    bm_plan_settings s = {.sequences = 2,
                          .order = BM_ORDER_RANDOM,
                          .buckets = 1,
                          .frames_total = 1};
    bm_plan *p = plan_of(&d, &s, 5, 1, 0);
    const size_t *units = NULL;
    bm_cut cut = {0};

    (void)state;
    assert_int_equal(bm_plan_blocks(p), 1);
    assert_int_equal(bm_plan_units(p, 0, 0, &units), 1);
    for (int k = 1; k < 5; k++) {
        assert_int_equal(bm_plan_units(p, 0, k, &units), 0);
        assert_ok(bm_plan_cut(p, 0, k, &cut));
        assert_int_equal(cut.n_sequences + cut.n_batches, 0);
    }
    assert_true(near(bm_plan_balance(p, 0), 1. / 5, 1e-12));
    bm_cut_free(&cut);
    bm_plan_free(p);
    lengths_drop(&d);
}

/* The plan of fewer workers, dealt to every so many of all. */
static void test_fewer_workers_have_the_shares_of_a_smaller_job(void **state)
{
    static const int jobs[][2] = {{8, 2}, {6, 3}, {5, 3}, {64, 16}, {4, 4}};
    bm_rng rng = bm_rng_make(1, "fewer", 0);

    (void)state;
    FOR_EACH (i, jobs) {
        int all = jobs[i][0], some = jobs[i][1];
        bm_dataset d = lengths_random(&rng, 200, 12);
        bm_plan_settings small = {
            .sequences = 2, .order = BM_ORDER_RANDOM, .buckets = 1, .steps = 3};
        bm_plan_settings set = small;
        bm_plan *p = plan_of(&d, &small, some, 1, 2), *q = NULL;

        set.actives = (bm_series){.n = 2, .value = {1, some}, .from = {0, 2}};
        q = plan_of(&d, &set, all, 1, 2);
        assert_int_equal(bm_plan_blocks(p), bm_plan_blocks(q));
        for (int64_t b = 0; b < bm_plan_blocks(p); b++) {
            const size_t *x = NULL, *y = NULL;
            size_t n = 0;

            assert_true(
                near(bm_plan_balance(p, b), bm_plan_balance(q, b), 1e-12));
            for (int k = 0; k < some; k++) {
                n = bm_plan_units(p, b, k, &x);
                assert_int_equal(bm_plan_units(q, b, k * all / some, &y), n);
                assert_memory_equal(x, y, n * sizeof *x);
            }
            for (int k = 0, taken = 0; k < all; k++)
                if (k == taken * all / some)
                    taken++;
                else
                    assert_int_equal(bm_plan_units(q, b, k, &y), 0);
        }
        bm_plan_free(p);
        bm_plan_free(q);
        lengths_drop(&d);
    }
}

/* 100 units of 20 sequences, 200 frames each. */
static void test_units_are_cut_if_shares_have_fewer_than_sixteen(void **state)
{
    static const struct {
        bm_plan_settings s;
        int workers;
        size_t units;
    } rows[] = {
        {{.sequences = 1, .frames_per_worker = 4000}, 5, 100},
        {{.sequences = 1, .frames_per_worker = 2000}, 10, 300}, /* 70, 70, 60 */
        {{.sequences = 1, .steps = 5}, 64, 2000},
        {{.sequences = 1, .steps = 320}, 1, 100},
        {{.sequences = 1, .steps = 200}, 1, 300},
        {{.sequences = 1,
          .steps = 200,
          .actives = {.n = 2, .value = {1, 10}, .from = {0, 1}}},
         10,
         300},
        {{.sequences = 1,
          .sizes = {.n = 2, .value = {400, 64}, .from = {0, 1}},
          .steps = 400},
         5,
         1000},
    };

    (void)state;
    FOR_EACH (i, rows) {
        int32_t counts[100], length = 10;
        bm_dataset d;
        bm_plan *p = NULL;

        FOR_EACH (u, counts)
            counts[u] = 20;
        d = lengths_make(100, counts, lengths_same, &length);
        assert_ok(bm_plan_fit(&rows[i].s, &d, rows[i].workers));
        assert_int_equal(d.n_units, rows[i].units);
        p = plan_of(&d, &rows[i].s, rows[i].workers, 1, 0);
        for (int64_t b = 0; b < bm_plan_blocks(p); b++)
            assert_true(bm_plan_balance(p, b) > 0.7);
        bm_plan_free(p);
        lengths_drop(&d);
    }
}

static void test_no_sequences_give_no_blocks(void **state)
{
    const int32_t counts[] = {0, 0};
    bm_dataset sets[] = {lengths_make(0, NULL, given, NULL),
                         lengths_make(2, counts, given, NULL)};
    bm_plan_settings s = {.sequences = 2,
                          .order = BM_ORDER_RANDOM,
                          .buckets = 1,
                          .frames_total = 1};

    (void)state;
    FOR_EACH (i, sets) {
        bm_plan *p = plan_of(&sets[i], &s, 2, 1, 0);
        int64_t steps = -1;

        assert_int_equal(bm_plan_blocks(p), 0);
        assert_ok(bm_plan_steps(p, 0, &steps));
        assert_int_equal(steps, 0);
        bm_plan_free(p);
        lengths_drop(&sets[i]);
    }
}

static void test_empty_sequences_are_dealt_like_others(void **state)
{
    const int32_t counts[] = {2, 1, 2};
    int32_t none = 0;
    bm_dataset d = lengths_make(3, counts, lengths_same, &none);
    bm_plan_settings s = {.frames = 2,
                          .order = BM_ORDER_RANDOM,
                          .buckets = 1,
                          .frames_per_worker = 9};

    (void)state;
    check_epoch(&d, &s, 2, 1);
    lengths_drop(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_sequence_is_in_one_batch_of_one_share),
        cmocka_unit_test(test_blocks_are_about_equal),
        cmocka_unit_test(
            test_units_are_dealt_largest_first_to_the_least_loaded),
        cmocka_unit_test(test_a_plan_depends_on_seed_and_epoch_alone),
        cmocka_unit_test(test_file_and_sorted_order_are_not_random),
        cmocka_unit_test(test_random_order_mixes_units_and_lengths),
        cmocka_unit_test(test_a_plan_in_file_order_by_hand),
        cmocka_unit_test(test_a_plan_in_sorted_order_by_hand),
        cmocka_unit_test(test_sorted_order_sorts_units_as_well),
        cmocka_unit_test(test_sorted_order_sorts_the_sequences_of_all_units),
        cmocka_unit_test(test_laplace_order_goes_up_and_down),
        cmocka_unit_test(test_random_order_shuffles_the_batches_of_laplace),
        cmocka_unit_test(test_sortagrad_is_sorted_in_the_first_epoch_alone),
        cmocka_unit_test(test_with_one_unit_the_other_workers_have_no_data),
        cmocka_unit_test(test_fewer_workers_have_the_shares_of_a_smaller_job),
        cmocka_unit_test(test_units_are_cut_if_shares_have_fewer_than_sixteen),
        cmocka_unit_test(test_no_sequences_give_no_blocks),
        cmocka_unit_test(test_empty_sequences_are_dealt_like_others),
    };

    return RUN_GROUP("plan", tests);
}

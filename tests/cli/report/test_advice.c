/*
 * Gains, time constants and warnings, compared with values computed by hand.
 */
#include "cli/report/advice.h"

#include "bmuf/filter.h"
#include "core/rng.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sixteen workers as CNTK has them by default: blocks of 120000 samples for
 * each, eta = 1 - 1/16; a hundred blocks per epoch. Without warnings. */
static bm_regime sensible(void)
{
    return (bm_regime){.workers = 16,
                       .filtered = true,
                       .blocks = true,
                       .momentum = 15. / 16,
                       .rate = 1,
                       .local_momentum = 0.9,
                       .reset = true,
                       .block_frames = 16 * 120000.,
                       .epoch_frames = 100 * 16 * 120000.,
                       .batch_frames = 8000,
                       .balance = 1,
                       .epochs = 10};
}

/* All warnings, one per line. */
typedef struct received {
    int n;
    char text[4096];
} received;

static void listen(void *self, const char *text)
{
    received *t = self;
    size_t used = strlen(t->text);

    t->n++;
    snprintf(t->text + used, sizeof t->text - used, "%s\n", text);
}

static received warnings_of(const bm_regime *s)
{
    received t = {0};

    bm_advise(s, 1, listen, &t);
    return t;
}

/* Asserts exactly one warning, which contains `words`. */
static void assert_warns(const bm_regime *s, const char *words)
{
    received t = warnings_of(s);

    if (t.n != 1 || strstr(t.text, words) == NULL)
        print_error("not just '%s':\n%s", words, t.text);
    assert_true(t.n == 1 && strstr(t.text, words) != NULL);
}

/* Asserts exactly one warning, which contains `words`, and after it the proposal
 * `settings`. */
static void assert_proposes(const bm_regime *s, const char *words,
                            const char *settings)
{
    received t = warnings_of(s);
    char last[300];

    snprintf(last, sizeof last,
             "these settings avoid the warnings about blocks: --set %s\n",
             settings);
    if (t.n != 2 || !strstr(t.text, words) || !strstr(t.text, last))
        print_error("not just '%s' and '%s':\n%s", words, last, t.text);
    assert_true(t.n == 2 && strstr(t.text, words) && strstr(t.text, last));
}

/* ---- numbers ------------------------------------------------------------ */

/* -1 / ln(15/16) = 1 / (ln 16 - ln 15) = 1 / (2.7725887 - 2.7080502). */
static void test_time_constant_of_sixteen_workers(void **_)
{
    bm_regime s = sensible();
    bm_gains g = bm_gains_of(&s);

    (void)_;
    assert_true(near(g.block, 1, 0));
    assert_true(near(g.steady, 16, 1e-12));
    assert_true(fabs(g.blocks - 15.49) < 0.005);
    assert_true(near(g.blocks, 1 / (2.7725887222 - 2.7080502011), 1e-8));
    assert_true(near(g.frames, g.blocks * 1920000, 1e-12));
    assert_true(near(g.per_epoch, 100, 0));
    assert_true(near(g.steps, 15, 1e-12));
}

/* With a block of B frames and a time constant of TC, eta = exp(-B / TC). */
static void test_momentum_follows_from_the_time_constant(void **_)
{
    static const double etas[] = {0.1, 0.5, 0.75, 0.875, 0.9, 0.99};

    (void)_;
    FOR_EACH (i, etas) {
        bm_regime s = sensible();
        bm_gains g;

        s.momentum = etas[i];
        g = bm_gains_of(&s);
        assert_true(near(exp(-s.block_frames / g.frames), etas[i], 1e-12));
    }
}

/* The displacement per block by a constant G, by running the filter. */
static void test_the_steady_gain_is_that_of_the_filter(void **_)
{
    static const double settings[][2] = {
        {0, 1}, {0.5, 1}, {0.75, 0.5}, {0.9, 0.7}, {0.9375, 1}};

    (void)_;
    FOR_EACH (i, settings)
        for (int nesterov = 0; nesterov < 2; nesterov++) {
            bm_filter f = {.momentum = settings[i][0],
                           .rate = settings[i][1],
                           .nesterov = nesterov != 0};
            bm_regime s = sensible();
            float x = 0, model = 0, delta = 0, first = 0, before = 0;

            s.momentum = f.momentum;
            s.rate = f.rate;
            for (int block = 0; block < 400; block++) {
                x = 1;
                before = model;
                bm_filter_block(&f, 1, &x, &model, &delta, &x);
                first = block == 0 ? model : first;
            }
            assert_true(near(first, bm_gains_of(&s).block, 1e-6));
            assert_true(near(model - before, bm_gains_of(&s).steady, 1e-3));
        }
}

static void test_without_momentum_the_time_constant_is_zero(void **_)
{
    bm_regime s = sensible();
    bm_gains g;

    (void)_;
    s.momentum = 0;
    s.rate = 0.5;
    g = bm_gains_of(&s);
    assert_true(g.block == 0.5 && g.steady == 0.5);
    assert_true(g.blocks == 0 && g.frames == 0);
}

/* The plan divides 1000 frames into round(1000 / 300) = 3 blocks of 333.3. */
static void test_blocks_per_epoch_are_rounded(void **_)
{
    bm_regime s = sensible();
    bm_gains g;

    (void)_;
    s.workers = 2;
    s.epoch_frames = 1000;
    s.block_frames = 300;
    s.batch_frames = 50;
    g = bm_gains_of(&s);
    assert_true(g.per_epoch == 3);
    assert_true(near(g.steps, 1000. / 3 / 2 / 50, 1e-12));
    s.block_frames = 5000;
    assert_true(bm_gains_of(&s).per_epoch == 1);
}

/* ---- warnings ----------------------------------------------------------- */

static void test_sensible_settings_have_no_warning(void **_)
{
    bm_regime s = sensible();

    (void)_;
    assert_int_equal(warnings_of(&s).n, 0);
    s.blocks = s.filtered = false; /* an exchange per step: no warnings */
    s.block_frames = s.epoch_frames * 10;
    assert_int_equal(warnings_of(&s).n, 0);
}

/* CNTK warns from an effective zeta of 2 on. */
static void test_a_block_rate_of_two_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.momentum = 0.5; /* steady gain 4, of 16 workers: another warning */
    s.workers = 4;
    s.block_frames = s.epoch_frames / 100;
    s.rate = 1.99;
    assert_int_equal(warnings_of(&s).n, 0);
    s.rate = 2;
    assert_warns(&s, "bmuf.rate = 2 ");
}

/* 1 / (1 - 0.96) = 25 > 1.5 * 16. */
static void test_a_steady_gain_above_the_workers_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.momentum = 0.958; /* 23.8 */
    assert_int_equal(warnings_of(&s).n, 0);
    s.momentum = 0.96;
    assert_warns(&s, "= 25 is large for 16 workers");
    s.momentum = 0; /* that of averaging, for a higher rate */
    assert_int_equal(warnings_of(&s).n, 0);
    s.renamed = true; /* eta is not a setting of [bmuf] */
    s.momentum = 0.96;
    assert_warns(&s, "zeta / (1 - eta) = 25 is large for 16 workers");
}

/* CNTK: unique samples >= TC. With a time constant of 15.49 blocks, 15 blocks
 * of unique data are too few, and 16 are enough; 16 blocks have 12e7 / 16 per
 * worker. */
static void test_a_time_constant_longer_than_an_epoch_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.epoch_frames = 16 * s.block_frames;
    assert_int_equal(warnings_of(&s).n, 0);
    s.epoch_frames = 15 * s.block_frames;
    /* 16 blocks of 1.8e6 / 16 for each worker have 14 steps of 8000 */
    assert_proposes(&s,
                    "time constant of block momentum, 2.97e+07 frames, is "
                    "longer than an epoch, 2.88e+07 frames",
                    "block.frames_per_worker=112500");
    /* A tenth of 20 epochs of 8 blocks is 16 blocks, a tenth of 18 is 14.4;
     * nine blocks in an epoch make it 16.2. */
    s.epoch_frames = 8 * s.block_frames;
    s.epochs = 20;
    assert_int_equal(warnings_of(&s).n, 0);
    s.epochs = 18;
    assert_proposes(&s,
                    "time constant of block momentum, 2.97e+07 frames, is "
                    "longer than a tenth of training, 2.76e+07 frames",
                    "block.frames_per_worker=106666");
}

/* 1 / (1 - 0.9) = 10 steps. */
static void test_too_few_steps_for_local_momentum_warn(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.batch_frames = 12000; /* 10 per block */
    assert_int_equal(warnings_of(&s).n, 0);
    s.batch_frames = 12500; /* 9.6 */
    /* 12e6 frames of a worker are 96 times ten steps; two blocks of margin */
    assert_proposes(&s,
                    "sgd.momentum = 0.9 needs 10 steps to take effect, but is "
                    "reset every 9.6",
                    "block.frames_per_worker=127659");
    s.block_by = BM_BLOCK_BY_TOTAL;
    assert_proposes(&s, "reset every 9.6", "block.frames_total=2042544");
    s.block_by = BM_BLOCK_BY_STEPS;
    assert_proposes(&s, "reset every 9.6", "block.steps=10");
    s.epoch_frames = 355 * 16 * 12500.0; /* 10 steps make 36 blocks of 9.86 */
    s.block_frames = 16 * 9.6 * 12500;
    assert_proposes(&s, "reset every 9.6", "block.steps=11");
    s.block_frames = 16 * 10 * 12500.0;
    assert_int_equal(warnings_of(&s).n, 0);
    s = sensible();
    s.batch_frames = 12500;
    s.block_by = BM_BLOCK_BY_STEPS;
    s.adam = true;
    assert_proposes(&s, "sgd.beta1 = 0.9 needs 10 steps to take effect",
                    "block.steps=10");
    s.reset = false;
    assert_int_equal(warnings_of(&s).n, 0);
    s = sensible(); /* 15 per block */
    s.block_by = BM_BLOCK_BY_STEPS;
    s.accumulate = 2; /* mini-batches of an update */
    assert_proposes(&s, "needs 20 steps to take effect, but is reset every 15",
                    "block.steps=20");
}

/* Douillard et al.: AdamW as the local update; workers keep its moments. */
/* ESPnet counts warm-up in steps. */
static void test_a_warm_up_as_long_as_training_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.warmup = 9.5;
    assert_int_equal(warnings_of(&s).n, 0);
    s.warmup = 10;
    assert_warns(&s, "schedule.warmup = 10 epochs is not shorter");
    s.blocks = false; /* strategy ssgd, for one */
    s.warmup = 15000;
    assert_warns(&s, "given in epochs, not in steps");
}

/* 100 blocks in an epoch, each with one learning rate. */
static void test_a_warm_up_within_a_block_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.warmup = 0.02;
    assert_int_equal(warnings_of(&s).n, 0);
    s.warmup = 0.005;
    assert_warns(&s, "schedule.warmup = 0.005 epochs is 0.5 of a block");
}

/* A share has 15 mini-batches. */
static void test_statistics_of_single_sequences_warn(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.batch_statistics = true;
    assert_int_equal(warnings_of(&s).n, 0); /* no lengths are known */
    s.sequence_frames = 5000;
    assert_int_equal(warnings_of(&s).n, 0); /* 1.6 sequences */
    s.sequence_frames = 6000;
    assert_warns(&s, "mini-batches have one sequence: batchnorm");
    s.batch_statistics = false;
    assert_int_equal(warnings_of(&s).n, 0);
}

static void test_more_accumulated_than_a_share_has_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.reset = false;
    s.accumulate = 15;
    assert_int_equal(warnings_of(&s).n, 0);
    s.accumulate = 16;
    assert_warns(&s, "batch.accumulate = 16 has no more effect than 15");
    s.blocks = false;
    assert_warns(&s, "use longer blocks");
}

static void test_sequences_without_a_text_warn(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.unlabelled = 31;
    assert_warns(&s, "31 sequences of data.train without a text");
}

static void test_a_dev_set_that_is_the_training_set_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    assert_int_equal(warnings_of(&s).n, 0);
    s.dev_is_train = true;
    assert_warns(&s, "data.dev has the same sequences as data.train");
}

static void test_diloco_without_adam_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.diloco = true;
    assert_warns(&s, "set sgd.update = adamw and sgd.local_state = keep");
    s.adam = true;
    assert_warns(&s, "moments; set sgd.local_state = keep");
    s.reset = false;
    assert_int_equal(warnings_of(&s).n, 0);
}

static void test_uneven_shares_warn(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.balance = 0.8;
    assert_int_equal(warnings_of(&s).n, 0);
    s.balance = 0.79;
    assert_warns(&s, "workers are busy 79 % of the time");
    assert_warns(&s, "sequences are long compared with a share of 120000 "
                     "frames; take longer blocks");
}

/* CNTK's issue 2189: workers that exchanged once per epoch. 16 blocks are as
 * long as the time constant. */
static void test_one_block_per_epoch_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.epochs = 100;
    s.momentum = 0;
    s.filtered = false; /* model averaging */
    s.block_frames = s.epoch_frames;
    assert_proposes(&s, "an epoch is one block",
                    "block.frames_per_worker=6000000"); /* 192e6 / 32 */
    s.workers = 1; /* one worker exchanges nothing */
    assert_int_equal(warnings_of(&s).n, 0);
}

/* 1 / (1 - 15/16) = 16 blocks. */
static void test_training_too_short_for_momentum_warns(void **_)
{
    bm_regime s = sensible();
    received t;

    (void)_;
    s.epochs = 1;
    s.block_frames = s.epoch_frames / 15;
    t = warnings_of(&s);
    assert_non_null(strstr(t.text, "15 blocks in 1 epoch, before a block "
                                   "momentum of 0.9375 has had its effect, "
                                   "which takes 16\n"));
    assert_non_null(strstr(t.text, "block.frames_per_worker=750000\n"));
    s.block_frames = s.epoch_frames / 16;
    assert_int_equal(warnings_of(&s).n, 0);
    s.workers = 10; /* 1 / (1 - 0.9) is more than 10 in doubles */
    s.momentum = 0.9;
    s.block_frames = s.epoch_frames / 10;
    assert_int_equal(warnings_of(&s).n, 0);
}

static void test_a_share_below_a_mini_batch_warns(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.local_momentum = 0;
    s.batch_frames = 120000;
    assert_int_equal(warnings_of(&s).n, 0);
    s.batch_frames = 240000; /* 50 mini-batches of a worker, in 48 blocks */
    assert_proposes(&s, "a worker's share of a block is 0.5 of a mini-batch",
                    "block.frames_per_worker=250000");
}

/* Three minutes of speech for 16 workers: blocks for momentum and mini-batches
 * of several sequences do not go together. */
static void test_a_small_set_gets_one_proposal(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.epochs = 2;
    s.epoch_frames = 18000;
    s.sequence_frames = 100;
    s.batch_frames = 1600;
    s.batch_in_sequences = true;
    s.block_frames = 16 * 320;
    assert_non_null(strstr(warnings_of(&s).text,
                           "these settings avoid the warnings about blocks: "));
}

/* Its settings cannot be changed any more. */
static void test_a_run_that_has_begun_gets_no_proposal(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.local_momentum = 0;
    s.batch_frames = 240000;
    assert_int_equal(warnings_of(&s).n, 2);
    s.begun = true;
    assert_warns(&s, "a worker's share of a block is 0.5 of a mini-batch");
}

/* Settings that go with the others: no mean of local states where models are
 * exchanged in parts, and no fewer workers than block.workers names. */
static void test_what_is_proposed_goes_with_the_other_settings(void **_)
{
    bm_regime s = sensible();

    (void)_;
    s.epochs = 100; /* 16 workers have 4 mini-batches each */
    s.momentum = 0;
    s.filtered = false;
    s.batch_frames = 8000;
    s.batch_in_sequences = true;
    s.sequence_frames = 8000;
    s.epoch_frames = 16 * 4 * 8000.;
    s.block_frames = s.epoch_frames / 4;
    assert_non_null(
        strstr(warnings_of(&s).text, " --set sgd.local_state=average"));
    s.in_parts = true;
    assert_null(strstr(warnings_of(&s).text, "sgd.local_state=average"));
    assert_non_null(strstr(warnings_of(&s).text, " --set job.workers="));
    s.some_workers = true;
    assert_non_null(strstr(warnings_of(&s).text, " --set block.workers="));
    assert_null(strstr(warnings_of(&s).text, "job.workers"));
}

/* The number after `words` in a text; 0: none. */
static double proposed(const received *t, const char *words)
{
    const char *at = strstr(t->text, words);

    return at != NULL ? strtod(at + strlen(words), NULL) : 0;
}

/* bmuf.momentum = cntk */
static double of_cntk(const bm_regime *s, int workers, double block_frames)
{
    (void)s;
    (void)block_frames;
    return 1 - 1. / workers;
}

/* Sets what the last warning proposes. */
static void follow(bm_regime *s, const received *t)
{
    double workers = proposed(t, "job.workers=");
    double frames = proposed(t, "batch.frames=");
    double sequences = proposed(t, "batch.sequences=");

    if (workers > 0)
        s->workers = (int)workers;
    if (s->filtered && s->momentum_with != NULL)
        s->momentum = of_cntk(s, s->workers, 0);
    if (frames > 0)
        s->batch_frames = frames;
    if (sequences > 0)
        s->batch_frames = sequences * s->sequence_frames;
    if (strstr(t->text, "sgd.local_state=average") != NULL)
        s->reset = false;
    if (s->block_by == BM_BLOCK_BY_TOTAL)
        s->block_frames = proposed(t, "frames_total=");
    else if (s->block_by == BM_BLOCK_BY_STEPS)
        s->block_frames =
            proposed(t, "block.steps=") * s->batch_frames * s->workers;
    else
        s->block_frames = proposed(t, "frames_per_worker=") * s->workers;
    assert_true(s->block_frames > 0);
}

/* Nothing is left to warn of, once what is proposed has been set. */
static void test_what_is_proposed_leaves_no_warning(void **_)
{
    bm_rng rng = bm_rng_make(3, "advice", 0);
    int proposals = 0, hopeless = 0;

    (void)_;
    for (int i = 0; i < 20000; i++) {
        bm_regime s = sensible();
        received t = {0};

        s.workers = 1 + (int)bm_rng_below(&rng, 16);
        s.momentum = of_cntk(&s, s.workers, 0);
        s.momentum_with = i % 11 != 0 ? of_cntk : NULL;
        s.filtered = i % 4 != 0;
        s.momentum *= s.filtered;
        s.epochs = 1 + (long)bm_rng_below(&rng, 5);
        s.sequence_frames = 20 + (double)bm_rng_below(&rng, 300);
        s.batch_frames =
            s.sequence_frames * (double)(1 + bm_rng_below(&rng, 30));
        s.batch_in_sequences = i % 2 == 0;
        s.block_by = i % 3 == 0   ? BM_BLOCK_BY_STEPS
                     : i % 5 == 0 ? BM_BLOCK_BY_TOTAL
                                  : BM_BLOCK_BY_WORKER;
        s.epoch_frames = s.batch_frames * (1 + 400 * bm_rng_uniform(&rng));
        s.block_frames = s.epoch_frames * bm_rng_uniform(&rng) + 1;
        s.batch_statistics =
            i % 7 == 0 && s.batch_frames >= 1.5 * s.sequence_frames;
        s.accumulate = i % 13 == 0 ? (double)bm_rng_below(&rng, 5) : 0;
        t = warnings_of(&s);
        if (t.n == 0 || strstr(t.text, "batch.accumulate") != NULL)
            continue;
        if (strstr(t.text, "no block size avoids the warnings about blocks") !=
            NULL) {
            hopeless++;
            assert_true(s.epoch_frames <
                        fmax(s.accumulate, 1) *
                            ((s.batch_statistics ? 6 : 3) * s.sequence_frames +
                             s.batch_frames));
            continue;
        }
        follow(&s, &t);
        if (warnings_of(&s).n > 0)
            fail_msg("%s\nset, still leaves\n%s", t.text, warnings_of(&s).text);
        proposals++;
    }
    assert_true(proposals > 1000);
    print_message("%d proposals, %d without\n", proposals, hopeless);
}

/* The tuner compares the rules that two regimes break, whatever the numbers. */
static void test_each_rule_has_a_bit(void **_)
{
    bm_regime fine = sensible(), fast = sensible(), faster = sensible(),
              late = sensible();
    unsigned broken = 0;
    received t = {0};

    (void)_;
    fast.rate = 2, fast.momentum = 0.875;
    faster.rate = 3, faster.momentum = 0.8125;
    late.epoch_frames = 10 * late.block_frames;
    assert_int_equal(bm_advise(&fine, 1, listen, &t), 0);
    broken = bm_advise(&fast, 1, listen, &t);
    assert_int_not_equal(broken, 0);
    assert_int_equal(bm_advise(&faster, 1, listen, &t), broken);
    assert_int_not_equal(bm_advise(&late, 1, listen, &t), 0);
    assert_int_equal(bm_advise(&late, 1, listen, &t) & broken, 0);
}

static received warnings_of_two(const bm_regime parts[2])
{
    received t = {0};

    bm_advise(parts, 2, listen, &t);
    return t;
}

/* Each rule once, with the epoch that its part begins at; the blocks that momentum
 * has are those of both parts; a proposal is for all workers. */
static void test_parts_of_training_are_judged_together(void **_)
{
    bm_regime parts[2] = {sensible(), sensible()};
    received t;

    (void)_;
    for (int i = 0; i < 2; i++) {
        parts[i].some_workers = parts[i].workers_change = true;
        parts[i].epochs = 4;
    }
    parts[0].workers = 1;
    parts[0].block_frames = parts[0].epoch_frames / 2;
    parts[0].momentum = 0.9; /* takes 10 blocks: 106, not 4 epochs of 2 */
    parts[0].lasts = 3;
    parts[1].from = 3;
    parts[1].lasts = 1;
    assert_true(bm_most_workers(parts, 2) == &parts[1]);
    assert_int_equal(warnings_of_two(parts).n, 0);

    parts[1].batch_frames = 60000; /* two of a worker's share */
    t = warnings_of_two(parts);
    assert_int_equal(t.n, 2);
    assert_int_equal(
        strncmp(t.text, "after 3 epochs: sgd.momentum = 0.9 needs 10", 43), 0);
    assert_non_null(strstr(t.text, "\nthese settings avoid the warnings"));
    assert_null(strstr(t.text, "workers="));

    parts[0].batch_frames = parts[0].block_frames / 2; /* the same in both */
    t = warnings_of_two(parts);
    assert_int_equal(strncmp(t.text, "sgd.momentum = 0.9 needs 10", 27), 0);
    assert_null(strstr(strstr(t.text, "needs 10") + 1, "needs 10"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_constant_of_sixteen_workers),
        cmocka_unit_test(test_momentum_follows_from_the_time_constant),
        cmocka_unit_test(test_the_steady_gain_is_that_of_the_filter),
        cmocka_unit_test(test_without_momentum_the_time_constant_is_zero),
        cmocka_unit_test(test_blocks_per_epoch_are_rounded),
        cmocka_unit_test(test_sensible_settings_have_no_warning),
        cmocka_unit_test(test_a_block_rate_of_two_warns),
        cmocka_unit_test(test_a_steady_gain_above_the_workers_warns),
        cmocka_unit_test(test_a_time_constant_longer_than_an_epoch_warns),
        cmocka_unit_test(test_too_few_steps_for_local_momentum_warn),
        cmocka_unit_test(test_a_warm_up_as_long_as_training_warns),
        cmocka_unit_test(test_a_warm_up_within_a_block_warns),
        cmocka_unit_test(test_statistics_of_single_sequences_warn),
        cmocka_unit_test(test_more_accumulated_than_a_share_has_warns),
        cmocka_unit_test(test_sequences_without_a_text_warn),
        cmocka_unit_test(test_a_dev_set_that_is_the_training_set_warns),
        cmocka_unit_test(test_diloco_without_adam_warns),
        cmocka_unit_test(test_uneven_shares_warn),
        cmocka_unit_test(test_one_block_per_epoch_warns),
        cmocka_unit_test(test_training_too_short_for_momentum_warns),
        cmocka_unit_test(test_a_share_below_a_mini_batch_warns),
        cmocka_unit_test(test_a_small_set_gets_one_proposal),
        cmocka_unit_test(test_a_run_that_has_begun_gets_no_proposal),
        cmocka_unit_test(test_what_is_proposed_goes_with_the_other_settings),
        cmocka_unit_test(test_what_is_proposed_leaves_no_warning),
        cmocka_unit_test(test_each_rule_has_a_bit),
        cmocka_unit_test(test_parts_of_training_are_judged_together),
    };
    return RUN_GROUP("advice", tests);
}

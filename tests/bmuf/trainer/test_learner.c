/*
 * A model and a reader as a task: the samples of each mini-batch, against the
 * plan and the lengths of the corpus, and the mean that they weight.
 */
#include "bmuf/trainer/learner.h"
#include "bmuf/trainer/trainer.h"
#include "tests/support/datasets.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks of 90 frames for 5 workers: shares are uneven, some have no data. */
enum { N = 24, WORKERS = 5, STRIDE = 3 };
static const double rate = 0.05;
static bm_comm *comm;

static const bm_plan_settings plan = {
    .sequences = 3, .order = BM_ORDER_RANDOM, .buckets = 2, .frames_total = 90};

typedef struct fixture {
    char *directory;
    bm_dataset *d;
    bm_model *model;
    bm_reader *reader;
    bm_learner *learner;
    bm_task task;
} fixture;

/* The corpus in a directory of its own. */
static char *make_data(bool per_frame)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "c", N);

    c.meta.per_frame = per_frame;
    corpus_write(&c);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    return directory;
}

static void start_with(fixture *f, const char *loss, const char *infeasible,
                       const bm_plan_settings *cut)
{
    bool per_frame = strcmp(loss, "cross_entropy") == 0;
    bm_model_settings set = {per_frame ? "linear" : "stack:3 linear", loss,
                             infeasible};
    bm_model_shape shape = {CORPUS_D, 5, WORKERS};
    bm_reader_settings reading = {.plan = *cut,
                                  .workers = WORKERS,
                                  .first = 0,
                                  .last = WORKERS,
                                  .seed = 3};
    bm_position first = {0, 0};

    f->directory = make_data(per_frame);
    assert_ok(bm_dataset_open(&f->d, f->directory));
    assert_ok(bm_model_new(&f->model, &set, &shape, cpu, 7));
    assert_ok(bm_reader_open(&f->reader, f->d, cpu, &reading, first));
    assert_ok(bm_learner_open(&f->learner, f->model, f->reader, 3, 0, WORKERS));
    f->task = bm_learner_task(f->learner);
}

static void start(fixture *f, const char *loss, const char *infeasible)
{
    start_with(f, loss, infeasible, &plan);
}

static void end(fixture *f)
{
    bm_learner_close(f->learner);
    bm_reader_close(f->reader);
    bm_model_free(f->model);
    bm_dataset_close(f->d);
    corpus_remove(f->directory);
}

/* CTC needs a frame for each label and one between equal neighbours. */
static bool fits(int64_t id)
{
    int32_t labels[CORPUS_LABELS];
    size_t n = corpus_labels((size_t)id, labels), needed = n;

    for (size_t i = 1; i < n; i++)
        needed += labels[i] == labels[i - 1];
    return (corpus_frames((size_t)id) + STRIDE - 1) / STRIDE >= needed;
}

static double every_sequence(int64_t id)
{
    (void)id;
    return 1;
}

static double those_that_fit(int64_t id)
{
    return fits(id);
}

static double frames_of(int64_t id)
{
    return (double)corpus_frames((size_t)id);
}

/* The sum of `of` over a mini-batch of the cut; -1: there is none. */
static double count(const bm_cut *cut, int64_t step, double (*of)(int64_t))
{
    size_t from =
        step > 0 && (size_t)step <= cut->n_batches ? cut->ends[step - 1] : 0;
    double sum = 0;

    if ((size_t)step >= cut->n_batches)
        return -1;
    for (size_t i = from; i < cut->ends[step]; i++)
        sum += of(cut->sequences[i]);
    return sum;
}

/* Frames of a mini-batch of the cut, padding included. */
static double padded(const bm_cut *cut, int64_t step)
{
    size_t from = step > 0 ? cut->ends[step - 1] : 0;
    double longest = 0;

    for (size_t i = from; i < cut->ends[step]; i++)
        longest = fmax(longest, frames_of(cut->sequences[i]));
    return longest * (double)(cut->ends[step] - from);
}

/* Counts over all shares. */
typedef struct seen {
    int empty, ragged; /* shares without data; mini-batches that are not full */
    double frames, padded;
} seen;

/* One share: samples of every step, and past its end. */
static double check_share(fixture *f, const bm_cut *cut, int worker,
                          int64_t steps, double (*of)(int64_t), seen *s)
{
    bm_params *p = bm_model_params(f->model);
    double total = 0;

    for (int64_t step = 0; step < steps; step++) {
        double n = -1, expected = count(cut, step, of);

        p->g[0] = 0x1p20f;
        assert_ok(f->task.gradient(f->task.self, p, worker, step, &n));
        assert_ok(bm_sync(cpu));
        assert_true((p->g[0] == 0x1p20f) == (expected < 0));
        assert_true(n == fmax(expected, 0));
        total += n;
        if (expected >= 0) {
            double sequences = count(cut, step, every_sequence);
            s->ragged += sequences < (double)plan.sequences;
            s->frames += count(cut, step, frames_of);
            s->padded += padded(cut, step);
        }
    }
    s->empty += cut->n_batches == 0;
    return total;
}

/* Two epochs of all shares; `samples`: the score's field that counts them. */
static void check_counts(fixture *f, double (*of)(int64_t),
                         double (*samples)(const bm_score *))
{
    bm_passed passed = {0};
    seen s = {0};
    double frames = 0;

    for (int64_t epoch = 0; epoch < 2; epoch++) {
        bm_plan *p = NULL;
        bm_cut cut = {0};
        int64_t steps = 0;

        assert_ok(bm_plan_new(&p, f->d, &plan, WORKERS, 3, epoch));
        assert_true(bm_plan_blocks(p) > 2);
        for (int64_t b = 0; b < bm_plan_blocks(p); b++) {
            assert_ok(
                f->task.block(f->task.self, (bm_position){epoch, b}, &steps));
            for (int k = 0; k < WORKERS; k++) {
                bm_score score;
                double n = 0, batches = 0;

                assert_ok(bm_plan_cut(p, b, k, &cut));
                n = check_share(f, &cut, k, steps, of, &s);
                assert_ok(f->task.score(f->task.self, k, &score, &batches));
                assert_true(batches == (double)cut.n_batches);
                assert_true(samples(&score) == n);
            }
        }
        bm_cut_free(&cut);
        bm_plan_free(p);
    }
    assert_true(s.empty > 0 && s.ragged > 0);
    for (int64_t id = 0; id < N; id++)
        frames += 2 * frames_of(id);
    assert_true(s.frames == frames);
    passed = bm_learner_passed(f->learner);
    assert_true(passed.frames == frames && passed.padded == s.padded);
    assert_true(passed.left == 0);
    passed = bm_learner_passed(f->learner);
    assert_true(passed.frames == 0 && passed.padded == 0);
}

static double sequences(const bm_score *s)
{
    return s->sequences;
}

static double frames(const bm_score *s)
{
    return s->frames;
}

static void test_sequences_are_counted_for_ctc(void **state)
{
    fixture f;

    (void)state;
    start(&f, "ctc", "skip");
    check_counts(&f, those_that_fit, sequences);
    end(&f);
}

static void test_infeasible_sequences_may_count_with_loss_zero(void **state)
{
    fixture f;

    (void)state;
    start(&f, "ctc", "zero");
    check_counts(&f, every_sequence, sequences);
    end(&f);
}

static void test_frames_are_counted_for_cross_entropy(void **state)
{
    fixture f;

    (void)state;
    start(&f, "cross_entropy", "error"); /* all sequences are feasible */
    check_counts(&f, frames_of, frames);
    end(&f);
}

/* The first infeasible sequence of a mini-batch; -1: there is none. */
static int64_t infeasible_of(const bm_cut *cut, size_t step)
{
    for (size_t i = step > 0 ? cut->ends[step - 1] : 0; i < cut->ends[step];
         i++)
        if (!fits(cut->sequences[i]))
            return cut->sequences[i];
    return -1;
}

/* A mini-batch with one fails and names it; others do not fail. */
static void test_infeasible_sequences_may_be_errors(void **state)
{
    bm_cut cut = {0};
    bm_plan *p = NULL;
    int64_t steps = 0;
    int refused = 0;
    fixture f;

    (void)state;
    start(&f, "ctc", "error");
    assert_ok(bm_plan_new(&p, f.d, &plan, WORKERS, 3, 0));
    assert_ok(f.task.block(f.task.self, (bm_position){0, 0}, &steps));
    for (int k = 0; k < WORKERS; k++) {
        assert_ok(bm_plan_cut(p, 0, k, &cut));
        for (size_t step = 0; step < cut.n_batches; step++) {
            int64_t id = infeasible_of(&cut, step);
            double n = 0;
            char name[32];
            bm_status status = f.task.gradient(
                f.task.self, bm_model_params(f.model), k, (int64_t)step, &n);

            snprintf(name, sizeof name, " c/%lld: ", (long long)id);
            assert_int_equal(status, id < 0 ? BM_OK : BM_ERR_FORMAT);
            assert_true(id < 0 || strstr(bm_last_error(), name) != NULL);
            refused += id >= 0;
        }
    }
    assert_true(refused > 0);
    bm_cut_free(&cut);
    bm_plan_free(p);
    end(&f);
}

/* ---- the weighted mean --------------------------------------------------- */

/* Each worker by itself, from `start`: w - start, and its samples. */
static double learn_alone(fixture *f, int worker, int64_t steps,
                          const float *start, double *change)
{
    bm_params *p = bm_model_params(f->model);
    double samples = 0;

    memcpy(p->w, start, p->n * sizeof *p->w);
    for (int64_t step = 0; step < steps; step++) {
        double n = 0;

        assert_ok(f->task.gradient(f->task.self, p, worker, step, &n));
        assert_ok(bm_sync(cpu));
        for (size_t i = 0; i < p->n && n > 0; i++)
            p->w[i] -= (float)rate * p->g[i];
        samples += n;
    }
    for (size_t i = 0; i < p->n; i++)
        change[i] = (double)p->w[i] - start[i];
    return samples;
}

/* The mean of their changes in a block, weighted by samples, and plain. */
static void mean_change(fixture *f, int64_t block, const float *start,
                        double *weighted, double *plain)
{
    size_t n = bm_model_params(f->model)->n;
    double *change = calloc(n, sizeof *change), total = 0;
    int64_t steps = 0;

    assert_non_null(change);
    memset(weighted, 0, n * sizeof *weighted);
    memset(plain, 0, n * sizeof *plain);
    assert_ok(f->task.block(f->task.self, (bm_position){0, block}, &steps));
    for (int k = 0; k < WORKERS; k++) {
        double samples = learn_alone(f, k, steps, start, change);

        for (size_t i = 0; i < n; i++) {
            weighted[i] += samples * change[i];
            plain[i] += change[i] / WORKERS;
        }
        total += samples;
    }
    for (size_t i = 0; i < n; i++)
        weighted[i] /= total;
    free(change);
}

static double distance(const double *x, const double *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sqrt(sum);
}

static void check_mean(const char *loss)
{
    static const char *const settings[] = {
        "job.workers=5", "sgd.momentum=0", "sgd.clip=0",
        "train.strategy=average", "train.diverged=0"};
    fixture real, alone;
    bm_trainer *trainer = NULL;
    bm_config *config = NULL;
    bm_block_report report;
    bm_params *p = NULL;
    size_t n = 0;

    start(&real, loss, "skip");
    start(&alone, loss, "skip");
    p = bm_model_params(real.model);
    n = p->n;
    assert_ok(bm_config_new(&config));
    FOR_EACH (i, settings)
        assert_ok(bm_config_set(config, settings[i]));
    assert_ok(bm_trainer_open(&trainer, config, comm, p, &real.task));
    for (int64_t b = 0; b < bm_reader_blocks(real.reader); b++) {
        double *x = calloc(3 * n, sizeof *x);
        float *before = calloc(n, sizeof *before);

        assert_true(x != NULL && before != NULL);
        memcpy(before, p->w, n * sizeof *before);
        assert_ok(bm_trainer_block(trainer, rate, &report));
        mean_change(&alone, b, before, x, x + n);
        for (size_t i = 0; i < n; i++)
            x[2 * n + i] = (double)p->w[i] - before[i];
        assert_true(distance(x + 2 * n, x, n) < 1e-5);
        assert_true(distance(x + 2 * n, x + n, n) > 1e-3);
        free(x);
        free(before);
    }
    bm_trainer_close(trainer);
    bm_config_free(config);
    end(&alone);
    end(&real);
}

static void test_the_mean_is_weighted_by_samples(void **state)
{
    (void)state;
    check_mean("ctc");
    check_mean("cross_entropy");
}

/* ---- syncs of a block ---------------------------------------------------- */

static int waits;
static const bm_backend_ops *real;

static void wait_and_count(bm_backend *be)
{
    waits++;
    real->sync(be);
}

/* How often a block calls bm_sync, with mini-batches of so many sequences. */
static int waits_of_a_block(long sequences, int64_t *steps)
{
    bm_plan_settings cut = plan;
    bm_backend_ops counting = *cpu->ops;
    bm_block_report report;
    bm_config *config = NULL;
    bm_trainer *trainer = NULL;
    fixture f;

    cut.sequences = sequences;
    start_with(&f, "ctc", "skip", &cut);
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, "job.workers=5"));
    assert_ok(bm_config_set(config, "sgd.local_state=average"));
    assert_ok(bm_config_set(config, "train.diverged=0"));
    assert_ok(bm_trainer_open(&trainer, config, comm, bm_model_params(f.model),
                              &f.task));
    assert_ok(f.task.block(f.task.self, (bm_position){0, 0}, steps));
    real = cpu->ops;
    counting.sync = wait_and_count;
    cpu->ops = &counting;
    waits = 0;
    assert_ok(bm_trainer_block(trainer, 1e-4, &report));
    cpu->ops = real;
    bm_trainer_close(trainer);
    bm_config_free(config);
    end(&f);
    return waits;
}

static void test_number_of_mini_batches_adds_no_syncs(void **state)
{
    int64_t few = 0, many = 0;
    int of_few = 0, of_many = 0;

    (void)state;
    of_few = waits_of_a_block(6, &few);
    of_many = waits_of_a_block(1, &many);
    assert_true(many > few);
    assert_true(of_few > 0);
    assert_int_equal(of_many, of_few);
}

static int set_up(void **state)
{
    assert_ok(bm_comm_open_alone(&comm));
    return open_cpu(state);
}

static int tear_down(void **state)
{
    bm_comm_close(comm);
    return close_cpu(state);
}

/* ---- several mini-batches in an update ------------------------------------ */

/* In the order of the file, three mini-batches of two sequences, of which the
 * last may have fewer, are one of six. */
static void check_accumulated(const char *loss)
{
    static const bm_plan_settings whole = {.sequences = 6,
                                           .order = BM_ORDER_FILE,
                                           .buckets = 1,
                                           .frames_total = 200},
                                  parts = {.sequences = 2,
                                           .order = BM_ORDER_FILE,
                                           .buckets = 1,
                                           .frames_total = 200};
    fixture one, many;
    int64_t steps[2] = {0, 0};
    int compared = 0;

    start_with(&one, loss, "skip", &whole);
    start_with(&many, loss, "skip", &parts);
    assert_ok(bm_learner_accumulate(many.learner, 3));
    for (int64_t b = 0; b < bm_reader_blocks(one.reader); b++) {
        bm_position at = {0, b};

        assert_ok(one.task.block(one.task.self, at, &steps[0]));
        assert_ok(many.task.block(many.task.self, at, &steps[1]));
        assert_int_equal(steps[0], steps[1]);
        for (int k = 0; k < WORKERS; k++) {
            bm_params *p = bm_model_params(one.model);
            bm_params *q = bm_model_params(many.model);
            bm_score sums[2];
            double batches[2];

            assert_int_equal(one.task.steps(one.task.self, k),
                             many.task.steps(many.task.self, k));
            for (int64_t step = 0; step <= steps[0]; step++) {
                double n = -1, m = -1;

                assert_ok(one.task.gradient(one.task.self, p, k, step, &n));
                assert_ok(many.task.gradient(many.task.self, q, k, step, &m));
                assert_ok(bm_sync(cpu));
                assert_true(n == m);
                for (size_t i = 0; i < p->n && n > 0; i++)
                    assert_true(near(p->g[i], q->g[i], 1e-5));
                compared += n > 2;
            }
            assert_ok(one.task.score(one.task.self, k, &sums[0], &batches[0]));
            assert_ok(
                many.task.score(many.task.self, k, &sums[1], &batches[1]));
            assert_true(batches[0] == (double)bm_reader_steps(one.reader, k));
            assert_true(batches[1] == (double)bm_reader_steps(many.reader, k));
            assert_true(near(sums[0].loss, sums[1].loss, 1e-4));
            assert_true(sums[0].sequences == sums[1].sequences);
            assert_true(sums[0].skipped == sums[1].skipped);
        }
    }
    assert_true(compared > 3);
    assert_true(bm_learner_passed(one.learner).frames ==
                bm_learner_passed(many.learner).frames);
    end(&one);
    end(&many);
}

static void test_several_mini_batches_make_the_update_of_one(void **state)
{
    (void)state;
    check_accumulated("ctc");
    check_accumulated("cross_entropy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences_are_counted_for_ctc),
        cmocka_unit_test(test_infeasible_sequences_may_count_with_loss_zero),
        cmocka_unit_test(test_frames_are_counted_for_cross_entropy),
        cmocka_unit_test(test_infeasible_sequences_may_be_errors),
        cmocka_unit_test(test_the_mean_is_weighted_by_samples),
        cmocka_unit_test(test_number_of_mini_batches_adds_no_syncs),
        cmocka_unit_test(test_several_mini_batches_make_the_update_of_one),
    };
    return cmocka_run_group_tests_name("learner", tests, set_up, tear_down);
}

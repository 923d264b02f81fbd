/*
 * Whole runs: a configuration trains the same model, bit for bit, on any number
 * of ranks.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Asserts that 1 .. 4 ranks give the same model. */
static void assert_same_on_all_ranks(const char *settings)
{
    char run[16];
    program p;

    remove_run("p1");
    train(&p, "p1", 1, settings);
    assert_ended(&p, 0);
    for (int ranks = 2; ranks <= (short_tests() ? 3 : 4); ranks++) {
        snprintf(run, sizeof run, "p%d", ranks);
        remove_run(run);
        train(&p, run, ranks, settings);
        assert_ended(&p, 0);
        assert_same_model("p1", run);
    }
}

/* Six workers are shared unevenly by four ranks, four by three. */
static void assert_same_for(const char *strategy, const char *sum, int workers)
{
    char settings[256];

    snprintf(settings, sizeof settings,
             "train.strategy=%s; job.sum=%s; job.workers=%d", strategy, sum,
             workers);
    assert_same_on_all_ranks(settings);
}

static void test_bmuf_has_one_result_on_any_ranks(void **state)
{
    (void)state;
    assert_same_for("bmuf", "tree", 4);
    assert_same_for("bmuf", "exact", 6);
}

static void test_averaging_has_one_result_on_any_ranks(void **state)
{
    (void)state;
    assert_same_for("average", "tree", 4);
    assert_same_for("average", "exact", 6);
}

static void test_synchronous_sgd_has_one_result_on_any_ranks(void **state)
{
    (void)state;
    assert_same_for("ssgd", "tree", 4);
    assert_same_for("ssgd", "exact", 6);
}

static void test_batch_statistics_have_one_result_on_any_ranks(void **state)
{
    (void)state;
    assert_same_on_all_ranks("job.workers=5; " NORMALISED);
    if (short_tests())
        return;
    assert_same_on_all_ranks("train.strategy=average; job.sum=exact; "
                             "job.workers=4; " NORMALISED);
    assert_same_on_all_ranks("train.strategy=ssgd; job.workers=4; " NORMALISED);
}

/* Settings that must not, or must, change the model. */
typedef struct variant {
    const char *settings;
    int ranks;
} variant;

static void assert_same_models(const variant *v, size_t n)
{
    program p;

    for (size_t i = 0; i < n; i++) {
        const char *run = i == 0 ? "first" : "other";
        remove_run(run);
        train(&p, run, v[i].ranks, v[i].settings);
        assert_ended(&p, 0);
        if (i > 0)
            assert_same_model("first", run);
    }
}

#define SAME(...)                                                              \
    assert_same_models((const variant[]){__VA_ARGS__},                         \
                       sizeof((const variant[]){__VA_ARGS__}) /                \
                           sizeof(variant))

/* Those without a share change nothing; half of the workers, half of the rate. */
static void test_fewer_workers_train_as_a_smaller_job(void **state)
{
#define STEADY                                                                 \
    "; model.net=blstm:6 linear; data.dev=; schedule.kind=constant; "          \
    "batch.order=file; bmuf.momentum=0.5; block.frames_total=0; block.steps=3"
    static const char *const strategies[] = {"bmuf", "average", "ssgd"};

    (void)state;
    FOR_EACH (i, strategies) {
        char few[256], of_many[256];

        snprintf(few, sizeof few,
                 "train.strategy=%s; job.workers=2; train.rate=0.25" STEADY,
                 strategies[i]);
        snprintf(of_many, sizeof of_many,
                 "train.strategy=%s; job.workers=4; block.workers=2; "
                 "train.rate=0.5" STEADY,
                 strategies[i]);
        SAME({few, 1}, {of_many, 1}, {of_many, 3});
    }
}

static void test_more_workers_later_have_one_result_on_any_ranks(void **state)
{
    (void)state;
    assert_same_on_all_ranks("block.workers=2@0 4@1; sgd.local_state=keep");
    assert_same_on_all_ranks("block.workers=3@0 5@1; job.workers=5; "
                             "train.strategy=ssgd; job.sum=exact");
}

static void test_overlap_has_the_result_without_it(void **state)
{
    (void)state;
    SAME({"train.strategy=ssgd; " NORMALISED, 1},
         {"train.strategy=ssgd; ssgd.overlap=layer; " NORMALISED, 3},
         {"train.strategy=ssgd; ssgd.overlap=merged; " NORMALISED, 2});
}

static void test_runs_are_reproducible(void **state)
{
    (void)state;
    SAME({"", 1}, {"", 1}, {"", 3}, {"", 3});
    SAME({"train.strategy=ssgd", 3}, {"train.strategy=ssgd", 3});
    if (short_tests())
        return;
    SAME({"job.sum=exact", 3}, {"job.sum=exact", 3});
    SAME({"train.strategy=average", 3}, {"train.strategy=average", 3});
    SAME({"train.strategy=average; job.sum=exact", 3},
         {"train.strategy=average; job.sum=exact", 3});
    SAME({"train.strategy=ssgd; job.sum=exact", 3},
         {"train.strategy=ssgd; job.sum=exact", 3});
}

/* |x - y| / |y| of the weights of two runs with different settings. */
static double distance(const variant *one, const variant *other)
{
    const variant *v[] = {one, other};
    char *file[2];
    const float *w[2];
    size_t size[2];
    double sum = 0, norm = 0;

    for (int i = 0; i < 2; i++) {
        uint64_t header = 0;
        program p;

        remove_run("far");
        train(&p, "far", v[i]->ranks, v[i]->settings);
        assert_ended(&p, 0);
        file[i] = slurp(in_folder("far/model.safetensors"), &size[i]);
        memcpy(&header, file[i], sizeof header);
        w[i] = (const float *)(const void *)(file[i] + sizeof header + header);
        size[i] -= sizeof header + header;
    }
    assert_int_equal(size[0], size[1]);
    for (size_t k = 0; k < size[0] / sizeof(float); k++) {
        double x = w[0][k], y = w[1][k];

        sum += (x - y) * (x - y);
        norm += y * y;
    }
    free(file[0]);
    free(file[1]);
    return sqrt(sum / norm);
}

/* With sum = mpi the library orders the sums, so only the bits differ. */
static void test_the_sum_of_mpi_differs_by_rounding_only(void **state)
{
    static const variant tree = {"", 1}, other = {"job.seed=2", 1};
    static const variant mpi[] = {{"job.sum=mpi", 3},
                                  {"job.sum=mpi; job.coordinator=root", 2}};

    (void)state;
    FOR_EACH (i, mpi)
        assert_true(distance(&mpi[i], &tree) < 1e-4);
    assert_true(distance(&other, &tree) > 0.1);
}

static void test_ring_modes_have_one_result_on_any_ranks(void **state)
{
    static const variant tree = {"", 1}, ring = {"job.sum=ring", 1};

    (void)state;
    SAME({"job.sum=ring", 1}, {"job.sum=ring", 3});
    SAME({"train.strategy=ssgd; job.sum=halving", 1},
         {"train.strategy=ssgd; job.sum=halving", 4});
    SAME({"job.sum=hier; job.topology=2x2", 2},
         {"job.sum=hier; job.topology=2x2", 3});
    assert_true(distance(&ring, &tree) < 1e-4);
}

static void test_invalid_topologies_are_rejected(void **state)
{
    program p;

    (void)state;
    train(&p, "grid", 1, "job.sum=hier; job.topology=3x2");
    assert_ended(&p, 78);
    assert_said(&p, "job.topology: the sizes of topology '3x2' multiply to");
    assert_said(&p, "there are 4 workers");
}

static void test_root_and_sharded_coordinators_give_equal_bits(void **s)
{
    (void)s;
    SAME({"", 3}, {"job.coordinator=root", 1}, {"job.coordinator=root", 2},
         {"job.coordinator=root", 3},
         {"job.coordinator=root; job.sum=tree; job.workers=4", 4});
}

#define ADAM "sgd.update=adamw; train.rate=0.002; sgd.local_state="
#define RMS  "sgd.update=rmsprop; sgd.momentum=0.5; sgd.local_state="
#define MUON "sgd.update=muon; sgd.local_state="

static void
test_ranks_change_no_bits_with_kept_and_averaged_local_state(void **state)
{
    (void)state;
    SAME({"sgd.local_state=keep", 1}, {"sgd.local_state=keep", 3});
    SAME({"sgd.local_state=average", 1}, {"sgd.local_state=average", 3});
    SAME({"sgd.local_state=average; job.sum=exact; train.strategy=average", 1},
         {"sgd.local_state=average; job.sum=exact; train.strategy=average", 4});
    SAME({ADAM "keep", 1}, {ADAM "keep", 3});
    SAME({RMS "keep", 1}, {RMS "keep", 3});
    SAME({MUON "keep", 1}, {MUON "keep", 2}, {MUON "keep", 3});
    SAME({ADAM "extrapolate", 1}, {ADAM "extrapolate", 3},
         {ADAM "extrapolate; job.coordinator=root", 2});
}

static void test_rounded_factors_have_one_result_on_any_ranks(void **state)
{
    (void)state;
    SAME({"job.precision=bf16", 1}, {"job.precision=bf16", 2});
}

static void test_sums_of_mini_batches_have_one_result_on_any_ranks(void **state)
{
    (void)state;
    SAME({"batch.accumulate=2", 1}, {"batch.accumulate=2", 3});
}

/* Also of a run that goes on with more ranks. */
static void test_weight_dropout_has_one_result_on_any_ranks(void **state)
{
    static const char whole[] = "job.workers=4; model.net="
                                "blstm:10,weight_dropout:0.3 "
                                "gru:8,weight_dropout:0.2 linear";
    char half[200];
    program p;

    (void)state;
    snprintf(half, sizeof half, "train.epochs=1; %s", whole);
    remove_run("p1");
    remove_run("p3");
    train(&p, "p1", 1, whole);
    assert_ended(&p, 0);
    train(&p, "p3", 2, half);
    assert_ended(&p, 0);
    train(&p, "p3", 3, whole);
    assert_ended(&p, 0);
    assert_same_model("p1", "p3");
}

static void test_synchronous_sgd_of_one_worker_is_local_training(void **state)
{
    (void)state;
    SAME({"train.strategy=local; job.workers=1", 1},
         {"train.strategy=ssgd; job.workers=1", 1},
         {"train.strategy=ssgd; job.workers=1; job.sum=exact", 1});
}

static void test_averaging_is_bmuf_without_momentum(void **state)
{
    (void)state;
    SAME({"train.strategy=average", 2},
         {"train.strategy=bmuf; bmuf.momentum=0; bmuf.rate=1", 2});
}

static void test_augmented_runs_have_one_result_on_any_ranks(void **state)
{
    static const char settings[] =
        "augment.speed=0.8 1 1.2; augment.warp=5; augment.time_masks=2; "
        "augment.frequency_masks=1; augment.noise=0.2; job.workers=4";
    json_t *seen = NULL, *stored = NULL;
    char shorter[400];
    program p;

    (void)state;
    snprintf(shorter, sizeof shorter, "train.epochs=1; %s", settings);
    remove_run("p1");
    remove_run("p3");
    train(&p, "p1", 1, settings);
    assert_ended(&p, 0);
    assert_said(&p, "augmented: speed 0.8 1 1.2, time warping by less than 5 "
                    "frames, noise up to 0.2, 2 time masks of up to 40 frames "
                    "and 20 %, 1 frequency mask of up to 8 of ");
    train(&p, "p3", 3, shorter);
    assert_ended(&p, 0);
    train(&p, "p3", 4, settings); /* goes on */
    assert_ended(&p, 0);
    assert_same_model("p1", "p3");
    seen = last_event("p1", "eval"); /* of what is stored */
    stored =
        parse_json(BMUF("eval", "p1/model.safetensors", "dev", "--json").out);
    assert_string_equal(text(seen, "data"), "dev");
    assert_true(near(number(seen, "loss"), number(stored, "loss"), 1e-6));
    json_decref(seen);
    json_decref(stored);
}

/* Rooms and noise, on ranks that compute some blocks twice, after a stop. */
static void test_noisy_runs_have_one_result_on_any_ranks(void **state)
{
    static const char settings[] =
        "data.train=noisy; augment.reverb=made; augment.noise_sound=white "
        "babble; augment.noise_sound_share=0.8; augment.time_masks=1; "
        "job.workers=4; job.audit=0.5";
    char shorter[400];
    program p;

    (void)state;
    RUN_PROGRAM(&p, "pack", "--audio", "train.jsonl", "--out", "noisy", "--set",
                "shard.unit_frames=60", "--set", "features.mels=12", "--vocab",
                "train", "--set", "shard.samples=yes");
    assert_ended(&p, 0);
    snprintf(shorter, sizeof shorter, "train.epochs=1; %s", settings);
    remove_run("p1");
    remove_run("p3");
    remove_run("quiet");
    train(&p, "p1", 1, settings);
    assert_ended(&p, 0);
    assert_said(&p, "augmented: 50 % in made rooms (0.2:0.8 s), 80 % with "
                    "noise (white babble, 5:20 dB), 1 time mask ");
    train(&p, "p3", 3, shorter);
    assert_ended(&p, 0);
    train(&p, "p3", 4, settings); /* goes on */
    assert_ended(&p, 0);
    assert_same_model("p1", "p3");
    train(&p, "quiet", 1, "data.train=noisy; augment.time_masks=1");
    assert_ended(&p, 0);
    {
        json_t *a = last_event("p1", "end"), *b = last_event("quiet", "end");

        assert_string_not_equal(text(a, "digest"), text(b, "digest"));
        json_decref(a);
        json_decref(b);
    }
    train(&p, "none", 3, "augment.reverb=made"); /* shards without samples */
    assert_ended(&p, 78);
    assert_said(&p, "augment.reverb = made changes recordings, but train/");
    assert_said(&p, "with --set shard.samples=yes");
}

static void test_other_settings_are_other_models(void **state)
{
    static const char *const others[] = {
        "job.seed=2",         "job.workers=6",     "train.strategy=average",
        "bmuf.nesterov=no",   "sgd.clip=1",        "model.net=blstm:12 linear",
        "job.precision=bf16", "augment.noise=0.1", "train.label_smoothing=0.2"};
    program p;

    (void)state;
    remove_run("first");
    train(&p, "first", 1, "");
    assert_ended(&p, 0);
    FOR_EACH (i, others) {
        json_t *a = NULL, *b = NULL;

        remove_run("other");
        train(&p, "other", 1, others[i]);
        assert_ended(&p, 0);
        a = last_event("first", "end");
        b = last_event("other", "end");
        assert_string_not_equal(text(a, "digest"), text(b, "digest"));
        json_decref(a);
        json_decref(b);
    }
}

/* ---- uneven data -------------------------------------------------------- */

/* More threads than cores, and more than a rank is bound to. */
static void test_threads_beyond_cores_are_logged(void **state)
{
    char many[40];
    cpu_set_t all, one;
    program p;

    (void)state;
    snprintf(many, sizeof many, "job.threads=%ld",
             sysconf(_SC_NPROCESSORS_ONLN) + 1);
    remove_run("threads");
    train(&p, "threads", 1, many);
    assert_ended(&p, 0);
    assert_said(&p, " of 1 rank share ");
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2)
        return;
    CPU_ZERO(&one);
    for (size_t i = 0; CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    remove_run("threads");
    train(&p, "threads", 1, "job.threads=2");
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_ended(&p, 0);
    assert_said(&p, "2 threads on 1 core, to which this rank is bound");
}

static void test_workers_without_data_do_not_block_others(void **state)
{
    static const char *const settings[] = {
        "job.workers=6; block.workers=2; train.epochs=7",
        "job.workers=6; block.workers=2; train.strategy=ssgd",
        "job.workers=6; block.workers=2; sgd.local_state=keep"};

    (void)state;
    FOR_EACH (i, settings)
        if (i == 0 || !short_tests())
            assert_same_on_all_ranks(settings[i]);
}

/* At most 3 units for 6 workers. */
static void test_parts_of_units_have_one_result_on_any_ranks(void **state)
{
    (void)state;
    digits_pack("few", 1000, NULL);
    assert_same_on_all_ranks("data.train=few; job.workers=6");
    assert_same_on_all_ranks("data.train=few; job.workers=6; job.sum=exact; "
                             "augment.time_masks=2; augment.time_width=5");
}

static void test_more_ranks_than_workers_are_rejected(void **state)
{
    program p;

    (void)state;
    train(&p, "crowded", 3, "job.workers=2");
    assert_ended(&p, 78);
    assert_said(&p, "3 ranks");
    assert_int_equal(times_said(&p, "bmuf: "), 1);
}

/* ---- configurations -------------------------------------------------------
 */

static void test_a_resolved_configuration_trains_the_same_model(void **state)
{
    static const char note[] = "begins with random weights and the settings of "
                               "first; to go on from its model add --from "
                               "first";
    program p;

    (void)state;
    remove_run("first");
    remove_run("again");
    train(&p, "first", 2,
          "job.workers=3; sgd.momentum=0.8; bmuf.rate=0.9; sgd.nesterov=yes; "
          "schedule.kind=exponential; batch.order=sorted; train.rate=0.0123");
    assert_ended(&p, 0);
    RUN_PROGRAM(&p, "train", "first/config.ini", "--out", "again");
    assert_ended(&p, 0);
    assert_said(&p, note);
    assert_same_model("first", "again");
    RUN_PROGRAM(&p, "train", "first", "--out", "again"); /* it is complete */
    assert_ended(&p, 0);
    assert_not_said(&p, note);
}

static void test_several_ranks_need_a_number_of_workers(void **state)
{
    json_t *start = NULL;
    program p;

    (void)state;
    write_text("bare.ini", "[data]\ntrain = train\ndev = dev\n[model]\nnet = "
                           "blstm:12 linear\n[train]\nepochs = "
                           "4\n[batch]\nsequences = 2\n[block]\n"
                           "frames_per_worker = 300\n");
    RUN_PROGRAM(&p, "train", "bare.ini", "--out", "three", "-n", "3");
    assert_ended(&p, 78);
    assert_said(&p, "job.workers is not set, and there are 3 ranks");
    assert_said(&p, "workers = 3");
    RUN_PROGRAM(&p, "explain", "bare.ini", "-n", "3");
    assert_ended(&p, 78);
    RUN_PROGRAM(&p, "train", "bare.ini", "--out", "three", "-n", "3", "--set",
                "job.workers=3");
    assert_ended(&p, 0);
    start = last_event("three", "start");
    assert_true(number(start, "workers") == 3);
    assert_true(number(start, "ranks") == 3);
    assert_int_equal(count_of(text(start, "placement"), "; "), 2);
    json_decref(start);
    RUN_PROGRAM(&p, "train", "three/config.ini", "--out", "one");
    assert_ended(&p, 0);
    assert_same_model("three", "one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bmuf_has_one_result_on_any_ranks),
        cmocka_unit_test(test_averaging_has_one_result_on_any_ranks),
        cmocka_unit_test(test_synchronous_sgd_has_one_result_on_any_ranks),
        cmocka_unit_test(test_fewer_workers_train_as_a_smaller_job),
        cmocka_unit_test(test_more_workers_later_have_one_result_on_any_ranks),
        cmocka_unit_test(test_overlap_has_the_result_without_it),
        cmocka_unit_test(test_batch_statistics_have_one_result_on_any_ranks),
        cmocka_unit_test(test_runs_are_reproducible),
        cmocka_unit_test(test_the_sum_of_mpi_differs_by_rounding_only),
        cmocka_unit_test(test_ring_modes_have_one_result_on_any_ranks),
        cmocka_unit_test(test_invalid_topologies_are_rejected),
        cmocka_unit_test(test_root_and_sharded_coordinators_give_equal_bits),
        cmocka_unit_test(
            test_ranks_change_no_bits_with_kept_and_averaged_local_state),
        cmocka_unit_test(test_rounded_factors_have_one_result_on_any_ranks),
        cmocka_unit_test(
            test_sums_of_mini_batches_have_one_result_on_any_ranks),
        cmocka_unit_test(test_weight_dropout_has_one_result_on_any_ranks),
        cmocka_unit_test(test_synchronous_sgd_of_one_worker_is_local_training),
        cmocka_unit_test(test_averaging_is_bmuf_without_momentum),
        cmocka_unit_test(test_augmented_runs_have_one_result_on_any_ranks),
        cmocka_unit_test(test_noisy_runs_have_one_result_on_any_ranks),
        cmocka_unit_test(test_other_settings_are_other_models),
        cmocka_unit_test(test_threads_beyond_cores_are_logged),
        cmocka_unit_test(test_workers_without_data_do_not_block_others),
        cmocka_unit_test(test_parts_of_units_have_one_result_on_any_ranks),
        cmocka_unit_test(test_more_ranks_than_workers_are_rejected),
        cmocka_unit_test(test_a_resolved_configuration_trains_the_same_model),
        cmocka_unit_test(test_several_ranks_need_a_number_of_workers),
    };

    return cmocka_run_group_tests_name("runs", tests, digits_set_up,
                                       digits_tear_down);
}

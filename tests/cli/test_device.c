/*
 * Whole runs on the emulated device, a plugin like the real one, and on
 * machines without a device.
 */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Few and small steps, as the emulation is slow. Four blocks per epoch. */
#define NET                                                                    \
    "model.net=stack:3 linear:8 relu dropout:0.1 linear; batch.sequences=3; "  \
    "train.epochs=1; "
#define ON_CPU NET "job.device=cpu"
#define ON_GPU NET "job.device=cuda; job.precision=fp32"

static void with_device(void)
{
    setenv("BMUF_PLUGINS", BMUF_EMULATED, 1);
    unsetenv("BMUF_EMULATED_DEVICES");
    unsetenv("LD_LIBRARY_PATH");
}

static void without_device(void)
{
    setenv("BMUF_PLUGINS", "/nowhere", 1);
}

/* Trains a new run to its end. */
static void run_whole(const char *run, int ranks, const char *settings)
{
    program p;

    remove_run(run);
    train(&p, run, ranks, settings);
    assert_ended(&p, 0);
}

static void assert_start(const char *run, const char *device,
                         const char *hardware, const char *precision)
{
    json_t *start = last_event(run, "start");

    assert_string_equal(text(start, "device"), device);
    assert_non_null(strstr(text(start, "hardware"), hardware));
    assert_string_equal(text(start, "precision"), precision);
    json_decref(start);
}

/* ---- without a device --------------------------------------------------- */

static void test_without_a_device_auto_is_the_cpu(void **state)
{
    program p;

    (void)state;
    without_device();
    remove_run("auto");
    train(&p, "auto", 1, NET "job.device=auto");
    assert_ended(&p, 0);
    assert_said(&p, " note r0 computing on the CPU in fp32");
    assert_said(&p, " detail r0 backend cuda is not available: "
                    "/nowhere/libbmuf_cuda.so does not exist");
    assert_start("auto", "cpu", "cpu", "fp32");
    remove_run("cpu");
    train(&p, "cpu", 1, ON_CPU);
    assert_ended(&p, 0);
    assert_said(&p, "computing on the CPU in fp32");
    assert_not_said(&p, "backend cuda");
    assert_same_model("auto", "cpu");
}

/* The plugin is there, but no GPU. */
static void test_a_plugin_without_a_gpu_is_one_short_line(void **state)
{
    program p;

    (void)state;
    if (access("/dev/nvidiactl", F_OK) == 0)
        skip(); /* this machine has one */
    with_device();
    setenv("BMUF_EMULATED_DEVICES", "0", 1);
    remove_run("auto");
    train(&p, "auto", 1, NET "job.device=auto");
    assert_ended(&p, 0);
    assert_said(&p, " note r0 no GPU: computing on the CPU in fp32");
    assert_said(&p, " detail r0 no CUDA device: the driver finds none");
    assert_int_equal(times_said(&p, "cuda"), 0);
}

static void test_without_a_device_cuda_is_rejected(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++) {
        program p;

        without_device();
        remove_run("none");
        train(&p, "none", ranks, ON_GPU);
        assert_ended(&p, 69);
        assert_said(&p,
                    "backend cuda is not available: /nowhere/libbmuf_cuda.so "
                    "does not exist; "
                    "use device cpu instead");
        assert_int_equal(times_said(&p, "bmuf: "), 1);
        assert_int_not_equal(access(in_folder("none"), F_OK), 0);
        with_device();
        setenv("BMUF_EMULATED_DEVICES", "0", 1);
        train(&p, "none", ranks, ON_GPU);
        assert_ended(&p, 69);
        assert_said(&p, "no CUDA device: the driver finds none");
        assert_int_equal(times_said(&p, "bmuf: "), 1);
        with_device();
        setenv("BMUF_EMULATED_MAJOR", "6", 1);
        train(&p, "none", ranks, ON_GPU);
        assert_ended(&p, 69);
        assert_said(&p, "no CUDA device: emulation on the host has compute "
                        "capability 6.0, and 7.5 is the least");
        unsetenv("BMUF_EMULATED_MAJOR");
    }
}

static void test_the_cpu_has_no_tf32(void **state)
{
    program p;

    (void)state;
    with_device();
    train(&p, "none", 1, ON_CPU "; job.precision=tf32");
    assert_ended(&p, 78);
    assert_said(&p, "precision tf32 is not available on the CPU");
    assert_int_equal(times_said(&p, "bmuf: "), 1);
}

/* Rank 1 of 2 does not find the plugin. */
static void test_ranks_with_different_devices_are_reported(void **state)
{
    static const char script[] =
        "cd '%s' && mpirun -np 2 sh -c 'test $OMPI_COMM_WORLD_RANK = 0 || "
        "BMUF_PLUGINS=/nowhere; export BMUF_PLUGINS; exec \"$0\" train "
        "base.ini --out differ' '%s' 2>differ.err";
    char line[2048], *said = NULL;
    size_t size = 0;
    int ended = 0;
    program p;

    (void)state;
    without_device();
    run_whole("cpu", 1, ON_CPU); /* makes base.ini */
    train(&p, "none", 1, ON_GPU);
    assert_ended(&p, 69);
    with_device();
    snprintf(line, sizeof line, script, in_folder(""), BMUF_PROGRAM);
    ended = system(line);
    assert_true(WIFEXITED(ended));
    assert_int_equal(WEXITSTATUS(ended), 69);
    said = slurp(in_folder("differ.err"), &size);
    assert_int_equal(count_of(said, "bmuf: "), 1);
    assert_non_null(
        strstr(said, "bmuf: rank 1: backend cuda is not available: "
                     "/nowhere/libbmuf_cuda.so does not exist; but other ranks "
                     "have a device"));
    free(said);
}

/* ---- training ----------------------------------------------------------- */

static double first_loss(const char *run)
{
    json_t *all = journal(run), *row = NULL;
    double loss = NAN;
    size_t i = 0;

    json_array_foreach(all, i, row) if (isnan(loss) &&
                                        strcmp(text(row, "event"), "block") ==
                                            0) loss = number(row, "loss");
    json_decref(all);
    return loss;
}

/* The phases of a training step are those of the device: it works while the host
 * waits for it, at the latest before the exchange. */
static void assert_phases(const char *run)
{
    static const char *const phases[] = {"forward_s", "loss_s", "backward_s",
                                         "update_s"};
    json_t *block = last_event(run, "block");
    double sum = 0;

    FOR_EACH (i, phases) {
        assert_true(number(block, phases[i]) > 0);
        sum += number(block, phases[i]);
    }
    assert_true(sum <= number(block, "compute_s") + number(block, "stall_s"));
    json_decref(block);
}

/* The order of sums differs. */
static void test_device_and_cpu_train_similar_models(void **state)
{
    (void)state;
    with_device();
    run_whole("cpu", 1, ON_CPU);
    run_whole("gpu", 1, ON_GPU);
    assert_start("gpu", "cuda", "emulation on the host, compute capability 9.0",
                 "fp32");
    assert_phases("gpu");
    assert_true(near(first_loss("gpu") / first_loss("cpu"), 1, 1e-4));
    run_whole("half", 1, NET "job.device=auto");
    assert_start("half", "cuda", "emulation", "bf16");
    assert_true(near(first_loss("half") / first_loss("cpu"), 1, 0.05));
}

/* Before compute capability 8.0 bf16 has no tensor cores; who asks for it gets
 * it. */
static void test_an_old_device_trains_in_fp32(void **state)
{
    (void)state;
    with_device();
    setenv("BMUF_EMULATED_MAJOR", "7", 1);
    run_whole("old", 1, NET "job.device=auto");
    assert_start("old", "cuda", "compute capability 7.5", "fp32");
    run_whole("old", 1, NET "job.device=cuda; job.precision=bf16");
    assert_start("old", "cuda", "compute capability 7.5", "bf16");
    unsetenv("BMUF_EMULATED_MAJOR");
}

/* Rank 1 of 2 has an old one. */
static void test_ranks_train_in_one_precision(void **state)
{
    static const char script[] =
        "cd '%s' && mpirun -np 2 sh -c 'test $OMPI_COMM_WORLD_RANK = 0 || "
        "export BMUF_EMULATED_MAJOR=7; exec \"$0\" train base.ini --out mixed "
        "--set job.precision=auto' '%s' 2>mixed.err";
    char line[2048];

    (void)state;
    with_device();
    run_whole("half", 1, NET "job.device=cuda"); /* makes base.ini */
    remove_run("mixed");
    snprintf(line, sizeof line, script, in_folder(""), BMUF_PROGRAM);
    assert_int_equal(system(line), 0);
    assert_start("mixed", "cuda", "compute capability 9.0", "fp32");
}

static void assert_same_on_two_ranks(const char *settings)
{
    with_device();
    run_whole("one", 1, settings);
    run_whole("two", 2, settings);
    assert_same_model("one", "two");
}

static void test_a_device_has_one_result_on_any_ranks(void **state)
{
    (void)state;
    assert_same_on_two_ranks(ON_GPU);
    if (short_tests())
        return;
    assert_same_on_two_ranks(NET "job.device=cuda");
    assert_same_on_two_ranks(ON_GPU "; train.strategy=ssgd");
    assert_same_on_two_ranks(ON_GPU "; train.strategy=easgd");
    assert_same_on_two_ranks(ON_GPU "; sgd.local_state=average; "
                                    "train.strategy=average");
    assert_same_on_two_ranks(ON_GPU "; sgd.update=adamw; train.rate=0.002; "
                                    "sgd.local_state=extrapolate");
}

/* Run "one" is compared with the CPU in an earlier test. */
#define assert_as_on_the_cpu(settings) compare_with_the_cpu(ON_CPU settings)

static void compare_with_the_cpu(const char *settings)
{
    json_t *mine = last_event("one", "eval"), *other = NULL;

    run_whole("cpu", 1, settings);
    other = last_event("cpu", "eval");
    assert_true(fabs(number(mine, "loss") / number(other, "loss") - 1) < 1e-3);
    json_decref(mine);
    json_decref(other);
}

/* Four workers take turns on a device that has room for the vectors of one, or
 * have a device each. */
static void assert_same_on_a_full_device(const char *settings)
{
    program p;

    with_device();
    setenv("BMUF_EMULATED_DEVICES", "4", 1);
    run_whole("each", 4, settings);
    with_device();
    setenv("BMUF_EMULATED_MEMORY", "115000000", 1);
    remove_run("full");
    train(&p, "full", 1, settings);
    unsetenv("BMUF_EMULATED_MEMORY");
    assert_ended(&p, 0);
    assert_said(&p, "the device's memory is full: vectors of workers that wait "
                    "are kept in memory of the host");
    assert_same_model("each", "full");
}

static void test_workers_take_turns_on_a_full_device(void **state)
{
    (void)state;
    assert_same_on_a_full_device(ON_GPU "; sgd.update=adamw; train.rate=0.002; "
                                        "sgd.local_state=keep");
    if (short_tests())
        return;
    assert_same_on_a_full_device(ON_GPU "; train.strategy=easgd");
    assert_same_on_a_full_device(ON_GPU "; block.overlap=yes");
    assert_same_on_a_full_device(ON_GPU "; block.fragments=2");
}

#define LATE "; block.overlap=yes; block.warmup=1; train.ema=0.9"

/* On the device, or of two ranks that share it through the host. */
static void test_late_exchanges_have_one_result_on_any_ranks(void **state)
{
    (void)state;
    assert_same_on_two_ranks(ON_GPU LATE);
    assert_as_on_the_cpu(LATE);
    if (short_tests())
        return;
    assert_same_on_two_ranks(ON_GPU "; block.fragments=2");
    assert_as_on_the_cpu("; block.fragments=2");
}

#define SSGD "train.strategy=ssgd; ssgd.overlap="

/* Each of two ranks has two workers, and fetches the buckets of both. */
static void test_buckets_of_a_device_change_no_bits(void **state)
{
    (void)state;
    with_device();
    run_whole("whole", 1, NET SSGD "none"); /* in bf16 */
    run_whole("one", 1, NET SSGD "layer");
    assert_same_model("whole", "one");
    run_whole("two", 2, NET SSGD "bucket; ssgd.bucket=0.001");
    assert_same_model("whole", "two");
}

/* Rejected before a run is created. */
static void test_merged_buckets_are_rejected_on_a_device(void **state)
{
    program p;

    (void)state;
    with_device();
    for (int ranks = 1; ranks <= 2; ranks++) {
        remove_run("none");
        train(&p, "none", ranks,
              NET "job.device=auto; train.strategy=ssgd; ssgd.overlap=merged");
        assert_ended(&p, 78);
        assert_said(&p, "set ssgd.overlap = bucket, or job.device = cpu");
        assert_int_equal(times_said(&p, "ssgd.overlap = merged measures"), 1);
        assert_int_not_equal(access(in_folder("none/config.ini"), F_OK), 0);
    }
}

static void test_ranks_take_devices_in_turn(void **state)
{
    (void)state;
    with_device();
    run_whole("one", 1, ON_GPU);
    setenv("BMUF_EMULATED_DEVICES", "2", 1);
    run_whole("two", 2, ON_GPU);
    assert_same_model("one", "two");
}

static void assert_exchange(const char *run, const char *way)
{
    json_t *start = last_event(run, "start");

    assert_string_equal(text(start, "exchange"), way);
    json_decref(start);
}

static void test_several_devices_give_the_bits_of_one(void **state)
{
    (void)state;
    with_device();
    run_whole("one", 1, ON_GPU);
    assert_exchange("one", "device");
    setenv("LD_LIBRARY_PATH", BMUF_EMULATED_NCCL, 1);
    run_whole("two", 2, ON_GPU);
    assert_exchange("two", "host"); /* they share one */
    assert_same_model("one", "two");
    setenv("BMUF_EMULATED_DEVICES", "2", 1);
    run_whole("two", 2, ON_GPU);
    assert_exchange("two", "nccl");
    assert_same_model("one", "two");
}

/* Beside the training, also where its first blocks send gradients by another
 * communicator; and resumed by way of the host. */
static void test_devices_exchange_beside_training(void **state)
{
    static const char settings[] =
        ON_GPU LATE "; block.fragments=2; train.checkpoint_every=2";
    program p;

    (void)state;
    with_device();
    run_whole("one", 1, settings);
    copy_run("one", "rest");
    assert_int_equal(unlink(checkpoint_of("rest", 4)), 0);
    setenv("LD_LIBRARY_PATH", BMUF_EMULATED_NCCL, 1);
    setenv("BMUF_EMULATED_DEVICES", "2", 1);
    run_whole("two", 2, settings);
    assert_exchange("two", "nccl");
    assert_same_model("one", "two");
    with_device();
    train(&p, "rest", 1,
          ON_GPU LATE "; block.fragments=2; train.checkpoint_every=2; "
                      "job.exchange=host");
    assert_ended(&p, 0);
    assert_said(&p, "block-00000002");
    assert_same_model("one", "rest");
    run_whole("late", 1, ON_GPU "; block.overlap=yes");
    assert_exchange("late", "device");
}

/* Resumes without the last checkpoints, on another number of ranks. */
static void test_training_on_a_device_resumes(void **state)
{
    static const char settings[] = ON_GPU "; train.checkpoint_every=2";
    program p;

    (void)state;
    with_device();
    run_whole("every", 1, settings);
    copy_run("every", "rest");
    assert_int_equal(unlink(checkpoint_of("rest", 4)), 0);
    train(&p, "rest", 2,
          ON_GPU "; train.checkpoint_every=2; job.exchange=host");
    assert_ended(&p, 0);
    assert_said(&p, "block-00000002");
    assert_same_model("every", "rest");
}

/* ---- resuming elsewhere ------------------------------------------------- */

static void assert_refused(const char *run, const char *settings,
                           const char *words)
{
    program p;

    train(&p, run, 1, settings);
    assert_ended(&p, 78);
    assert_said(&p, words);
    assert_int_equal(times_said(&p, "bmuf: "), 1);
}

static void test_a_run_resumes_with_its_device_and_precision(void **state)
{
    (void)state;
    with_device();
    run_whole("cpu", 1, ON_CPU);
    assert_refused("cpu", ON_GPU "; train.epochs=2",
                   "job.device: was cpu, now cuda");
    assert_refused("cpu", NET "train.epochs=2",
                   "job.device: was cpu, now cuda");
    assert_refused("cpu", ON_CPU "; job.precision=bf16; train.epochs=2",
                   "job.precision: was fp32, now bf16");
    run_whole("gpu", 1, NET "job.device=auto");
    assert_refused("gpu", ON_GPU "; train.epochs=2",
                   "job.precision: was bf16, now fp32");
    without_device();
    assert_refused("gpu", NET "train.epochs=2",
                   "job.device: was cuda, now cpu");
}

/* Removes the lines of two settings. */
static void forget_settings(const char *path)
{
    size_t size = 0;
    char *all = slurp(in_folder(path), &size), *rest = NULL;
    FILE *file = fopen(in_folder(path), "w");
    int forgotten = 0;

    assert_non_null(file);
    for (char *line = strtok_r(all, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "device", 6) == 0 ||
            strncmp(line, "precision", 9) == 0)
            forgotten++;
        else
            fprintf(file, "%s\n", line);
    assert_int_equal(forgotten, 2);
    fclose(file);
    free(all);
}

static void test_a_run_without_device_settings_is_one_of_the_cpu(void **state)
{
    program p;

    (void)state;
    with_device();
    run_whole("cpu", 1, ON_CPU);
    forget_settings("cpu/config.ini");
    assert_refused("cpu", NET "train.epochs=2",
                   "job.device: was cpu, now cuda");
    train(&p, "cpu", 1, ON_CPU "; train.epochs=2");
    assert_ended(&p, 0);
}

static void test_a_dry_run_looks_for_the_device(void **state)
{
    outcome o;

    (void)state;
    with_device();
    run_whole("gpu", 1, NET "job.device=auto");
    o = BMUF("train", "gpu/config.ini", "--out", "gpu", "--dry-run");
    assert_code(o, 0);
    without_device();
    o = BMUF("train", "gpu/config.ini", "--out", "gpu", "--dry-run");
    assert_code(o, 69);
    o = BMUF("train", "gpu/config.ini", "--out", "gpu", "--dry-run", "--set",
             "job.device=cpu");
    assert_code(o, 78);
    assert_says(o.err, "job.device: was cuda, now cpu");
}

/* ---- other verbs -------------------------------------------------------- */

static double loss_of(const char *device, const char *precision)
{
    outcome o = BMUF("eval", "cpu/model.safetensors", "dev", "--json",
                     "--device", device, "--precision", precision);
    json_t *scores = NULL;
    double loss = 0;

    assert_code(o, 0);
    scores = json_loads(o.out, 0, NULL);
    loss = number(scores, "loss");
    json_decref(scores);
    return loss;
}

static void test_eval_scores_on_a_device(void **state)
{
    outcome o;
    double loss = 0;

    (void)state;
    with_device();
    run_whole("cpu", 1, ON_CPU);
    loss = loss_of("cpu", "fp32");
    assert_true(near(loss_of("cuda", "fp32") / loss, 1, 1e-5));
    assert_true(near(loss_of("cuda", "auto") / loss, 1, 0.05));
    without_device();
    o = BMUF("eval", "cpu/model.safetensors", "dev", "--device", "cuda");
    assert_fails(o, 69, "backend cuda is not available",
                 "/nowhere/libbmuf_cuda.so");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_a_device_auto_is_the_cpu),
        cmocka_unit_test(test_a_plugin_without_a_gpu_is_one_short_line),
        cmocka_unit_test(test_without_a_device_cuda_is_rejected),
        cmocka_unit_test(test_the_cpu_has_no_tf32),
        cmocka_unit_test(test_ranks_with_different_devices_are_reported),
        cmocka_unit_test(test_device_and_cpu_train_similar_models),
        cmocka_unit_test(test_an_old_device_trains_in_fp32),
        cmocka_unit_test(test_ranks_train_in_one_precision),
        cmocka_unit_test(test_a_device_has_one_result_on_any_ranks),
        cmocka_unit_test(test_workers_take_turns_on_a_full_device),
        cmocka_unit_test(test_late_exchanges_have_one_result_on_any_ranks),
        cmocka_unit_test(test_buckets_of_a_device_change_no_bits),
        cmocka_unit_test(test_merged_buckets_are_rejected_on_a_device),
        cmocka_unit_test(test_ranks_take_devices_in_turn),
        cmocka_unit_test(test_several_devices_give_the_bits_of_one),
        cmocka_unit_test(test_devices_exchange_beside_training),
        cmocka_unit_test(test_training_on_a_device_resumes),
        cmocka_unit_test(test_a_run_resumes_with_its_device_and_precision),
        cmocka_unit_test(test_a_run_without_device_settings_is_one_of_the_cpu),
        cmocka_unit_test(test_a_dry_run_looks_for_the_device),
        cmocka_unit_test(test_eval_scores_on_a_device),
    };

    return cmocka_run_group_tests_name("device", tests, digits_set_up,
                                       digits_tear_down);
}

/*
 * The best model on data.dev: which one is kept, what its header says, that
 * kills do not change it; and what a run says that has learned little.
 */
#include "io/model/safetensors.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* A rate at which the error does not fall in every epoch; 3 blocks each. */
/* data.dev = other: recordings with the texts of others. The model that knows
 * the recordings best is not the best one there. */
static int prepare(void **state)
{
    enum { N = 21 };
    char text[N * 100] = "";

    if (make_corpus(state) != 0)
        return 1;
    for (size_t i = 0; i < N; i++) {
        size_t at = strlen(text);

        snprintf(text + at, sizeof text - at,
                 "{\"id\": \"%zu\", \"audio\": \"test-%zu.wav\", \"text\": "
                 "\"%s\"}\n",
                 i, i, speech_text((i + 1) % N));
    }
    write_text("other.jsonl", text);
    assert_code(BMUF("pack", "--audio", "other.jsonl", "--out", "other",
                     "--vocab", "train", "--set", "features.mels=8"),
                0);
    return 0;
}

static outcome train_run(const char *run, const char *more,
                         const char *and_more)
{
    return BMUF("train", "tiny.ini", "--out", run, "--set", "train.epochs=7",
                "--set", "schedule.kind=constant", "--set", "train.rate=0.1",
                "--set", "train.checkpoint_every=1", "--set", "train.keep=100",
                "--set", more, "--set", and_more);
}

static const char other[] = "data.dev=other";

static const char *best_of(const char *run)
{
    char name[64];

    snprintf(name, sizeof name, "%s/model-best.safetensors", run);
    return in_folder(name);
}

/* ---- which one is kept --------------------------------------------------- */

/* The first of the best evaluations on dev, by error and then by loss, and how
 * many were better than all before. */
static json_t *best_evaluation(const char *run, int *improvements)
{
    json_t *all = journal(run), *row = NULL, *best = NULL;
    size_t i = 0;

    *improvements = 0;
    json_array_foreach(all, i, row)
    {
        if (strcmp(text(row, "event"), "eval") != 0)
            continue;
        if (best != NULL && (number(row, "ler") > number(best, "ler") ||
                             (number(row, "ler") == number(best, "ler") &&
                              number(row, "loss") >= number(best, "loss"))))
            continue;
        ++*improvements;
        json_decref(best);
        best = json_incref(row);
    }
    json_decref(all);
    return best;
}

static void assert_number(const bm_st_file *f, const char *key, double x)
{
    const char *found = bm_st_text(f, key);

    assert_non_null(found);
    assert_true(near(strtod(found, NULL), x, 1e-8));
}

/* The header has the digest of the weights behind it. */
static void assert_digest(const bm_st_file *f, const char *run)
{
    uint64_t header = 0;
    size_t size = 0;
    char digest[33], *file = slurp(best_of(run), &size);
    XXH128_hash_t sum;

    memcpy(&header, file, sizeof header);
    sum = XXH3_128bits(file + 8 + header, size - 8 - header);
    snprintf(digest, sizeof digest, "%016llx%016llx",
             (unsigned long long)sum.high64, (unsigned long long)sum.low64);
    assert_string_equal(bm_st_text(f, "digest"), digest);
    free(file);
}

/* The file, the journal and the last lines tell of the best evaluation. */
static void assert_best(const char *run, const char *printed, bool last_too)
{
    int improvements = 0;
    json_t *eval = best_evaluation(run, &improvements),
           *best = last_event(run, "best");
    bm_st_file *f = NULL;
    char line[200];

    assert_ok(bm_st_open(&f, best_of(run), false));
    assert_number(f, "epoch", number(eval, "epoch"));
    assert_number(f, "dev_ler", number(eval, "ler"));
    assert_number(f, "dev_loss", number(eval, "loss"));
    assert_string_equal(bm_st_text(f, "evaluated"), text(eval, "data"));
    assert_string_equal(bm_st_text(f, "digest"), text(best, "digest"));
    assert_digest(f, run);
    bm_st_free(f);
    assert_int_equal(events(run, "best"), improvements);
    assert_true(number(best, "epoch") == number(eval, "epoch"));
    assert_true(number(best, "ler") == number(eval, "ler"));
    assert_string_equal(text(best, "file"), "model-best.safetensors");
    snprintf(line, sizeof line,
             "best      %s/model-best.safetensors (%s LER %.2f %%, epoch "
             "%.0f)\n",
             run, text(eval, "data"), 100 * number(eval, "ler"),
             number(eval, "epoch"));
    assert_says(printed, line);
    if (!last_too) /* else the last is the best, and nothing was tested */
        assert_true(number(eval, "epoch") < 7);
    json_decref(eval);
    json_decref(best);
}

static void test_the_best_model_on_dev_is_kept(void **_)
{
    outcome o = train_run("kept", other, other);

    (void)_;
    assert_code(o, 0);
    assert_best("kept", o.out, false);
}

/* A moving average is a candidate, too; here it is the best. */
static void test_of_an_average_the_evaluated_model_is_kept(void **_)
{
    outcome o = train_run("average", "train.ema=0.9", other);
    json_t *best = NULL;

    (void)_;
    assert_code(o, 0);
    assert_best("average", o.out, true);
    best = last_event("average", "best");
    assert_string_equal(text(best, "data"), "dev-ema");
    json_decref(best);
}

static void test_without_dev_there_is_no_best_model(void **_)
{
    outcome o = train_run("blind", "data.dev=", "train.epochs=2");

    (void)_;
    assert_code(o, 0);
    assert_int_not_equal(access(best_of("blind"), F_OK), 0);
    assert_int_equal(count_of(o.out, "best"), 0);
    assert_int_equal(events("blind", "best"), 0);
}

/* The last bit of a weight is another one: the file is refused. A program that
 * changes weights leaves the digest out. */
static void test_a_damaged_model_is_refused(void **_)
{
    static const char *const names[] = {"kept/model-best.safetensors",
                                        "kept/model.safetensors"};

    (void)_;
    FOR_EACH (i, names) {
        size_t size = 0, at = 0;
        char *file = slurp(in_folder(names[i]), &size), *digest = NULL;

        file[size - 4] ^= 1;
        spill(in_folder("bad.safetensors"), file, size);
        assert_fails(BMUF("eval", "bad.safetensors", "test"), 65,
                     "bad.safetensors is damaged", "checkpoint");
        assert_fails(BMUF("decode", "bad.safetensors", "test"), 65, "damaged");
        assert_fails(BMUF("export", "bad.safetensors", "--npz", "bad.npz"), 65,
                     "damaged");
        assert_fails(BMUF("train", "tiny.ini", "--out", "none", "--set",
                          "train.init=bad.safetensors"),
                     65, "damaged");
        for (at = 8; digest == NULL && at + 8 < size; at++)
            if (memcmp(file + at, "\"digest\"", 8) == 0)
                digest = file + at;
        assert_non_null(digest);
        digest[3] = 't'; /* as without one */
        spill(in_folder("changed.safetensors"), file, size);
        assert_code(BMUF("eval", "changed.safetensors", "test"), 0);
        free(file);
    }
}

/* ---- stops ----------------------------------------------------------------- */

/* After a kill between the best model and the checkpoint of its block, the file
 * is ahead of all checkpoints. */
static void test_a_model_ahead_of_the_checkpoint_stays_right(void **_)
{
    (void)_;
    for (int left = 0; left <= 18; left += 6) {
        copy_run("kept", "cut");
        for (int block = left + 1; block <= 21; block++)
            assert_int_equal(unlink(checkpoint_of("cut", block)), 0);
        if (left == 0)
            forget_checkpoints("cut");
        assert_int_equal(unlink(in_folder("cut/model.safetensors")), 0);
        assert_code(train_run("cut", other, other), 0);
        assert_same_model("kept", "cut");
    }
}

/* Its epoch is trained again, and no model of it is better. */
static void test_after_a_kill_the_best_epoch_has_a_checkpoint(void **_)
{
    json_t *best = last_event("kept", "best");
    int blocks = 3 * (int)number(best, "epoch");

    (void)_;
    json_decref(best);
    copy_run("kept", "pinned");
    for (int block = blocks; block <= 21; block++)
        assert_int_equal(unlink(checkpoint_of("pinned", block)), 0);
    assert_code(BMUF("train", "tiny.ini", "--out", "pinned", "--set", other,
                     "--set", "train.epochs=7", "--set",
                     "schedule.kind=constant", "--set", "train.rate=0.1",
                     "--set", "train.checkpoint_every=0", "--set",
                     "train.keep_best=yes"),
                0);
    assert_same_model("kept", "pinned");
    assert_int_equal(access(checkpoint_of("pinned", blocks), F_OK), 0);
}

/* Without the file the best of the epochs that follow is kept. */
static void test_a_lost_file_is_replaced(void **_)
{
    json_t *best = NULL;
    outcome o;

    (void)_;
    copy_run("kept", "lost");
    for (int block = 19; block <= 21; block++)
        assert_int_equal(unlink(checkpoint_of("lost", block)), 0);
    write_text("lost/model-best.safetensors", "no model");
    o = train_run("lost", other, other);
    assert_code(o, 0);
    assert_says(o.err, "cannot read the best model, the next one replaces it");
    best = last_event("lost", "best");
    assert_true(number(best, "epoch") == 7);
    json_decref(best);
    assert_code(BMUF("eval", "lost", "test"), 0);
}

static void test_a_killed_run_keeps_the_same_model(void **_)
{
    const char *const words[] = {"train", "tiny.ini",
                                 "--out", "killed",
                                 "--set", "train.epochs=7",
                                 "--set", "schedule.kind=constant",
                                 "--set", "train.rate=0.1",
                                 "--set", "train.checkpoint_every=1",
                                 "--set", "train.keep=100",
                                 "--set", other,
                                 "--set", other,
                                 NULL};

    (void)_;
    for (int n = 1; n <= 2; n++) {
        program p;

        remove_run("killed");
        program_start(&p, words);
        if (event_comes(&p, "killed", "best", n))
            kill(p.pid, SIGKILL);
        program_wait(&p);
        assert_code(train_run("killed", other, other), 0);
        assert_same_model("kept", "killed");
    }
}

static void pack_dev(const char *unit)
{
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "dev", "--vocab",
                     "train", "--set", "features.mels=8", "--set", unit,
                     "--force"),
                0);
}

static void test_a_changed_dev_set_is_remarked(void **_)
{
    outcome o;
    json_t *best = NULL;

    (void)_;
    pack_dev("shard.unit_frames=100");
    assert_code(train_run("moved", "data.dev=dev", "train.epochs=2"), 0);
    o = train_run("moved", "data.dev=dev", "train.epochs=3");
    assert_code(o, 0);
    assert_int_equal(count_of(o.err, "has changed"), 0);
    pack_dev("shard.unit_frames=200");
    o = train_run("moved", "data.dev=dev", "train.epochs=4");
    assert_code(o, 0);
    assert_says(o.err, "data.dev: dev has changed since moved/checkpoints/"
                       "block-00000009.safetensors: it had 21 sequences, ");
    assert_says(o.err, "cannot be compared");
    best = last_event("moved", "best");
    assert_true(number(best, "epoch") == 4);
    json_decref(best);
}

/* ---- half of all labels wrong ------------------------------------------- */

static const char *last_line(const char *text)
{
    const char *line = text + strlen(text) - 1;

    while (line > text && line[-1] != '\n')
        line--;
    return line;
}

static void assert_told(const char *run, outcome o, const char *where)
{
    json_t *warning = last_event(run, "warning"), *end = last_event(run, "end");

    assert_code(o, 0);
    assert_says(last_line(o.out), "more than half of all labels are wrong (");
    assert_says(last_line(o.out), where);
    assert_says(last_line(o.out), "train.epochs");
    assert_says(last_line(o.out), "train.rate");
    assert_says(text(warning, "message"), "more than half of all labels");
    assert_string_equal(text(end, "reason"), "done");
    json_decref(warning);
    json_decref(end);
}

static void test_a_run_that_learned_little_says_so(void **_)
{
    (void)_;
    assert_told("slow", train_run("slow", "train.rate=1e-6", "train.epochs=2"),
                " % on dev)");
    assert_told("slow-blind",
                train_run("slow-blind", "train.rate=1e-6", "data.dev="),
                " % on the training data)");
    assert_int_equal(
        count_of(train_run("good", "data.dev=test", "job.seed=1").out, "half"),
        0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best_model_on_dev_is_kept),
        cmocka_unit_test(test_a_damaged_model_is_refused),
        cmocka_unit_test(test_of_an_average_the_evaluated_model_is_kept),
        cmocka_unit_test(test_without_dev_there_is_no_best_model),
        cmocka_unit_test(test_a_model_ahead_of_the_checkpoint_stays_right),
        cmocka_unit_test(test_after_a_kill_the_best_epoch_has_a_checkpoint),
        cmocka_unit_test(test_a_lost_file_is_replaced),
        cmocka_unit_test(test_a_killed_run_keeps_the_same_model),
        cmocka_unit_test(test_a_changed_dev_set_is_remarked),
        cmocka_unit_test(test_a_run_that_learned_little_says_so),
    };

    return cmocka_run_group_tests_name("best", tests, prepare,
                                       digits_tear_down);
}

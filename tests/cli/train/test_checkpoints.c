/*
 * Checkpoints of whole runs: which are kept, copies in other folders, and what a
 * run resumes from when the newest is lost or damaged. A run that falls back
 * ends with the bits of an undisturbed one.
 */
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 8 blocks, 4 in an epoch. */
static const char two_copies[] =
    "train.checkpoint_every=2; train.checkpoint_copies=b c";

static const char *file_of(const char *folder, int blocks)
{
    char name[64];

    snprintf(name, sizeof name, "%s/block-%08d.safetensors", folder, blocks);
    return in_folder(name);
}

static bool has(const char *folder, int blocks)
{
    return access(file_of(folder, blocks), F_OK) == 0;
}

static void remove_copies(void)
{
    remove_run("b");
    remove_run("c");
}

/* ---- what is kept -------------------------------------------------------- */

/* The list ends with 0. */
static void assert_has_only(const char *folder, const int *blocks)
{
    for (int k = 1; k <= 24; k++) {
        bool wanted = false;

        for (const int *b = blocks; *b > 0; b++)
            wanted = wanted || *b == k;
        if (has(folder, k) != wanted)
            fail_msg("%s %s block %d", folder, wanted ? "lacks" : "has", k);
    }
}

static void test_every_nth_epoch_is_kept(void **state)
{
    program p;

    (void)state;
    remove_run("kept");
    train(&p, "kept", 1,
          "train.epochs=5; train.checkpoint_every=3; train.keep=2; "
          "train.keep_every=2");
    assert_ended(&p, 0);
    assert_has_only("kept/checkpoints", (int[]){8, 16, 18, 20, 0});
}

static void test_the_best_epoch_is_kept(void **state)
{
    json_t *best = NULL;
    int blocks[3] = {0, 24, 0};
    program p;

    (void)state;
    remove_run("kept");
    train(&p, "kept", 2,
          "train.epochs=6; train.checkpoint_every=0; train.keep=1; "
          "train.keep_best=yes");
    assert_ended(&p, 0);
    best = last_event("kept", "best");
    blocks[0] = (int)number(best, "block");
    json_decref(best);
    if (blocks[0] == 24)
        blocks[1] = 0;
    assert_has_only("kept/checkpoints", blocks);
}

/* The run is complete, so that no checkpoint is written. Files that other programs
 * write to RUN stay. */
static void test_files_of_a_killed_job_are_removed(void **state)
{
    static const char *const left[] = {
        "kept/.01234567.model-best.safetensors.tmp",
        "kept/.01234567.config.ini.tmp",
        "kept/checkpoints/.01234567.block-00000007.safetensors.tmp",
        "b/.01234567.block-00000007.safetensors.tmp",
        "kept/.01234567.report.html.tmp"};
    program p;

    (void)state;
    assert_int_equal(mkdir(in_folder("b"), 0777), 0);
    FOR_EACH (i, left)
        write_text(left[i], "half");
    train(&p, "kept", 1,
          "train.epochs=6; train.checkpoint_every=0; train.keep=1; "
          "train.keep_best=yes; train.checkpoint_copies=b");
    assert_ended(&p, 0);
    FOR_EACH (i, left)
        assert_int_equal(access(in_folder(left[i]), F_OK) == 0, i == 4);
    remove_copies();
}

/* ---- the journal --------------------------------------------------------- */

static void test_the_journal_says_what_a_checkpoint_cost(void **state)
{
    json_t *all = NULL, *e = NULL;
    size_t i = 0;
    int behind = 0;
    program p;

    (void)state;
    remove_run("one");
    remove_copies();
    train(&p, "one", 1, two_copies);
    assert_ended(&p, 0);
    all = journal("one");
    json_array_foreach(all, i, e)
    {
        if (strcmp(text(e, "event"), "checkpoint") != 0)
            continue;
        assert_true(number(e, "files") == 3);
        assert_true(number(e, "verify_s") > 0);
        assert_true(number(e, "write_s") >= number(e, "verify_s"));
        if (number(e, "block") == 8) { /* the last one is not left behind */
            assert_true(number(e, "copied_bytes") == 0);
            continue;
        }
        behind++;
        assert_true(number(e, "copied_bytes") > 0);
        assert_true(number(e, "copied_bytes") < number(e, "bytes"));
    }
    json_decref(all);
    assert_int_equal(behind, 3);
    RUN_PROGRAM(&p, "info", "one");
    assert_ended(&p, 0);
    assert_printed(&p, "  checkpoint block 8: checkpoints/block-00000008"
                       ".safetensors, and in 2 folders more");
}

/* ---- falling back -------------------------------------------------------- */

/* Another run with copies is stopped in its middle: as if it had been killed
 * there. */
static void make_half_a_run(void)
{
    program p;

    remove_run("straight");
    remove_run("half");
    remove_copies();
    train(&p, "straight", 1, "");
    assert_ended(&p, 0);
    train(&p, "half", 1, two_copies);
    assert_ended(&p, 0);
    for (int k = 7; k <= 8; k++) {
        (void)unlink(file_of("half/checkpoints", k));
        (void)unlink(file_of("b", k));
        (void)unlink(file_of("c", k));
    }
    assert_int_equal(unlink(in_folder("half/model.safetensors")), 0);
    assert_true(has("half/checkpoints", 6) && has("b", 6) && has("c", 6));
}

static void go_on(program *p)
{
    train(p, "half", 1, two_copies);
    assert_ended(p, 0);
    assert_same_model("straight", "half");
}

static void test_a_lost_checkpoint_is_taken_from_a_copy(void **state)
{
    program p;

    (void)state;
    make_half_a_run();
    assert_int_equal(unlink(file_of("half/checkpoints", 6)), 0);
    assert_int_equal(unlink(file_of("b", 6)), 0);
    go_on(&p);
    assert_said(&p, "resuming from c/block-00000006");
    assert_said(&p, "2 blocks after block 6");
}

static void test_a_run_that_is_lost_continues_from_its_copies(void **state)
{
    program p;

    (void)state;
    make_half_a_run();
    remove_run("half");
    go_on(&p);
    assert_said(&p, "resuming from b/block-00000006");
}

enum kind { EMPTY, SHORT, FLIPPED, NO_SEAL, OTHER_RUN };

/* Another run, with other settings. */
static void make_another_run(void)
{
    program p;

    remove_run("another");
    train(&p, "another", 1, "job.seed=2");
    assert_ended(&p, 0);
}

static void spoil(const char *path, enum kind kind)
{
    size_t size = 0;
    char *data = NULL;

    switch (kind) {
    case EMPTY:
        spill(path, "", 0);
        break;
    case SHORT:
        cut_off(path, 0.7);
        break;
    case FLIPPED:
        damage(path, 0.6, 1);
        break;
    case NO_SEAL:
        data = slurp(in_folder("straight/model.safetensors"), &size);
        spill(path, data, size);
        break;
    default:
        data = slurp(checkpoint_of("another", 6), &size);
        spill(path, data, size);
        break;
    }
    free(data);
}

static void test_damage_of_any_kind_falls_back(void **state)
{
    static const struct {
        enum kind kind;
        const char *words;
    } kinds[] = {{EMPTY, "half/checkpoints/block-00000006"},
                 {SHORT, "half/checkpoints/block-00000006"},
                 {FLIPPED, "wrong checksum"},
                 {NO_SEAL, "half/checkpoints/block-00000006"},
                 {OTHER_RUN, "is of another run, with other settings:"}};
    program p;

    (void)state;
    make_another_run();
    make_half_a_run();
    copy_run("half", "saved");
    FOR_EACH (i, kinds) { /* to the copy, and with both lost to block 4 */
        bool copies = i % 2 == 0;

        copy_run("saved", "half");
        spoil(file_of("half/checkpoints", 6), kinds[i].kind);
        train(&p, "half", 1, copies ? two_copies : "train.checkpoint_every=2");
        assert_ended(&p, 0);
        assert_said(&p, kinds[i].words);
        assert_said(&p, copies ? "trying its copy" : "trying an older one");
        assert_said(&p, copies ? "resuming from b/block-00000006"
                               : "checkpoints/block-00000004");
        assert_said(&p, copies ? "2 blocks after block 6"
                               : "4 blocks after block 4");
        assert_same_model("straight", "half");
        for (int k = 7; copies && k <= 8; k++) {
            (void)unlink(file_of("b", k));
            (void)unlink(file_of("c", k));
        }
    }
}

/* Of another run, and with larger numbers, as of a copy by mistake. */
static void test_checkpoints_of_others_remove_none_of_the_own(void **state)
{
    program p;

    (void)state;
    remove_run("another");
    train(&p, "another", 1,
          "job.seed=2; train.epochs=5; train.checkpoint_every=4");
    assert_ended(&p, 0);
    make_half_a_run();
    run_tool((char *[]){"cp", "-r", (char *)in_folder("another/checkpoints"),
                        (char *)in_folder("half"), NULL});
    train(&p, "half", 1, "train.checkpoint_every=2");
    assert_ended(&p, 0);
    assert_said(&p, "is of another run");
    assert_same_model("straight", "half");
    assert_has_only("half/checkpoints", (int[]){4, 6, 8, 12, 16, 20, 0});
    train(&p, "half", 1, "train.checkpoint_every=2");
    assert_ended(&p, 0);
    assert_said(&p, "half is complete");
}

static void test_fewer_epochs_than_have_begun_are_refused(void **state)
{
    program p;

    (void)state;
    make_half_a_run();
    train(&p, "half", 2, "train.epochs=1");
    assert_ended(&p, 78);
    assert_said(&p, "train.epochs = 1, but 2 blocks of epoch 2 are done");
    assert_int_not_equal(access(in_folder("half/model.safetensors"), F_OK), 0);
    go_on(&p);
}

/* ---- checkpoints that cannot be had --------------------------------------- */

static void empty_folder(const char *run)
{
    char name[80];

    snprintf(name, sizeof name, "%s/checkpoints", run);
    remove_run(name);
    run_tool((char *[]){"mkdir", (char *)in_folder(name), NULL});
}

static void assert_refused(program *p, int code, const char *words)
{
    RUN_PROGRAM(p, "train", "half", "--set", "data.train=dev");
    assert_ended(p, code);
    assert_said(p, words);
    assert_int_equal(times_said(p, "bmuf: "), 1);
    RUN_PROGRAM(p, "train", "half", "--dry-run");
    assert_ended(p, code);
}

static void test_a_run_without_its_checkpoints_is_not_begun_anew(void **state)
{
    program p;

    (void)state;
    remove_run("straight");
    train(&p, "straight", 1, "");
    assert_ended(&p, 0);
    copy_run("straight", "half");
    empty_folder("half");
    assert_refused(&p, 66,
                   "the journal has checkpoints up to block 8, but "
                   "half/checkpoints has none: restore or mount them");
    remove_run("half/checkpoints");
    assert_refused(&p, 66, "the journal has checkpoints up to block 8, ");
    write_text("half/checkpoints", "a file");
    assert_refused(&p, 66,
                   "half/checkpoints: the checkpoints in it cannot be "
                   "listed: Not a directory");
    empty_folder("half");
    remove_run("half/journal.jsonl");
    assert_refused(&p, 66,
                   "half has a model, but half/checkpoints has no checkpoints");
    assert_same_model("straight", "straight");
}

static void test_a_job_killed_before_its_first_checkpoint_begins_again(void **s)
{
    program p;

    (void)s;
    remove_run("straight");
    train(&p, "straight", 1, "");
    assert_ended(&p, 0);
    copy_run("straight", "half");
    empty_folder("half");
    forget_checkpoints("half");
    train(&p, "half", 2, "");
    assert_ended(&p, 0);
    assert_said(&p, "repeating 8 blocks after block 0 ");
    assert_same_model("straight", "half");
}

static void test_checkpoints_that_cannot_be_read_are_not_given_up(void **state)
{
    program p;

    (void)state;
    make_half_a_run();
    for (int k = 1; k <= 6; k++)
        if (has("half/checkpoints", k)) {
            assert_int_equal(unlink(file_of("half/checkpoints", k)), 0);
            assert_int_equal(symlink("gone", file_of("half/checkpoints", k)),
                             0);
        }
    train(&p, "half", 2, "train.checkpoint_every=2");
    assert_ended(&p, 66);
    assert_said(&p, "make them readable and run the same command again");
    assert_not_said(&p, "another --out");
}

static void test_foreign_checkpoints_in_a_new_run_are_named(void **state)
{
    program p;

    (void)state;
    make_another_run();
    remove_run("second");
    copy_run("another", "second");
    remove_run("second/config.ini");
    remove_run("second/journal.jsonl");
    run_tool((char *[]){"sh", "-c", "rm \"$1\"/model*", "sh",
                        (char *)in_folder("second"), NULL});
    train(&p, "second", 1, "");
    assert_ended(&p, 65);
    assert_said(&p, "second/checkpoints has checkpoints that are of no use");
    assert_not_said(&p, "train.checkpoint_copies");
}

/* ---- folders ------------------------------------------------------------- */

static void test_folders_of_other_runs_are_refused(void **state)
{
    program p;

    (void)state;
    remove_run("first");
    remove_run("second");
    remove_copies();
    train(&p, "first", 1, two_copies);
    assert_ended(&p, 0);
    assert_said(&p, "b is on the disk of ");
    train(&p, "second", 1,
          "job.seed=3; train.checkpoint_every=2; train.checkpoint_copies=b");
    assert_ended(&p, 65);
    assert_said(&p, "is of another run");
    assert_said(&p, "give it folders of its own");
    assert_true(has("b", 8));
    train(&p, "second", 1, "train.checkpoint_copies=a b c d");
    assert_ended(&p, 78);
    assert_said(&p, "train.checkpoint_copies: more than 3 folders");
    train(&p, "second", 1, "train.checkpoint_copies=./second//checkpoints");
    assert_ended(&p, 78);
    assert_said(&p, "the run's own folder");
}

/* As with a disk that is not mounted: nothing is written in its place. */
static void test_a_folder_within_one_that_is_missing_is_refused(void **state)
{
    program p;

    (void)state;
    remove_run("first");
    train(&p, "first", 1, "train.checkpoint_copies=missing/b");
    assert_ended(&p, 73);
    assert_said(&p, "train.checkpoint_copies: missing/b: the folder that it "
                    "would be in does not exist");
    assert_int_not_equal(access(in_folder("missing"), F_OK), 0);
}

static void test_a_folder_that_cannot_be_used_ends_a_new_run_only(void **state)
{
    program p;

    (void)state;
    remove_run("first");
    remove_copies();
    write_text("b", "a file, not a folder");
    train(&p, "first", 1, two_copies);
    assert_ended(&p, 73);
    remove_run("b");
    remove_run("first");
    train(&p, "first", 1, two_copies);
    assert_ended(&p, 0);
    remove_run("b");
    write_text("b", "a file, not a folder");
    train(&p, "first", 1,
          "train.checkpoint_every=2; train.checkpoint_copies=b c; "
          "train.epochs=3");
    assert_ended(&p, 0);
    assert_said(&p, "the run goes on without copies in b");
    assert_true(has("c", 12));
    remove_run("b");
}

/* ---- audits -------------------------------------------------------------- */

static void test_audited_runs_have_the_same_bits(void **state)
{
    static const char *const ways[] = {
        "job.audit=0.5", "job.audit=1; sgd.local_state=keep; job.workers=5",
        "job.audit=1; " NORMALISED};
    static const char *const plain[] = {
        "", "sgd.local_state=keep; job.workers=5", NORMALISED};
    program p;

    (void)state;
    FOR_EACH (i, ways) {
        remove_run("plain");
        train(&p, "plain", 1, plain[i]);
        assert_ended(&p, 0);
        for (int ranks = 1; ranks <= 3; ranks++) {
            json_t *all = NULL, *e = NULL;
            size_t k = 0;
            double audited = 0;

            remove_run("audited");
            train(&p, "audited", ranks, ways[i]);
            assert_ended(&p, 0);
            assert_same_model("plain", "audited");
            all = journal("audited");
            json_array_foreach(all, k,
                               e) if (strcmp(text(e, "event"), "block") == 0)
            {
                audited += number(e, "audited") > 0;
                assert_true((number(e, "audited") > 0) ==
                            (number(e, "audit_s") > 0));
            }
            assert_true(audited > 0 && (i == 0 || audited == 8));
            json_decref(all);
        }
    }
    RUN_PROGRAM(&p, "info", "audited");
    assert_printed(&p, "  audits     32 shares in 8 blocks computed twice");
    RUN_PROGRAM(&p, "explain", "base.ini", "--set", "job.audit=0.25", "--set",
                "train.checkpoint_copies=b c");
    assert_ended(&p, 0);
    assert_printed(&p, "copies            of each checkpoint in b c");
    assert_printed(&p, "audit             about 2 of 8 blocks are computed");
    train(&p, "refused", 1, "job.audit=1; block.fragments=2");
    assert_ended(&p, 78);
    assert_said(&p, "job.audit is for shares");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_nth_epoch_is_kept),
        cmocka_unit_test(test_the_best_epoch_is_kept),
        cmocka_unit_test(test_files_of_a_killed_job_are_removed),
        cmocka_unit_test(test_the_journal_says_what_a_checkpoint_cost),
        cmocka_unit_test(test_a_lost_checkpoint_is_taken_from_a_copy),
        cmocka_unit_test(test_a_run_that_is_lost_continues_from_its_copies),
        cmocka_unit_test(test_damage_of_any_kind_falls_back),
        cmocka_unit_test(test_checkpoints_of_others_remove_none_of_the_own),
        cmocka_unit_test(test_fewer_epochs_than_have_begun_are_refused),
        cmocka_unit_test(test_a_run_without_its_checkpoints_is_not_begun_anew),
        cmocka_unit_test(
            test_a_job_killed_before_its_first_checkpoint_begins_again),
        cmocka_unit_test(test_checkpoints_that_cannot_be_read_are_not_given_up),
        cmocka_unit_test(test_foreign_checkpoints_in_a_new_run_are_named),
        cmocka_unit_test(test_folders_of_other_runs_are_refused),
        cmocka_unit_test(test_a_folder_within_one_that_is_missing_is_refused),
        cmocka_unit_test(test_a_folder_that_cannot_be_used_ends_a_new_run_only),
        cmocka_unit_test(test_audited_runs_have_the_same_bits),
    };

    return cmocka_run_group_tests_name("checkpoints", tests, digits_set_up,
                                       digits_tear_down);
}

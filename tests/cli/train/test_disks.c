/*
 * Training on a disk that fails: every system call of its checkpoints fails
 * once in turn, or from some call on. A run ends with the bits of an undisturbed
 * one, or with 73 or 74, and then does so when it is started again.
 */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two checkpoints, one of them while training goes on. */
static const char settings[] = "train.checkpoint_every=4";

static void run_straight(void)
{
    program p;

    remove_run("straight");
    train(&p, "straight", 1, settings);
    assert_ended(&p, 0);
}

/* Trains a new run on a disk where calls first .. first + count - 1 fail.
 * Returns how many did. */
static int train_with(program *p, const char *call, int first, int count,
                      int error)
{
    char how[512];
    const char *log = in_folder("struck");
    struct stat info = {0};

    remove_run("struck");
    remove_run("run");
    snprintf(how, sizeof how, "%s %d %d %d checkpoints %s", call, first, count,
             error, log);
    setenv("BMUF_DISK", how, 1);
    setenv("LD_PRELOAD", BMUF_FAKE_DISK, 1);
    train(p, "run", 1, settings);
    unsetenv("LD_PRELOAD");
    unsetenv("BMUF_DISK");
    return stat(log, &info) == 0 ? (int)info.st_size : 0;
}

static void assert_nothing_is_lost(program *p)
{
    if (p->code != 0) {
        train(p, "run", 1, settings);
    }
    assert_ended(p, 0);
    assert_same_model("straight", "run");
}

static const char *const calls[] = {"open", "posix_fallocate", "write", "fsync",
                                    "read", "rename"};

static void test_each_call_fails_once(void **state)
{
    static const struct {
        int error, step;
    } ways[] = {{EIO, 1}, {ENOSPC, 3}};
    int failed = 0;
    program p;

    (void)state;
    run_straight();
    FOR_EACH (w, ways)
        FOR_EACH (i, calls)
            for (int k = 1; train_with(&p, calls[i], k, 1, ways[w].error) > 0;
                 k += short_tests() ? 7 : ways[w].step) {
                failed++;
                assert_ended(&p, 0); /* the next try succeeds */
                assert_nothing_is_lost(&p);
            }
    print_message("%d system calls failed, one in a run\n", failed);
    assert_true(failed >= (short_tests() ? 8 : 50));
}

static void test_a_disk_that_fails_for_good(void **state)
{
    static const struct {
        const char *call;
        int first, error, code;
    } ways[] = {{"write", 1, ENOSPC, 74}, {"fsync", 1, EIO, 74},
                {"open", 4, EROFS, 73},   {"rename", 2, EIO, 74},
                {"write", 12, EIO, 74},   {"read", 1, EIO, 74}};
    program p;

    (void)state;
    run_straight();
    FOR_EACH (i, ways) {
        assert_true(train_with(&p, ways[i].call, ways[i].first, 1 << 20,
                               ways[i].error) > 0);
        assert_ended(&p, ways[i].code);
        assert_said(&p, "no checkpoint has the blocks after block");
        assert_said(&p, strerror(ways[i].error));
        assert_said(&p, ways[i].code == 73 ? "restore its folder"
                                           : "free space, or see to the disk");
        assert_int_equal(times_said(&p, "bmuf: "), 1);
        assert_nothing_is_lost(&p);
    }
}

/* A file system of 500 kB, of which 400 kB are in use: one checkpoint fits, the
 * next does not. */
static void test_a_small_file_system(void **state)
{
    static const char script[] =
        "set -e; d=$1; bmuf=$2; mkdir -p \"$d/small\"; "
        "mount -t tmpfs -o size=500k none \"$d/small\"; "
        "head -c 430000 /dev/zero > \"$d/small/ballast\"; cd \"$d\"; "
        "rc=0; \"$bmuf\" train base.ini --out small/run --set "
        "train.checkpoint_every=4 --set train.keep=9 --set "
        "model.net='blstm:12 dropout:0.2 linear' > full.out 2>&1 || rc=$?; "
        "echo $rc > full.code; rm small/ballast; "
        "\"$bmuf\" train base.ini --out small/run --set "
        "train.checkpoint_every=4 --set train.keep=9 > again.out 2>&1; "
        "rm -rf run; cp -r small/run run; umount small";
    size_t size = 0;
    char *code = NULL;

    (void)state;
    if (system("unshare -m true 2>/dev/null") != 0) {
        print_message("skipped: no mount namespaces here\n");
        skip();
    }
    run_straight();
    run_tool((char *[]){"unshare", "-m", "sh", "-c", (char *)script, "sh",
                        (char *)in_folder("."), (char *)bmuf_path(), NULL});
    code = slurp(in_folder("full.code"), &size);
    assert_string_equal(code, "74\n");
    free(code);
    assert_same_model("straight", "run");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_call_fails_once),
        cmocka_unit_test(test_a_disk_that_fails_for_good),
        cmocka_unit_test(test_a_small_file_system),
    };

    return cmocka_run_group_tests_name("disks", tests, digits_set_up,
                                       digits_tear_down);
}

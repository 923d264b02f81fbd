/*
 * -n RANKS: the arguments and the environment that mpirun gets, printed by a
 * substitute for mpirun.
 */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const limits[] = {
    "btl_tcp_rndv_eager_limit", "btl_tcp_eager_limit", "btl_tcp_max_send_size"};

static const char *variable(const char *limit)
{
    static char name[64];

    snprintf(name, sizeof name, "OMPI_MCA_%s", limit);
    return name;
}

static outcome launch(void)
{
    return BMUF("train", "any.ini", "-n", "3", "--out", "two words", "-v");
}

static void test_mpirun_runs_the_same_command(void **_)
{
    outcome o = launch();

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "\n-np\n3\n");
    assert_says(o.out, "\ntrain\nany.ini\n-n\n3\n--out\ntwo words\n-v\n");
    assert_int_equal(count_of(o.err, "starting: mpirun -np 3 "), 1);
}

/* The limits are arguments of mpirun, before the program. */
static void test_tcp_limits_are_set(void **_)
{
    outcome o = launch();
    const char *program = strstr(o.out, "\ntrain\n");

    (void)_;
    assert_non_null(program);
    FOR_EACH (i, limits) {
        char words[100];

        snprintf(words, sizeof words, "\n--mca\n%s\n8388608\n", limits[i]);
        assert_says(o.out, words);
        assert_true(strstr(o.out, words) < program);
        assert_int_equal(count_of(o.out, limits[i]), 1);
        assert_int_equal(count_of(o.err, limits[i]), 1);
    }
}

static void test_limits_of_the_environment_are_kept(void **_)
{
    (void)_;
    FOR_EACH (i, limits) {
        char own[100];
        outcome o;

        setenv(variable(limits[i]), "70000", 1);
        o = launch();
        unsetenv(variable(limits[i]));
        snprintf(own, sizeof own, "\n%s=70000\n", variable(limits[i]));
        assert_code(o, 0);
        assert_says(o.out, own);
        assert_int_equal(count_of(o.out, "btl_tcp_"), 1);
        assert_null(strstr(o.err, "btl_tcp_"));
    }
}

static int prepare(void **state)
{
    const char *before = getenv("PATH");
    char path[8192];

    if (folder_make(state) != 0 || before == NULL)
        return 1;
    FOR_EACH (i, limits)
        unsetenv(variable(limits[i]));
    write_text("mpirun", "#!/bin/sh\n"
                         "echo words:\n"
                         "printf '%s\\n' \"$@\"\n"
                         "env | grep '^OMPI_MCA_'\n"
                         "exit 0\n");
    write_text("any.ini", "[data]\n"
                          "train = train\n"
                          "[model]\n"
                          "net = linear\n"
                          "[job]\n"
                          "workers = 3\n"
                          "[schedule]\n"
                          "kind = constant\n");
    snprintf(path, sizeof path, "%s:%s", in_folder("."), before);
    return chmod(in_folder("mpirun"), 0700) != 0 ||
           setenv("PATH", path, 1) != 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mpirun_runs_the_same_command),
        cmocka_unit_test(test_tcp_limits_are_set),
        cmocka_unit_test(test_limits_of_the_environment_are_kept),
    };
    return cmocka_run_group_tests_name("launch", tests, prepare, folder_remove);
}

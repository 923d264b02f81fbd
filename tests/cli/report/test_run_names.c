/* Names of the runs of a report: their directories without what all have in
 * common. */
#include "cli/report/runs/groups.h"
#include "core/text/printable.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* nest is a run, and has the run 1 in it. */
static int make_runs(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    assert_code(
        BMUF("train", "tiny.ini", "--out", "one", "--set", "train.epochs=1"),
        0);
    run_tool((char *[]){"cp", "-r", (char *)in_folder("one"),
                        (char *)in_folder("nest"), NULL});
    run_tool((char *[]){"cp", "-r", (char *)in_folder("one"),
                        (char *)in_folder("nest/1"), NULL});
    return 0;
}

static void test_names_have_no_folder_that_all_are_in(void **state)
{
    static const char *const runs[][4] = {
        {"nest/1", "nest/", "nest/1", "nest"},
        {"nest/", "nest/1", "nest", "nest/1"},
        {"one/", "nest//", "one", "nest"},
        {"nest/1/", "one", "nest/1", "one"},
    };

    (void)state;
    FOR_EACH (i, runs) {
        char paths[2][200];
        const char *const directories[] = {paths[0], paths[1]};
        bm_run_set set;

        for (size_t k = 0; k < 2; k++)
            snprintf(paths[k], sizeof paths[k], "%s", in_folder(runs[i][k]));
        assert_ok(bm_run_set_read(&set, 2, directories, NULL));
        assert_string_equal(set.names[0], runs[i][2]);
        assert_string_equal(set.names[1], runs[i][3]);
        bm_run_set_free(&set);
    }
}

/* Names of two characters that begin with the same byte, and a long one of nothing but
 * those, are cut between characters. */
static void test_names_are_cut_between_characters(void **state)
{
    char longest[100] = "";
    const char *runs[3];
    char paths[3][200];
    bm_run_set set;

    (void)state;
    for (size_t i = 0; i < 40; i++)
        snprintf(longest + 2 * i, sizeof longest - 2 * i, "\u00e9");
    snprintf(longest + 80, sizeof longest - 80, "x");
    for (size_t k = 0; k < 3; k++) {
        static const char *const seeds[] = {"job.seed=1", "job.seed=2",
                                            "train.rate=0.01"};
        const char *names[] = {"l\u00e4", "l\u00f6", longest};

        assert_code(BMUF("train", "tiny.ini", "--out", names[k], "--set",
                         "train.epochs=1", "--set", seeds[k]),
                    0);
        snprintf(paths[k], sizeof paths[k], "%s", in_folder(names[k]));
        runs[k] = paths[k];
    }
    assert_ok(bm_run_set_read(&set, 3, runs, NULL));
    assert_int_equal(set.n_groups, 2);
    assert_string_equal(set.groups[0].name, "l* (2 runs)");
    assert_true(bm_is_utf8(set.names[2]));
    assert_string_equal(set.names[2] + 2, longest + 81 - 59);
    bm_run_set_free(&set);
}

/* As the user may give them: relative ones have nothing above. */
static void test_a_run_in_another_one_is_reported(void **state)
{
    char *page = NULL;
    size_t size = 0;

    (void)state;
    assert_code(
        BMUF("report", "nest/1", "nest/", "--no-examples", "--out", "r.html"),
        0);
    page = slurp(in_folder("r.html"), &size);
    assert_says(page, "nest/1");
    free(page);
}

/* A name of two characters in four bytes, and one that would clear a screen. */
static void test_tables_of_runs_have_straight_columns(void **state)
{
    static const char *const names[] = {"\u00e4\u00f6", "\x1b[2J", "plain"};
    outcome o;

    (void)state;
    assert_int_equal(mkdir(in_folder("table"), 0777), 0);
    FOR_EACH (i, names) {
        char to[100];

        snprintf(to, sizeof to, "table/%s", names[i]);
        run_tool((char *[]){"cp", "-r", (char *)in_folder("one"),
                            (char *)in_folder(to), NULL});
    }
    o = BMUF("info", "table");
    assert_code(o, 0);
    assert_says(o.out, "run     strategy");
    assert_says(o.out, "\n\u00e4\u00f6      bmuf ");
    assert_says(o.out, "\n\\x1b[2J bmuf ");
    assert_says(o.out, "\nplain   bmuf ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_have_no_folder_that_all_are_in),
        cmocka_unit_test(test_names_are_cut_between_characters),
        cmocka_unit_test(test_a_run_in_another_one_is_reported),
        cmocka_unit_test(test_tables_of_runs_have_straight_columns),
    };
    return cmocka_run_group_tests_name("run_names", tests, make_runs,
                                       folder_remove);
}

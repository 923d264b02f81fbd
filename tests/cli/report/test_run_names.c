/* Names of the runs of a report: their directories without what all have in
 * common. */
#include "cli/report/runs/groups.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_have_no_folder_that_all_are_in),
        cmocka_unit_test(test_a_run_in_another_one_is_reported),
    };
    return cmocka_run_group_tests_name("run_names", tests, make_runs,
                                       folder_remove);
}

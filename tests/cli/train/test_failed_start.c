/* What a run leaves behind that fails before its directory is opened. In a
 * program of its own, as the job starts MPI. */
#include "cli/launch/processes.h"
#include "cli/verbs.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <unistd.h>

static void test_files_of_others_stay_open(void **_)
{
    static bm_arguments a;
    char *words[] = {"none.ini", "--out", "run", NULL};
    int input = open("/dev/null", O_RDONLY);

    (void)_;
    assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(chdir(in_folder(".")), 0);
    write_text("none.ini", "[data]\n"
                           "train = none\n"
                           "[model]\n"
                           "net = linear\n");
    assert_ok(bm_arguments_read(&a, &bm_verb_train, 3, words, NULL));
    assert_int_equal(bm_verb_train.run(&a), BM_ERR_MISSING);
    assert_true(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    assert_int_equal(bm_job_end(BM_ERR_MISSING),
                     bm_status_exit(BM_ERR_MISSING));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_others_stay_open),
    };

    return cmocka_run_group_tests_name("failed_start", tests, folder_make,
                                       folder_remove);
}

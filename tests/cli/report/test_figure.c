/* Lines of a report that are the mean of several runs. Points are compared by their
 * distances in pixels. */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST = 12 };

/* A run with the seed, of epochs with the same blocks, each of which takes `seconds`.
 * Dev has errors[e] wrong after epoch e, and its average of models `average`. */
static void make_run(const char *name, int seed, int epochs, int blocks,
                     double seconds, const double *errors, double average)
{
    char path[80], text[8000];
    size_t n = 0;

    assert_int_equal(mkdir(in_folder(name), 0777), 0);
    snprintf(path, sizeof path, "%s/config.ini", name);
    snprintf(text, sizeof text, "[job]\nseed = %d\n[block]\nsteps = %d\n", seed,
             100 / blocks);
    write_text(path, text);
    n = (size_t)snprintf(text, sizeof text,
                         "{\"event\":\"start\",\"workers\":4,\"ranks\":1,"
                         "\"strategy\":\"bmuf\",\"epochs\":%d}\n",
                         epochs);
    for (int e = 0; e < epochs; e++) {
        for (int b = 0; b < blocks; b++)
            n += (size_t)snprintf(
                text + n, sizeof text - n,
                "{\"event\":\"block\",\"epoch\":%d,\"block\":%d,"
                "\"blocks_per_epoch\":%d,\"loss\":1,\"error\":0.5,"
                "\"rate\":0.1,\"frames\":100,\"seconds\":%g,\"g_norm\":1,"
                "\"delta_norm\":1,\"cos_g_delta\":%g}\n",
                e, b, blocks, seconds, 0.1 * (e + 1));
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "{\"event\":\"eval\",\"epoch\":%d,"
                              "\"data\":\"dev\",\"ler\":%g}\n",
                              e + 1, errors[e]);
        if (average > 0)
            n += (size_t)snprintf(text + n, sizeof text - n,
                                  "{\"event\":\"eval\",\"epoch\":%d,"
                                  "\"data\":\"dev-ema\",\"ler\":%g}\n",
                                  e + 1, average);
    }
    snprintf(path, sizeof path, "%s/journal.jsonl", name);
    write_text(path, text);
}

/* The points of the first line of a figure in r.html, in pixels from its axes. */
static size_t points(const char *title, double *x, double *y)
{
    char words[80];
    size_t size = 0, n = 0;
    char *page = slurp(in_folder("r.html"), &size);
    const char *at = NULL;
    double left = 0, bottom = 0;
    int used = 0;

    snprintf(words, sizeof words, "<title>%s</title>", title);
    at = strstr(page, words);
    assert_non_null(at);
    at = strstr(at, "class='axis' d='M");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "class='axis' d='M%lf %*fV%lf", &left, &bottom),
                     2);
    at = strstr(at, "class='l0' d='");
    assert_non_null(at);
    at += strlen("class='l0' d='");
    for (; n < MOST && sscanf(at, "%*1[ML]%lf %lf%n", &x[n], &y[n], &used) == 2;
         at += used, n++) {
        x[n] -= left;
        y[n] = bottom - y[n];
    }
    free(page);
    return n;
}

/* Of seeds that need one minute and two for an epoch, the second of which is shorter:
 * epochs are over after 1.5 and 3 minutes in the mean, and the last takes one. */
static void test_time_rises_where_a_run_ends(void **_)
{
    static const double one[] = {0.5, 0.4, 0.3}, two[] = {0.4, 0.2};
    double x[MOST], y[MOST];

    (void)_;
    make_run("one", 1, 3, 1, 60, one, 0);
    make_run("two", 2, 2, 1, 120, two, 0);
    assert_code(
        BMUF("report", "one", "two", "--no-examples", "--out", "r.html"), 0);
    assert_int_equal(points("label errors on dev over time", x, y), 3);
    assert_true(near(x[1] / x[0], 3 / 1.5, 5e-3));
    assert_true(near(x[2] / x[0], 4 / 1.5, 5e-3));
    assert_true(near(y[1] / y[0], 0.3 / 0.45, 5e-3));
    assert_true(near(y[2] / y[0], 0.3 / 0.45, 5e-3));
    assert_int_equal(points("label errors", x, y), 3);
    assert_true(near(x[1] / x[0], 2, 5e-3));
    assert_true(near(x[2] / x[0], 3, 5e-3));
}

/* Blocks of the same epochs are put together: two an epoch, and four. The cosine is 0.1 in
 * the first epoch and 0.2 in the second. */
static void test_blocks_of_other_sizes_meet_by_epochs(void **_)
{
    static const double errors[] = {0.5, 0.4, 0.3};
    static const double heights[] = {0, 0, 0.5, 0.5, 1, 1};
    double x[MOST], y[MOST];

    (void)_;
    make_run("coarse", 1, 2, 2, 60, errors, 0);
    make_run("fine", 1, 3, 4, 30, errors, 0);
    assert_code(BMUF("report", "fine", "coarse", "--band", "block.steps",
                     "--no-examples", "--out", "r.html"),
                0);
    assert_int_equal(points("cosine of G and Delta", x, y), 6);
    for (int i = 0; i < 6; i++) {
        assert_true(near(x[i] / x[0], i + 1, 5e-3));
        assert_true(near((y[i] - y[0]) / (y[5] - y[0]), heights[i], 5e-3));
    }
}

/* The average of models is what the table of results has, if it is better. */
static void test_errors_are_of_the_better_model(void **_)
{
    static const double errors[] = {0.5, 0.1};
    double x[MOST], y[MOST];

    (void)_;
    make_run("average", 1, 2, 1, 60, errors, 0.2);
    assert_code(BMUF("report", "average", "--no-examples", "--out", "r.html"),
                0);
    assert_int_equal(points("label errors on dev over time", x, y), 2);
    assert_true(near(y[1] / y[0], 0.5, 5e-3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_rises_where_a_run_ends),
        cmocka_unit_test(test_blocks_of_other_sizes_meet_by_epochs),
        cmocka_unit_test(test_errors_are_of_the_better_model),
    };
    return cmocka_run_group_tests_name("figure", tests, folder_make,
                                       folder_remove);
}

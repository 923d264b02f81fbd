/* bmuf compare and bmuf report, on runs that make some errors. */
#include "models/bootstrap.h"
#include "models/edit.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 21, LONGEST = 80 }; /* of test/ */

/* ---- compare ------------------------------------------------------------ */

static json_t *result_of(outcome o)
{
    assert_code(o, 0);
    return parse_json(o.out);
}

static json_t *run_of(const json_t *result, size_t k)
{
    return json_array_get(json_object_get(result, "runs"), k);
}

/* Errors of each sequence of a run, aligned here. */
static void count_errors(const char *run, bm_error_count count[N])
{
    char *text = NULL, *rest = NULL, *line = NULL;
    size_t size = 0;

    assert_code(BMUF("eval", run, "test", "--hyp", "c.trn"), 0);
    text = slurp(in_folder("c.trn"), &size);
    line = strtok_r(text, "\n", &rest);
    for (size_t k = 0; k < N; k++, line = strtok_r(NULL, "\n", &rest)) {
        const char *wanted = speech_text(k);
        int32_t ref[LONGEST], hyp[LONGEST];
        size_t n_ref = strlen(wanted), n_hyp = 0;
        bm_edits edits = {0};

        assert_non_null(line);
        assert_non_null(strstr(line, " (test-"));
        n_hyp = (size_t)(strstr(line, " (test-") - line);
        assert_true(n_ref < LONGEST && n_hyp < LONGEST);
        for (size_t i = 0; i < n_ref; i++)
            ref[i] = wanted[i];
        for (size_t i = 0; i < n_hyp; i++)
            hyp[i] = line[i];
        assert_ok(bm_edit(ref, n_ref, hyp, n_hyp, &edits));
        count[k] =
            (bm_error_count){(double)bm_edits_total(edits), (double)n_ref};
    }
    free(text);
}

static void test_compare_has_the_numbers_of_eval_and_of_paired_draws(void **_)
{
    json_t *all = result_of(BMUF("compare", "a", "b", "--json"));
    json_t *a = result_of(BMUF("eval", "a", "test", "--json"));
    json_t *b = result_of(BMUF("eval", "b", "test", "--json"));
    json_t *than = json_object_get(run_of(all, 1), "than_first");
    json_t *labels = json_object_get(than, "ler");
    bm_error_count count_a[N], count_b[N];
    bm_interval expected = {0};

    (void)_;
    assert_string_equal(text(all, "data"), "test");
    assert_true(number(all, "sequences") == N);
    assert_true(number(run_of(all, 0), "ler") == number(a, "ler"));
    assert_true(number(run_of(all, 1), "ler") == number(b, "ler"));
    assert_true(number(run_of(all, 1), "wer") == number(b, "wer"));
    assert_true(json_equal(json_object_get(run_of(all, 1), "ler_95"),
                           json_object_get(b, "ler_95")));
    assert_null(json_object_get(run_of(all, 0), "than_first"));
    count_errors("a", count_a);
    count_errors("b", count_b);
    assert_ok(bm_bootstrap_difference(count_a, count_b, N, &expected));
    assert_true(expected.low < expected.high);
    assert_true(near(number(labels, "difference"),
                     number(b, "ler") - number(a, "ler"), 1e-8));
    assert_true(near(number(labels, "low"), expected.low, 1e-8));
    assert_true(near(number(labels, "high"), expected.high, 1e-8));
    assert_true(
        near(number(labels, "probability_lower"), expected.below, 1e-8));
    json_decref(all);
    json_decref(a);
    json_decref(b);
}

/* Those that differ, and no others. */
static void test_compare_lists_settings_that_differ(void **_)
{
    json_t *all = result_of(BMUF("compare", "a", "b", "--json"));
    json_t *of_a = json_object_get(run_of(all, 0), "settings");
    json_t *of_b = json_object_get(run_of(all, 1), "settings");
    outcome o = BMUF("compare", "a", "b", "a");

    (void)_;
    assert_int_equal(json_object_size(of_a), 2);
    assert_string_equal(text(of_a, "train.epochs"), "5");
    assert_string_equal(text(of_b, "train.epochs"), "8");
    assert_string_equal(text(of_b, "train.rate"), "0.1");
    assert_code(o, 0);
    assert_says(o.out, "train.rate                0.05  0.1  0.05");
    assert_says(o.out, "no difference in any sequence");
    assert_says(o.out, "word errors");
    json_decref(all);
}

static void test_ranks_do_not_change_a_comparison(void **_)
{
    outcome one = BMUF("compare", "a", "b", "--json");
    outcome two = BMUF_ON(2, "compare", "a", "b", "--json");

    (void)_;
    assert_code(one, 0);
    assert_code(two, 0);
    assert_string_equal(one.out, two.out);
}

static void test_compare_says_what_is_missing(void **_)
{
    (void)_;
    assert_fails(BMUF("compare", "a"), 64, "compare needs RUN...");
    assert_fails(BMUF("compare", "a", "none", "--on", "test"), 66, "none");
    assert_fails(BMUF("compare", "a", "b", "--on", "nowhere"), 66, "nowhere");
    assert_fails(BMUF("compare", "a/model.safetensors", "b"), 66,
                 "a/model.safetensors names no data.dev", "--on DIR");
}

/* ---- main --------------------------------------------------------------- */

static int prepare(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    assert_code(BMUF("train", "tiny.ini", "--out", "a", "--set",
                     "train.epochs=5", "--set", "schedule.kind=constant"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "b", "--set",
                     "train.epochs=8", "--set", "schedule.kind=constant",
                     "--set", "train.rate=0.1"),
                0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_compare_has_the_numbers_of_eval_and_of_paired_draws),
        cmocka_unit_test(test_compare_lists_settings_that_differ),
        cmocka_unit_test(test_ranks_do_not_change_a_comparison),
        cmocka_unit_test(test_compare_says_what_is_missing),
    };

    return cmocka_run_group_tests_name("report", tests, prepare, folder_remove);
}

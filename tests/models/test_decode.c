/* Best path and edit distance: by hand, against plain recursion, and against
 * results of other programs (from BMUF_DATA/../reference). */
#include "models/decoding/best_path.h"
#include "models/edit.h"
#include "tests/support/reference/support_ctc.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

static size_t numbers(const json_t *array, int32_t *out)
{
    size_t n = json_array_size(array);

    assert_true(n <= MOST);
    for (size_t i = 0; i < n; i++)
        out[i] = (int32_t)json_integer_value(json_array_get(array, i));
    return n;
}

static void assert_labels(const int32_t *got, size_t n, const int32_t *expected,
                          size_t n_expected)
{
    assert_int_equal(n, n_expected);
    assert_memory_equal(got, expected, n * sizeof *got);
}

static void test_best_path_merges_repeats_and_drops_blanks(void **state)
{
    /* Best classes 2 2 0 2 1 1 0, one float between the rows. */
    static const float y[] = {0, 1, 5, 9, 0, 1, 5, 9, 5, 1, 0, 9, 0, 1,
                              5, 9, 0, 5, 1, 9, 0, 5, 1, 9, 5, 1, 0, 9};
    static const int32_t expected[] = {2, 2, 1};
    double p = exp(5) / (exp(5) + exp(1) + 1), score = 0;
    int32_t labels[7];
    size_t n = bm_decode_greedy(y, 7, 4, 3, labels, &score);

    (void)state;
    assert_labels(labels, n, expected, 3);
    assert_true(near(score, 7 * log(p), 1e-12));
    assert_int_equal(bm_decode_greedy(y, 7, 4, 3, labels, NULL), 3);
    assert_int_equal(bm_decode_greedy(y, 0, 4, 3, labels, &score), 0);
    assert_true(score == 0);
}

static void test_ties_select_the_first_class(void **state)
{
    static const float y[] = {1, 1, 0, 0, 1, 1};
    static const int32_t expected[] = {1};
    int32_t labels[2];

    (void)state;
    assert_labels(labels, bm_decode_greedy(y, 2, 3, 3, labels, NULL), expected,
                  1);
}

/* Renumbers classes so that the blank is 0. */
static int32_t moved(int32_t k, int32_t blank)
{
    return k == blank ? 0 : k < blank ? k + 1 : k;
}

/* Probabilities of a row need not sum to 1 in the reference; ours do. Returns
 * the logarithm of the sum, by which the scores differ. */
static double read_row(const json_t *item, size_t t, int32_t blank, float *y)
{
    bool logits = json_object_get(item, "logits") != NULL;
    const json_t *rows = json_object_get(item, logits ? "logits" : "prob");
    const json_t *row = json_array_get(rows, t);
    double sum = 0;

    for (size_t k = 0; k < json_array_size(row); k++) {
        double x = json_number_value(json_array_get(row, k));

        y[moved((int32_t)k, blank)] = (float)(logits ? x : log(x));
        sum += x;
    }
    return logits ? 0 : log(sum);
}

static void check_greedy(const json_t *item)
{
    bool logits = json_object_get(item, "logits") != NULL;
    const json_t *rows = json_object_get(item, logits ? "logits" : "prob");
    size_t T = json_array_size(rows);
    size_t C = json_array_size(json_array_get(rows, 0));
    int32_t blank = (int32_t)json_integer_value(json_object_get(item, "blank"));
    int32_t expected[MOST], labels[MOST];
    size_t n = numbers(json_object_get(item, "greedy"), expected);
    double score = 0, lacks = 0;
    float y[MOST];

    print_message("%s\n", json_string_value(json_object_get(item, "name")));
    assert_true(T * C <= MOST);
    for (size_t i = 0; i < n; i++)
        expected[i] = moved(expected[i], blank);
    for (size_t t = 0; t < T; t++)
        lacks += read_row(item, t, blank, y + t * C);
    assert_labels(labels, bm_decode_greedy(y, T, C, C, labels, &score),
                  expected, n);
    assert_true(near(score + lacks,
                     json_number_value(json_object_get(item, "greedy_logp")),
                     1e-6));
}

static void test_best_paths_match_other_programs(void **state)
{
    json_t *known = known_answers(), *item = NULL;
    size_t i = 0;

    (void)state;
    if (known == NULL)
        skip();
    json_array_foreach(json_object_get(known, "decode"), i, item)
        check_greedy(item);
    assert_true(i > 0);
    json_decref(known);
}

static bm_edits align(const int32_t *ref, size_t n_ref, const int32_t *hyp,
                      size_t n_hyp)
{
    bm_edits e;
    assert_ok(bm_edit(ref, n_ref, hyp, n_hyp, &e));
    return e;
}

static void assert_edits(bm_edits e, size_t ins, size_t del, size_t sub)
{
    assert_int_equal(e.insertions, ins);
    assert_int_equal(e.deletions, del);
    assert_int_equal(e.substitutions, sub);
}

static void test_edits_are_counted_by_kind(void **state)
{
    static const int32_t a[] = {2, 3, 4, 5, 6, 7}, b[] = {1, 3, 4, 5};

    (void)state;
    assert_edits(align(a, 6, b, 4), 0, 2, 1); /* Kaldi's test */
    assert_edits(align(b, 4, a, 6), 2, 0, 1);
    assert_edits(align(a, 6, a, 6), 0, 0, 0);
    assert_edits(align(a, 6, NULL, 0), 0, 6, 0);
    assert_edits(align(NULL, 0, a, 6), 6, 0, 0);
    assert_edits(align(NULL, 0, NULL, 0), 0, 0, 0);
    assert_edits(align(a, 2, (int32_t[]){3, 2}, 2), 0, 0, 2); /* not 1 + 1 */
    assert_edits(align(a, 3, a + 1, 3), 1, 1, 0);             /* not 3 */
}

static void test_edits_match_other_programs(void **state)
{
    json_t *known = known_answers(), *item = NULL;
    size_t i = 0, checked = 0;

    (void)state;
    if (known == NULL)
        skip();
    json_array_foreach(json_object_get(known, "edit"), i, item)
    {
        int32_t ref[MOST] = {0}, hyp[MOST] = {0}, costs[MOST] = {0};
        int32_t expected[MOST] = {0};
        size_t n_ref = numbers(json_object_get(item, "ref"), ref);
        size_t n_hyp = numbers(json_object_get(item, "hyp"), hyp);

        numbers(json_object_get(item, "costs"), costs);
        numbers(json_object_get(item, "ins_del_sub"), expected);
        if (costs[0] != 1 || costs[1] != 1 || costs[2] != 1)
            continue; /* sclite's costs */
        checked++;
        assert_edits(align(ref, n_ref, hyp, n_hyp), (size_t)expected[0],
                     (size_t)expected[1], (size_t)expected[2]);
    }
    assert_true(checked > 0);
    json_decref(known);
}

/* The definition, from the end, in exponential time. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static size_t slowly(const int32_t *ref, size_t n, const int32_t *hyp, size_t m)
{
    size_t match = 0, del = 0, ins = 0, least = 0;

    if (n == 0 || m == 0)
        return n + m;
    match = slowly(ref, n - 1, hyp, m - 1) + (ref[n - 1] != hyp[m - 1]);
    del = slowly(ref, n - 1, hyp, m) + 1;
    ins = slowly(ref, n, hyp, m - 1) + 1;
    least = del < ins ? del : ins;
    return match < least ? match : least;
}

static void test_alignments_are_minimal(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 200; n++) {
        size_t n_ref = pick(3 * n, 7), n_hyp = pick(3 * n + 1, 7);
        int32_t ref[8], hyp[8];
        bm_edits e;

        for (size_t i = 0; i < 8; i++) {
            ref[i] = (int32_t)pick(100 * n + i, 3);
            hyp[i] = (int32_t)pick(100 * n + 50 + i, 3);
        }
        e = align(ref, n_ref, hyp, n_hyp);
        assert_int_equal(bm_edits_total(e), slowly(ref, n_ref, hyp, n_hyp));
        assert_int_equal(n_ref + e.insertions, n_hyp + e.deletions);
    }
}

/* The pairs of an alignment are both sequences in order, and as many kinds of
 * errors as bm_edit counts. */
static void test_pairs_are_those_that_are_counted(void **state)
{
    int32_t ref[8], hyp[8];
    bm_pair pairs[16];

    (void)state;
    for (size_t n = 0; n < 300; n++) {
        size_t n_ref = n % 9, n_hyp = n / 3 % 9, n_pairs = 0, i = 0, j = 0;
        bm_edits e = {0}, counted = {0};

        for (size_t k = 0; k < 8; k++) {
            ref[k] = (int32_t)pick(100 * n + k, 3);
            hyp[k] = (int32_t)pick(100 * n + 50 + k, 3);
        }
        e = align(ref, n_ref, hyp, n_hyp);
        assert_ok(
            bm_align(ref, n_ref, hyp, n_hyp, &bm_edit_unit, pairs, &n_pairs));
        for (size_t k = 0; k < n_pairs; k++) {
            counted.deletions += pairs[k].hyp < 0;
            counted.insertions += pairs[k].ref < 0;
            counted.substitutions += pairs[k].ref >= 0 && pairs[k].hyp >= 0 &&
                                     pairs[k].ref != pairs[k].hyp;
            if (pairs[k].ref >= 0)
                assert_int_equal(pairs[k].ref, ref[i++]);
            if (pairs[k].hyp >= 0)
                assert_int_equal(pairs[k].hyp, hyp[j++]);
        }
        assert_true(i == n_ref && j == n_hyp);
        assert_edits(counted, e.insertions, e.deletions, e.substitutions);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best_path_merges_repeats_and_drops_blanks),
        cmocka_unit_test(test_ties_select_the_first_class),
        cmocka_unit_test(test_best_paths_match_other_programs),
        cmocka_unit_test(test_edits_are_counted_by_kind),
        cmocka_unit_test(test_edits_match_other_programs),
        cmocka_unit_test(test_alignments_are_minimal),
        cmocka_unit_test(test_pairs_are_those_that_are_counted),
    };
    return RUN_GROUP("decode", tests);
}

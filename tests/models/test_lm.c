/* Language models: log10 p by hand and by the definition of back-off, and files
 * that are damaged. */
#include "models/decoding/lm.h"

#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char small[] = "an estimated model\n\n"
                            "\\data\\\n"
                            "ngram 1=5\n"
                            "ngram 2 = 4\n"
                            "ngram 3=2\n"
                            "\n"
                            "\\1-grams:\n"
                            "-99\t<s>\t-0.5\n"
                            "-1.5\t</s>\n"
                            "-2\t<unk>\n"
                            "-0.75\ta\t-0.25\n"
                            "-1.0\tb\t-0.125\n"
                            "\n"
                            "\\2-grams:\n"
                            "-0.25\t<s> a\t-0.0625\n"
                            "-0.5\ta b\t0.03125\n"
                            "-1.25\tb a\n"
                            "-0.375 b </s>\r\n"
                            "\n"
                            "\\3-grams:\n"
                            "-0.125\t<s> a b\n"
                            "-0.0625\ta b </s>\n"
                            "\n"
                            "\\end\\\n";

static bm_lm *open_text(const char *text)
{
    bm_lm *lm = NULL;

    write_text("small.arpa", text);
    assert_ok(bm_lm_open(&lm, in_folder("small.arpa")));
    return lm;
}

/* log10 p of each word of a text, added up. `sentence`: behind <s>, and with
 * </s>. */
static double of_text(const bm_lm *lm, const char *text, bool sentence)
{
    bm_lm_state states[2] = {{0}, {0}};
    char copy[200], *rest = NULL;
    double sum = 0;
    int at = 0;

    if (sentence)
        bm_lm_begin(lm, &states[0]);
    snprintf(copy, sizeof copy, "%s%s", text, sentence ? " </s>" : "");
    for (char *w = strtok_r(copy, " ", &rest); w != NULL;
         w = strtok_r(NULL, " ", &rest), at = 1 - at)
        sum += bm_lm_score(lm, &states[at], bm_lm_find(lm, w), &states[1 - at]);
    return sum;
}

static void check_small(const bm_lm *lm)
{
    assert_int_equal(bm_lm_order(lm), 3);
    assert_int_equal(bm_lm_count(lm, 1), 5);
    assert_int_equal(bm_lm_count(lm, 2), 4);
    assert_int_equal(bm_lm_count(lm, 3), 2);
    assert_string_equal(bm_lm_word(lm, bm_lm_find(lm, "b")), "b");
    assert_int_equal(bm_lm_find(lm, "c"), bm_lm_unknown(lm));
    assert_true(bm_lm_is_special(lm, bm_lm_find(lm, "<s>")));
    assert_false(bm_lm_is_special(lm, bm_lm_find(lm, "a")));
    /* <s> a: -0.25; <s> a b: -0.125; a b </s>: -0.0625 */
    assert_true(near(of_text(lm, "a b", true), -0.4375, 1e-12));
    /* a: -0.75; a a: bo(a) + a = -0.25 - 0.75 */
    assert_true(near(of_text(lm, "a a", false), -1.75, 1e-12));
    /* <s> b: -0.5 - 1; b a: -1.25; a </s>, no bo(b a): -0.25 - 1.5 */
    assert_true(near(of_text(lm, "b a", true), -4.5, 1e-12));
    /* a: -0.75; a b: -0.5; a b a: bo(a b) + b a = 0.03125 - 1.25 */
    assert_true(near(of_text(lm, "a b a", false), -2.46875, 1e-12));
    /* c: -2; <unk> has no back-off: a: -0.75 */
    assert_true(near(of_text(lm, "c a", false), -2.75, 1e-12));
    /* <s> a: -0.25; <s> a c: bo(<s> a) + bo(a) - 2; </s>: -1.5 */
    assert_true(near(of_text(lm, "a c", true), -0.25 - 2.3125 - 1.5, 1e-12));
}

static void test_p_and_back_off_are_those_of_the_file(void **state)
{
    bm_lm *lm = open_text(small), *compact = NULL;

    (void)state;
    check_small(lm);
    assert_ok(bm_lm_write(lm, in_folder("small.lm")));
    assert_ok(bm_lm_open(&compact, in_folder("small.lm")));
    check_small(compact);
    assert_int_equal(bm_lm_bytes(compact), bm_lm_bytes(lm));
    bm_lm_close(compact);
    bm_lm_close(lm);
}

/* Before \data\, as some editors write it. */
static void test_a_byte_order_mark_is_skipped(void **state)
{
    char text[sizeof small + 3];
    bm_lm *lm = NULL;

    (void)state;
    snprintf(text, sizeof text, "\xef\xbb\xbf%s", strchr(small, '\\'));
    lm = open_text(text);
    check_small(lm);
    bm_lm_close(lm);
}

static void test_gzip_is_read(void **state)
{
    gzFile file = gzopen(in_folder("small.arpa.gz"), "wb");
    bm_lm *lm = NULL;

    (void)state;
    assert_int_equal(gzwrite(file, small, sizeof small - 1), sizeof small - 1);
    assert_int_equal(gzclose(file), Z_OK);
    assert_ok(bm_lm_open(&lm, in_folder("small.arpa.gz")));
    check_small(lm);
    bm_lm_close(lm);
}

static void test_a_model_without_special_words_is_completed(void **state)
{
    bm_lm *lm = open_text("\\data\\\nngram 1=1\n\\1-grams:\n-0.5 a\n\\end\\\n");
    bm_lm_state begin;

    (void)state;
    assert_int_equal(bm_lm_order(lm), 1);
    assert_int_equal(bm_lm_count(lm, 1), 2);
    assert_int_equal(bm_lm_end(lm), BM_LM_NONE);
    bm_lm_begin(lm, &begin);
    assert_int_equal(begin.n, 0);
    assert_true(near(of_text(lm, "a a", false), -1, 1e-12));
    assert_true(near(of_text(lm, "b", false), -100, 1e-12)); /* as KenLM */
    bm_lm_close(lm);
}

/* ---- the definition ------------------------------------------------------ */

enum { WORDS = 4, MOST_GRAMS = 600 };

/* n-grams of words a .. d, in order; p is NaN if there is none. */
typedef struct gram {
    int n, words[BM_LM_MOST];
    double p, backoff;
} gram;

static gram grams[MOST_GRAMS];
static int n_grams;

static const gram *lookup(const int *words, int n)
{
    for (int i = 0; i < n_grams; i++)
        if (grams[i].n == n &&
            memcmp(grams[i].words, words, (size_t)n * sizeof *words) == 0)
            return &grams[i];
    return NULL;
}

/* log10 p of the last of n words behind the others, as ARPA defines it. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static double defined(const int *words, int n)
{
    const gram *g = lookup(words, n), *context = lookup(words, n - 1);

    if (g != NULL)
        return g->p;
    return (context != NULL ? context->backoff : 0) + defined(words + 1, n - 1);
}

static double eighth(uint64_t key) /* exact as a float, and when added */
{
    return -floor(64 * uniform(key)) / 8;
}

/* A random model. The longer n-grams' parts are not all there, as in a model that
 * was pruned. */
static void make_random(uint64_t key, int order, FILE *out)
{
    int counts[BM_LM_MOST] = {0};

    n_grams = 0;
    for (int k = 1; k <= order; k++) {
        int most = k == 1 ? WORDS : 40;

        for (int i = 0; i < most; i++) {
            gram g = {.n = k};
            uint64_t at = mix(key * 10000 + (uint64_t)(k * 100 + i));

            for (int j = 0; j < k; j++)
                g.words[j] = k == 1 ? i : (int)(mix(at + (uint64_t)j) % WORDS);
            g.p = eighth(at + 50);
            g.backoff = k < order ? eighth(at + 51) : 0;
            if (lookup(g.words, k) != NULL)
                continue;
            grams[n_grams++] = g;
            counts[k - 1]++;
        }
    }
    fprintf(out, "\\data\\\n");
    for (int k = 1; k <= order; k++)
        fprintf(out, "ngram %d=%d\n", k, counts[k - 1]);
    for (int i = 0, k = 0; i < n_grams; i++) {
        if (grams[i].n != k)
            fprintf(out, "\n\\%d-grams:\n", k = grams[i].n);
        fprintf(out, "%g\t", grams[i].p);
        for (int j = 0; j < k; j++)
            fprintf(out, "%s%c", j > 0 ? " " : "", 'a' + grams[i].words[j]);
        if (k < order)
            fprintf(out, "\t%g", grams[i].backoff);
        fprintf(out, "\n");
    }
    fprintf(out, "\n\\end\\\n");
}

static void test_p_is_that_of_the_definition(void **state)
{
    (void)state;
    for (int order = 1; order <= BM_LM_MOST; order++)
        for (uint64_t key = 0; key < 4; key++) {
            FILE *file = fopen(in_folder("random.arpa"), "w");
            bm_lm_state states[2] = {{0}, {0}};
            bm_lm *lm = NULL;
            int words[400];

            assert_non_null(file);
            make_random(key + 100 * (uint64_t)order, order, file);
            assert_int_equal(fclose(file), 0);
            assert_ok(bm_lm_open(&lm, in_folder("random.arpa")));
            assert_int_equal(bm_lm_order(lm), order);
            for (int i = 0; i < 400; i++) {
                int n = i + 1 < order ? i + 1 : order;
                double p = 0;
                char word[2] = "a";

                words[i] = (int)(mix(key * 1000 + (uint64_t)i) % WORDS);
                word[0] = (char)('a' + words[i]);
                p = bm_lm_score(lm, &states[i % 2], bm_lm_find(lm, word),
                                &states[1 - i % 2]);
                assert_true(near(p, defined(words + i + 1 - n, n), 1e-6));
            }
            bm_lm_close(lm);
        }
}

/* ---- damage -------------------------------------------------------------- */

static void refused(const char *name, bm_status expected, const char *message)
{
    bm_lm *lm = NULL;

    assert_int_equal(bm_lm_open(&lm, in_folder(name)), expected);
    if (strstr(bm_last_message(), message) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", message, bm_last_message());
}

/* The small model with `was` replaced by `is`. */
static void refused_with(const char *was, const char *is, const char *message)
{
    char text[2 * sizeof small];
    const char *at = strstr(small, was);

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - small), small, is,
             at + strlen(was));
    write_text("bad.arpa", text);
    refused("bad.arpa", BM_ERR_FORMAT, message);
}

static void test_errors_of_arpa_files_are_placed(void **state)
{
    (void)state;
    refused_with("\\data\\", "\\date\\", "there is no line \\data\\");
    refused_with("an estimated model", "iARPA",
                 "bad.arpa:1: an intermediate file of IRSTLM");
    refused_with("an estimated model", "qARPA 3 256 256 256",
                 "bad.arpa:1: a quantised model of IRSTLM");
    refused_with("ngram 1=5", "ngram one=5",
                 "bad.arpa:4: \"ngram one=5\" is not");
    refused_with("ngram 2 = 4", "ngram 3=4",
                 "bad.arpa:5: the number of 3-grams");
    refused_with("ngram 3=2",
                 "ngram 3=2\nngram 4=0\nngram 5=0\nngram 6=0\n"
                 "ngram 7=0",
                 "bad.arpa:10: 7-grams");
    refused_with("ngram 1=5\nngram 2 = 4\nngram 3=2\n", "", "no line such as");
    refused_with(
        "\\1-grams:", "\\2-grams:", "bad.arpa:8: \\1-grams: is missing");
    refused_with("-99\t", "many\t", "bad.arpa:9: expected log10");
    refused_with("-99\t", "nan\t", "expected log10");
    refused_with("-99\t", "0x1\t", "expected log10");
    refused_with("-99\t", "1e99\t", "expected log10");
    refused_with("-99\t", "0.5\t", "is at most 0, not 0.5");
    refused_with("<s>\t-0.5", "<s>\tlow",
                 "a back-off weight after the word, found \"low\"");
    refused_with("<s>\t-0.5", "<s>\t-0.5\t3", "more than 1 words");
    refused_with("-1.25\tb a", "-1.25\tb", "bad.arpa:18: a 2-gram has 2 words");
    refused_with("b a", "b d", "bad.arpa:18: \"d\" is not among the 1-grams");
    refused_with("-1.25\tb a\n", "", "there are 3 2-grams and not 4");
    refused_with("b a", "a b", "the 2-gram \"a b\" occurs twice");
    refused_with("\tb\t", "\t\xc3\t",
                 "bad.arpa:13: the word \"\xc3\" is not "
                 "UTF-8");
    refused_with("\t<unk>", "\ta", "the 1-gram \"a\" occurs twice");
    refused_with("\\end\\", "", "\\end\\ is missing");
    refused_with("\\3-grams:", "\\4-grams:", "\\3-grams: is missing");
    write_bytes("bad.arpa", "\\data\\\nngram 1=1\n\0\n\\1-grams:\n", 30);
    refused("bad.arpa", BM_ERR_FORMAT, "bad.arpa:3: the line has a zero byte");
    write_text("bad.arpa", "");
    refused("bad.arpa", BM_ERR_FORMAT, "no line \\data\\");
    refused("none.arpa", BM_ERR_MISSING, "none.arpa");
}

static void test_an_incomplete_gzip_file_is_refused(void **state)
{
    size_t n = 0;
    gzFile file = gzopen(in_folder("whole.gz"), "wb");
    char *bytes = NULL;

    (void)state;
    assert_int_equal(gzwrite(file, small, sizeof small - 1), sizeof small - 1);
    assert_int_equal(gzclose(file), Z_OK);
    bytes = slurp(in_folder("whole.gz"), &n);
    write_bytes("cut.gz", bytes, n - 12);
    refused("cut.gz", BM_ERR_FORMAT, "damaged or incomplete");
    bytes[n / 2] ^= 0x55;
    write_bytes("cut.gz", bytes, n);
    refused("cut.gz", BM_ERR_FORMAT, "cut.gz");
    free(bytes);
}

/* Every cut and every flipped bit of a compact file is found. */
static void test_a_damaged_compact_file_is_refused(void **state)
{
    bm_lm *lm = open_text(small);
    size_t n = 0;
    char *bytes = NULL;

    (void)state;
    assert_ok(bm_lm_write(lm, in_folder("whole.lm")));
    bm_lm_close(lm);
    bytes = slurp(in_folder("whole.lm"), &n);
    for (size_t i = 8; i < n; i++) {
        write_bytes("bad.lm", bytes, i);
        refused("bad.lm", BM_ERR_FORMAT, "make it again with bmuf lm");
        bytes[i] ^= (char)(1 << i % 8);
        write_bytes("bad.lm", bytes, n);
        refused("bad.lm", BM_ERR_FORMAT, "make it again with bmuf lm");
        bytes[i] ^= (char)(1 << i % 8);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_p_and_back_off_are_those_of_the_file),
        cmocka_unit_test(test_a_byte_order_mark_is_skipped),
        cmocka_unit_test(test_gzip_is_read),
        cmocka_unit_test(test_a_model_without_special_words_is_completed),
        cmocka_unit_test(test_p_is_that_of_the_definition),
        cmocka_unit_test(test_errors_of_arpa_files_are_placed),
        cmocka_unit_test(test_an_incomplete_gzip_file_is_refused),
        cmocka_unit_test(test_a_damaged_compact_file_is_refused),
    };
    return cmocka_run_group_tests_name("lm", tests, folder_make, folder_remove);
}

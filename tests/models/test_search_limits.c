/* The beam search with limits that bind, against a plain one: the same words,
 * scores and frames. */
#include "models/decoding/search.h"

#include "tests/support/folder.h"
#include "tests/support/reference/plain_search.h"
#include "tests/support/reference/support_ctc.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Weight of the models: times ln 10 it is exactly 1/2. Since all numbers of the
 * language are multiples of small powers of 2, candidates with equal scores are
 * equal in both searches. */
static const double weight = 0.21714724095162591;

static const char words_arpa[] = "\\data\\\n"
                                 "ngram 1=7\n"
                                 "ngram 2=5\n"
                                 "\\1-grams:\n"
                                 "-99\t<s>\t-0.25\n"
                                 "-1\t</s>\n"
                                 "-1.5\t<unk>\n"
                                 "-0.5\ta\t-0.125\n"
                                 "-0.75\tab\t-0.5\n"
                                 "-0.8125\tac\t-0.25\n"
                                 "-1.25\tba\n"
                                 "\\2-grams:\n"
                                 "-0.125\t<s> ab\n"
                                 "-0.25\tab a\n"
                                 "-0.375\tac ba\n"
                                 "-2\ta a\n"
                                 "-0.0625\ta </s>\n"
                                 "\\end\\\n";

static const char symbols_arpa[] = "\\data\\\n"
                                   "ngram 1=5\n"
                                   "ngram 2=2\n"
                                   "\\1-grams:\n"
                                   "-99\t<s>\t-0.25\n"
                                   "-1\t</s>\n"
                                   "-0.5\ta\t-0.125\n"
                                   "-0.75\tb\t-0.5\n"
                                   "-0.25\t<space>\n"
                                   "\\2-grams:\n"
                                   "-0.125\t<s> b\n"
                                   "-0.25\tb b\n"
                                   "\\end\\\n";

/* ---- comparisons --------------------------------------------------------- */

static void write_labels(const rig *r, const bm_hypothesis *h, char *out)
{
    for (size_t k = 0; k < h->n_labels; k++)
        out[k] = r->labels[h->labels[k].label];
    out[h->n_labels] = '\0';
}

/* The words of a hypothesis, each followed by a space. */
static void write_words(const rig *r, const bm_hypothesis *h, char *out)
{
    char labels[TEXT];

    write_labels(r, h, labels);
    out[0] = '\0';
    for (size_t i = 0; i < h->n_words; i++) {
        const bm_found_word *w = &h->words[i];
        size_t n = strlen(out);

        assert_int_equal(w->first, h->labels[w->begin].first);
        assert_int_equal(w->last, h->labels[w->end - 1].last);
        if (w->word >= 0)
            snprintf(out + n, TEXT - n, "%s ",
                     bm_language_word(r->language, w->word));
        else
            snprintf(out + n, TEXT - n, "%.*s ", (int)(w->end - w->begin),
                     labels + w->begin);
    }
}

/* The frames of labels are those of the best path. */
static void check_times(const rig *r, const char *text, const bm_hypothesis *h,
                        const float *y, size_t T)
{
    int32_t last[MOST_FRAMES] = {0};
    size_t n = 0;
    char before = '-';
    path p;

    assert_true(best_path(r, text, y, T, &p));
    for (size_t t = 0; t < T; before = p.classes[t++]) {
        char c = p.classes[t];
        char label = n > 0 ? r->labels[h->labels[n - 1].label] : '\0';
        bool further = c == ' ' && merges_spaces(r, label);

        if (c == '-' || (further && n == 0))
            continue;
        if (!further && c != before)
            assert_int_equal(h->labels[n++].first, t);
        last[n - 1] = (int32_t)t;
    }
    assert_int_equal(n, h->n_labels);
    for (size_t k = 0; k < n; k++)
        assert_int_equal(h->labels[k].last, last[k]);
}

/* The results of the program are those of the plain search. */
static void check_found(const rig *r, const bm_hypotheses *found,
                        const float *y, size_t T, bool times)
{
    assert_int_equal(found->n, n_results);
    for (size_t i = 0; i < found->n; i++) {
        const bm_hypothesis *h = &found->best[i];
        char words[TEXT], labels[TEXT], expected[TEXT];
        size_t j = 0;

        write_words(r, h, words);
        write_labels(r, h, labels);
        while (j < n_results && strcmp(results[j].words, words) != 0)
            j++;
        if (j == n_results)
            fail_msg("no text is \"%s\"", words);
        if (!near(h->score, results[j].score, 1e-6))
            fail_msg("\"%s\" has the score %.9f instead of %.9f", words,
                     h->score, results[j].score);
        assert_true(i == 0 || h->score <= found->best[i - 1].score);
        strip(results[j].text, expected);
        assert_string_equal(labels, expected);
        if (times)
            check_times(r, results[j].text, h, y, T);
    }
}

static float *posteriors(uint64_t key, size_t T, size_t C, double scale)
{
    float *y = normals(key, T * C, scale);

    bm_log_posteriors(y, T, C, C, y);
    return y;
}

static bm_decoder_settings limits(const rig *r, size_t width, double threshold,
                                  double symbol_threshold)
{
    bm_decoder_settings s =
        bm_decoder_defaults(strlen(r->labels), bm_vocab_space(r->vocab));

    s.language = r->language;
    s.beam = width;
    s.threshold = threshold;
    s.symbol_threshold = symbol_threshold;
    s.nbest = MOST_RESULTS;
    return s;
}

/* Searches a sequence with the program and plainly. */
static void compare(const rig *r, const bm_decoder_settings *s, const float *y,
                    size_t T, bool times)
{
    bm_decoder *d = NULL;
    bm_hypotheses found;

    assert_ok(bm_decoder_new(&d, s));
    assert_ok(bm_decoder_run(d, y, T, &found));
    search_plainly(r, s, y, T, times);
    check_found(r, &found, y, T, times);
    bm_decoder_free(d);
}

/* Many short sequences with several limits. */
static void check_short(const rig *r, uint64_t key)
{
    for (size_t n = 0; n < 600; n++) {
        size_t T = n % (MOST_FRAMES + 1), width = 1 + n % 7;
        bm_decoder_settings s =
            limits(r, width, n % 3 == 0 ? INFINITY : 2 + (double)(n % 5),
                   n % 2 == 0 ? -INFINITY : -2);
        float *y =
            posteriors(mix(key) + n, T, s.classes, 1 + 0.25 * (double)(n % 11));

        compare(r, &s, y, T, true);
        free(y);
    }
}

/* ---- rigs ---------------------------------------------------------------- */

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const char spaced[] = "<blank>\n<space>\na\nb\n";
static const char phones[] = "<blank>\np\nq\n";
static const char signs[] = "<blank>\na\nb\nc\n";

/* arpa: NULL for none. */
static void open_rig(rig *r, const char *vocab, const char *arpa)
{
    r->set.lm_weight = weight;
    assert_true(weight * log(10) == 0.5);
    assert_ok(bm_vocab_parse(&r->vocab, vocab, vocab == phones));
    if (arpa != NULL) {
        write_text("model.arpa", arpa);
        r->set.lm = in_folder("model.arpa");
        assert_ok(bm_lm_open(&r->lm, r->set.lm));
    }
    assert_ok(bm_language_open(&r->language, &r->set, r->vocab));
}

static void close_rig(rig *r)
{
    bm_language_close(r->language);
    bm_lm_close(r->lm);
    bm_vocab_free(r->vocab);
}

/* Words between spaces, of which two are spelled alike. */
static rig words_between_spaces(double unknown_score)
{
    static const spelling lexicon[] = {{"a", "a"},     {"ab", "ab"},
                                       {"ac", "ab"},   {"ba", "ba"},
                                       {"aab", "aab"}, {"bb", "bb"}};
    static const char *const given[] = {"a=1.5", "a ab=2", "ab=1", "b a=0.75",
                                        "abab=3"};
    static const phrase hot[] = {
        {"a", 1.5}, {"a ab", 2}, {"ab", 1}, {"b a", 0.75}, {"abab", 3}};
    rig r = {.labels = "- ab",
             .set = bm_language_defaults(),
             .lexicon = lexicon,
             .n_spellings = LENGTH(lexicon),
             .hot = hot,
             .n_hot = LENGTH(hot)};

    write_text("lexicon.txt", "a\nab\nac a b\nba\naab\nbb\n");
    r.set.lexicon = in_folder("lexicon.txt");
    r.set.unknown_score = unknown_score;
    r.set.hot_words = given;
    r.set.n_hot_words = LENGTH(given);
    open_rig(&r, spaced, words_arpa);
    return r;
}

/* Words without spaces; "ba" is spelled in two ways, one of them as "ab". */
static rig words_of_phones(double unknown_score)
{
    static const spelling lexicon[] = {
        {"a", "p"}, {"ab", "pq"}, {"ba", "pq"}, {"ba", "qq"}};
    static const char *const given[] = {"a=0.5", "ab ba=2.5", "ba=1"};
    static const phrase hot[] = {
        {"p", 0.5}, {"pq pq", 2.5}, {"pq qq", 2.5}, {"pq", 1}, {"qq", 1}};
    rig r = {.labels = "-pq",
             .set = bm_language_defaults(),
             .lexicon = lexicon,
             .n_spellings = LENGTH(lexicon),
             .hot = hot,
             .n_hot = LENGTH(hot)};

    write_text("lexicon.txt", "a p\nab p q\nba p q\nba q q\n");
    r.set.lexicon = in_folder("lexicon.txt");
    r.set.unknown_score = unknown_score;
    r.set.hot_words = given;
    r.set.n_hot_words = LENGTH(given);
    open_rig(&r, phones, words_arpa);
    return r;
}

/* Hot words of characters with a space, and perhaps a model of these. */
static rig characters(const char *arpa)
{
    static const char *const given[] = {"a b=1.5", "ab=1.5", "b=0.5"};
    static const phrase hot[] = {{"a b", 1.5}, {"ab", 1.5}, {"b", 0.5}};
    rig r = {.labels = "- ab",
             .set = bm_language_defaults(),
             .hot = hot,
             .n_hot = LENGTH(hot)};

    r.set.hot_words = given;
    r.set.n_hot_words = LENGTH(given);
    open_rig(&r, spaced, arpa);
    return r;
}

/* Characters without a space: each is a word. */
static rig words_of_one_sign(void)
{
    static const char *const given[] = {"ab=1.5", "b=0.5", "abca=3.5", "ca=3"};
    static const phrase hot[] = {
        {"a b", 1.5}, {"b", 0.5}, {"a b c a", 3.5}, {"c a", 3}};
    rig r = {.labels = "-abc",
             .set = bm_language_defaults(),
             .hot = hot,
             .n_hot = LENGTH(hot)};

    r.set.hot_words = given;
    r.set.n_hot_words = LENGTH(given);
    open_rig(&r, signs, NULL);
    return r;
}

/* ---- tests --------------------------------------------------------------- */

static void test_words_between_spaces(void **state)
{
    rig r = words_between_spaces(-1.5);

    (void)state;
    check_short(&r, 1);
    close_rig(&r);
    r = words_between_spaces(-INFINITY);
    check_short(&r, 2);
    close_rig(&r);
}

static void test_words_without_spaces(void **state)
{
    rig r = words_of_phones(-1);

    (void)state;
    check_short(&r, 3);
    close_rig(&r);
    r = words_of_phones(-INFINITY);
    check_short(&r, 4);
    close_rig(&r);
}

static void test_characters_with_spaces(void **state)
{
    rig r = characters(symbols_arpa);

    (void)state;
    check_short(&r, 5);
    close_rig(&r);
    r = characters(NULL);
    check_short(&r, 6);
    close_rig(&r);
}

static void test_signs_that_are_words(void **state)
{
    rig r = words_of_one_sign();

    (void)state;
    check_short(&r, 7);
    close_rig(&r);
}

/* "b" ends three hot words and goes on with a fourth one: no node of the tree is
 * worth as much, and the label is improbable. */
static void test_a_label_that_adds_several_boosts(void **state)
{
    static const char *const given[] = {"b=6", "ab=6", "cab=5", "cabde=9",
                                        "xcaz=0.07"};
    static const phrase hot[] = {{"b", 6},
                                 {"a b", 6},
                                 {"c a b", 5},
                                 {"c a b d e", 9},
                                 {"x c a z", 0.07}};
    static const char said[] = "xca-";
    enum { T = 4, C = 8 };
    rig r = {.labels = "-abcdexz",
             .set = bm_language_defaults(),
             .hot = hot,
             .n_hot = LENGTH(hot)};
    bm_decoder_settings s;
    float y[T * C];

    (void)state;
    r.set.word_score = 0;
    r.set.hot_words = given;
    r.set.n_hot_words = LENGTH(given);
    open_rig(&r, "<blank>\na\nb\nc\nd\ne\nx\nz\n", NULL);
    for (size_t i = 0; i < T * C; i++)
        y[i] = r.labels[i % C] == said[i / C] ? 0 : -INFINITY;
    y[3 * C + class_of(&r, 'b')] = -22.5F;
    s = limits(&r, 1, INFINITY, -INFINITY);
    compare(&r, &s, y, T, true);
    assert_string_equal(results[0].words, "x c a b ");
    close_rig(&r);
}

static void test_labels_without_a_language(void **state)
{
    rig r = {.labels = "- ab"};

    (void)state;
    assert_ok(bm_vocab_parse(&r.vocab, spaced, false));
    check_short(&r, 8);
    bm_vocab_free(r.vocab);
}

/* Log posteriors of which many sums are equal. Of equal paths that is best which
 * is less far, from the last frame on. */
static void test_times_of_equal_paths(void **state)
{
    enum { T = 6, C = 3 };
    rig r = {.labels = "- a"};
    bm_decoder_settings s;

    (void)state;
    assert_ok(bm_vocab_parse(&r.vocab, "<blank>\n<space>\na\n", false));
    s = limits(&r, MOST_BEAM, INFINITY, -INFINITY);
    for (uint64_t key = 0; key < 100; key++) {
        bm_decoder *d = NULL;
        bm_hypotheses found;
        float y[T * C];

        for (size_t i = 0; i < T * C; i++)
            y[i] = -(float)pick(T * C * key + i, 3);
        assert_ok(bm_decoder_new(&d, &s));
        assert_ok(bm_decoder_run(d, y, T, &found));
        search_plainly(&r, &s, y, T, true);
        assert_int_equal(found.n, n_results);
        for (size_t i = 0; i < found.n; i++) {
            char labels[TEXT];

            write_labels(&r, &found.best[i], labels);
            check_times(&r, labels, &found.best[i], y, T);
        }
        bm_decoder_free(d);
    }
    bm_vocab_free(r.vocab);
}

/* So long that prefixes without hypotheses are removed on the way. */
static void check_long(const rig *r, uint64_t key, size_t width)
{
    enum { T = 250 };
    bm_decoder_settings s = limits(r, width, INFINITY, -INFINITY);
    float *y = posteriors(mix(key), T, s.classes, 1.4);

    compare(r, &s, y, T, false);
    free(y);
}

static void test_long_sequences(void **state)
{
    rig r = words_between_spaces(-1.5);

    (void)state;
    check_long(&r, 1, 40);
    close_rig(&r);
    r = words_of_one_sign();
    check_long(&r, 5, MOST_BEAM);
    check_long(&r, 6, MOST_BEAM);
    close_rig(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_between_spaces),
        cmocka_unit_test(test_words_without_spaces),
        cmocka_unit_test(test_characters_with_spaces),
        cmocka_unit_test(test_signs_that_are_words),
        cmocka_unit_test(test_a_label_that_adds_several_boosts),
        cmocka_unit_test(test_labels_without_a_language),
        cmocka_unit_test(test_times_of_equal_paths),
        cmocka_unit_test(test_long_sequences),
    };
    return cmocka_run_group_tests_name("search_limits", tests, folder_make,
                                       folder_remove);
}

/*
 * The vocabulary: texts to classes and back, files, and their faults.
 */
#include "io/vocab.h"

#include "core/file/file.h"
#include "io/text.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bm_vocab *parsed(const char *text, bool words)
{
    bm_vocab *v = NULL;

    assert_ok(bm_vocab_parse(&v, text, words));
    return v;
}

static void assert_printed(const bm_vocab *v, const char *expected)
{
    char *text = NULL;

    assert_ok(bm_vocab_print(v, &text));
    assert_string_equal(text, expected);
    free(text);
}

static void assert_decoded(const bm_vocab *v, const int32_t *labels, size_t n,
                           const char *expected)
{
    char *text = NULL;

    assert_ok(bm_vocab_decode(v, labels, n, &text));
    assert_string_equal(text, expected);
    free(text);
}

static size_t encoded(const bm_vocab *v, const char *text, int32_t *labels,
                      size_t *unknown, char *first)
{
    size_t n = 99;

    assert_ok(bm_vocab_encode(v, text, labels, &n, unknown, first));
    return n;
}

static void test_characters_are_learned_in_order_and_sorted_by_bytes(void **_)
{
    bm_vocab *v = NULL;

    (void)_;
    assert_ok(bm_vocab_new(&v, false));
    assert_int_equal(bm_vocab_size(v), 1);
    assert_ok(bm_vocab_learn(v, "  b\xc3\xa4 \t\n a"));
    assert_ok(bm_vocab_learn(v, "ab "));
    assert_printed(v, "<blank>\nb\n\xc3\xa4\n<space>\na\n");
    bm_vocab_sort(v);
    assert_printed(v, "<blank>\n<space>\na\nb\n\xc3\xa4\n");
    assert_string_equal(bm_vocab_symbol(v, 1), " ");
    assert_false(bm_vocab_words(v));
    bm_vocab_free(v);
}

static void test_texts_are_encoded_and_decoded(void **_)
{
    bm_vocab *v = parsed("<blank>\n<space>\na\nb\n\xe2\x82\xac\n", false);
    int32_t labels[32], expected[] = {2, 1, 3, 3, 4};
    size_t unknown = 7;

    (void)_;
    assert_int_equal(
        encoded(v, "\ta  \n bb\xe2\x82\xac ", labels, &unknown, NULL), 5);
    assert_int_equal(unknown, 0);
    assert_memory_equal(labels, expected, sizeof expected);
    assert_decoded(v, labels, 5, "a bb\xe2\x82\xac");
    assert_decoded(v, labels, 0, "");
    assert_int_equal(encoded(v, " \n", labels, &unknown, NULL), 0);
    bm_vocab_free(v);
}

static void test_words_are_split_at_white_space(void **_)
{
    bm_vocab *v = NULL;
    int32_t labels[32], expected[] = {2, 1, 2};
    size_t unknown = 0;
    char first[64];

    (void)_;
    assert_ok(bm_vocab_new(&v, true));
    assert_ok(bm_vocab_learn(v, "one  two\tone\n"));
    assert_printed(v, "<blank>\none\ntwo\n");
    assert_int_equal(
        encoded(v, " two one three two <blank>", labels, &unknown, first), 3);
    assert_memory_equal(labels, expected, sizeof expected);
    assert_int_equal(unknown, 2);
    assert_string_equal(first, "three");
    assert_decoded(v, labels, 3, "two one two");
    assert_true(bm_vocab_words(v));
    bm_vocab_free(v);
}

static void test_unknown_symbols_are_counted_and_the_first_is_returned(void **_)
{
    bm_vocab *v = parsed("<blank>\na\n", false);
    char first[64], long_word[201] = {0};
    int32_t labels[256];
    size_t unknown = 0;

    (void)_;
    assert_int_equal(encoded(v,
                             "a\xc3\xa4"
                             "a\xff",
                             labels, &unknown, first),
                     2);
    assert_int_equal(unknown, 2);
    assert_string_equal(first, "\xc3\xa4");
    bm_vocab_free(v);

    v = parsed("<blank>\n", true); /* 100 two-byte letters: 31 of them fit */
    for (size_t i = 0; i < 200; i++)
        long_word[i] = "\xc3\xa4"[i % 2];
    assert_int_equal(encoded(v, long_word, labels, &unknown, first), 0);
    assert_int_equal(unknown, 1);
    assert_int_equal(strlen(first), 62);
    assert_memory_equal(first, long_word, 62);
    bm_vocab_free(v);
}

static void test_faults_of_a_file_are_reported_by_line(void **_)
{
    static const struct {
        const char *text, *message;
        bool words;
    } cases[] = {
        {"", "no symbols", false},
        {"a\nb\n", "line 1", false},
        {"<blank>\na\nb\na\n", "line 4: duplicate symbol \"a\"", false},
        {"<blank>\na\n\nb\n", "line 3: empty line", false},
        {"<blank>\nab\n", "line 2: \"ab\" is not one character", false},
        {"<blank>\n<>\n", "line 2: \"<>\" is not one character", false},
        {"<blank>\n<a b>\n", "line 2: white space", false},
        {"<blank>\n<unk>\n<unk>\n", "line 3: duplicate symbol", false},
        {"<blank>\nab\na b\n", "line 3: white space", true},
        {"<blank>\nab\n<blank>\n", "line 3: duplicate symbol \"<blank>\"",
         true},
        {"<blank>\na\n\xff\n", "line 3: not UTF-8", false},
        {"<blank>\n\xc0\x80\n", "not UTF-8", false},         /* too long */
        {"<blank>\n\xed\xa0\x80\n", "not UTF-8", false},     /* surrogate */
        {"<blank>\n\xf4\x90\x80\x80\n", "not UTF-8", false}, /* too high */
        {"<blank>\n\xe2\x82", "not UTF-8", true},            /* cut off */
    };

    (void)_;
    FOR_EACH (i, cases) {
        bm_vocab *v = NULL;

        assert_int_equal(bm_vocab_parse(&v, cases[i].text, cases[i].words),
                         BM_ERR_FORMAT);
        assert_null(v);
        assert_non_null(strstr(bm_last_error(), cases[i].message));
    }
}

/* As tables of PyLaia, WeNet and ESPnet have them. */
static void test_names_among_characters_are_classes_of_no_text(void **_)
{
    static const char all[] = "<blank>\n<unk>\n<\nu\n<sos/eos>\n";
    bm_vocab *v = parsed(all, false), *w = NULL;
    int32_t labels[8], expected[] = {2, 3}, found[] = {3, 1, 4};
    size_t unknown = 0;
    char first[64];

    (void)_;
    assert_int_equal(bm_vocab_size(v), 5);
    assert_int_equal(bm_vocab_class(v, "<sos/eos>"), 4);
    assert_int_equal(encoded(v, "<unk>", labels, &unknown, first), 2);
    assert_memory_equal(labels, expected, sizeof expected);
    assert_int_equal(unknown, 3); /* n, k, > */
    assert_string_equal(first, "n");
    assert_decoded(v, found, 3, "u<unk><sos/eos>");
    assert_printed(v, all);
    assert_ok(bm_vocab_copy(&w, v));
    assert_true(bm_vocab_equal(v, w));
    assert_true(bm_vocab_has_characters(v));
    bm_vocab_free(v);
    bm_vocab_free(w);
}

/* Of subwords, as RETURNN has them: their texts have no spaces as symbols. */
static void test_a_word_may_be_called_space(void **_)
{
    bm_vocab *words = parsed("<blank>\nch\n<space>\n", true);
    bm_vocab *characters = parsed("<blank>\nc\n<space>\n", false);

    (void)_;
    assert_int_equal(bm_vocab_class(words, "<space>"), 2);
    assert_int_equal(bm_vocab_class(words, " "), -1);
    assert_int_equal(bm_vocab_class(characters, "<space>"), 2);
    assert_int_equal(bm_vocab_class(characters, " "), 2);
    bm_vocab_free(words);
    bm_vocab_free(characters);
}

static void test_a_learned_text_must_be_utf8(void **_)
{
    bm_vocab *v = NULL;

    (void)_;
    assert_ok(bm_vocab_new(&v, false));
    assert_int_equal(bm_vocab_learn(v, "ab\xfe"), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "byte 2"));
    assert_int_equal(bm_vocab_size(v), 1);
    bm_vocab_free(v);
}

static void test_files_and_directories_are_read_back_equal(void **_)
{
    char directory[] = "/tmp/bmuf_vocab_XXXXXX", path[64];
    bm_vocab *v = parsed("<blank>\r\nb\r\n<space>\r\na", false), *w = NULL;

    (void)_;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/vocab.txt", directory);
    assert_int_equal(bm_vocab_read(&w, path, false), BM_ERR_MISSING);
    assert_ok(bm_vocab_write(v, path));
    assert_ok(bm_vocab_read(&w, path, false));
    assert_true(bm_vocab_equal(v, w));
    bm_vocab_free(w);
    assert_ok(bm_vocab_read(&w, directory, false));
    assert_true(bm_vocab_equal(v, w));
    bm_vocab_sort(w);
    assert_false(bm_vocab_equal(v, w));
    bm_vocab_free(w);

    assert_ok(bm_file_write(path, "<blank>\na\0b\n", 12));
    assert_int_equal(bm_vocab_read(&w, path, false), BM_ERR_FORMAT);
    assert_ok(bm_file_write(path, "<blank>\na\na\n", 12));
    assert_int_equal(bm_vocab_read(&w, path, false), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "vocab.txt:3"));
    unlink(path);
    rmdir(directory);
    bm_vocab_free(v);
}

static void test_words_and_characters_are_different_vocabularies(void **_)
{
    bm_vocab *a = parsed("<blank>\na\n", false);
    bm_vocab *b = parsed("<blank>\na\n", true);
    bm_vocab *c = parsed("<blank>\na\nb\n", true);

    (void)_;
    assert_false(bm_vocab_equal(a, b));
    assert_false(bm_vocab_equal(b, c));
    assert_true(bm_vocab_equal(c, c));
    bm_vocab_free(a);
    bm_vocab_free(b);
    bm_vocab_free(c);
}

static void test_a_large_vocabulary_finds_every_word(void **_)
{
    enum { N = 20000 };
    bm_vocab *v = NULL;
    char word[16];
    int32_t label = 0;
    size_t unknown = 0;

    (void)_;
    assert_ok(bm_vocab_new(&v, true));
    for (int k = N; k-- > 0;) {
        snprintf(word, sizeof word, "w%05d", k);
        assert_ok(bm_vocab_learn(v, word));
    }
    bm_vocab_sort(v);
    for (int k = 0; k < N; k++) {
        snprintf(word, sizeof word, "w%05d", k);
        assert_int_equal(encoded(v, word, &label, &unknown, NULL), 1);
        assert_int_equal(label, k + 1);
    }
    bm_vocab_free(v);
}

/* Hebrew alef, bet, gimel. */
#define A "\xd7\x90"
#define B "\xd7\x91"
#define G "\xd7\x92"

/* By UAX #9: numbers and Latin words run from left to right, a separator between
 * two digits with them and a sign before them not; a space between two Latin words
 * does, one between a Latin word and the scripts around it does not. */
static void test_runs_from_left_to_right_are_turned(void **_)
{
    static const struct {
        const char *text, *frames;
    } cases[] = {
        {A B G, A B G},
        {A " 12 " B, A " 21 " B},
        {"12.5" A, "5.21" A},
        {A "-34", A "-43"},
        {A " 1 2 " B, A " 1 2 " B},
        {A " ab cd! " B, A " dc ba! " B},
        {A "(ab)" B, A "(ba)" B},
        {A " \xd9\xa1\xd9\xa2", A " \xd9\xa2\xd9\xa1"}, /* Arabic 1, 2 */
        {A " ab 12 " B, A " 21 ba " B}, /* as "12 ab": the digits come last */
        {A " ab, 12-12. " B, A " 21-21 ,ba. " B},
        {A " 12 34 " B " ab", A " 21 43 " B " ba"},
        {"ab", "ba"},
        {A " 12 (ab) " B, A " 21 (ba) " B},
        {"12 ab, cd 34.", ".43 dc ,ba 21"}, /* all of a Latin line runs right */
        {"", ""},
    };
    bm_vocab *v = NULL, *copy = NULL;
    int32_t labels[64];
    size_t unknown = 0;
    char *text = NULL;

    (void)_;
    assert_ok(bm_vocab_new(&v, false));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_ok(bm_vocab_learn(v, cases[i].text));
    assert_false(bm_vocab_right_to_left(v));
    bm_vocab_set_right_to_left(v, true);
    assert_ok(bm_vocab_copy(&copy, v));
    assert_true(bm_vocab_right_to_left(copy));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = encoded(copy, cases[i].text, labels, &unknown, NULL);

        assert_ok(bm_vocab_spell(v, labels, n, &text));
        assert_string_equal(text, cases[i].frames);
        free(text);
        assert_decoded(copy, labels, n, cases[i].text);
    }
    bm_vocab_free(v);
    bm_vocab_free(copy);
}

/* All lines of four of these pieces. Some look the same, as "ab 12" and "12 ab". */
static void test_what_is_read_from_frames_has_these_frames(void **_)
{
    static const char *const pieces[] = {A,   "ab", "12", " ",
                                         ".", "-",  "(",  ")"};
    enum { N = sizeof pieces / sizeof pieces[0] };
    bm_vocab *v = NULL;

    (void)_;
    assert_ok(bm_vocab_new(&v, false));
    assert_ok(bm_vocab_learn(v, A B "ab12 .-()"));
    bm_vocab_set_right_to_left(v, true);
    for (int line = 0; line < N * N * N * N; line++) {
        char text[32], *again = NULL;
        int32_t labels[32], same[32];
        size_t n = 0, n_same = 0, unknown = 0;

        snprintf(text, sizeof text, B "%s%s%s%s", pieces[line % N],
                 pieces[line / N % N], pieces[line / N / N % N],
                 pieces[line / N / N / N]);
        n = encoded(v, text, labels, &unknown, NULL);
        assert_ok(bm_vocab_decode(v, labels, n, &again));
        n_same = encoded(v, again, same, &unknown, NULL);
        assert_int_equal(n_same, n);
        assert_memory_equal(same, labels, n * sizeof *labels);
        free(again);
    }
    bm_vocab_free(v);
}

static void test_words_that_run_from_left_to_right_are_turned(void **_)
{
    static const char text[] = A B " ab cd ef " G " 12 34";
    bm_vocab *v = NULL;
    int32_t labels[8], expected[] = {1, 4, 3, 2, 5, 6, 7}, outside = 8;
    size_t unknown = 0, order[7], turned[] = {0, 3, 2, 1, 4, 5, 6};
    char *decoded = NULL;

    (void)_;
    assert_ok(bm_vocab_new(&v, true));
    assert_ok(bm_vocab_learn(v, text));
    bm_vocab_set_right_to_left(v, true);
    assert_int_equal(encoded(v, text, labels, &unknown, NULL), 7);
    assert_memory_equal(labels, expected, sizeof expected);
    assert_decoded(v, labels, 7, text);
    assert_ok(bm_vocab_order(v, labels, 7, order));
    assert_memory_equal(order, turned, sizeof turned);
    assert_int_equal(bm_vocab_decode(v, &outside, 1, &decoded), BM_ERR_ARG);
    assert_decoded(v, (int32_t[]){0, 3, 2}, 3, "ab cd"); /* a blank first */
    bm_vocab_free(v);
}

#undef A
#undef B
#undef G

static void test_labels_out_of_range_cannot_be_decoded(void **_)
{
    bm_vocab *v = parsed("<blank>\na\n", false);
    int32_t labels[] = {1, 0, 1, 2}, negative = -1;
    char *text = NULL;

    (void)_;
    assert_decoded(v, labels, 3, "aa"); /* blanks are skipped */
    assert_int_equal(bm_vocab_decode(v, labels, 4, &text), BM_ERR_ARG);
    assert_int_equal(bm_vocab_decode(v, &negative, 1, &text), BM_ERR_ARG);
    bm_vocab_free(v);
}

/* Categories of Unicode 15: Zs, Cc, Cf; of the others one each. */
static void test_characters_that_one_cannot_see_are_found(void **state)
{
    static const struct {
        const char *text;
        long first;
    } known[] = {
        {"", 0},
        {"a b\xe2\x80\x99\xcc\x81", 0},      /* U+2019, U+0301 */
        {"a\xe2\x80\x8c\xe2\x80\x8d", 0},    /* joiners of letters */
        {"\xee\x80\x80\xf0\x9f\x98\x80", 0}, /* private use, U+1F600 */
        {"a\xc2\xa0\xe2\x80\x89", 0xa0},
        {"a\xe2\x80\x89\xc2\xa0", 0x2009},
        {"\xe3\x80\x80", 0x3000},
        {"a\tb", '\t'},
        {"a\x01", 1},
        {"\xc2\xad", 0xad},
        {"a\xe2\x80\x8b", 0x200b},
        {"a\xef\xbb\xbf", 0xfeff},
        {"\xe2\x80\xa8", 0x2028},
    };

    (void)state;
    FOR_EACH (i, known)
        assert_int_equal(bm_text_unseen(known[i].text), known[i].first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_characters_are_learned_in_order_and_sorted_by_bytes),
        cmocka_unit_test(test_texts_are_encoded_and_decoded),
        cmocka_unit_test(test_words_are_split_at_white_space),
        cmocka_unit_test(
            test_unknown_symbols_are_counted_and_the_first_is_returned),
        cmocka_unit_test(test_faults_of_a_file_are_reported_by_line),
        cmocka_unit_test(test_names_among_characters_are_classes_of_no_text),
        cmocka_unit_test(test_a_word_may_be_called_space),
        cmocka_unit_test(test_a_learned_text_must_be_utf8),
        cmocka_unit_test(test_files_and_directories_are_read_back_equal),
        cmocka_unit_test(test_words_and_characters_are_different_vocabularies),
        cmocka_unit_test(test_a_large_vocabulary_finds_every_word),
        cmocka_unit_test(test_runs_from_left_to_right_are_turned),
        cmocka_unit_test(test_what_is_read_from_frames_has_these_frames),
        cmocka_unit_test(test_words_that_run_from_left_to_right_are_turned),
        cmocka_unit_test(test_labels_out_of_range_cannot_be_decoded),
        cmocka_unit_test(test_characters_that_one_cannot_see_are_found),
    };

    return RUN_GROUP("vocab", tests);
}

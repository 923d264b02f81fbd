/* Words, plurals, quoting, and lists that grow. */
#include "core/grow.h"
#include "core/sort.h"
#include "core/text/printable.h"
#include "core/text/shell_word.h"
#include "core/text/words.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists that grow ------------------------------------------------------ */

static void test_lists_grow_from_nothing(void **state)
{
    enum { N = 1000 };
    size_t room = 0, grown = 0, least = 0;
    int *list = NULL;

    (void)state;
    for (int i = 0; i < N; i++) {
        size_t before = room;

        assert_ok(bm_grow(&list, (size_t)i, &room, sizeof *list));
        assert_true(room > (size_t)i);
        assert_true(room == before || room >= 2 * before);
        grown += room != before;
        list[i] = i;
    }
    assert_true(grown <= 10); /* more than log2(N) */
    for (int i = 0; i < N; i++)
        assert_int_equal(list[i], i);
    least = 10 * room;
    assert_ok(bm_grow(&list, least, &room, sizeof *list));
    assert_true(room > least);
    assert_int_equal(list[N - 1], N - 1);
    free(list);
}

/* Numbers of bytes that a size_t or an object cannot have. */
static void test_a_list_that_is_too_large_stays_as_it_is(void **state)
{
    static const size_t n[] = {SIZE_MAX, SIZE_MAX / 8 + 2, PTRDIFF_MAX / 8};
    double x = 1, *list = &x;
    size_t room = 1;

    (void)state;
    FOR_EACH (i, n) {
        assert_int_equal(bm_grow(&list, n[i], &room, sizeof *list),
                         BM_ERR_MEMORY);
        assert_ptr_equal(list, &x);
        assert_int_equal(room, 1);
    }
    room = SIZE_MAX / 2 + 2; /* twice it is 2 */
    assert_int_equal(bm_grow(&list, room, &room, 1), BM_ERR_MEMORY);
    assert_ptr_equal(list, &x);
}

/* ---- printing texts of files ---------------------------------------------- */

static void test_control_characters_and_invalid_utf8_are_escaped(void **state)
{
    static const struct {
        const char *text, *printed;
    } rows[] = {
        {"", ""},
        {"lstm:20 \\ linear", "lstm:20 \\ linear"},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\033[31mred\a\r\b", "\\x1b[31mred\\x07\\x0d\\x08"},
        {"a\nb\tc\x7f", "a\\nb\\tc\\x7f"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"}, /* CSI in one character */
        /* NOLINTNEXTLINE(misc-misleading-bidirectional) */
        {"\xe2\x80\xae", "\\xe2\\x80\\xae"}, /* right to left */
        {"\xff\xc3", "\\xff\\xc3"},
        {"\xc0\x8a", "\\xc0\\x8a"},                   /* too long a form */
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},          /* a surrogate */
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}, /* > 10ffff */
    };
    char out[64], *copy = NULL;

    (void)state;
    FOR_EACH (i, rows) {
        assert_string_equal(bm_printable(rows[i].text, out, sizeof out),
                            rows[i].printed);
        copy = bm_printable_copy(rows[i].text);
        assert_string_equal(copy, rows[i].printed);
        free(copy);
    }
    assert_string_equal(bm_printable_lines("a\nb\033", out, sizeof out),
                        "a\nb\\x1b");
    assert_string_equal(bm_printable("1234567", out, 8), "1234567");
    assert_string_equal(bm_printable("12345678", out, 8), "1234...");
    assert_string_equal(bm_printable("123\xc3\xa9\xc3\xa9", out, 8),
                        "123\xc3\xa9\xc3\xa9");
    assert_string_equal(bm_printable("123\xc3\xa9\xc3\xa9x", out, 8), "123...");
}

/* ---- words ---------------------------------------------------------------
 */

static void test_numbers_are_sorted(void **state)
{
    static const double sorted[] = {-INFINITY, -2, 0, 0, 1e-300, 3};
    double x[] = {3, 0, -2, 1e-300, -INFINITY, 0};

    (void)state;
    bm_sort(x, 6);
    assert_memory_equal(x, sorted, sizeof x);
    bm_sort(NULL, 0);
}

static void test_a_plain_word_is_the_same_in_any_spelling(void **state)
{
    static const char *const forms[] = {"reduce_lr", "Reduce-LR",
                                        "REDUCELR..."};
    char plain[9];

    (void)state;
    FOR_EACH (i, forms) {
        bm_word_plain(forms[i], i == 2 ? 8 : 9, plain, sizeof plain);
        assert_string_equal(plain, "reducelr");
    }
    bm_word_plain("reduce_lr_on", 12, plain, 4); /* no room for more */
    assert_string_equal(plain, "red");
}

static void test_words_are_near_up_to_a_third_of_their_length(void **state)
{
    static const struct {
        const char *word, *near;
    } cases[] = {
        {"trian", "train"}, /* a swap is one mistake */
        {"trai", "train"},
        {"eva", "eval"},
        {"evil", "eval"},
        {"exlpain", "explain"},
        {"explan", "explain"},
        {"scal", "scale"},
        {"decode", ""},
        {"version", ""},
        {"x", ""},
        {"run", ""},
        {"", ""},
        {"TRAIN", "train"}, /* whatever the case */
        {"Evla", "eval"},
    };

    (void)state;
    FOR_EACH (i, cases) {
        char near[32] = "?";
        bool found = bm_nearest_word(cases[i].word, "train eval explain scale ",
                                     near, sizeof near);

        assert_string_equal(near, cases[i].near);
        assert_true(found == (near[0] != '\0'));
    }
    assert_int_equal(bm_word_distance("abcd", "badc"), 2);
    assert_int_equal(bm_word_distance("ABCD", "badc"), 2);
    assert_int_equal(bm_word_distance("kitten", "sitting"), 3);
    assert_int_equal(bm_word_distance("", "abc"), 3);
    assert_int_equal(bm_word_distance("abc", ""), 3);
}

static void test_paths_in_commands_are_quoted_where_needed(void **state)
{
    char longest[2 * PATH_MAX];

    (void)state;
    assert_string_equal(bm_shell_word("run/1").text, "run/1");
    assert_string_equal(bm_shell_word("run 1").text, "'run 1'");
    assert_string_equal(bm_shell_word("it's").text, "'it'\\''s'");
    assert_string_equal(bm_shell_word("").text, "''");
    memset(longest, ' ', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_true(bm_ends_with(bm_shell_word(longest).text, " '"));
}

static void test_nouns_have_their_plurals(void **state)
{
    (void)state;
    assert_string_equal(bm_count_noun(1, "sequence").text, "1 sequence");
    assert_string_equal(bm_count_noun(0, "sequence").text, "0 sequences");
    assert_string_equal(bm_count_noun(2, "mini-batch").text, "2 mini-batches");
    assert_string_equal(bm_count_noun(2, "epoch").text, "2 epochs");
    assert_string_equal(bm_count_noun(12, "class").text, "12 classes");
    assert_string_equal(bm_count_noun(3, "frequency").text, "3 frequencies");
    assert_string_equal(bm_count_noun(3, "key").text, "3 keys");
    assert_string_equal(bm_count_noun(1, "class").text, "1 class");
    assert_string_equal(bm_count_noun(5000000000, "frame").text,
                        "5000000000 frames");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_sorted),
        cmocka_unit_test(test_a_plain_word_is_the_same_in_any_spelling),
        cmocka_unit_test(test_lists_grow_from_nothing),
        cmocka_unit_test(test_a_list_that_is_too_large_stays_as_it_is),
        cmocka_unit_test(test_control_characters_and_invalid_utf8_are_escaped),
        cmocka_unit_test(test_words_are_near_up_to_a_third_of_their_length),
        cmocka_unit_test(test_paths_in_commands_are_quoted_where_needed),
        cmocka_unit_test(test_nouns_have_their_plurals),
    };
    return cmocka_run_group_tests_name("words", tests, NULL, NULL);
}

/*
 * bmuf score: which texts are scored, and what is told of them: ids that are
 * missing, speakers, confusions, two systems.
 */
#include "models/bootstrap.h"
#include "tests/cli/score/scored.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- ids and speakers ---------------------------------------------------- */

static void test_ids_must_agree_unless_told(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("i.txt", "a one\nb two three\nc four\n");
    write_text("j.txt", "c four\nd five\na six\n");
    assert_fails(BMUF("score", "i.txt", "j.txt"), 65, "1 missing in j.txt: b",
                 "1 additional: d", "--missing skip or empty");
    r = SCORE("i.txt", "j.txt", "--missing", "skip");
    assert_rate(words_of(r), 1, 0, 0, 2);
    assert_true(number(r, "sequences") == 2);
    assert_true(number(system_of(r, 0), "missing") == 1);
    assert_true(number(system_of(r, 0), "additional") == 1);
    json_decref(r);
    r = SCORE("i.txt", "j.txt", "--missing", "empty");
    assert_rate(words_of(r), 1, 2, 0, 4);
    assert_true(number(r, "sequences") == 3);
    json_decref(r);
    /* Of a manifest without a text there is nothing to score. A recogniser that
     * failed has none. */
    write_text("m.jsonl", "{\"id\": \"a\", \"text\": \"one\"}\n"
                          "{\"id\": \"z\"}\n{\"id\": \"c\", \"text\": \"\"}\n");
    write_text("k.jsonl", "{\"id\": \"a\", \"text\": \"one\"}\n"
                          "{\"id\": \"z\", \"text\": \"x\"}\n"
                          "{\"id\": \"c\", \"error\": \"broken\"}\n");
    assert_fails(BMUF("score", "m.jsonl", "k.jsonl"), 65,
                 "1 missing in k.jsonl: c");
    r = SCORE("m.jsonl", "k.jsonl", "--missing", "empty");
    assert_rate(words_of(r), 0, 0, 0, 1);
    assert_true(number(r, "sequences") == 2);
    assert_true(number(r, "unlabelled") == 1);
    json_decref(r);
    write_text("l.txt", "x one\n");
    assert_fails(BMUF("score", "i.txt", "l.txt", "--missing", "skip"), 65,
                 "no text to score");
}

static void test_speakers_come_from_a_list(void **state)
{
    json_t *r = NULL;

    (void)state;
    assert_fails(BMUF("score", "i.txt", "i.txt", "--speakers"), 65,
                 "a has no speaker", "--utt2spk");
    write_text("u2s", "a  ann\nb \t bob\nc ann\n");
    r = SCORE("i.txt", "j.txt", "--missing", "empty", "--utt2spk", "u2s",
              "--draw", "speakers");
    {
        const json_t *speakers = json_object_get(system_of(r, 0), "speakers");

        assert_int_equal(json_array_size(speakers), 2);
        assert_rate(json_array_get(speakers, 0), 1, 0, 0, 2);
        assert_rate(json_array_get(speakers, 1), 0, 2, 0, 2);
    }
    /* Drawn are two speakers, of 1 error in 2 and 2 in 2. */
    {
        bm_error_count count[] = {{1, 2}, {2, 2}};
        const json_t *of = json_object_get(words_of(r), "interval_95");
        bm_interval i = {0};

        assert_ok(bm_bootstrap(count, 2, &i));
        assert_true(
            near(json_number_value(json_array_get(of, 0)), i.low, 1e-8));
        assert_true(
            near(json_number_value(json_array_get(of, 1)), i.high, 1e-8));
    }
    json_decref(r);
    write_text("u2s", "a ann\nb bob\n");
    assert_fails(BMUF("score", "i.txt", "i.txt", "--utt2spk", "u2s"), 65,
                 "c has no speaker in u2s");
}

/* Of c there is nothing recognised, and d has no reference. */
static void test_texts_that_are_not_scored_need_no_speaker(void **state)
{
    static const char *const texts[][2] = {
        {"sp.txt", "a-1 one\nb-1 two\nc three\n"},
        {"sp.jsonl", "{\"id\": \"a-1\", \"text\": \"one\"}\n"
                     "{\"id\": \"b-1\", \"text\": \"two\"}\n"
                     "{\"id\": \"d\"}\n"},
    };

    (void)state;
    write_text("sp-list", "a-1 a\nb-1 b\n");
    write_text("sp-h.txt", "a-1 one\nb-1 twx\nd four\n");
    FOR_EACH (i, texts) {
        json_t *by_id = NULL, *by_list = NULL;

        write_text(texts[i][0], texts[i][1]);
        by_id = SCORE(texts[i][0], "sp-h.txt", "--missing", "skip",
                      "--speakers", "--draw", "speakers");
        by_list = SCORE(texts[i][0], "sp-h.txt", "--missing", "skip",
                        "--utt2spk", "sp-list", "--draw", "speakers");
        assert_true(json_equal(by_id, by_list));
        assert_int_equal(
            json_array_size(json_object_get(system_of(by_id, 0), "speakers")),
            2);
        json_decref(by_id);
        json_decref(by_list);
    }
}

/* Ids as set_page-line have the set before the first _. */
static void test_one_speaker_of_all_ids_is_warned_of(void **state)
{
    static const char warning[] = "one.trn: all 2 sequences have the speaker "
                                  "set, which is what their ids "
                                  "have before the first - or _";

    (void)state;
    write_text("one.trn", "x (set_1-l1)\ny (set_2-l1)\n");
    write_text("two.trn", "x (set_1-l1)\ny (other_2-l1)\n");
    write_text("one2s", "set_1-l1 ann\nset_2-l1 ann\n");
    assert_says(BMUF("score", "one.trn", "one.trn", "--speakers").err, warning);
    assert_says(BMUF("score", "one.trn", "one.trn", "--speakers").err,
                "--utt2spk FILE");
    json_decref(SCORE("two.trn", "two.trn", "--speakers"));
    json_decref(SCORE("one.trn", "one.trn", "--utt2spk", "one2s"));
}

static void test_names_of_speakers_may_be_any_bytes(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("latin.txt", "a one\n");
    write_text("latin", "a Andr\xe9\n");
    r = SCORE("latin.txt", "latin.txt", "--speakers", "--utt2spk", "latin");
    assert_string_equal(
        text(json_array_get(json_object_get(system_of(r, 0), "speakers"), 0),
             "speaker"),
        "Andr\\xe9");
    json_decref(r);
}

/* ---- tables and systems -------------------------------------------------- */

static void test_confusions_are_sorted_by_frequency(void **state)
{
    outcome o;
    const json_t *list = NULL;
    json_t *r = NULL;

    (void)state;
    write_text("x.txt", "a four four for\nb uh four six\nc seven\n");
    write_text("y.txt", "a for for for\nb for six\nc seven eight\n");
    r = SCORE("x.txt", "y.txt", "--confusions", "2");
    list = json_object_get(system_of(r, 0), "confusions");
    assert_int_equal(json_array_size(list), 2);
    assert_true(number(json_array_get(list, 0), "times") == 3);
    assert_string_equal(text(json_array_get(list, 0), "reference"), "four");
    assert_string_equal(text(json_array_get(list, 0), "hypothesis"), "for");
    assert_string_equal(text(json_array_get(list, 1), "reference"), "");
    assert_string_equal(text(json_array_get(list, 1), "hypothesis"), "eight");
    json_decref(r);
    o = BMUF("score", "x.txt", "y.txt", "--confusions", "2");
    assert_says(o.out, "    3  four                      for\n");
    assert_says(o.out, "    1  (none)                    eight\n");
    assert_says(o.out, ".. and 1 other pair\n");
    assert_says(o.out, "word errors     71.43 %  (95 %: ");
    assert_says(o.out, "3 substitutions, 1 deletion, 1 insertion in 7)\n");
}

static void test_tables_may_count_characters(void **state)
{
    outcome o;
    const json_t *list = NULL;
    json_t *r = NULL;

    (void)state;
    write_text("c.txt", "a-1 n\303\251 la\na-2 ee\nb-1 Le la\n");
    write_text("d.txt", "a-1 ne le\na-2 e..\nb-1 lela\n");
    write_text("c2s", "a-1 a\na-2 a\nb-1 b\n");
    r = SCORE("c.txt", "d.txt", "--speakers", "--utt2spk", "c2s",
              "--confusions", "9", "--units", "characters");
    assert_string_equal(text(r, "units"), "characters");
    list = json_object_get(system_of(r, 0), "speakers");
    assert_int_equal(json_array_size(list), 2);
    assert_rate(json_array_get(list, 0), 3, 0, 1, 7);
    assert_rate(json_array_get(list, 1), 1, 1, 0, 5);
    assert_rate(characters_of(r), 4, 1, 1, 12);
    list = json_object_get(system_of(r, 0), "confusions");
    assert_int_equal(json_array_size(list), 6);
    json_decref(r);
    o = BMUF("score", "c.txt", "d.txt", "--confusions", "9", "--units",
             "characters");
    assert_says(o.out, "    1  \303\251");
    assert_says(o.out, "    1  <space>                   (none)\n");
    assert_says(o.out, "    1  (none)                    .\n");
    assert_says(o.out, "    1  L                         l\n");
    assert_fails(BMUF("score", "c.txt", "d.txt", "--units", "characters"), 64,
                 "--units characters", "--speakers");
}

/* Errors, not rates, decide, then the id. */
static void test_sequences_with_the_most_errors_are_listed(void **state)
{
    outcome o;
    const json_t *list = NULL, *first = NULL;
    json_t *r = NULL;

    (void)state;
    write_text("s.txt", "c One two three four\nb x\nd x y\na x y z v w\n");
    write_text("t.txt", "c one too tree\nb z\nd x y\na x y z v\n");
    r = SCORE("s.txt", "t.txt", "--sequences", "2", "--lower");
    list = json_object_get(system_of(r, 0), "sequences");
    assert_int_equal(json_array_size(list), 2);
    first = json_array_get(list, 0);
    assert_string_equal(text(first, "id"), "c");
    assert_rate(first, 2, 1, 0, 4);
    assert_string_equal(text(first, "reference"), "one two three four");
    assert_string_equal(text(first, "hypothesis"), "one too tree");
    assert_string_equal(text(json_array_get(list, 1), "id"), "a");
    assert_rate(json_array_get(list, 1), 0, 1, 0, 5);
    json_decref(r);
    o = BMUF("score", "s.txt", "t.txt", "--sequences", "2", "--lower");
    assert_says(o.out, "errors    subst    delet    insert       words  "
                       "sequence\n"
                       "     3        2        1         0           4  c\n"
                       "   reference   one two three four\n"
                       "   hypothesis  one too tree\n");
    assert_says(o.out, ".. and 1 other sequence with errors\n");
    /* All with errors, and no others. */
    r = SCORE("s.txt", "t.txt", "--sequences", "9", "--lower");
    assert_int_equal(
        json_array_size(json_object_get(system_of(r, 0), "sequences")), 3);
    json_decref(r);
}

/* c has 1 + 1 + 5 wrong characters, a 2, b 1. Of alternatives the text is the one
 * that was compared. */
static void test_sequences_may_be_listed_by_characters(void **state)
{
    const json_t *list = NULL;
    json_t *r = NULL;

    (void)state;
    r = SCORE("s.txt", "t.txt", "--sequences", "3", "--lower", "--units",
              "characters");
    list = json_object_get(system_of(r, 0), "sequences");
    assert_string_equal(text(json_array_get(list, 0), "id"), "c");
    assert_rate(json_array_get(list, 0), 1, 6, 0, 18);
    assert_string_equal(text(json_array_get(list, 1), "id"), "a");
    assert_rate(json_array_get(list, 1), 0, 2, 0, 9);
    assert_string_equal(text(json_array_get(list, 2), "id"), "b");
    json_decref(r);
    write_text("s.trn", "{ uh / um } yes (a)\n");
    write_text("t.trn", "um no (a)\n");
    r = SCORE("s.trn", "t.trn", "--sequences", "3");
    list = json_object_get(system_of(r, 0), "sequences");
    assert_string_equal(text(json_array_get(list, 0), "reference"), "um yes");
    json_decref(r);
}

/* bmuf decode writes the first reading as the text, too. Of equal ones the first
 * counts; a line without readings has its text. */
static void
test_an_oracle_takes_the_reading_with_the_fewest_errors(void **state)
{
    const json_t *first = NULL;
    json_t *r = NULL;

    (void)state;
    write_text("n.txt", "a one two three\nb four\nc five\n");
    write_text("n.jsonl",
               "{\"id\": \"a\", \"text\": \"x y z\", \"nbest\": [{\"text\": "
               "\"x y z\"}, {\"text\": \"one y three\"}, {\"text\": \"one two "
               "z\"}, {\"text\": \"one\"}]}\n"
               "{\"id\": \"b\", \"text\": \"for\", \"nbest\": [{\"text\": "
               "\"for\"}, {\"text\": \"four\"}]}\n"
               "{\"id\": \"c\", \"text\": \"fife\"}\n");
    r = SCORE("n.txt", "n.jsonl");
    assert_rate(words_of(r), 5, 0, 0, 5);
    json_decref(r);
    r = SCORE("n.txt", "n.jsonl", "--oracle", "--sequences", "1");
    assert_rate(words_of(r), 2, 0, 0, 5);
    assert_true(number(system_of(r, 0), "readings") == 4);
    first = json_array_get(json_object_get(system_of(r, 0), "sequences"), 0);
    assert_string_equal(text(first, "hypothesis"), "one y three");
    json_decref(r);
    assert_says(BMUF("score", "n.txt", "n.jsonl", "--oracle").out,
                "oracle          the best of up to 4 readings of a sequence\n");
    assert_fails(BMUF("score", "n.txt", "n.txt", "--oracle"), 65,
                 "n.txt has no \"nbest\"", "bmuf decode --format json --nbest");
}

/* Writes texts s0 .. of 3, 2, 1, 3 .. words, and a system with 2, 1, 1, 2 ..
 * errors. */
static void write_systems(bm_error_count *bad, bm_error_count *good, size_t n)
{
    static const char *const right[] = {"x y z", "u v", "w"};
    static const char *const wrong[] = {"x", "v", "q"};
    static const bm_error_count count[] = {{2, 3}, {1, 2}, {1, 1}};
    char ref[400] = "", hyp[400] = "";

    for (size_t k = 0; k < n; k++) {
        size_t at = strlen(ref), to = strlen(hyp);

        snprintf(ref + at, sizeof ref - at, "s%zu %s\n", k, right[k % 3]);
        snprintf(hyp + to, sizeof hyp - to, "s%zu %s\n", k, wrong[k % 3]);
        bad[k] = count[k % 3];
        good[k] = (bm_error_count){0, count[k % 3].total};
    }
    write_text("r3.txt", ref);
    write_text("bad.txt", hyp);
}

/* Each text is a segment: differences 2, 1, 1, 2 .. */
static void test_systems_are_compared_with_the_first(void **state)
{
    enum { TEXTS = 21 };
    bm_error_count a[TEXTS], b[TEXTS];
    bm_interval i = {0};
    double variance = (7 * (4 + 1 + 1) - TEXTS * 16. / 9) / (TEXTS - 1);
    const json_t *than = NULL, *words = NULL;
    json_t *r = NULL;

    (void)state;
    write_systems(a, b, TEXTS);
    r = SCORE("r3.txt", "bad.txt", "r3.txt");
    than = json_object_get(system_of(r, 1), "than_first");
    words = json_object_get(than, "words");
    assert_ok(bm_bootstrap_difference(a, b, TEXTS, &i));
    assert_true(near(number(words, "difference"), i.rate, 1e-8));
    assert_true(near(number(words, "low"), i.low, 1e-8));
    assert_true(near(number(words, "high"), i.high, 1e-8));
    than = json_object_get(than, "matched_pairs");
    assert_true(number(than, "segments") == TEXTS);
    assert_true(near(number(than, "z"), 4. / 3 / sqrt(variance / TEXTS), 1e-7));
    assert_true(number(than, "p") < 1e-30);
    json_decref(r);
    assert_says(BMUF("score", "r3.txt", "bad.txt", "r3.txt").out,
                "matched pairs   2 against 1: 21 segments, z = 12.65, "
                "p < 0.0001: fewer errors\n");
    assert_says(BMUF("score", "r3.txt", "bad.txt", "bad.txt").out,
                "no difference in any sequence");
}

static void test_too_few_texts_are_not_compared(void **state)
{
    bm_error_count a[2], b[2];
    const json_t *than = NULL;
    json_t *r = NULL;
    outcome o;

    (void)state;
    write_systems(a, b, 2);
    o = BMUF("score", "r3.txt", "bad.txt", "r3.txt");
    assert_says(o.out,
                "matched pairs   2 against 1: 2 segments, too few to test");
    assert_says(o.err, "a confidence interval from 2 sequences is unreliable");
    assert_says(BMUF("score", "r3.txt", "bad.txt", "r3.txt", "--json").err,
                "a confidence interval from 2 sequences is unreliable");
    assert_says(BMUF("score", "r3.txt", "bad.txt", "--utt2spk", "r3.txt",
                     "--draw", "speakers", "--json")
                    .err,
                "a confidence interval from 2 speakers is unreliable");
    write_systems(a, b, 1);
    o = BMUF("score", "r3.txt", "bad.txt", "r3.txt");
    assert_says(o.out, "(95 %: unknown; ");
    assert_says(o.out, "word errors     2 than 1: too few to compare");
    r = SCORE("r3.txt", "bad.txt", "r3.txt");
    assert_true(json_is_null(json_object_get(words_of(r), "interval_95")));
    than = json_object_get(system_of(r, 1), "than_first");
    assert_true(json_is_null(json_object_get(than, "words")));
    than = json_object_get(than, "matched_pairs");
    assert_true(json_is_null(json_object_get(than, "z")) &&
                json_is_null(json_object_get(than, "p")));
    json_decref(r);
}

/* Rates of systems that took alternatives of other lengths are of the mean. */
static void test_systems_with_other_alternatives_are_compared(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("o.trn", "{ a b c / d } (x-1)\ne (x-2)\n");
    write_text("o1.trn", "a b x (x-1)\ne (x-2)\n");
    write_text("o2.trn", "d (x-1)\ne (x-2)\n");
    r = SCORE("o.trn", "o1.trn", "o2.trn");
    assert_true(near(
        number(json_object_get(json_object_get(system_of(r, 1), "than_first"),
                               "words"),
               "difference"),
        -1 / 3., 1e-8)); /* 1 error less, of (3 + 1) / 2 + 1 words */
    json_decref(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids_must_agree_unless_told),
        cmocka_unit_test(test_speakers_come_from_a_list),
        cmocka_unit_test(test_texts_that_are_not_scored_need_no_speaker),
        cmocka_unit_test(test_one_speaker_of_all_ids_is_warned_of),
        cmocka_unit_test(test_names_of_speakers_may_be_any_bytes),
        cmocka_unit_test(test_confusions_are_sorted_by_frequency),
        cmocka_unit_test(test_tables_may_count_characters),
        cmocka_unit_test(test_sequences_with_the_most_errors_are_listed),
        cmocka_unit_test(test_sequences_may_be_listed_by_characters),
        cmocka_unit_test(
            test_an_oracle_takes_the_reading_with_the_fewest_errors),
        cmocka_unit_test(test_systems_are_compared_with_the_first),
        cmocka_unit_test(test_too_few_texts_are_not_compared),
        cmocka_unit_test(test_systems_with_other_alternatives_are_compared),
    };
    return cmocka_run_group_tests_name("score_tables", tests, folder_make,
                                       folder_remove);
}

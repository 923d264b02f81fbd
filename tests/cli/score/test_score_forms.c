/*
 * bmuf score: texts as other programs keep them, which have the same errors in
 * every form: lists of PyLaia, packed sets, manifests of NeMo and WeNet.
 */
#include "tests/cli/score/scored.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <string.h>

/* Writes texts l1 "le mur", l2 "\303\251t\303\251", l3 without words in three
 * forms, and the same with 1 substitution in each of the first two. */
static void write_forms(void)
{
    write_text("le.jsonl", "{\"id\": \"l1\", \"text\": \"le mur\"}\n"
                           "{\"id\": \"l2\", \"text\": \"\303\251t\303\251\"}\n"
                           "{\"id\": \"l3\", \"text\": \"\"}\n");
    write_text("le.trn", "le mur (l1)\n\303\251t\303\251 (l2)\n(l3)\n");
    write_text("le.txt", "# id text\nl1 l e <space> m u r\n\n"
                         "l2 \303\251 t \303\251 \nl3\n");
    write_text("la.jsonl", "{\"id\": \"l1\", \"text\": \"la mur\"}\n"
                           "{\"id\": \"l2\", \"text\": \"ete\"}\n"
                           "{\"id\": \"l3\", \"text\": \"\"}\n");
    write_text("la.trn", "la mur (l1)\nete (l2)\n(l3)\n");
    write_text("la.txt", "l1 l a <sp> m u r\nl2 e t e\nl3\n");
}

static void check_forms(const char *ref, const char *hyp)
{
    json_t *r = SCORE(ref, hyp);

    assert_true(number(r, "sequences") == 3);
    assert_rate(words_of(r), 2, 0, 0, 3);
    assert_rate(characters_of(r), 3, 0, 0, 9);
    json_decref(r);
}

static void test_lists_of_pylaia_have_the_errors_of_other_forms(void **state)
{
    static const char *const refs[] = {"le.jsonl", "le.trn", "le.txt"};
    static const char *const hyps[] = {"la.jsonl", "la.trn", "la.txt"};

    (void)state;
    write_forms();
    FOR_EACH (i, refs)
        FOR_EACH (k, hyps)
            check_forms(refs[i], hyps[k]);
    write_text("odd.txt", "l1 l e <space> m u r\nl2 ete\nl3\n");
    assert_fails(BMUF("score", "le.trn", "odd.txt"), 65,
                 "odd.txt:2: 'ete' is not one character", "<space>");
}

/* Without <space> nothing tells characters from words. */
static void test_words_of_one_character_are_words_unless_told(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("cat.trn", "cat (a)\ndog (b)\n");
    write_text("cat.txt", "a c u t\nb d o g\n");
    assert_says(
        BMUF("score", "cat.trn", "cat.txt").err,
        "cat.txt: all words have one character, but most of cat.trn have "
        "more; if it is a list of PyLaia, give --hyp-form pylaia");
    r = SCORE("cat.trn", "cat.txt", "--hyp-form", "pylaia");
    assert_rate(words_of(r), 1, 0, 0, 2);
    assert_rate(characters_of(r), 1, 0, 0, 6);
    json_decref(r);
    assert_says(BMUF("score", "cat.txt", "cat.txt").err,
                "cat.txt, cat.txt: all words have one character; if they are "
                "lists of PyLaia, give --ref-form pylaia --hyp-form pylaia");
    write_text("one.txt", "a c\nb d\n"); /* one word a line */
    assert_null(strstr(BMUF("score", "one.txt", "one.txt").err, "PyLaia"));
    r = SCORE("cat.txt", "cat.txt");
    assert_rate(words_of(r), 0, 0, 0, 6);
    json_decref(r);
}

/* ---- packed sets --------------------------------------------------------- */

/* Texts of words and of characters, of which u4 has no speaker; and no texts. */
static void pack(void)
{
    write_text("set.jsonl",
               "{\"id\": \"u1\", \"audio\": \"1.wav\", \"text\": \"a b\", "
               "\"speaker\": \"ann\"}\n"
               "{\"id\": \"u2\", \"audio\": \"2.wav\", \"text\": \"b ab c\", "
               "\"speaker\": \"bob\"}\n"
               "{\"id\": \"u4\", \"audio\": \"1.wav\", \"text\": \"a\"}\n");
    write_text("bare.jsonl", "{\"id\": \"u1\", \"audio\": \"1.wav\"}\n");
    write_speech("1.wav", "a b");
    write_speech("2.wav", "b ab c");
    assert_code(BMUF("pack", "--audio", "set.jsonl", "--out", "words",
                     "--units", "words"),
                0);
    assert_code(BMUF("pack", "--audio", "set.jsonl", "--out", "characters"), 0);
    assert_code(BMUF("pack", "--audio", "bare.jsonl", "--out", "bare",
                     "--vocab", "words"),
                0);
}

static void check_packed(const char *set)
{
    const json_t *speakers = NULL;
    json_t *r = SCORE(set, "set.trn");

    assert_true(number(r, "sequences") == 3);
    assert_rate(words_of(r), 1, 1, 0, 6);
    assert_rate(characters_of(r), 0, 2, 0, 10);
    json_decref(r);
    /* u4 has no speaker there, and none by its id. */
    assert_fails(BMUF("score", set, "set.trn", "--speakers"), 65,
                 "u4 has no speaker");
    r = SCORE(set, "some.trn", "--missing", "skip", "--speakers");
    speakers = json_object_get(system_of(r, 0), "speakers");
    assert_int_equal(json_array_size(speakers), 2);
    assert_string_equal(text(json_array_get(speakers, 0), "speaker"), "ann");
    assert_rate(json_array_get(speakers, 0), 0, 0, 0, 2);
    assert_string_equal(text(json_array_get(speakers, 1), "speaker"), "bob");
    assert_rate(json_array_get(speakers, 1), 1, 1, 0, 3);
    json_decref(r);
}

static void test_a_packed_set_is_a_reference(void **state)
{
    (void)state;
    pack();
    write_text("set.trn", "a b (u1)\nb ac (u2)\na (u4)\n");
    write_text("some.trn", "a b (u1)\nb ac (u2)\n");
    check_packed("words");
    check_packed("characters");
    check_packed("characters/data-00000.bmuf.h5");
    assert_fails(BMUF("score", "set.trn", "words"), 65,
                 "words is a folder or a packed set",
                 "only the reference may be a packed set");
    assert_fails(BMUF("score", "bare", "some.trn", "--missing", "skip"), 65,
                 "bare: there is no text to score");
    assert_fails(BMUF("score", ".", "set.trn"), 66, "no *.bmuf.h5 files");
}

/* ---- manifests ----------------------------------------------------------- */

/* NeMo's transcribe_speech.py adds pred_text to the lines of a manifest. Ids are
 * names of files, of excerpts with their start in milliseconds. */
static void test_manifests_of_nemo_are_read(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("nemo.jsonl",
               "{\"audio_filepath\": \"wav/a.wav\", \"text\": \"one two\"}\n\n"
               "{\"audio_filepath\": \"wav/long.wav\", \"offset\": 1.25, "
               "\"duration\": 1, \"text\": \"three\"}\n");
    write_text("pred.jsonl",
               "{\"audio_filepath\": \"wav/a.wav\", \"text\": \"one two\", "
               "\"pred_text\": \"one too\"}\n"
               "{\"audio_filepath\": \"wav/long.wav\", \"offset\": 1.25, "
               "\"duration\": 1, \"text\": \"three\", \"pred_text\": \"\"}\n");
    write_text("nemo.trn", "one two (a)\nthree (long-0001250)\n");
    r = SCORE("nemo.jsonl", "pred.jsonl");
    assert_rate(words_of(r), 1, 1, 0, 3);
    json_decref(r);
    r = SCORE("nemo.trn", "pred.jsonl");
    assert_rate(words_of(r), 1, 1, 0, 3);
    json_decref(r);
    /* As a reference it has the text. */
    r = SCORE("pred.jsonl", "nemo.trn");
    assert_rate(words_of(r), 0, 0, 0, 3);
    json_decref(r);
}

/* With ids; a line without pred_text was not recognised. */
static void test_a_hypothesis_is_what_was_predicted(void **state)
{
    static const char lines[] =
        "{\"id\": \"a\", \"text\": \"one\", \"pred_text\": \"won\"}\n"
        "{\"id\": \"b\", \"text\": \"two\", \"pred_text\": null}\n"
        "{\"id\": \"c\", \"text\": \"six\"}\n";
    json_t *r = NULL;

    (void)state;
    write_text("some.jsonl", lines);
    r = SCORE("some.jsonl", "some.jsonl", "--missing", "empty");
    assert_rate(words_of(r), 1, 2, 0, 3);
    json_decref(r);
    assert_fails(BMUF("score", "some.jsonl", "some.jsonl"), 65,
                 "2 missing in some.jsonl: b, c");
}

static void test_manifests_have_texts_by_other_names(void **state)
{
    static const char *const wenet =
        "{\"key\": \"w1\", \"wav\": \"1.wav\", \"txt\": \"one two\"}\n"
        "{\"key\": \"w2\", \"wav\": \"2.wav\", \"txt\": \"three\"}\n";
    static const char *const sentences =
        "{\"id\": \"w1\", \"audio\": \"1.wav\", \"sentence\": \"one two\"}\n"
        "{\"id\": \"w2\", \"audio\": \"2.wav\", \"sentence\": \"three\"}\n";
    static const char *const cuts =
        "{\"id\": \"w1\", \"start\": 0, \"duration\": 1, \"recording\": "
        "{\"sources\": [{\"type\": \"file\", \"source\": \"1.wav\"}]}, "
        "\"supervisions\": [{\"text\": \"one\"}, {\"text\": \"two\"}]}\n"
        "{\"id\": \"w2\", \"start\": 0, \"duration\": 1, \"recording\": "
        "{\"sources\": [{\"type\": \"file\", \"source\": \"2.wav\"}]}, "
        "\"supervisions\": [{\"text\": \"three\"}]}\n";
    const char *const all[] = {wenet, sentences, cuts};

    (void)state;
    write_text("w.trn", "one to (w1)\nthree (w2)\n");
    FOR_EACH (i, all) {
        json_t *r = NULL;

        write_text("w.jsonl", all[i]);
        r = SCORE("w.jsonl", "w.trn");
        assert_rate(words_of(r), 1, 0, 0, 3);
        json_decref(r);
    }
    /* As in bmuf pack, bmuf's own manifests have ids. */
    write_text("w.jsonl", "{\"audio\": \"1.wav\", \"text\": \"one\"}\n");
    assert_fails(BMUF("score", "w.jsonl", "w.trn"), 65, "w.jsonl:1",
                 "\"id\" is missing");
    write_text("w.jsonl", "{\"text\": \"one\"}\n");
    assert_fails(BMUF("score", "w.jsonl", "w.trn"), 65, "w.jsonl:1: no \"id\"");
}

/* ---- ids ----------------------------------------------------------------- */

/* Ids of one set differ at their end. The cut is not within a character: of
 * 2 * 24 + 1 + 2 bytes the last 50 begin with the second one of an e acute. */
static void test_ids_that_differ_are_told_with_forms(void **state)
{
    char id[200] = "", line[260], told[500];

    (void)state;
    for (size_t i = 0; i < 24; i++)
        memcpy(id + 2 * i, "\303\251", 3);
    snprintf(line, sizeof line, "one (%s-l1)\n", id);
    write_text("long.trn", line);
    snprintf(line, sizeof line, "%s-l2 one\n", id);
    write_text("long.txt", line);
    snprintf(told, sizeof told,
             "1 missing in long.txt: ..%s-l1; 1 additional: "
             "..%s-l2",
             id + 2, id + 2);
    assert_fails(BMUF("score", "long.trn", "long.txt"), 65,
                 "long.trn, read as trn, and long.txt, read as txt, do not "
                 "have the same ids",
                 told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_of_pylaia_have_the_errors_of_other_forms),
        cmocka_unit_test(test_words_of_one_character_are_words_unless_told),
        cmocka_unit_test(test_a_packed_set_is_a_reference),
        cmocka_unit_test(test_manifests_of_nemo_are_read),
        cmocka_unit_test(test_a_hypothesis_is_what_was_predicted),
        cmocka_unit_test(test_manifests_have_texts_by_other_names),
        cmocka_unit_test(test_ids_that_differ_are_told_with_forms),
    };
    return cmocka_run_group_tests_name("score_forms", tests, folder_make,
                                       folder_remove);
}

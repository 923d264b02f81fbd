/*
 * bmuf score: errors that sclite counts, worked out by hand, and by eval; forms
 * of files, ids of trn, normalisation.
 */
#include "tests/cli/score/scored.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

/* ---- counts -------------------------------------------------------------- */

/* What sclite 2.10 counts for these files: "-i spu_id -o all". */
static void test_errors_are_those_of_sclite(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("r.trn", "a b c d (s_1_01)\n"
                        "a { uh / um / @ } b (s-2_02)\n"
                        "the cat (t1-02)\n"
                        "x y (t1-plain)\n");
    write_text("h.trn", "a b c (s_1_01)\n"
                        "a b (s-2_02)\n"
                        "the dog sat (t1-02)\n"
                        "x z (t1-plain)\n");
    r = SCORE("r.trn", "h.trn", "--align", "sclite", "--speakers");
    assert_true(number(r, "sequences") == 4);
    assert_true(number(system_of(r, 0), "wrong") == 3);
    assert_rate(words_of(r), 2, 1, 1, 10);
    {
        const json_t *speakers = json_object_get(system_of(r, 0), "speakers");
        const json_t *s = json_array_get(speakers, 0);
        const json_t *t1 = json_array_get(speakers, 1);

        assert_int_equal(json_array_size(speakers), 2);
        assert_string_equal(text(s, "speaker"), "s");
        assert_string_equal(text(t1, "speaker"), "t1");
        assert_rate(s, 0, 1, 0, 6);
        assert_rate(t1, 2, 0, 1, 4);
        assert_true(number(t1, "sequences") == 2);
    }
    json_decref(r);
}

/* reference/ctc.md, section 4: numbers as words. */
static void test_costs_change_the_kinds_of_errors(void **state)
{
    static const struct {
        const char *ref, *hyp;
        double unit[3], sclite[3]; /* substitutions, deletions, insertions */
        double n;
    } known[] = {
        {"2 3 4 5 6 7", "1 3 4 5", {1, 2, 0}, {1, 2, 0}, 6},
        {"0 1", "1 0", {2, 0, 0}, {0, 1, 1}, 2},
        {"0 1 2 3 4 5 6", "4 5 6 7 8 9 10", {7, 0, 0}, {0, 4, 4}, 7},
    };

    (void)state;
    FOR_EACH (k, known) {
        char line[100];
        json_t *r = NULL;

        snprintf(line, sizeof line, "a-1 %s\n", known[k].ref);
        write_text("ref.txt", line);
        snprintf(line, sizeof line, "a-1 %s\n", known[k].hyp);
        write_text("hyp.txt", line);
        r = SCORE("ref.txt", "hyp.txt");
        assert_rate(words_of(r), known[k].unit[0], known[k].unit[1],
                    known[k].unit[2], known[k].n);
        json_decref(r);
        r = SCORE("ref.txt", "hyp.txt", "--align", "sclite");
        assert_rate(words_of(r), known[k].sclite[0], known[k].sclite[1],
                    known[k].sclite[2], known[k].n);
        json_decref(r);
    }
}

static void test_alternatives_may_be_in_alternatives(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("alt.trn", "{ a { b / c } d / @ } e (x-1)\n"
                          "{ one / two three } (x-2)\n"
                          "{ one / two three } (x-3)\n");
    write_text("said.trn", "a c d e (x-1)\n"
                           "two three (x-2)\n"
                           "twx three (x-3)\n");
    r = SCORE("alt.trn", "said.trn");
    assert_rate(words_of(r), 1, 0, 0, 4 + 2 + 2);
    assert_rate(characters_of(r), 1, 0, 0, 7 + 9 + 9);
    json_decref(r);
    /* In other forms braces are words. */
    write_text("alt.txt", "x-1 { a / b }\n");
    write_text("said.txt", "x-1 { a / b }\n");
    r = SCORE("alt.txt", "said.txt");
    assert_rate(words_of(r), 0, 0, 0, 5);
    json_decref(r);
    write_text("open.trn", "good (x-1)\n{ a / b (x-2)\n");
    write_text("open-h.trn", "good (x-1)\na (x-2)\n");
    assert_fails(BMUF("score", "open.trn", "open-h.trn"), 65,
                 "id x-2 (open.trn:2)", "} is missing");
}

/* Characters: one for each code point, one space between two words. */
static void test_characters_are_code_points(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("c.txt", "a-1 na\xc3\xafve  caf\xc3\xa9\n");
    write_text("d.txt", "a-1 naive cafe s\n");
    r = SCORE("c.txt", "d.txt");
    assert_rate(characters_of(r), 2, 0, 2, 10);
    assert_rate(words_of(r), 2, 0, 1, 2);
    json_decref(r);
}

static void test_scores_are_those_of_eval(void **state)
{
    json_t *e = NULL, *r = NULL, *packed = NULL;

    (void)state;
    assert_code(BMUF("train", "tiny.ini", "--out", "half", "--set",
                     "train.epochs=5", "--set", "schedule.kind=constant"),
                0);
    e = parse_json(
        BMUF("eval", "half", "test", "--json", "--hyp", "e.trn").out);
    r = SCORE("test.jsonl", "e.trn", "--speakers");
    packed = SCORE("test", "e.trn", "--speakers"); /* several units */
    assert_true(json_equal(json_object_get(packed, "systems"),
                           json_object_get(r, "systems")));
    json_decref(packed);
    assert_true(number(e, "word_errors") > 0);
    assert_rate(words_of(r), number(e, "word_substitutions"),
                number(e, "word_deletions"), number(e, "word_insertions"),
                number(e, "words"));
    assert_true(json_equal(json_object_get(e, "wer_95"),
                           json_object_get(words_of(r), "interval_95")));
    /* The manifest has the speakers: s0, s1, s2. */
    assert_int_equal(
        json_array_size(json_object_get(system_of(r, 0), "speakers")), 3);
    json_decref(e);
    json_decref(r);
}

/* ---- files --------------------------------------------------------------- */

/* The same two texts in all forms. */
static void test_all_forms_say_the_same(void **state)
{
    static const char *const names[] = {"f.trn", "f.txt", "f.stm", "f.ctm",
                                        "f.jsonl"};

    (void)state;
    write_text("f.trn", "one two (a)\n\n three  (b)\r\n");
    write_text("f.txt", "a one two\nb three\n");
    write_text("f.stm", ";; a comment\n"
                        "b 1 ann 0 2 <o,f0> three\n"
                        "a 1 bob 1.5 2 two\n"
                        "a 1 bob 0 1.5 one\n");
    write_text("f.ctm", ";; a comment\n"
                        "a 1 0.9 0.2 two 0.5\n"
                        "a 1 0.1 0.2 one\n"
                        "b 1 0.1 0.2 three 1\n");
    write_text("f.jsonl", "{\"id\": \"a\", \"text\": \"one two\"}\n"
                          "{\"id\": \"b\", \"text\": \"three\", \"x\": 1}\n");
    FOR_EACH (i, names) {
        FOR_EACH (k, names) {
            json_t *r = SCORE(names[i], names[k]);

            if (strcmp(names[i], "f.stm") == 0 &&
                strcmp(names[k], "f.ctm") == 0) { /* by segments */
                assert_true(number(r, "sequences") == 3);
                assert_rate(words_of(r), 0, 1, 1, 3);
            } else {
                assert_true(number(r, "sequences") == 2);
                assert_rate(words_of(r), 0, 0, 0, 3);
            }
            json_decref(r);
        }
    }
    /* Without a telling name, by the first line; or as told. */
    write_text("trn", "one two (a)\nthree (b)\n");
    write_text("txt", "a one two\nb three\n");
    write_text("json", "{\"id\": \"a\", \"text\": \"one two\"}\n"
                       "{\"id\": \"b\", \"text\": \"three\"}\n");
    write_text("timed", "a 1 0.9 0.2 two\na 1 0.1 0.2 one\nb 1 0 1 three\n");
    assert_code(BMUF("score", "trn", "txt"), 0);
    assert_code(BMUF("score", "json", "trn"), 0);
    assert_code(BMUF("score", "json", "timed", "--hyp-form", "ctm"), 0);
}

/* As some editors write it. */
static void test_a_byte_order_mark_is_skipped(void **state)
{
    static const struct {
        const char *name, *text;
    } files[] = {
        {"mark.trn", "one (a)\n"},
        {"mark.txt", "a one\n"},
        {"mark.stm", "a 1 bob 0 1 one\n"},
        {"mark.ctm", ";; a comment\na 1 0 1 one\n"},
        {"mark.jsonl", "{\"id\": \"a\", \"text\": \"one\"}\n"},
        {"mark", "{\"id\": \"a\", \"text\": \"one\"}\n"},
    };

    (void)state;
    write_text("plain.trn", "one (a)\n");
    FOR_EACH (i, files) {
        char marked[100];
        json_t *r = NULL;

        snprintf(marked, sizeof marked, "\xef\xbb\xbf%s", files[i].text);
        write_text(files[i].name, marked);
        r = SCORE("plain.trn", files[i].name);
        assert_rate(words_of(r), 0, 0, 0, 1);
        json_decref(r);
        r = SCORE(files[i].name, "plain.trn");
        assert_rate(words_of(r), 0, 0, 0, 1);
        json_decref(r);
    }
}

/* The middle of a word decides; words of no segment, and of ignored ones, are
 * left out. */
static void test_words_with_times_go_to_segments(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("s.stm", "f A ann 0 2 one two\n"
                        "f A bob 2 4 three\n"
                        "f A bob 4 6 ignore_time_segment_in_scoring\n"
                        "f B bob 0 2 { four / for }\n"
                        "g A ann 1 2 five\n");
    write_text("s.ctm", "f A 0 0.5 one\n"
                        "f A 1.5 0.8 two\n"   /* middle 1.9 */
                        "f A 1.9 0.4 three\n" /* middle 2.1 */
                        "f A 4.5 0.2 noise\n"
                        "f A 6.5 0.2 noise\n"
                        "f B 0.5 0.5 for\n"
                        "g A 0.1 0.2 noise\n"
                        "g A 1.1 0.2 five\n"
                        "h A 1 1 noise\n");
    r = SCORE("s.stm", "s.ctm", "--speakers");
    assert_rate(words_of(r), 0, 0, 0, 5);
    assert_true(number(r, "sequences") == 4);
    assert_true(number(system_of(r, 0), "outside") == 4);
    assert_string_equal(
        text(json_array_get(json_object_get(system_of(r, 0), "speakers"), 0),
             "speaker"),
        "ann");
    json_decref(r);
    write_text("g.ctm", "h A 0 0.5 one\n");
    assert_fails(BMUF("score", "s.stm", "g.ctm"), 65,
                 "s.stm and g.ctm have no recording in common: \"f\"",
                 "but \"h\", channel A, in g.ctm");
    write_text("h.trn", "one (h)\n");
    assert_fails(BMUF("score", "f.trn", "h.trn", "--missing", "skip"), 65,
                 "f.trn: no id is in all files, so there is no text to score");
    assert_fails(BMUF("score", "s.stm", "s.ctm", "f.trn"), 65,
                 "either all hypotheses are in ctm or none");
}

/* All words are deletions. A reference has words. */
static void test_a_ctm_file_may_have_no_words(void **state)
{
    static const char *const none[] = {"", ";; a comment\n"};

    (void)state;
    write_text("full.stm", "f A ann 0 2 one two\nf A bob 2 4 three\n");
    write_text("full.trn", "one two three (f)\n");
    FOR_EACH (i, none) {
        json_t *r = NULL;

        write_text("none.ctm", none[i]);
        r = SCORE("full.stm", "none.ctm");
        assert_rate(words_of(r), 0, 3, 0, 3);
        assert_true(number(r, "sequences") == 2);
        json_decref(r);
        r = SCORE("full.trn", "none.ctm", "--missing", "empty");
        assert_rate(words_of(r), 0, 3, 0, 3);
        json_decref(r);
        assert_fails(BMUF("score", "full.trn", "none.ctm"), 65,
                     "1 missing in none.ctm: f");
        assert_fails(
            BMUF("score", "none.ctm", "full.trn", "--missing", "empty"), 65,
            "none.ctm: there is no text to score");
    }
}

/* A long word across the end of a segment takes no other one along; words of a
 * segment are in the order in which they begin. */
static void test_the_middle_alone_decides(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("m.stm", "f 1 ann 0 1 first short\n"
                        "f 1 ann 1 2 long second\n");
    write_text("m.ctm", "f 1 0.1 0.8 first\n" /* middle 0.5 */
                        "f 1 0.2 0.1 short\n" /* 0.25 */
                        "f 1 0.9 0.4 long\n"  /* 1.1 */
                        "f 1 1.1 0.2 second\n" /* 1.2 */);
    r = SCORE("m.stm", "m.ctm");
    assert_rate(words_of(r), 0, 0, 0, 4);
    json_decref(r);
    write_text("m.stm", "f 1 ann 0 1 short\nf 1 ann 1 2 long\n");
    write_text("m.ctm", "f 1 0.9 0.4 long\n" /* 1.1 */
                        "f 1 0.95 0.02 short\n" /* 0.96 */);
    r = SCORE("m.stm", "m.ctm");
    assert_rate(words_of(r), 0, 0, 0, 2);
    assert_true(number(system_of(r, 0), "outside") == 0);
    json_decref(r);
}

/* Where words have no times, too; in a hypothesis as in the reference. */
static void test_ignored_segments_are_not_scored(void **state)
{
    static const char *const heard[] = {"ign.trn", "ign-h.stm"};

    (void)state;
    write_text("ign.stm", "f 1 ann 0 1 one\n"
                          "f 1 ann 1 2 IGNORE_TIME_SEGMENT_IN_SCORING\n"
                          "f 1 ann 2 3 two\n");
    write_text("ign.trn", "one twx (f)\n");
    write_text("ign-h.stm", "f 1 x 0 1 one\n"
                            "f 1 x 1 2 ignore_time_segment_in_scoring\n"
                            "f 1 x 2 3 twx\n");
    FOR_EACH (i, heard) {
        json_t *r = SCORE("ign.stm", heard[i]);

        assert_rate(words_of(r), 1, 0, 0, 2);
        json_decref(r);
    }
}

/* Of a conversation on two channels. */
static void test_channels_become_one_text_in_order_of_time(void **state)
{
    static const char *const timed[] = {"two.stm", "two.ctm"};

    (void)state;
    write_text("two.stm", "f A ann 0 1 one\nf A ann 2 3 three\n"
                          "f B bob 1 2 two\nf B bob 3 4 four\n");
    write_text("two.ctm", "f A 0 1 one\nf A 2 1 three\n"
                          "f B 1 1 two\nf B 3 1 four\n");
    write_text("two.trn", "one two three four (f)\n");
    FOR_EACH (i, timed) {
        json_t *r = SCORE(timed[i], "two.trn");

        assert_rate(words_of(r), 0, 0, 0, 4);
        json_decref(r);
        r = SCORE("two.trn", timed[i]);
        assert_rate(words_of(r), 0, 0, 0, 4);
        json_decref(r);
    }
}

static void test_broken_lines_are_told_with_their_number(void **state)
{
    static const struct {
        const char *name, *text, *words;
    } broken[] = {
        {"b.trn", "one (a)\ntwo\n", "b.trn:2"},
        {"b.trn", "one (a)\ntwo ()\n", "b.trn:2"},
        {"b.trn", "one (a)\ntwo (a b)\n", "b.trn:2"},
        {"b.trn", "one (a)\ntwo (a)\n", "b.trn:2: id a occurs in line 1"},
        {"b.ctm", "a 1 0 0.1 one\na 1 x 0.1 two\n", "b.ctm:2"},
        {"b.ctm", "a 1 0 0.1 one\na 1 1 -1 two\n", "b.ctm:2"},
        {"b.ctm", "a 1 0 0.1\n", "b.ctm:1"},
        {"b.ctm", "a 1 * * <ALT_BEGIN>\n", "b.ctm:1"},
        {"b.stm", "a 1 ann 0 1 one\na 1 ann 2 1 two\n", "b.stm:2"},
        {"b.jsonl", "{\"id\": \"a\", \"text\": \"x\"}\n{\"id\":\n",
         "b.jsonl:2"},
        {"b.jsonl", "{\"text\": \"x\"}\n", "no \"id\""},
        {"b.jsonl", "{\n  \"id\": \"a\"\n}\n", "give one object a line"},
        {"b.txt", "a one \xff\n", "not UTF-8"},
        {"b.txt", "\n\n", "b.txt has no texts"},
        {"b.txt", "a <blank>\n", "<blank> is not a word"},
    };

    (void)state;
    write_text("good.txt", "a one\n");
    FOR_EACH (k, broken) {
        write_text(broken[k].name, broken[k].text);
        assert_fails(BMUF("score", broken[k].name, "good.txt"), 65,
                     broken[k].words);
    }
    write_bytes("zero.txt", "a one\0two\n", 10);
    assert_fails(BMUF("score", "zero.txt", "good.txt"), 65, "zero.txt");
    assert_fails(BMUF("score", "none.txt", "good.txt"), 66, "none.txt");
    assert_fails(BMUF("score", "test-0.wav", "good.txt"), 65, "test-0.wav");
    assert_fails(BMUF("score", "good.txt"), 64, "score");
}

/* The file that is named has the text that is bad, reference or not. */
static void test_bad_texts_are_named_by_their_file(void **state)
{
    (void)state;
    write_text("fine.trn", "one (a)\ntwo (b)\n");
    write_text("bytes.trn", "one (a)\ntw\xff (b)\n");
    write_text("blank.trn", "two (b)\none <blank> (a)\n");
    write_text("readings.jsonl",
               "{\"id\": \"a\", \"text\": \"one\"}\n"
               "{\"id\": \"b\", \"text\": \"two\", \"nbest\": "
               "[{\"text\": \"two\"}, {\"text\": \"<blank>\"}]}\n");
    assert_fails(BMUF("score", "bytes.trn", "fine.trn"), 65,
                 "id b (bytes.trn:2): ", "not UTF-8");
    assert_fails(BMUF("score", "fine.trn", "bytes.trn"), 65,
                 "id b (bytes.trn:2): ", "not UTF-8");
    assert_fails(BMUF("score", "fine.trn", "fine.trn", "blank.trn"), 65,
                 "id a (blank.trn:2): <blank> is not a word");
    assert_fails(BMUF("score", "fine.trn", "readings.jsonl", "--oracle"), 65,
                 "id b (readings.jsonl:2): <blank> is not a word");
}

/* ---- ids ----------------------------------------------------------------- */

static void test_ids_of_trn_may_have_parentheses(void **state)
{
    json_t *r = NULL;

    (void)state;
    write_text("paren.jsonl", "{\"id\": \"a(1)\", \"text\": \"x y\"}\n"
                              "{\"id\": \"((b))(2)\", \"text\": \"(z)\"}\n");
    write_text("paren.trn", "x y (a(1))\n(z) ( ((b))(2) )\n");
    r = SCORE("paren.jsonl", "paren.trn");
    assert_rate(words_of(r), 0, 0, 0, 3);
    json_decref(r);
    write_text("open.trn", "x y a(1))\n");
    assert_fails(BMUF("score", "paren.jsonl", "open.trn"), 65,
                 "open.trn:1: not a line of trn");
}

/* Ids as eval writes them. */
static void test_ids_with_parentheses_come_back_from_eval(void **state)
{
    outcome o;
    json_t *r = NULL;

    (void)state;
    write_text("odd.jsonl", "{\"id\": \"t(1)\", \"audio\": \"test-0.wav\", "
                            "\"text\": \"a b\"}\n"
                            "{\"id\": \"t)(2\", \"audio\": \"test-1.wav\", "
                            "\"text\": \"a b\"}\n");
    assert_code(BMUF("pack", "--audio", "odd.jsonl", "--out", "odd", "--vocab",
                     "train", "--set", "features.mels=8"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "odd-run", "--set",
                     "train.epochs=1"),
                0);
    o = BMUF("eval", "odd-run", "odd", "--hyp", "odd.trn");
    assert_code(o, 0);
    assert_says(o.err, "a confidence interval from 2 sequences is unreliable");
    assert_says(BMUF("eval", "odd-run", "odd", "--json").err,
                "from 2 sequences is unreliable");
    assert_says(
        BMUF("compare", "odd-run", "odd-run", "--on", "odd", "--json").err,
        "from 2 sequences is unreliable");
    assert_code(BMUF("score", "odd.jsonl", "odd.trn"), 65);
    r = SCORE("odd.jsonl", "odd.trn", "--missing", "empty");
    assert_true(number(system_of(r, 0), "missing") == 1);
    assert_true(number(system_of(r, 0), "additional") == 1); /* t__2 */
    json_decref(r);
}

/* ---- normalisation ------------------------------------------------------- */

static void test_normalisation_is_applied_to_both(void **state)
{
    static const struct {
        const char *ref, *hyp, *options[4];
        double errors, errors_with;
    } cases[] = {
        {"The CAT", "the cat", {"--lower"}, 2, 0},
        {"\xc3\x84rger", "\xc3\xa4rger", {"--lower"}, 1, 0},
        {"Well, don't stop!",
         "Well don\xe2\x80\x99t stop",
         {"--no-punctuation"},
         3,
         0},
        /* An accent is no letter until it is composed. */
        {"perche\xcc\x81's",
         "perch\xc3\xa9's",
         {"--no-punctuation", "--lower"},
         0,
         0},
        {"well-known 'tis", "well known tis", {"--no-punctuation"}, 3, 0},
        {"e\xcc\x81t\xc3\xa9", "\xc3\xa9te\xcc\x81", {"--text", "nfc"}, 0, 0},
        {"e\xcc\x81", "\xc3\xa9", {"--text", "none"}, 0, 1},
        {"\xef\xac\x81ne \xe2\x91\xa0", "fine 1", {"--text", "nfkc"}, 2, 0},
    };

    (void)state;
    FOR_EACH (k, cases) {
        char line[100];
        json_t *r = NULL;

        snprintf(line, sizeof line, "a %s\n", cases[k].ref);
        write_text("n.txt", line);
        snprintf(line, sizeof line, "a %s\n", cases[k].hyp);
        write_text("o.txt", line);
        r = SCORE("n.txt", "o.txt");
        assert_true(number(words_of(r), "substitutions") +
                        number(words_of(r), "insertions") ==
                    cases[k].errors);
        json_decref(r);
        r = cases[k].options[1] != NULL
                ? SCORE("n.txt", "o.txt", cases[k].options[0],
                        cases[k].options[1])
                : SCORE("n.txt", "o.txt", cases[k].options[0]);
        assert_true(number(words_of(r), "rate") *
                        number(words_of(r), "total") ==
                    cases[k].errors_with);
        json_decref(r);
    }
    /* The marks of alternatives stay. */
    write_text("p.trn", "{ UH! / @ } Yes. (a)\n");
    write_text("q.trn", "uh yes (a)\n");
    {
        json_t *r = SCORE("p.trn", "q.trn", "--lower", "--no-punctuation");

        assert_rate(words_of(r), 0, 0, 0, 2);
        json_decref(r);
    }
}

/* Outside of groups they are words, and punctuation: "and or home b" is left. */
static void test_marks_outside_of_groups_are_words(void **state)
{
    static const char words[] = "and / or @ home } b";
    static const char *const names[] = {"mark.trn", "mark.stm"};
    char line[100];

    (void)state;
    snprintf(line, sizeof line, "%s (s-1)\n", words);
    write_text("mark.trn", line);
    snprintf(line, sizeof line, "s-1 1 s 0 1 %s\n", words);
    write_text("mark.stm", line);
    FOR_EACH (i, names) {
        json_t *r = SCORE(names[i], "mark.trn");

        assert_rate(words_of(r), 0, 0, 0, 7);
        json_decref(r);
        r = SCORE(names[i], "mark.trn", "--no-punctuation");
        assert_rate(words_of(r), 0, 0, 0, 4);
        json_decref(r);
    }
    /* The group ends with the first brace. */
    write_text("mark.trn", "{ a / b } } / c (s-1)\n");
    write_text("mark-h.trn", "b c (s-1)\n");
    {
        json_t *r = SCORE("mark.trn", "mark-h.trn", "--no-punctuation");

        assert_rate(words_of(r), 0, 0, 0, 2);
        json_decref(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_are_those_of_sclite),
        cmocka_unit_test(test_costs_change_the_kinds_of_errors),
        cmocka_unit_test(test_alternatives_may_be_in_alternatives),
        cmocka_unit_test(test_characters_are_code_points),
        cmocka_unit_test(test_scores_are_those_of_eval),
        cmocka_unit_test(test_all_forms_say_the_same),
        cmocka_unit_test(test_a_byte_order_mark_is_skipped),
        cmocka_unit_test(test_words_with_times_go_to_segments),
        cmocka_unit_test(test_a_ctm_file_may_have_no_words),
        cmocka_unit_test(test_the_middle_alone_decides),
        cmocka_unit_test(test_ignored_segments_are_not_scored),
        cmocka_unit_test(test_channels_become_one_text_in_order_of_time),
        cmocka_unit_test(test_broken_lines_are_told_with_their_number),
        cmocka_unit_test(test_bad_texts_are_named_by_their_file),
        cmocka_unit_test(test_ids_of_trn_may_have_parentheses),
        cmocka_unit_test(test_ids_with_parentheses_come_back_from_eval),
        cmocka_unit_test(test_normalisation_is_applied_to_both),
        cmocka_unit_test(test_marks_outside_of_groups_are_words),
    };
    return cmocka_run_group_tests_name("score", tests, make_corpus,
                                       folder_remove);
}

/*
 * Labels of shards that bmuf pack writes: with the vocabulary of other shards, of
 * a text, or of the user; texts that are normalised, missing or empty.
 */
#include "io/shard/shard.h"
#include "tests/cli/packed/recordings.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- vocabularies ------------------------------------------------------- */

/* The only shard of a data set must have these symbols and these labels, end to
 * end. */
static void assert_shard(const char *path, bool words, const char *symbols,
                         const int32_t *labels, size_t n)
{
    bm_shard *s = NULL;
    bm_sequences q = {0};
    char *text = NULL;
    size_t sum = 0;

    assert_ok(bm_shard_open(&s, in_folder(path)));
    assert_int_equal(bm_vocab_words(bm_shard_vocab(s)), words);
    assert_ok(bm_vocab_print(bm_shard_vocab(s), &text));
    assert_string_equal(text, symbols);
    assert_ok(bm_shard_read(s, 0, &q));
    for (size_t i = 0; i < q.n; i++)
        sum += (size_t)q.labels[i];
    assert_int_equal(sum, n);
    assert_memory_equal(q.targets, labels, n * sizeof *labels);
    free(text);
    bm_sequences_free(&q);
    bm_shard_close(s);
}

static void test_vocabulary_of_shards_keeps_its_units(void **_)
{
    static const int32_t words[] = {1, 2, 2, 1};         /* a b b a */
    static const int32_t letters[] = {2, 1, 3, 3, 1, 2}; /* "a b", "b a" */
    static const char *const given[] = {"w", "w/data-00000.bmuf.h5"};

    (void)_;
    assert_shard("w/data-00000.bmuf.h5", true, "<blank>\na\nb\n", words, 4);
    assert_shard("c/data-00000.bmuf.h5", false, "<blank>\n<space>\na\nb\n",
                 letters, 6);
    FOR_EACH (k, given) {
        assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "w2",
                         "--force", "--vocab", given[k]),
                    0);
        assert_shard("w2/data-00000.bmuf.h5", true, "<blank>\na\nb\n", words,
                     4);
    }
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "w3", "--vocab",
                     "w", "--units", "words"),
                0);
    assert_shard("w3/data-00000.bmuf.h5", true, "<blank>\na\nb\n", words, 4);
    assert_code(
        BMUF("pack", "--audio", "texts.jsonl", "--out", "c2", "--vocab", "c"),
        0);
    assert_shard("c2/data-00000.bmuf.h5", false, "<blank>\n<space>\na\nb\n",
                 letters, 6);
}

static void test_units_that_contradict_the_shards_are_rejected(void **_)
{
    (void)_;
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no",
                      "--vocab", "w", "--units", "characters"),
                 64, "--units characters", "--vocab w are words");
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no",
                      "--vocab", "c", "--units", "words"),
                 64, "--units words", "--vocab c are characters");
}

/* A text file has characters unless --units is given. */
static void test_vocabulary_of_a_text_has_the_given_units(void **_)
{
    static const int32_t labels[] = {1, 2, 2, 1};
    outcome o;

    (void)_;
    o = BMUF("pack", "--audio", "texts.jsonl", "--out", "t1", "--vocab",
             "w/vocab.txt", "--units", "words");
    assert_code(o, 0);
    assert_says(o.out, " 0 unknown symbols");
    assert_shard("t1/data-00000.bmuf.h5", true, "<blank>\na\nb\n", labels, 4);
    o = BMUF("pack", "--audio", "texts.jsonl", "--out", "t2", "--vocab",
             "w/vocab.txt", "--max-unknown", "34");
    assert_code(o, 0);
    assert_says(o.out, " 2 unknown symbols"); /* the spaces */
    assert_shard("t2/data-00000.bmuf.h5", false, "<blank>\na\nb\n", labels, 4);
    /* also in a directory without shards */
    assert_int_equal(mkdir(in_folder("alone"), 0777), 0);
    write_text("alone/vocab.txt", "<blank>\nb\na\n");
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "t3", "--vocab",
                     "alone", "--units", "words"),
                0);
    assert_shard("t3/data-00000.bmuf.h5", true, "<blank>\nb\na\n",
                 (const int32_t[]){2, 1, 1, 2}, 4);
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no",
                      "--vocab", "nowhere"),
                 66, "nowhere");
}

/* By default more than 20 % are too many. */
static void test_a_vocabulary_of_other_units_is_refused(void **_)
{
    outcome o;

    (void)_;
    write_text("table.txt", "<ctc> 0\n<space> 1\na 2\nb 3\nc 4\n");
    write_text("words.jsonl",
               "{\"id\": \"1\", \"audio\": \"1.wav\", \"text\": \"ab a\"}\n"
               "{\"id\": \"2\", \"audio\": \"2.wav\", \"text\": \"cab ab\"}\n");
    o = BMUF("pack", "--audio", "words.jsonl", "--out", "units", "--vocab",
             "table.txt");
    assert_code(o, 65);
    assert_says(o.err, "3 of 4 symbols of the texts are not in the vocabulary, "
                       "e.g. 'ab', 'cab'. This is more than 20 %, and nothing "
                       "was packed; its symbols are characters: add --units "
                       "characters");
    assert_int_equal(count_of(o.err, "vocabulary"), 1);
    assert_code(BMUF("info", "units"), 66);
    assert_code(BMUF("pack", "--audio", "words.jsonl", "--out", "units",
                     "--vocab", "table.txt", "--units", "characters"),
                0);
    assert_fails(BMUF("pack", "--audio", "words.jsonl", "--out", "no",
                      "--max-unknown", "-1"),
                 64, "--max-unknown -1 is not a percentage");
}

/* --units is refused with the vocabulary of shards. */
static void test_units_of_shards_are_not_suggested(void **_)
{
    outcome o =
        BMUF("pack", "--audio", "words.jsonl", "--out", "no", "--vocab", "w");

    (void)_;
    assert_code(o, 65);
    assert_says(o.err, "3 of 4 symbols");
    assert_says(o.err, "give a vocabulary that has them");
    assert_says(o.err, "The vocabulary ends with 'b'; is it complete?");
    assert_null(strstr(o.err, "--units"));
}

static void assert_file(const char *path, const char *text)
{
    size_t n = 0;
    char *bytes = slurp(in_folder(path), &n);

    assert_int_equal(n, strlen(text));
    assert_memory_equal(bytes, text, n);
    free(bytes);
}

/* --force replaces it when the shards are complete. */
static void test_a_vocabulary_of_the_user_is_not_replaced(void **_)
{
    static const char own[] = "<blank>\nz\n";

    (void)_;
    write_tone("short.wav", 100, 1, 8000);
    list_recordings("short.jsonl", 2, 2);
    assert_int_equal(mkdir(in_folder("mine"), 0777), 0);
    write_text("mine/vocab.txt", own);
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "mine"), 73,
                 "mine/vocab.txt would be replaced", "--force");
    assert_fails(
        BMUF("pack", "--audio", "texts.jsonl", "--out", "mine", "--resume"), 73,
        "mine/vocab.txt would be replaced");
    assert_fails(
        BMUF("pack", "--audio", "short.jsonl", "--out", "mine", "--force"), 65,
        "nothing to pack");
    assert_file("mine/vocab.txt", own);
    assert_false(has_shards("mine"));
    assert_code(
        BMUF("pack", "--audio", "texts.jsonl", "--out", "mine", "--force"), 0);
    assert_file("mine/vocab.txt", "<blank>\n<space>\na\nb\n");
    /* one that is the same stays */
    assert_int_equal(unlink(in_folder("mine/data-00000.bmuf.h5")), 0);
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "mine"), 0);
}

/* What the command line sets is kept, and what belongs to the recordings, or to
 * another kind of data. */
static void test_settings_of_vocab_are_taken_where_none_are_set(void **_)
{
    outcome o;

    (void)_;
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "m8", "--set",
                     "features.mels=8", "--set", "features.channel=1", "--set",
                     "features.normalise=none"),
                0);
    o = BMUF("pack", "--audio", "texts.jsonl", "--out", "like-m8", "--vocab",
             "m8", "--set", "features.normalise=utterance");
    assert_code(o, 0);
    assert_says(o.err, "as m8: features.rate = 8000, features.mels = 8, ");
    assert_null(strstr(o.err, "features.channel"));
    assert_null(strstr(o.err, "features.normalise"));
    o = BMUF("info", "like-m8");
    assert_says(o.out, "\"mels\": 8");
    assert_says(o.out, "\"normalise\": \"utterance\"");
    assert_says(o.out, "\"channel\": 0");
    draw("line.png", WIDEST);
    write_text("line.jsonl", "{\"id\": \"l\", \"image\": \"line.png\", "
                             "\"text\": \"a\"}\n");
    o = BMUF("pack", "--images", "line.jsonl", "--out", "line", "--vocab",
             "m8");
    assert_code(o, 0);
    assert_null(strstr(o.err, "as m8"));
}

/* ---- texts --------------------------------------------------------------- */

/* Among texts a sequence without one would be trained as if nothing were said;
 * an empty one says so. */
static void test_sequences_without_a_text_are_left_out_among_others(void **_)
{
    static const int32_t b[] = {1};
    outcome o;

    (void)_;
    write_text("half.jsonl",
               "{\"id\": \"1\", \"audio\": \"1.wav\"}\n"
               "{\"id\": \"2\", \"audio\": \"2.wav\", \"text\": \"b\"}\n"
               "{\"id\": \"3\", \"audio\": \"1.wav\", \"text\": \"\"}\n"
               "{\"id\": \"4\", \"audio\": \"1.wav\"}\n");
    o = BMUF("pack", "--audio", "half.jsonl", "--out", "half");
    assert_code(o, 65);
    assert_says(o.err, "50 % of the sequences have no text, though others do, "
                       "e.g. 1 (half.jsonl:1). This is more than 1 %");
    assert_int_equal(count_of(o.err, "left out"), 0); /* none was looked at */
    assert_false(has_shards("half"));
    o = BMUF("pack", "--audio", "half.jsonl", "--out", "half", "--max-left-out",
             "50");
    assert_code(o, 0);
    assert_says(o.out, "2 sequences, ");
    assert_says(o.out, "; left out 2 of 4: 2 without a text;");
    assert_says(o.err, "left out 1: it has no text, but other sequences have");
    assert_int_equal(count_of(o.err, "left out 4"), 0); /* the same reason */
    assert_says(o.err, "left out 1 more");
    assert_shard("half/data-00000.bmuf.h5", false, "<blank>\nb\n", b, 1);
    /* What was left out behind the last shard is no sequence that it lacks, and
     * a complete set needs no --max-left-out. */
    o = BMUF("pack", "--audio", "half.jsonl", "--out", "half", "--resume");
    assert_code(o, 0);
    assert_says(o.out, "up to date");
}

/* To be decoded, with and without a text, which may be of any symbols. */
static void test_sequences_can_be_packed_without_their_texts(void **_)
{
    outcome o;

    (void)_;
    write_text("some.jsonl",
               "{\"id\": \"1\", \"audio\": \"1.wav\"}\n"
               "{\"id\": \"2\", \"audio\": \"2.wav\", \"text\": \"?\"}\n"
               "{\"id\": \"3\", \"audio\": \"1.wav\", \"text\": \"\"}\n");
    write_text("b.txt", "<blank>\nb\n");
    o = BMUF("pack", "--audio", "some.jsonl", "--out", "bare", "--vocab",
             "b.txt", "--no-text");
    assert_code(o, 0);
    assert_says(o.out, "3 sequences, ");
    assert_says(o.out, ", 0 labels, 2 classes in 1 shard in bare; left out 0 "
                       "of 3; 0 unknown symbols\n");
    assert_int_equal(count_of(o.err, "warning"), 0);
    assert_shard("bare/data-00000.bmuf.h5", false, "<blank>\nb\n",
                 (const int32_t[]){0}, 0);
    o = BMUF("pack", "--audio", "some.jsonl", "--out", "bare", "--vocab",
             "b.txt", "--no-text", "--resume");
    assert_code(o, 0);
    assert_says(o.out, "up to date; 3 sequences, ");
    assert_fails(
        BMUF("pack", "--audio", "some.jsonl", "--out", "bare2", "--no-text"),
        64, "--no-text requires --vocab MODEL");
    assert_fails(BMUF("pack", "--idx", "x", "--out", "bare2", "--no-text"), 64,
                 "--no-text cannot be combined with --idx");
    assert_fails(BMUF("pack", "--audio", "some.jsonl", "--out", "bare2",
                      "--no-text", "--targets", "x"),
                 64, "--no-text and --targets: give only one");
}

/* 100 * 0.07 is more than 7 in doubles. */
static void test_exactly_as_many_as_allowed_are_left_out(void **_)
{
    char list[100 * 60] = "";

    (void)_;
    for (int i = 0; i < 100; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list),
                 "{\"id\": \"%d\", \"audio\": \"1.wav\"%s}\n", i,
                 i < 7 ? "" : ", \"text\": \"a\"");
    write_text("seven.jsonl", list);
    assert_code(BMUF("pack", "--audio", "seven.jsonl", "--out", "seven",
                     "--max-left-out", "7"),
                0);
    assert_code(BMUF("pack", "--audio", "seven.jsonl", "--out", "six",
                     "--max-left-out", "6.9"),
                65);
}

/* JSON cannot have them, so bytes that are not UTF-8 are escaped. */
static void test_json_has_folders_that_are_not_utf8(void **_)
{
    outcome o;

    (void)_;
    o = BMUF("pack", "--audio", "texts.jsonl", "--out", "o\xff", "--json");
    assert_code(o, 0);
    assert_says(o.out, "\"path\": \"o\\\\xff\"");
    o = BMUF("info", "o\xff", "--json");
    assert_code(o, 0);
    assert_says(o.out, "\"path\": \"o\\\\xff\"");
}

static void test_sets_without_labels_are_warned_of(void **_)
{
    static const struct {
        const char *option, *list, *dir, *says;
    } cases[] = {
        {"--audio", "bare.jsonl", NULL, ": no line has a text\n"},
        {"--kaldi", "kaldi", NULL, ": kaldi/text does not exist\n"},
        {"--images", "bare.txt", ".", ": no line has a text\n"},
        {"--audio", "mute.jsonl", NULL, ": all texts are empty\n"},
    };
    outcome o;

    (void)_;
    assert_int_equal(mkdir(in_folder("kaldi"), 0777), 0);
    write_text("kaldi/wav.scp", "1 1.wav\n2 2.wav\n");
    draw("1.png", WIDEST);
    draw("2.png", WIDEST);
    write_text("bare.txt", "1\n2\n");
    write_text("bare.jsonl", "{\"id\": \"1\", \"audio\": \"1.wav\"}\n"
                             "{\"id\": \"2\", \"audio\": \"2.wav\"}\n");
    write_text("mute.jsonl",
               "{\"id\": \"1\", \"audio\": \"1.wav\", \"text\": \"\"}\n"
               "{\"id\": \"2\", \"audio\": \"2.wav\", \"text\": \"\"}\n");
    FOR_EACH (k, cases) {
        const char *option = cases[k].dir != NULL ? "--image-dir" : NULL;

        o = BMUF("pack", cases[k].option, cases[k].list, "--out", "bare",
                 "--force", option, cases[k].dir);
        assert_code(o, 0);
        assert_says(o.out, "2 sequences, ");
        assert_says(o.err, "bare: no labels in 2 sequences, so nothing can be "
                           "trained on them");
        assert_says(o.err, cases[k].says);
    }
}

/* Shards n/ (normalised) and d/ (not) of an e with an acute, once as one
 * character and once as two. */
static void test_texts_are_normalised(void **_)
{
    static const int32_t composed[] = {1, 1}, apart[] = {2, 1, 3};
    static const char acute[] = "<blank>\n\xc3\xa9\n";
    static const char accents[] = "<blank>\ne\n\xc3\xa9\n\xcc\x81\n";

    (void)_;
    write_text(
        "e.jsonl",
        "{\"id\": \"1\", \"audio\": \"1.wav\", \"text\": \"\\u00e9\"}\n"
        "{\"id\": \"2\", \"audio\": \"2.wav\", \"text\": \"e\\u0301\"}\n");
    assert_code(BMUF("pack", "--audio", "e.jsonl", "--out", "n"), 0);
    assert_shard("n/data-00000.bmuf.h5", false, acute, composed, 2);
    assert_code(
        BMUF("pack", "--audio", "e.jsonl", "--out", "d", "--text", "none"), 0);
    assert_shard("d/data-00000.bmuf.h5", false, accents, apart, 3);
    /* other sets follow the vocabulary, from shards or from a text */
    assert_code(
        BMUF("pack", "--audio", "e.jsonl", "--out", "n2", "--vocab", "n"), 0);
    assert_shard("n2/data-00000.bmuf.h5", false, acute, composed, 2);
    assert_code(
        BMUF("pack", "--audio", "e.jsonl", "--out", "d2", "--vocab", "d"), 0);
    assert_shard("d2/data-00000.bmuf.h5", false, accents, apart, 3);
    assert_code(BMUF("pack", "--audio", "e.jsonl", "--out", "n3", "--vocab",
                     "n/vocab.txt"),
                0);
    assert_shard("n3/data-00000.bmuf.h5", false, acute, composed, 2);
    assert_code(BMUF("pack", "--audio", "e.jsonl", "--out", "d3", "--vocab",
                     "d/vocab.txt"),
                0);
    assert_shard("d3/data-00000.bmuf.h5", false, accents, apart, 3);
    assert_fails(BMUF("pack", "--audio", "e.jsonl", "--out", "no", "--vocab",
                      "n", "--text", "none"),
                 64,
                 "--text none, but the texts of --vocab n were packed with "
                 "--text nfc");
    assert_fails(
        BMUF("pack", "--audio", "e.jsonl", "--out", "no", "--text", "nfd"), 64,
        "--text nfd is not one of: nfc none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vocabulary_of_shards_keeps_its_units),
        cmocka_unit_test(test_units_that_contradict_the_shards_are_rejected),
        cmocka_unit_test(test_vocabulary_of_a_text_has_the_given_units),
        cmocka_unit_test(test_a_vocabulary_of_other_units_is_refused),
        cmocka_unit_test(test_units_of_shards_are_not_suggested),
        cmocka_unit_test(test_a_vocabulary_of_the_user_is_not_replaced),
        cmocka_unit_test(
            test_sequences_without_a_text_are_left_out_among_others),
        cmocka_unit_test(test_sequences_can_be_packed_without_their_texts),
        cmocka_unit_test(test_exactly_as_many_as_allowed_are_left_out),
        cmocka_unit_test(test_json_has_folders_that_are_not_utf8),
        cmocka_unit_test(test_sets_without_labels_are_warned_of),
        cmocka_unit_test(test_settings_of_vocab_are_taken_where_none_are_set),
        cmocka_unit_test(test_texts_are_normalised),
    };

    return cmocka_run_group_tests_name("packed_labels", tests, make_shards,
                                       folder_remove);
}

/*
 * From manifests to shards: compares the output of pack, check and info with
 * expected values.
 */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t words_of(const char *text)
{
    size_t n = 1;

    for (; *text != '\0'; text++)
        n += *text == ' ';
    return n;
}

static size_t labels_of(size_t i)
{
    return strlen(speech_text(i));
}

static size_t words_at(size_t i)
{
    return words_of(speech_text(i));
}

static void test_recordings_are_packed(void **_)
{
    char line[200];
    outcome o = BMUF("pack", "--audio", "train.jsonl", "--out", "again",
                     "--set", "features.mels=8");
    json_t *info = NULL;

    (void)_;
    snprintf(line, sizeof line,
             "42 sequences, %zu frames, %zu labels, 5 classes in 1 shard in "
             "again; left out 0 of 42; 0 unknown symbols\n",
             speech_total(42, speech_frames), speech_total(42, labels_of));
    assert_code(o, 0);
    assert_string_equal(o.out, line);
    o = BMUF("pack", "--audio", "train.jsonl", "--out", "again", "--force",
             "--set", "features.mels=8", "--json");
    info = parse_json(o.out);
    assert_string_equal(text(info, "path"), "again");
    assert_true(number(info, "shards") == 1 && number(info, "classes") == 5);
    assert_true(number(info, "sequences") == 42);
    assert_true(number(info, "frames") ==
                (double)speech_total(42, speech_frames));
    assert_true(number(info, "labels") == (double)speech_total(42, labels_of));
    assert_true(number(info, "left_out") == 0);
    assert_int_equal(json_object_size(json_object_get(info, "reasons")), 0);
    json_decref(info);
    info = parse_json(BMUF("check", "again", "--json").out);
    assert_true(number(info, "sequences") == 42);
    assert_true(number(info, "frames") ==
                (double)speech_total(42, speech_frames));
    assert_true(number(info, "problems") == 0);
    json_decref(info);
    o = BMUF("check", "again");
    assert_code(o, 0);
    assert_says(o.out, "42 sequences");
    assert_says(o.out, ": no problems");
    assert_string_equal(o.err, "");
    o = BMUF("info", "again", "--json");
    assert_code(o, 0);
    info = parse_json(o.out);
    assert_string_equal(text(info, "path"), "again");
    assert_true(number(info, "shards") == 1);
    assert_true(number(info, "sequences") == 42);
    assert_true(number(info, "frames") ==
                (double)speech_total(42, speech_frames));
    assert_true(number(info, "labels") == (double)speech_total(42, labels_of));
    assert_true(number(info, "features") == 8);
    assert_true(number(info, "classes") == 5);
    assert_true(near(number(info, "frame_shift"), 0.01, 1e-9));
    assert_string_equal(text(info, "store"), "f32");
    assert_string_equal(text(info, "symbols"), "characters");
    assert_string_equal(text(info, "task"), "ctc");
    assert_true(number(json_object_get(info, "made_with"), "mels") == 8);
    json_decref(info);
}

static void test_shards_are_replaced_with_force_only(void **_)
{
    (void)_;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "forced"), 0);
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "forced"), 73);
    assert_says(BMUF("info", "forced").out, "sequences  21 in 1 shard");
    assert_code(
        BMUF("pack", "--audio", "train.jsonl", "--out", "forced", "--force"),
        0);
    assert_says(BMUF("info", "forced").out, "sequences  42 in 1 shard");
}

static void test_force_removes_files_of_a_killed_packing(void **_)
{
    (void)_;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "left"), 0);
    write_text("left/.01234567.data-00001.bmuf.h5.tmp", "half a shard");
    assert_code(BMUF("check", "left"), 65);
    assert_code(
        BMUF("pack", "--audio", "test.jsonl", "--out", "left", "--force"), 0);
    assert_code(BMUF("check", "left"), 0);
}

static void test_too_long_a_name_is_rejected(void **_)
{
    char line[400], id[257];

    (void)_;
    memset(id, 'i', 256);
    id[256] = '\0';
    snprintf(line, sizeof line, "{\"id\": \"%s\", \"audio\": \"test-0.wav\"}\n",
             id);
    write_text("ids.jsonl", line);
    assert_fails(BMUF("pack", "--audio", "ids.jsonl", "--out", "ids"), 65,
                 "ids.jsonl:1: the id is longer than 255 bytes");
    snprintf(
        line, sizeof line,
        "{\"id\": \"a\", \"audio\": \"test-0.wav\", \"speaker\": \"%s\"}\n",
        id);
    write_text("ids.jsonl", line);
    assert_fails(BMUF("pack", "--audio", "ids.jsonl", "--out", "ids"), 65,
                 "ids.jsonl:1: the speaker is longer than 255 bytes");
    snprintf(line, sizeof line, "{\"id\": \"%s\", \"audio\": \"test-0.wav\"}\n",
             id + 1);
    write_text("ids.jsonl", line);
    assert_code(BMUF("pack", "--audio", "ids.jsonl", "--out", "ids"), 0);
}

static void test_shards_end_by_size(void **_)
{
    outcome o = BMUF("pack", "--audio", "train.jsonl", "--out", "many",
                     "--name", "part", "--set", "features.mels=8", "--set",
                     "shard.unit_frames=1", "--set", "shard.shard_mb=0.001");
    char name[64];
    int n = 0;

    (void)_;
    assert_code(o, 0);
    for (;; n++) {
        snprintf(name, sizeof name, "many/part-%05d.bmuf.h5", n);
        if (access(in_folder(name), F_OK) != 0)
            break;
    }
    /* 28 or more frames of 32 bytes fill a kB, so 2 sequences do, or 3 */
    assert_in_range(n, 14, 42);
    snprintf(name, sizeof name, "5 classes in %d shards in many", n);
    assert_says(o.out, name);
    snprintf(name, sizeof name, "42 in %d shards, 42 units", n);
    assert_says(BMUF("info", "many").out, name);
    assert_code(BMUF("check", "many"), 0);
}

static void test_labels_can_be_words(void **_)
{
    char line[100];
    outcome o = BMUF("pack", "--audio", "train.jsonl", "--out", "words",
                     "--units", "words");

    (void)_;
    /* a, aa, ab, abc, ac, acb, b, ba, bb, bc, bca, c, ca, cab, cb, cc */
    snprintf(line, sizeof line, " %zu labels, 17 classes",
             speech_total(42, words_at));
    assert_code(o, 0);
    assert_says(o.out, line);
    assert_says(BMUF("info", "words").out, "17 words, blank included");
}

static void test_unknown_symbols_are_counted(void **_)
{
    outcome o;

    (void)_;
    write_text("strange.jsonl",
               "{\"id\": \"1\", \"audio\": \"test-0.wav\", \"text\": \"axb\"}\n"
               "{\"id\": \"2\", \"audio\": \"test-1.wav\", \"text\": \"ab\"}\n"
               "{\"id\": \"3\", \"audio\": \"test-2.wav\", \"text\": "
               "\"\xc3\xa9yx c\"}\n");
    o = BMUF("pack", "--audio", "strange.jsonl", "--out", "strange", "--vocab",
             "train", "--max-unknown", "40");
    assert_code(o, 0);
    assert_says(o.out, "3 sequences, ");
    assert_says(o.out, " 6 labels, 5 classes ");
    assert_says(o.out, "; left out 0 of 3; 4 unknown symbols\n");
    assert_says(o.err, "warning");
    assert_says(o.err, "4 symbols in 2 texts are not in the vocabulary");
    assert_says(o.err, "e.g. 'x', '\xc3\xa9'"); /* the first of each text */
    o = BMUF("pack", "--audio", "strange.jsonl", "--out", "strange2", "--vocab",
             "train/vocab.txt", "--max-unknown", "40");
    assert_code(o, 0);
    assert_says(o.out, "5 classes");
    o = BMUF("pack", "--audio", "strange.jsonl", "--out", "strange3", "--vocab",
             "train", "--max-unknown", "39.9");
    assert_code(o, 65);
    assert_says(o.err,
                "4 of 10 symbols of the texts are not in the vocabulary, e.g. "
                "'x', '\xc3\xa9'. This is more than 39.9 %, and nothing was "
                "packed; give a vocabulary that has them, or let them pass "
                "with --max-unknown 40");
    assert_code(BMUF("info", "strange3"), 66);
}

static void test_invalid_recordings_are_left_out(void **_)
{
    outcome o;

    (void)_;
    write_text("noise.wav", "this is not sound");
    write_text("odd.jsonl",
               "{\"id\": \"1\", \"audio\": \"test-0.wav\", \"text\": \"a\"}\n"
               "{\"id\": \"2\", \"audio\": \"noise.wav\", \"text\": \"b\"}\n");
    o = BMUF("pack", "--audio", "odd.jsonl", "--out", "odd", "--max-left-out",
             "50");
    assert_code(o, 0);
    assert_says(o.err, "left out 2: ");
    assert_says(o.err, "noise.wav");
    assert_says(o.out, "1 sequence, ");
    assert_says(o.out, "; left out 1 of 2: 1 not a recording; ");
    write_text("odd.jsonl",
               "{\"id\": \"2\", \"audio\": \"noise.wav\", \"text\": \"b\"}\n");
    o = BMUF("pack", "--audio", "odd.jsonl", "--out", "odd2");
    assert_fails(o, 65, "none of the 1 recordings can be read: noise.wav");
    write_text("odd.jsonl",
               "{\"id\": \"1\", \"audio\": \"none.wav\", \"text\": \"a\"}\n"
               "{\"id\": \"2\", \"audio\": \"test-1.wav\", \"text\": \"a\"}\n"
               "{\"id\": \"3\", \"audio\": \"null.wav\", \"text\": \"b\"}\n");
    o = BMUF("pack", "--audio", "odd.jsonl", "--out", "odd3");
    assert_fails(o, 65, "odd.jsonl:1: none.wav", "odd.jsonl:3: null.wav");
}

/* A line of handwriting: bars of one ink on white. */
static void draw_line(const char *name, unsigned width)
{
    enum { HEIGHT = 24, WIDEST = 200 };
    static unsigned char grey[HEIGHT * WIDEST];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = width,
                       .height = HEIGHT,
                       .format = PNG_FORMAT_GRAY};

    for (size_t i = 0; i < (size_t)HEIGHT * width; i++)
        grey[i] = i % width % 9 < 2 ? 20 : 255;
    assert_true(
        png_image_write_to_file(&image, in_folder(name), 0, grey, 0, NULL));
}

static void test_line_images_are_packed(void **_)
{
    outcome o;
    json_t *info = NULL;

    (void)_;
    draw_line("one.png", 80);
    draw_line("two.png", 122);
    write_text("lines.jsonl",
               "{\"id\": \"1\", \"image\": \"one.png\", \"text\": \"abc\"}\n"
               "{\"id\": \"2\", \"image\": \"two.png\", \"text\": \"b c\"}\n");
    o = BMUF("pack", "--images", "lines.jsonl", "--out", "lines", "--set",
             "features.height=12", "--set", "features.columns=5");
    assert_code(o, 0);
    /* half as high, half as wide: 40 and 61 columns, 8 and 13 frames */
    assert_says(o.out, "2 sequences, 21 frames, 6 labels, 5 classes");
    assert_code(BMUF("check", "lines"), 0);
    info = parse_json(BMUF("info", "--json", "lines").out);
    assert_true(number(info, "features") == 60);
    assert_true(number(info, "frames") == 21);
    assert_string_equal(text(info, "store"), "u8");
    json_decref(info);
}

static void write_npy(const char *name, size_t rows, size_t columns)
{
    static const unsigned char magic[10] = {0x93, 'N', 'U', 'M',  'P',
                                            'Y',  1,   0,   0x76, 0};
    size_t size = 128 + rows * columns * sizeof(float);
    char *all = calloc(1, size);
    float *x = (float *)(void *)(all + 128);
    int n = 0;

    assert_non_null(all);
    memcpy(all, magic, sizeof magic);
    n = snprintf(all + 10, 118,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, "
                 "%zu), }",
                 rows, columns);
    memset(all + 10 + n, ' ', (size_t)(117 - n));
    all[127] = '\n';
    for (size_t i = 0; i < rows * columns; i++)
        x[i] = (float)(i * 7 % 11);
    write_bytes(name, all, size);
    free(all);
}

static void test_features_are_packed(void **_)
{
    outcome o;

    (void)_;
    write_npy("one.npy", 10, 3);
    write_npy("two.npy", 14, 3);
    write_text("feats.jsonl",
               "{\"id\": \"1\", \"feats\": \"one.npy\", \"text\": \"ab\"}\n"
               "{\"id\": \"2\", \"feats\": \"two.npy\", \"text\": \"ba\"}\n");
    o = BMUF("pack", "--features", "feats.jsonl", "--out", "feats", "--set",
             "features.stack=2", "--set", "features.subsample=2");
    assert_code(o, 0);
    assert_says(o.out, "2 sequences, 12 frames, 4 labels, 3 classes");
    assert_says(BMUF("info", "feats").out, "features   6 a frame");
    assert_code(BMUF("check", "feats"), 0);
}

/* With a stride of three, 7 characters with a repeat need 8 frames of 13. */
static void test_check_finds_sequences_too_short_for_a_stride(void **_)
{
    outcome o;

    (void)_;
    write_speech("short.wav", "aa"); /* 18 frames */
    write_text("short.jsonl", "{\"id\": \"s\", \"audio\": \"short.wav\", "
                              "\"text\": \"abbcaba\"}\n");
    assert_code(BMUF("pack", "--audio", "short.jsonl", "--out", "short"), 0);
    assert_code(BMUF("check", "short"), 0);
    o = BMUF("check", "short", "--stride", "3");
    assert_code(o, 65);
    assert_says(o.out, "7 labels with 1 repeat need 8 frames, but 18 / 3 = 6");
}

/* p(a) = p(b) = 0.1, p(</s>) = 0.8, no back-off: log10 p(a b </s>) = -2.1. */
static void test_language_models_are_compiled(void **_)
{
    static const char arpa[] = "\\data\\\nngram 1=4\n\\1-grams:\n-99 <s>\n"
                               "-1 a\n-1 b\n-0.1 </s>\n\\end\\\n";
    json_t *o = NULL;

    (void)_;
    write_text("words.arpa", arpa);
    write_text("words.txt", "\xef\xbb\xbf"
                            "a b\n\nc\n");
    assert_says(BMUF("lm", "words.arpa", "words.lm").out,
                "1-grams         5\n");
    o = parse_json(
        BMUF("lm", "words.lm", "--json", "--score", "words.txt").out);
    assert_int_equal(json_integer_value(json_object_get(o, "order")), 1);
    assert_int_equal(json_integer_value(json_object_get(o, "sentences")), 3);
    assert_int_equal(json_integer_value(json_object_get(o, "words")), 3);
    assert_int_equal(json_integer_value(json_object_get(o, "unknown")), 1);
    assert_true(near(json_number_value(json_object_get(o, "log10_p")),
                     -2.1 - 0.1 - 100.1, 1e-5));
    json_decref(o);
    write_text("nothing.txt", "");
    assert_fails(BMUF("lm", "words.lm", "--score", "nothing.txt"), 65,
                 "nothing.txt is empty; give a text with a sentence on each");
    assert_fails(BMUF("info", "words.lm"), 65,
                 "words.lm is a compact language model, not a shard; bmuf lm "
                 "describes it");
    assert_fails(BMUF("lm", "words.txt"), 65, "words.txt:3: there is no line");
    assert_fails(BMUF("lm", "nowhere.arpa"), 66, "nowhere.arpa");
    assert_fails(BMUF("lm", "words.arpa", "nowhere/words.lm"), 73, "nowhere/");

    /* What this program made is replaced, another file is not. */
    assert_code(BMUF("lm", "words.arpa", "words.lm"), 0);
    write_text("more.arpa", arpa);
    assert_fails(BMUF("lm", "words.arpa", "more.arpa"), 73, "more.arpa exists",
                 "another OUT");
    assert_fails(BMUF("lm", "words.arpa", "words.arpa"), 73, "exists");
    assert_code(BMUF("lm", "more.arpa"), 0);
    assert_says(BMUF("lm", "words.lm").out, "1-grams         5\n");
}

/* A zero byte far behind the start, too, where the kind of a file is looked for. */
static void test_only_texts_are_scored(void **_)
{
    enum { LINES = 5000 };
    static const char line[4] = {'a', ' ', 'b', '\n'};
    static const char end[4] = {'a', '\0', 'b', '\n'};
    char bytes[LINES * 4 + 4];

    (void)_;
    write_text("few.arpa", "\\data\\\nngram 1=4\n\\1-grams:\n-99 <s>\n"
                           "-1 a\n-1 b\n-0.1 </s>\n\\end\\\n");
    for (size_t i = 0; i < LINES; i++)
        memcpy(bytes + 4 * i, line, sizeof line);
    memcpy(bytes + sizeof bytes - 4, end, sizeof end);
    write_bytes("long.txt", bytes, sizeof bytes);
    write_bytes("zero.txt", end, 4);
    write_bytes("wide.txt",
                "\xff\xfe"
                "a\0\n\0",
                6);
    write_gzip("text.gz", "a b\n");
    write_speech("speech.wav", "aa");
    assert_fails(BMUF("lm", "few.arpa", "--score", "long.txt"), 65,
                 "long.txt has zero bytes");
    assert_fails(BMUF("lm", "few.arpa", "--score", "zero.txt"), 65,
                 "zero.txt is a binary file", "give a text");
    assert_fails(BMUF("lm", "few.arpa", "--score", "wide.txt"), 65,
                 "wide.txt is a text in UTF-16", "iconv");
    assert_fails(BMUF("lm", "few.arpa", "--score", "text.gz"), 65,
                 "text.gz is a gzip file", "unpack it");
    assert_fails(BMUF("lm", "few.arpa", "--score", "speech.wav"), 65,
                 "speech.wav is a WAV recording");
    write_bytes("long.txt", bytes, sizeof bytes - 4);
    assert_says(BMUF("lm", "few.arpa", "--score", "long.txt").out,
                "sentences       5000\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings_are_packed),
        cmocka_unit_test(test_shards_are_replaced_with_force_only),
        cmocka_unit_test(test_force_removes_files_of_a_killed_packing),
        cmocka_unit_test(test_too_long_a_name_is_rejected),
        cmocka_unit_test(test_shards_end_by_size),
        cmocka_unit_test(test_labels_can_be_words),
        cmocka_unit_test(test_unknown_symbols_are_counted),
        cmocka_unit_test(test_invalid_recordings_are_left_out),
        cmocka_unit_test(test_line_images_are_packed),
        cmocka_unit_test(test_features_are_packed),
        cmocka_unit_test(test_check_finds_sequences_too_short_for_a_stride),
        cmocka_unit_test(test_language_models_are_compiled),
        cmocka_unit_test(test_only_texts_are_scored),
    };
    return cmocka_run_group_tests_name("verbs", tests, make_corpus,
                                       folder_remove);
}

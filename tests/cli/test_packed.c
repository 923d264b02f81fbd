/*
 * The contents of shards that bmuf pack writes: the pixels of line images, byte
 * by byte, and labels with a given vocabulary. What it leaves out, warns of and
 * refuses; data sets of which shards are missing.
 */
#include "core/file/file_lock.h"
#include "io/shard/shard.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <hdf5.h>
#include <jansson.h>
#include <png.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- pixels ------------------------------------------------------------- */

enum { HIGH = 4, WIDEST = 8, SCALED = 2, COLUMNS = 2, PAD = 1 };
enum { D = COLUMNS * SCALED };

/* 0 is the ground; a stroke is dark, what is around it less so. Multiples of 4:
 * the mean of four of them is a whole number. */
static int ink(size_t row, size_t column)
{
    if (column < 2)
        return 0;
    return column == 4 ? 252 : (int)((row * 37 + column * 11) % 28) * 4;
}

static void draw(const char *name, unsigned width)
{
    unsigned char grey[HIGH * WIDEST];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = width,
                       .height = HIGH,
                       .format = PNG_FORMAT_GRAY};

    for (size_t i = 0; i < (size_t)HIGH * width; i++)
        grey[i] = (unsigned char)(255 - ink(i / width, i % width));
    assert_true(
        png_image_write_to_file(&image, in_folder(name), 0, grey, 0, NULL));
}

/* Pixel k of the frames of an image of this width at half its size: columns
 * from left to right between those of the padding, each from top to bottom. */
static int pixel(size_t width, size_t k)
{
    size_t column = k / SCALED, row = k % SCALED, sum = 0;

    if (column < PAD || column >= PAD + width / 2)
        return 0;
    column -= PAD;
    for (size_t i = 0; i < 4; i++)
        sum += (size_t)ink(2 * row + i / 2, 2 * column + i % 2);
    return (int)(sum / 4);
}

/* All of /inputs, which must be bytes. */
static void read_bytes(const char *path, uint8_t *x, size_t rows)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "/inputs", H5P_DEFAULT);
    hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    hsize_t size[2] = {0};

    assert_true(H5Tequal(type, H5T_STD_U8LE) > 0);
    assert_int_equal(H5Sget_simple_extent_ndims(space), 2);
    H5Sget_simple_extent_dims(space, size, NULL);
    assert_true(size[0] == rows && size[1] == D);
    assert_true(
        H5Dread(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(set);
    H5Fclose(file);
}

static void test_pixels_are_stored_as_bytes(void **_)
{
    static const size_t widths[] = {6, 8};
    /* 3 and 4 columns of half the size, one of padding on both sides: 5, and
     * one more to fill the last frame, and 6 */
    static const int32_t frames[] = {3, 3};
    uint8_t bytes[6 * D];
    bm_shard *s = NULL;
    bm_sequences q = {0};
    size_t at = 0;

    (void)_;
    draw("a.png", 6);
    draw("b.png", 8);
    write_text("lines.jsonl",
               "{\"id\": \"a\", \"image\": \"a.png\", \"text\": \"x\"}\n"
               "{\"id\": \"b\", \"image\": \"b.png\", \"text\": \"y\"}\n");
    assert_code(BMUF("pack", "--images", "lines.jsonl", "--out", "lines",
                     "--set", "features.height=2", "--set",
                     "features.columns=2", "--set", "features.pad=1"),
                0);
    read_bytes(in_folder("lines/data-00000.bmuf.h5"), bytes, 6);
    assert_ok(bm_shard_open(&s, in_folder("lines/data-00000.bmuf.h5")));
    assert_ok(bm_shard_read(s, 0, &q));
    assert_int_equal(q.n, 2);
    assert_int_equal(q.features, D);
    FOR_EACH (i, widths) {
        assert_int_equal(q.frames[i], frames[i]);
        for (size_t k = 0; k < (size_t)frames[i] * D; k++, at++) {
            assert_int_equal(bytes[at], pixel(widths[i], k));
            assert_true(near(q.x[at], pixel(widths[i], k) / 255., 1e-7));
        }
    }
    bm_sequences_free(&q);
    bm_shard_close(s);
}

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

/* Shards w/ of words and c/ of characters. The words have one letter, so only
 * the shards tell them from characters. */
static int make_shards(void **state)
{
    if (folder_make(state) != 0)
        return 1;
    write_text("texts.jsonl",
               "{\"id\": \"1\", \"audio\": \"1.wav\", \"text\": \"a b\"}\n"
               "{\"id\": \"2\", \"audio\": \"2.wav\", \"text\": \"b a\"}\n");
    write_speech("1.wav", "a b");
    write_speech("2.wav", "b a");
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "w", "--units",
                     "words"),
                0);
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "c"), 0);
    return 0;
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

/* ---- what is left out ---------------------------------------------------- */

typedef struct entry {
    const char *id, *path;
} entry;

static void list(const char *name, const char *key, size_t n,
                 const entry rows[])
{
    char *text = calloc(n + 1, 200);

    assert_non_null(text);
    for (size_t i = 0; i < n; i++)
        snprintf(text + strlen(text), 200,
                 "{\"id\": \"%s\", \"%s\": \"%s\", \"text\": \"a\"}\n",
                 rows[i].id, key, rows[i].path);
    write_text(name, text);
    free(text);
}

/* n recordings, of which the first `bad` are shorter than a window. */
static void list_recordings(const char *name, size_t n, size_t bad)
{
    char ids[128][24];
    entry rows[128];

    for (size_t i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "u%zu", i);
        rows[i].id = ids[i];
        rows[i].path = i < bad ? "short.wav" : "1.wav";
    }
    list(name, "audio", n, rows);
}

static bool has_shards(const char *directory)
{
    char path[64];

    snprintf(path, sizeof path, "%s/data-00000.bmuf.h5", directory);
    return access(in_folder(path), F_OK) == 0;
}

/* ---- what is refused ----------------------------------------------------- */

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

/* With 20 bytes each, means and scales of 1536 features are 61440 bytes. */
static void test_means_of_too_many_features_are_refused(void **_)
{
    enum { WIDE = 1536 };
    static unsigned char mfc[4 + 4 * 2 * WIDE] = {0, 0, 2 * WIDE / 256,
                                                  2 * WIDE % 256};

    (void)_;
    write_bytes("wide.mfc", mfc, sizeof mfc);
    write_text("wide.jsonl",
               "{\"id\": \"a\", \"feats\": \"wide.mfc\", \"text\": \"x\"}\n");
    assert_fails(BMUF("pack", "--features", "wide.jsonl", "--out", "wide",
                      "--set", "features.dim=1536", "--set",
                      "features.normalise=global"),
                 78,
                 "features.normalise = global: shards do not hold the means of "
                 "1536 features",
                 "normalise = utterance");
    assert_code(BMUF("pack", "--features", "wide.jsonl", "--out", "wide",
                     "--set", "features.dim=1536"),
                0);
}

static void test_a_name_is_one_in_the_directory(void **_)
{
    static const char *const names[] = {"", "../evil", "a/b", ".hidden"};

    (void)_;
    FOR_EACH (k, names)
        assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "named",
                          "--name", names[k]),
                     64, "pack: --name '", "no '/'");
    assert_int_not_equal(access(in_folder("evil-00000.bmuf.h5"), F_OK), 0);
    assert_int_not_equal(access(in_folder("named"), F_OK), 0);
}

static void test_more_left_out_than_allowed_is_a_failure(void **_)
{
    static const struct {
        size_t n, bad;
        const char *most; /* NULL: the default, 1 */
        int code;
    } cases[] = {
        {20, 1, NULL, 65},  {100, 1, NULL, 0}, {20, 1, "5", 0},
        {20, 1, "4.9", 65}, {20, 0, "0", 0},   {20, 20, "100", 65},
    };
    outcome o;

    (void)_;
    write_tone("short.wav", 100, 1, 8000);
    FOR_EACH (k, cases) {
        const char *option = cases[k].most != NULL ? "--max-left-out" : NULL;

        list_recordings("some.jsonl", cases[k].n, cases[k].bad);
        o = BMUF("pack", "--audio", "some.jsonl", "--out", "some", "--force",
                 "--set", "shard.unit_frames=30", "--set",
                 "shard.shard_mb=0.001", option, cases[k].most);
        assert_code(o, cases[k].code);
        assert_int_equal(has_shards("some"), cases[k].code == 0);
    }
    assert_fails(BMUF("pack", "--audio", "some.jsonl", "--out", "no",
                      "--max-left-out", "101"),
                 64, "--max-left-out 101 is not a percentage");
}

static void test_what_is_left_out_is_counted_by_kind(void **_)
{
    static const entry rows[] = {{"a", "gone-1.wav"}, {"b", "short.wav"},
                                 {"c", "1.wav"},      {"d", "gone-2.wav"},
                                 {"e", "gone-3.wav"}, {"f", "short.wav"}};
    int sequences = 0, left_out = 0, missing = 0, shorter = 0;
    json_t *root = NULL;
    outcome o;

    (void)_;
    write_tone("short.wav", 100, 1, 8000);
    list("five.jsonl", "audio", 6, rows);
    assert_fails(BMUF("pack", "--audio", "five.jsonl", "--out", "five"), 65,
                 "3 of 6 files cannot be opened", "gone-2.wav: No such file",
                 "more than 1 %", "--max-left-out to 50");
    o = BMUF("pack", "--audio", "five.jsonl", "--out", "five", "--max-left-out",
             "60");
    assert_code(o, 65);
    assert_says(o.err, "left out 5 of 6: 3 file not found, 2 shorter than a "
                       "window. This is more than 60 %");
    assert_says(o.err, "--max-left-out to 84");
    assert_false(has_shards("five"));
    o = BMUF("pack", "--audio", "five.jsonl", "--out", "five", "--max-left-out",
             "84");
    assert_code(o, 0);
    assert_says(o.out, "1 sequence, ");
    assert_says(o.out, "; left out 5 of 6: 3 file not found, 2 shorter than a "
                       "window; 0 unknown symbols");
    o = BMUF("pack", "--audio", "five.jsonl", "--out", "five", "--max-left-out",
             "84", "--force", "--json");
    assert_code(o, 0);
    root = json_loads(o.out, 0, NULL);
    assert_int_equal(json_unpack(root, "{s:i, s:i, s:{s:i, s:i}}", "sequences",
                                 &sequences, "left_out", &left_out, "reasons",
                                 "file not found", &missing,
                                 "shorter than a window", &shorter),
                     0);
    assert_true(sequences == 1 && left_out == 5 && missing == 3 &&
                shorter == 2);
    json_decref(root);
}

static void test_a_failing_disk_is_no_left_out_recording(void **_)
{
    static const entry rows[] = {{"a", "1.wav"}, {"b", "/proc/self/mem"}};

    (void)_;
    list("eio.jsonl", "audio", 2, rows);
    assert_fails(BMUF("pack", "--audio", "eio.jsonl", "--out", "eio",
                      "--max-left-out", "100"),
                 74, "/proc/self/mem cannot be read: Input/output error");
    assert_false(has_shards("eio"));
}

/* ---- other files --------------------------------------------------------- */

static void test_a_file_that_is_no_manifest_is_told_in_one_line(void **_)
{
    static const struct {
        const char *file, *is, *use;
    } cases[] = {
        {"k.png", "k.png is a PNG image, not a manifest",
         "pack --images a manifest"},
        {"1.wav", "1.wav is a WAV recording, not a", "pack --audio a manifest"},
        {"c/data-00000.bmuf.h5", "data-00000.bmuf.h5 is an HDF5 file, not a",
         "bmuf info"},
        {"wav.scp", "wav.scp is a Kaldi scp file, not a manifest",
         "--kaldi takes the data directory"},
        {"text", "text is a text, not a manifest", "JSON lines"},
        {"k.ini", "k.ini is a configuration, not a manifest", "bmuf train"},
        {"list.json", "list.json is a JSON list, not a", "no brackets"},
        {"data.json", "data.json is a data.json of ESPnet 1", "--kaldi"},
        {"pretty.json", "pretty.json is a data.json of ESPnet 1", "--kaldi"},
        {"indented.json", "indented.json: a JSON object over several lines",
         "jq -c"},
        {"t.tsv",
         "t.tsv: its first line, \"utt\\twav_path\\ttrans\", names no column "
         "that "
         "is known. Known are id, utt_id; audio, audio_filepath, wav, path, "
         "file, file_name, filename, wav_filename, audio_file; text, sentence, "
         "transcript, transcription, label; speaker,",
         "Rename the columns"},
        {"k.gz", "k.gz: its gzip data are damaged or end early",
         "make or fetch it again"},
    };

    (void)_;
    draw("k.png", 6);
    write_text("wav.scp", "u1 1.wav\nu2 2.wav\n");
    write_text("text", "u1 one two\nu2 three\n");
    write_text("k.ini", "; mine\n[data]\ntrain = c\n");
    write_text("list.json", "[\n{\"id\": \"u1\"}]\n");
    write_text("data.json", "{\"utts\": {\"u1\": {\"input\": []}}}\n");
    write_text("pretty.json", "{\n    \"utts\": {\n        \"u1\": {}}}\n");
    write_text("indented.json", "{\n  \"id\": \"u1\"\n}\n");
    write_text("t.tsv", "utt\twav_path\ttrans\nu1\t1.wav\tone\n");
    write_bytes("k.gz", "\x1f\x8b\x08\0\0", 5);
    FOR_EACH (k, cases) {
        outcome o = BMUF("pack", "--audio", cases[k].file, "--out", "no");

        assert_fails(o, 65, cases[k].is, cases[k].use);
        assert_int_equal(count_of(o.err, "\n"), 1);
    }
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no",
                      "--vocab", "k.png"),
                 65, "k.png is a PNG image, not a vocabulary");
}

/* A pipe without a writer, or a device, must not be waited for. */
static void test_pipes_in_place_of_files_are_refused_at_once(void **_)
{
    static const struct {
        const char *option, *key;
    } cases[] = {
        {"--audio", "audio"}, {"--images", "image"}, {"--features", "feats"}};
    static const entry pipe[] = {{"a", "pipe"}};
    static const entry device[] = {{"a", "/dev/zero"}};

    (void)_;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    FOR_EACH (k, cases) {
        list("pipe.jsonl", cases[k].key, 1, pipe);
        assert_fails(BMUF("pack", cases[k].option, "pipe.jsonl", "--out", "no",
                          "--max-left-out", "0"),
                     66, "pipe: not a regular file");
        list("pipe.jsonl", cases[k].key, 1, device);
        assert_fails(BMUF("pack", cases[k].option, "pipe.jsonl", "--out", "no",
                          "--max-left-out", "100"),
                     65, "/dev/zero is a device, not a regular file");
    }
    assert_fails(BMUF("pack", "--audio", "pipe", "--out", "no"), 66,
                 "pipe is a pipe, not a regular file");
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no",
                      "--vocab", "pipe"),
                 66, "pipe is a pipe, not a regular file");
}

static void test_fields_that_are_not_understood_are_named_once(void **_)
{
    outcome o;

    (void)_;
    write_text("fields.jsonl",
               "{\"id\": \"1\", \"audio\": \"1.wav\", \"txt\": \"a\"}\n"
               "{\"id\": \"2\", \"audio\": \"2.wav\", \"txt\": \"b\", "
               "\"gender\": \"f\"}\n");
    o = BMUF("pack", "--audio", "fields.jsonl", "--out", "fields");
    assert_code(o, 0);
    assert_says(o.err, "fields.jsonl: field \"txt\", on 2 lines, is not "
                       "understood and was ignored; did you mean \"text\"?");
    assert_says(o.err, "field \"gender\", on 1 line, is not understood");
    assert_int_equal(count_of(o.err, "not understood"), 2);
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
    assert_says(o.err, "50 % of the sequences have no text, though others do. "
                       "This is more than 1 %");
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

static void test_settings_of_something_else_are_refused(void **_)
{
    (void)_;
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no", "--set",
                      "augment.speed=0.9"),
                 78,
                 "augment.speed is a setting of bmuf train, not of bmuf pack");
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no", "--set",
                      "features.height=40"),
                 78,
                 "features.height is a setting of --images, not of --audio");
}

/* ---- excerpts ------------------------------------------------------------ */

static char *file_of(const char *path, size_t *size)
{
    return slurp(in_folder(path), size);
}

static void test_an_excerpt_is_the_recording_that_was_cut_there(void **_)
{
    enum { N = 16000, FIRST = 3999, END = 12345 };
    static int x[N];
    char *cut = NULL, *excerpt = NULL;
    size_t n = 0, k = 0;

    (void)_;
    make_tone(x, N, 1, 440, 8000);
    for (size_t i = 0; i < N; i++)
        x[i] = x[i] / 2 + (int)(i * i % 977);
    write_sound("long.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, N, 1, 8000);
    write_sound("cut.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x + FIRST,
                END - FIRST, 1, 8000);
    write_text("long.jsonl",
               "{\"id\": \"u\", \"audio\": \"long.wav\", \"text\": \"a\", "
               "\"start\": 0.499875, \"duration\": 1.04325}\n");
    write_text("cut.jsonl",
               "{\"id\": \"u\", \"audio\": \"cut.wav\", \"text\": \"a\"}\n");
    assert_code(BMUF("pack", "--audio", "long.jsonl", "--out", "excerpt",
                     "--set", "features.rate=11025", "--set",
                     "features.dither=1"),
                0);
    assert_code(BMUF("pack", "--audio", "cut.jsonl", "--out", "cut", "--set",
                     "features.rate=11025", "--set", "features.dither=1"),
                0);
    excerpt = file_of("excerpt/data-00000.bmuf.h5", &n);
    cut = file_of("cut/data-00000.bmuf.h5", &k);
    assert_int_equal(n, k);
    assert_memory_equal(excerpt, cut, n);
    free(excerpt);
    free(cut);
    write_text("long.jsonl", "{\"id\": \"u\", \"audio\": \"long.wav\", "
                             "\"start\": 1.5, \"duration\": 1.01}\n");
    assert_fails(BMUF("pack", "--audio", "long.jsonl", "--out", "no"), 65,
                 "1 excerpt outside the recording");
    write_text("long.jsonl",
               "{\"id\": \"u\", \"audio\": \"long.wav\", \"text\": \"a\", "
               "\"start\": 1.5, \"duration\": 0.9}\n");
    assert_says(BMUF("pack", "--audio", "long.jsonl", "--out", "no").err,
                "1 of 1 sequence is cut at the end of the recording: u");
}

/* ---- texts --------------------------------------------------------------- */

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

/* ---- remarks ------------------------------------------------------------- */

static void test_unusual_recordings_are_counted(void **_)
{
    static const entry rows[] = {{"a", "zero.wav"}, {"b", "1.wav"},
                                 {"c", "clip.wav"}, {"d", "zero.wav"},
                                 {"e", "zero.wav"}, {"f", "zero.wav"},
                                 {"g", "seven.wav"}};
    static const entry images[] = {{"i", "blank.png"}};
    static const entry arrays[] = {{"f", "flat.mfc"}};
    static int x[800];
    unsigned char white[64], flat[4 + 4 * 26] = {0, 0, 0, 26};
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = 8,
                     .height = 8,
                     .format = PNG_FORMAT_GRAY};
    outcome o;

    (void)_;
    write_sound("zero.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, 800, 1, 8000);
    for (size_t i = 0; i < 800; i++)
        x[i] = 7;
    write_sound("seven.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, 800, 1, 8000);
    for (size_t i = 0; i < 800; i++)
        x[i] = i % 100 < 10 ? 32767 : (int)i;
    write_sound("clip.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, 800, 1, 8000);
    list("odd.jsonl", "audio", 7, rows);
    o = BMUF("pack", "--audio", "odd.jsonl", "--out", "odd");
    assert_code(o, 0);
    assert_says(o.err, "4 of 7 sequences are digital silence: a, d, e, ..\n");
    assert_says(o.err, "1 of 7 sequences is clipped: c\n");
    assert_says(o.err, "1 of 7 sequences is constant: g\n");
    memset(white, 255, sizeof white);
    assert_true(png_image_write_to_file(&png, in_folder("blank.png"), 0, white,
                                        0, NULL));
    list("odd.jsonl", "image", 1, images);
    o = BMUF("pack", "--images", "odd.jsonl", "--out", "odd-i");
    assert_code(o, 0);
    assert_says(o.err, "1 of 1 sequence is blank: i\n");
    write_bytes("flat.mfc", flat, sizeof flat); /* two frames of 13 zeros */
    list("odd.jsonl", "feats", 1, arrays);
    o = BMUF("pack", "--features", "odd.jsonl", "--out", "odd-f");
    assert_code(o, 0);
    assert_says(o.err, "1 of 1 sequence is constant: f\n");
}

/* ---- whole data sets ----------------------------------------------------- */

/* Packs `n` copies of a recording, in shards of one. */
static void pack_many(const char *out, size_t n)
{
    list_recordings("many.jsonl", n, 0);
    assert_code(BMUF("pack", "--audio", "many.jsonl", "--out", out, "--force",
                     "--set", "shard.unit_frames=1", "--set",
                     "shard.shard_mb=0.001"),
                0);
}

static void drop(const char *name)
{
    assert_int_equal(remove(in_folder(name)), 0);
}

/* Every verb that opens a data set names what is missing. */
static void assert_incomplete(const char *directory, const char *text)
{
    char setting[64];
    outcome o = BMUF("check", directory);

    assert_code(o, 65);
    assert_says(o.out, text);
    assert_fails(BMUF("info", directory), 65, text);
    snprintf(setting, sizeof setting, "data.train=%s", directory);
    assert_fails(BMUF("train", "many.ini", "--out", "no", "--set", setting), 65,
                 text);
}

static void test_missing_shards_are_named(void **_)
{
    (void)_;
    write_text("many.ini", "[model]\nnet = linear\n");
    pack_many("many", 6);
    assert_code(BMUF("check", "many"), 0);
    drop("many/data-00004.bmuf.h5");
    drop("many/data-00001.bmuf.h5");
    assert_incomplete("many", "many/data-00001.bmuf.h5 is missing");
    assert_incomplete("many", "many/data-00004.bmuf.h5 is missing");
    assert_code(BMUF("info", "many/data-00003.bmuf.h5"), 0); /* by itself */
    pack_many("many", 6);
    drop("many/data-00005.bmuf.h5");
    assert_incomplete("many", "many/data-00005.bmuf.h5, or the last shards "
                              "from there on, are missing");
}

static void test_shards_of_another_packing_are_noticed(void **_)
{
    size_t n = 0;
    char *bytes = NULL;

    (void)_;
    pack_many("many", 4);
    assert_code(BMUF("pack", "--audio", "many.jsonl", "--out", "more", "--set",
                     "shard.unit_frames=1", "--set", "shard.shard_mb=0.001",
                     "--set", "features.preemphasis=0.9"),
                0);
    bytes = file_of("more/data-00003.bmuf.h5", &n);
    write_bytes("many/data-00003.bmuf.h5", bytes, n);
    free(bytes);
    assert_incomplete("many",
                      "many/data-00003.bmuf.h5 is of another bmuf pack");
    pack_many("many", 2); /* --force leaves none of the others */
    assert_false(access(in_folder("many/data-00002.bmuf.h5"), F_OK) == 0);
    assert_code(BMUF("check", "many"), 0);
}

static void test_a_directory_is_packed_into_by_one_at_a_time(void **_)
{
    int lock = -1;
    char who[64];

    (void)_;
    pack_many("many", 2);
    snprintf(who, sizeof who, "process %ld)", (long)getpid());
    assert_ok(bm_file_lock(&lock, in_folder("many"), ".pack.lock"));
    assert_fails(
        BMUF("pack", "--audio", "many.jsonl", "--out", "many", "--force"), 73,
        "many is in use by another job (host ", who);
    assert_code(BMUF("check", "many"), 0); /* and nothing was removed */
    bm_file_unlock(lock, in_folder("many"), ".pack.lock");
    pack_many("many", 3);
    assert_false(access(in_folder("many/.pack.lock"), F_OK) == 0);
}

/* ---- threads ------------------------------------------------------------- */

/* A file of a set, as bytes; free(). */
static char *shard_of(const char *set, size_t *size)
{
    char path[64];

    snprintf(path, sizeof path, "%s/data-00000.bmuf.h5", set);
    return slurp(in_folder(path), size);
}

/* With one recording that cannot be read, so that order shows in messages. */
static void test_threads_do_not_change_a_byte(void **_)
{
    static const char *const over[] = {"utterance", "speaker", "global"};

    (void)_;
    make_speech("team", 20);
    write_text("team-7.wav", "no sound");
    FOR_EACH (k, over) {
        char norm[64];
        size_t one = 0, many = 0;
        char *a = NULL, *b = NULL;

        snprintf(norm, sizeof norm, "features.normalise=%s", over[k]);
        assert_code(BMUF("pack", "--audio", "team.jsonl", "--out", "one",
                         "--threads", "1", "--set", norm, "--set",
                         "features.dither=1", "--set", "features.deltas=1",
                         "--max-left-out", "5", "--force"),
                    0);
        assert_code(BMUF("pack", "--audio", "team.jsonl", "--out", "three",
                         "--threads", "3", "--set", norm, "--set",
                         "features.dither=1", "--set", "features.deltas=1",
                         "--max-left-out", "5", "--force"),
                    0);
        a = shard_of("one", &one);
        b = shard_of("three", &many);
        assert_int_equal(one, many);
        assert_memory_equal(a, b, one);
        free(a);
        free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels_are_stored_as_bytes),
        cmocka_unit_test(test_vocabulary_of_shards_keeps_its_units),
        cmocka_unit_test(test_units_that_contradict_the_shards_are_rejected),
        cmocka_unit_test(test_vocabulary_of_a_text_has_the_given_units),
        cmocka_unit_test(test_a_vocabulary_of_other_units_is_refused),
        cmocka_unit_test(test_units_of_shards_are_not_suggested),
        cmocka_unit_test(test_a_vocabulary_of_the_user_is_not_replaced),
        cmocka_unit_test(test_a_name_is_one_in_the_directory),
        cmocka_unit_test(test_means_of_too_many_features_are_refused),
        cmocka_unit_test(test_more_left_out_than_allowed_is_a_failure),
        cmocka_unit_test(test_what_is_left_out_is_counted_by_kind),
        cmocka_unit_test(test_a_failing_disk_is_no_left_out_recording),
        cmocka_unit_test(test_a_file_that_is_no_manifest_is_told_in_one_line),
        cmocka_unit_test(test_pipes_in_place_of_files_are_refused_at_once),
        cmocka_unit_test(test_fields_that_are_not_understood_are_named_once),
        cmocka_unit_test(
            test_sequences_without_a_text_are_left_out_among_others),
        cmocka_unit_test(test_sets_without_labels_are_warned_of),
        cmocka_unit_test(test_settings_of_vocab_are_taken_where_none_are_set),
        cmocka_unit_test(test_settings_of_something_else_are_refused),
        cmocka_unit_test(test_an_excerpt_is_the_recording_that_was_cut_there),
        cmocka_unit_test(test_texts_are_normalised),
        cmocka_unit_test(test_unusual_recordings_are_counted),
        cmocka_unit_test(test_missing_shards_are_named),
        cmocka_unit_test(test_shards_of_another_packing_are_noticed),
        cmocka_unit_test(test_a_directory_is_packed_into_by_one_at_a_time),
        cmocka_unit_test(test_threads_do_not_change_a_byte),
    };

    return cmocka_run_group_tests_name("packed", tests, make_shards,
                                       folder_remove);
}

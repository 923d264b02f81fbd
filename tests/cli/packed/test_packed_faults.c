/*
 * What bmuf pack leaves out, counts and warns of, and what it refuses.
 */
#include "tests/cli/packed/recordings.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <png.h>
#include <sndfile.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is left out ---------------------------------------------------- */

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

/* ---- what is refused ----------------------------------------------------- */

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
                 "pipe is a pipe, not a regular file; give - to read the "
                 "manifest from standard input");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_name_is_one_in_the_directory),
        cmocka_unit_test(test_means_of_too_many_features_are_refused),
        cmocka_unit_test(test_more_left_out_than_allowed_is_a_failure),
        cmocka_unit_test(test_what_is_left_out_is_counted_by_kind),
        cmocka_unit_test(test_a_failing_disk_is_no_left_out_recording),
        cmocka_unit_test(test_a_file_that_is_no_manifest_is_told_in_one_line),
        cmocka_unit_test(test_pipes_in_place_of_files_are_refused_at_once),
        cmocka_unit_test(test_fields_that_are_not_understood_are_named_once),
        cmocka_unit_test(test_settings_of_something_else_are_refused),
        cmocka_unit_test(test_unusual_recordings_are_counted),
    };

    return cmocka_run_group_tests_name("packed_faults", tests, make_shards,
                                       folder_remove);
}

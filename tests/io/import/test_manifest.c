/*
 * Manifests: their rows, and a report of all their faults.
 */
#include "io/import/manifest/manifest.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static void test_a_manifest_has_one_row_per_line(void **state)
{
    bm_manifest *m = NULL;
    bm_manifest_row row;

    (void)state;
    write_text("a.wav", "");
    write_text(
        "m.jsonl",
        "\xef\xbb\xbf{\"id\": \"a\", \"audio\": \"a.wav\", "
        "\"text\": \"\\u00e9t\\u00e9\", \"speaker\": \"z\", \"dur\": 3}\n"
        "\n"
        "{\"id\": \"b\", \"audio\": \"/etc/passwd\"}\r\n"
        "{\"id\": \"c\", \"audio\": \"./a.wav\", \"speaker\": \"y\"}");
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0, 0));
    assert_int_equal(bm_manifest_size(m), 3);
    assert_int_equal(bm_manifest_speakers(m), 3);
    row = bm_manifest_at(m, 0);
    assert_string_equal(row.id, "a");
    assert_string_equal(row.path, in_folder("a.wav"));
    assert_string_equal(row.text, "\xc3\xa9t\xc3\xa9");
    assert_string_equal(row.speaker, "z");
    assert_int_equal(row.speaker_number, 2);
    row = bm_manifest_at(m, 1);
    assert_string_equal(row.path, "/etc/passwd");
    assert_string_equal(row.text, "");
    assert_string_equal(row.speaker, "");
    assert_int_equal(row.line, 3);
    assert_int_equal(row.speaker_number, 0);
    assert_int_equal(bm_manifest_at(m, 2).speaker_number, 1);
    bm_manifest_free(m);
}

static void assert_manifest_says(bm_status status, const char *text)
{
    bm_manifest *m = NULL;

    assert_int_equal(bm_manifest_read(&m, in_folder("m.jsonl"), "image", 0, 0),
                     status);
    assert_null(m);
    if (strstr(bm_last_error(), text) == NULL)
        fail_msg("'%s' is not in: %s", text, bm_last_error());
}

static void test_all_faults_of_a_manifest_are_reported_at_once(void **state)
{
    static const char *const faults[] = {
        "m.jsonl: 9 problems:",
        "m.jsonl:1: not JSON: ",
        "m.jsonl:2: not a JSON object",
        "m.jsonl:3: \"id\" is missing",
        "m.jsonl:4: \"image\" is missing",
        "m.jsonl:5: \"text\" is not a text",
        "m.jsonl:6: \"id\" is empty or has control characters",
        "m.jsonl:7: \"id\" is empty or has control characters",
        "m.jsonl:8: byte 9 is not UTF-8; if the list is in Latin-1",
        "m.jsonl:10: duplicate id \"a\", also on line 9",
    };

    (void)state;
    write_text("m.jsonl", "{\"id\": \"x\"\n"
                          "[1]\n"
                          "{\"image\": \"a.png\"}\n"
                          "{\"id\": \"x\", \"audio\": \"a.wav\"}\n"
                          "{\"id\": \"x\", \"image\": \"a\", \"text\": true}\n"
                          "{\"id\": \"\", \"image\": \"a.png\"}\n"
                          "{\"id\": \"x\\ny\", \"image\": \"a.png\"}\n"
                          "{\"id\": \"\xff\", \"image\": \"a.png\"}\n"
                          "{\"id\": \"a\", \"image\": \"a.png\"}\n"
                          "{\"id\": \"a\", \"image\": \"b.png\"}\n");
    FOR_EACH (k, faults)
        assert_manifest_says(BM_ERR_FORMAT, faults[k]);
}

static void test_only_some_of_many_faults_are_reported(void **state)
{
    char text[151] = "";

    (void)state;
    for (size_t i = 0; i < 50; i++)
        snprintf(text + 3 * i, 4, "{}\n");
    write_text("m.jsonl", text);
    assert_manifest_says(BM_ERR_FORMAT, "m.jsonl: 100 problems:");
    assert_manifest_says(BM_ERR_FORMAT, "m.jsonl:10: \"image\" is missing");
    assert_manifest_says(BM_ERR_FORMAT, "\n  and 80 more");
    assert_null(strstr(bm_last_error(), "m.jsonl:11:"));
}

static void test_a_list_of_another_kind_is_one_line(void **state)
{
    (void)state;
    write_text("m.jsonl", "{\"id\": \"a\", \"audio\": \"a.wav\"}\n"
                          "{\"id\": \"b\", \"audio\": \"b.wav\"}\n"
                          "{\"id\": \"c\", \"audio\": \"c.wav\"}\n");
    assert_manifest_says(BM_ERR_FORMAT,
                         "m.jsonl:1: \"image\" is missing; there is \"audio\", "
                         "which --audio takes\n  and 2 more");
}

static void test_all_missing_files_are_reported_at_once(void **state)
{
    (void)state;
    write_text("there.png", "");
    write_text("m.jsonl", "{\"id\": \"a\", \"image\": \"gone.png\"}\n"
                          "{\"id\": \"b\", \"image\": \"there.png\"}\n"
                          "{\"id\": \"c\", \"image\": \"/no/where.png\"}\n");
    assert_manifest_says(BM_ERR_FORMAT, "2 of 3 files cannot be opened");
    assert_manifest_says(BM_ERR_FORMAT, "raise --max-left-out to 67");
    assert_manifest_says(BM_ERR_FORMAT, "gone.png: No such file");
    assert_manifest_says(BM_ERR_FORMAT, "m.jsonl:3: /no/where.png: No such");
    assert_null(strstr(bm_last_error(), "there.png"));
}

static void test_missing_and_empty_manifests_are_rejected(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    assert_int_equal(bm_manifest_read(&m, in_folder("no.jsonl"), "image", 0, 0),
                     BM_ERR_MISSING);
    write_text("m.jsonl", "\n \n");
    assert_manifest_says(
        BM_ERR_FORMAT,
        "m.jsonl is empty; a manifest has one JSON object per line");
}

static void test_excerpts_have_a_start_and_a_duration(void **state)
{
    static const double expected[][2] = {{0, 0},      {1.5, 0},    {0, 2.25},
                                         {1.5, 2.25}, {1.5, 0.75}, {0.5, 2}};
    bm_manifest *m = NULL;

    (void)state;
    write_text("a.wav", "");
    write_text(
        "m.jsonl",
        "{\"id\": \"a\", \"audio\": \"a.wav\"}\n"
        "{\"id\": \"b\", \"audio\": \"a.wav\", \"start\": 1.5}\n"
        "{\"id\": \"c\", \"audio\": \"a.wav\", \"duration\": 2.25}\n"
        "{\"id\": \"d\", \"audio\": \"a.wav\", \"start\": 1.5, "
        "\"duration\": 2.25}\n"
        "{\"id\": \"e\", \"audio\": \"a.wav\", \"start\": 1.5, \"end\": 2.25}\n"
        "{\"id\": \"f\", \"audio_filepath\": \"a.wav\", \"offset\": 0.5, "
        "\"duration\": 2}\n"); /* NeMo's names */
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0, 0));
    assert_int_equal(bm_manifest_size(m), 6);
    FOR_EACH (k, expected) {
        bm_manifest_row row = bm_manifest_at(m, k);

        assert_true(row.start == expected[k][0]);
        assert_true(row.duration == expected[k][1]);
        assert_string_equal(row.path, in_folder("a.wav"));
    }
    bm_manifest_free(m);
}

/* The manifest must fail with this text. */
static void assert_invalid(const char *kind, const char *fields,
                           const char *text)
{
    char line[300];
    bm_manifest *m = NULL;

    snprintf(line, sizeof line, "{\"id\": \"a\", \"%s\": \"a.wav\", %s}\n",
             kind, fields);
    write_text("m.jsonl", line);
    assert_int_equal(bm_manifest_read(&m, in_folder("m.jsonl"), kind, 0, 0),
                     BM_ERR_FORMAT);
    if (strstr(bm_last_error(), text) == NULL)
        fail_msg("'%s' is not in: %s", text, bm_last_error());
}

static void test_invalid_excerpts_are_refused(void **state)
{
    static const struct {
        const char *fields, *text;
    } cases[] = {
        {"\"start\": -1", "\"start\" is not a number of seconds from 0"},
        {"\"start\": \"1\"", "\"start\" is not a number"},
        {"\"offset\": 2e6", "\"offset\" is not a number"},
        {"\"duration\": 0", "\"duration\" is not a number"},
        {"\"start\": 1, \"offset\": 1", "both \"start\" and \"offset\""},
        {"\"duration\": 1, \"end\": 1", "both \"duration\" and \"end\""},
        {"\"start\": 2, \"end\": 1.5", "\"end\" 1.5 is not after \"start\" 2"},
        {"\"audio_filepath\": \"a.wav\"", "\"audio_filepath\"; give only one"},
    };

    (void)state;
    FOR_EACH (k, cases)
        assert_invalid("audio", cases[k].fields, cases[k].text);
    assert_invalid("image", "\"start\": 1", "\"start\" is for recordings");
    assert_invalid("feats", "\"duration\": 1",
                   "\"duration\" is for recordings; cut \"feats\"");
}

static void test_ids_with_blanks_are_refused(void **state)
{
    (void)state;
    write_text("m.jsonl", "{\"id\": \"a b\", \"image\": \"a b.png\"}\n");
    assert_manifest_says(BM_ERR_FORMAT, "\"id\" has a blank: \"a b\"");
    assert_manifest_says(BM_ERR_FORMAT, "m.jsonl: 1 problem:");
}

/* As many missing files as are allowed are left to be problems of their rows. */
static void test_some_files_may_be_missing(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    write_text("there.png", "");
    write_text("m.jsonl", "{\"id\": \"a\", \"image\": \"gone.png\"}\n"
                          "{\"id\": \"b\", \"image\": \"there.png\"}\n");
    assert_int_equal(
        bm_manifest_read(&m, in_folder("m.jsonl"), "image", 49.9, 0),
        BM_ERR_FORMAT);
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "image", 50, 0));
    assert_int_equal(bm_manifest_size(m), 2);
    bm_manifest_free(m);
}

/* ---- other formats ------------------------------------------------------- */

/* One row of each format: id, file, text, speaker, start, duration. */
static void assert_row(const bm_manifest *m, size_t k, const char *id,
                       const char *text, const char *speaker, double start,
                       double duration)
{
    bm_manifest_row row = bm_manifest_at(m, k);

    assert_string_equal(row.id, id);
    assert_string_equal(row.text, text);
    assert_string_equal(row.speaker, speaker);
    assert_float_equal(row.start, start, 1e-12);
    assert_float_equal(row.duration, duration, 1e-12);
}

static const char table[] =
    "\xef\xbb\xbfid\taudio\ttext\tspeaker\tstart\tend\r\n"
    "a\ta.wav\tone \"two\"\tann\t0.5\t2\r\n\n"
    "b\ta.wav\t\t\t\t\n";

static void assert_table(const char *path)
{
    bm_manifest *m = NULL;

    assert_ok(bm_manifest_read(&m, path, "audio", 0, 0));
    assert_int_equal(bm_manifest_size(m), 2);
    assert_row(m, 0, "a", "one \"two\"", "ann", 0.5, 1.5);
    assert_row(m, 1, "b", "", "", 0, 0);
    assert_int_equal(bm_manifest_at(m, 1).line, 4);
    bm_manifest_free(m);
}

static void test_tables_have_a_header(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    write_text("a.wav", "");
    write_text("m.tsv", table);
    assert_table(in_folder("m.tsv"));
    /* Common Voice's names, with commas and quotes; ids are made */
    write_text("m.csv", "client_id,path,sentence,age\n"
                        "x,a.wav,\"one, \"\"two\"\"\",20\n");
    assert_ok(bm_manifest_read(&m, in_folder("m.csv"), "audio", 0, 0));
    assert_row(m, 0, "a", "one, \"two\"", "x", 0, 0);
    bm_manifest_free(m);
}

/* The names of other programs, in any case; the most common ones win. */
static void test_names_of_other_programs_are_known(void **state)
{
    static const struct {
        const char *text, *id, *words, *speaker;
    } cases[] = {
        {"id\tfile\tspk\tsplit\ttext\nu\ta.wav\tann\tdev\tone\n", "u", "one",
         "ann"},
        {"filename,label\na.wav,one\n", "a", "one", ""},
        {"file_name,transcription,speaker_id\na.wav,one,ann\n", "a", "one",
         "ann"},
        {"ID\tAudio\tText\nu\ta.wav\tone\n", "u", "one", ""},
        {"id;path;sentence\nu;a.wav;\"one; two\"\n", "u", "one; two", ""},
        {"id, path , sentence\nu, a.wav , one two \n", "u", "one two", ""},
        {"id, path, sentence\nu, \"a.wav\" , \" one, two\"\n", "u", " one, two",
         ""},
        {"id,path,audio,text,label\nu,b.wav,a.wav,one,7\n", "u", "one", ""},
        {"audio_file|text|speaker_name\na.wav|\"one\", two; \"three|ann\n", "a",
         "\"one\", two; \"three", "ann"},
        {"{\"file_name\": \"a.wav\", \"transcription\": \"one\"}\n", "a", "one",
         ""},
        {"{\"ID\": \"u\", \"wav_filename\": \"a.wav\", \"client_id\": "
         "\"ann\", \"Transcript\": \"one\"}\n",
         "u", "one", "ann"},
        {"{\"id\": 3, \"audio\": \"a.wav\", \"text\": \"one\", "
         "\"speaker_id\": 1272}\n",
         "3", "one", "1272"},
        {"{\"audio_filepath\": \"a.wav\", \"offset\": null, \"duration\": "
         "null, "
         "\"speaker\": null, \"spk\": \"ann\", \"text\": \"one\", "
         "\"lang\": null}\n",
         "a", "one", "ann"},
    };

    (void)state;
    write_text("a.wav", "");
    FOR_EACH (k, cases) {
        bm_manifest *m = NULL;

        write_text("m.txt", cases[k].text);
        assert_ok(bm_manifest_read(&m, in_folder("m.txt"), "audio", 0, 0));
        assert_int_equal(bm_manifest_size(m), 1);
        assert_row(m, 0, cases[k].id, cases[k].words, cases[k].speaker, 0, 0);
        assert_string_equal(bm_manifest_at(m, 0).path, in_folder("a.wav"));
        bm_manifest_free(m);
    }
}

static void test_a_refused_table_gets_a_remedy(void **state)
{
    static const struct {
        const char *kind, *text, *message;
    } cases[] = {
        {"audio", "id\tspeaker\ttext\na\tb\tc\n",
         "m.jsonl:1: no column names the recording (audio, path, file, "
         "wav_filename ..); the columns are id, speaker, text"},
        {"image", "ID,Audio\na,b\n",
         "m.jsonl:1: no column names the image (image, path, file, file_name "
         "..); the columns are ID, Audio"},
        {"audio", "wavs/a.wav|one, two\n",
         "m.jsonl: its first line, \"wavs/a.wav|one, two\", names no column "
         "that is known. Known are id, utt_id; audio, audio_filepath, wav, "
         "path, file, file_name, filename, wav_filename, audio_file; text, "
         "sentence, transcript, transcription, label; speaker, client_id, "
         "spk, speaker_id, speaker_name; start, offset; duration; end. Rename "
         "the columns, or add a header such as audio|text"},
        {"audio", "sep=;\nid;path\n",
         "m.jsonl:1: \"sep=;\" is for Excel alone; delete this line"},
        {"image", "a.png\tone\n", "or add a header such as image<TAB>text"},
        {"image", "l1 A|MOVE|to\n", "--image-dir DIR, and a manifest is JSON"},
        {"image", "l1 one, two\n", "--image-dir DIR, and a manifest is JSON"},
        {"image", "l1.png\nl2.png\n",
         "m.jsonl is a list of paths, not a manifest; pack it and give the "
         "packed set: bmuf pack --images "},
        {"image", "<?xml version=\"1.0\"?>\n<PcGts/>\n",
         "m.jsonl is a page in XML, not a manifest; pack it"},
        {"audio", "file,filename\na,b\n",
         "m.jsonl:1: both \"file\" and \"filename\"; give only one"},
    };

    (void)state;
    FOR_EACH (k, cases) {
        bm_manifest *m = NULL;

        write_text("m.jsonl", cases[k].text);
        assert_int_equal(
            bm_manifest_read(&m, in_folder("m.jsonl"), cases[k].kind, 0, 0),
            BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[k].message) == NULL)
            fail_msg("%s: %s", cases[k].message, bm_last_error());
    }
}

static void test_manifests_may_be_compressed_or_standard_input(void **state)
{
    gzFile file = gzopen(in_folder("m.tsv.gz"), "wb");
    char *whole = NULL;
    size_t n = 0;
    bm_manifest *m = NULL;

    (void)state;
    write_text("a.wav", "");
    assert_int_equal(gzwrite(file, table, sizeof table - 1), sizeof table - 1);
    assert_int_equal(gzclose(file), Z_OK);
    assert_table(in_folder("m.tsv.gz"));
    whole = slurp(in_folder("m.tsv.gz"), &n);
    write_bytes("m.tsv.gz", whole, n - 12);
    free(whole);
    assert_int_equal(bm_manifest_read(&m, in_folder("m.tsv.gz"), "audio", 0, 0),
                     BM_ERR_FORMAT);
    assert_non_null(
        strstr(bm_last_error(), "damaged or end early, after line"));
    write_text("m.jsonl", "{\"id\": \"a\", \"audio\": \"/dev/null\"}\n");
    assert_non_null(freopen(in_folder("m.jsonl"), "r", stdin));
    assert_ok(bm_manifest_read(&m, "-", "audio", 100, 0));
    assert_string_equal(bm_manifest_at(m, 0).id, "a");
    bm_manifest_free(m);
}

/* NeMo's lines have no id: it is made of the name of the file, or of the path if
 * two files have one name. */
static void test_ids_are_made_of_names_of_files(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    write_text("a b.wav", "");
    write_text("m.jsonl",
               "{\"audio_filepath\": \"a b.wav\", \"duration\": 2, \"text\": "
               "\"x\"}\n"
               "{\"audio_filepath\": \"a b.wav\", \"offset\": 1.5, "
               "\"duration\": 2}\n");
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0, 0));
    assert_row(m, 0, "a-b-0000000", "x", "", 0, 2);
    assert_row(m, 1, "a-b-0001500", "", "", 1.5, 2);
    bm_manifest_free(m);
    write_text("m.jsonl", "{\"audio_filepath\": \"s1/a.wav\"}\n"
                          "{\"audio_filepath\": \"s2/a.wav\"}\n");
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 100, 0));
    assert_row(m, 0, "s1-a", "", "", 0, 0);
    assert_row(m, 1, "s2-a", "", "", 0, 0);
    bm_manifest_free(m);
}

/* The ids of the rows must be these, one after the other. */
static void assert_ids(const char *text, const char *const *ids, size_t n)
{
    bm_manifest *m = NULL;

    write_text("m.jsonl", text);
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 100, 0));
    assert_int_equal(bm_manifest_size(m), n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(bm_manifest_at(m, i).id, ids[i]);
    bm_manifest_free(m);
}

#define EXCERPT(file, start, duration)                                         \
    "{\"audio_filepath\": \"" file "\", \"offset\": " start                    \
    ", \"duration\": " duration "}\n"

/* As of NeMo's manifests with speakers who overlap. */
static void test_excerpts_that_begin_together_get_their_ends(void **state)
{
    static const char *const ends[] = {"a-0000100-0001600", "a-0000100-0002100",
                                       "a-0002000"};
    static const char *const same[] = {
        "a-0000100-0001600", "a-0000100-0001600-2", "a-0000100-0001600-3"};
    static const char *const folders[] = {
        "s1-a-0000100-0001600", "s1-a-0000100-0002100", "s2-a-0000100"};
    bm_manifest *m = NULL;

    (void)state;
    assert_ids(EXCERPT("s/a.wav", "0.1", "1.5") EXCERPT("s/a.wav", "0.1", "2")
                   EXCERPT("s/a.wav", "2", "1"),
               ends, 3);
    assert_ids(EXCERPT("a.wav", "0.1", "1.5") EXCERPT("a.wav", "0.1", "1.5")
                   EXCERPT("a.wav", "0.1", "1.5"),
               same, 3);
    assert_ids(EXCERPT("s1/a.wav", "0.1", "1.5") EXCERPT("s1/a.wav", "0.1", "2")
                   EXCERPT("s2/a.wav", "0.1", "3"),
               folders, 3);
    write_text("m.jsonl", "{\"audio_filepath\": \"a.wav\"}\n"
                          "{\"audio_filepath\": \"a.wav\"}\n");
    assert_int_equal(
        bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 100, 0),
        BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(),
                           "m.jsonl:2: duplicate id \"a\", also on line 1"));
}

/* What needed no more keeps its id: excerpts of two files of one name, which end
 * at different times, have only the path. */
static void test_ids_of_two_folders_have_no_ends(void **state)
{
    static const char *const ids[] = {"s1-a-0000100", "s2-a-0000100"};

    (void)state;
    assert_ids(EXCERPT("s1/a.wav", "0.1", "1.5")
                   EXCERPT("s2/a.wav", "0.1", "2"),
               ids, 2);
}

/* The path of the first row. */
static void assert_path(const char *manifest, const char *path)
{
    bm_manifest *m = NULL;

    assert_ok(bm_manifest_read(&m, in_folder(manifest), "audio", 0, 0));
    assert_string_equal(bm_manifest_at(m, 0).path, path);
    bm_manifest_free(m);
}

static void test_common_voice_has_its_files_in_clips(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    assert_int_equal(mkdir(in_folder("clips"), 0777), 0);
    write_text("clips/c1.mp3", "");
    write_text("clips/c2.mp3", "");
    write_text("clips/a.wav", "");
    write_text("cv.tsv", "client_id\tpath\tsentence\n"
                         "x\tc1.mp3\tone\nx\tc2.mp3\ttwo\n");
    assert_ok(bm_manifest_read(&m, in_folder("cv.tsv"), "audio", 0, 0));
    assert_row(m, 0, "c1", "one", "x", 0, 0);
    assert_string_equal(bm_manifest_at(m, 0).path, in_folder("clips/c1.mp3"));
    assert_string_equal(bm_manifest_at(m, 1).path, in_folder("clips/c2.mp3"));
    bm_manifest_free(m);
    write_text("a.wav", ""); /* what is beside the table comes first */
    write_text("cv.tsv", "path\tsentence\na.wav\tone\n");
    assert_path("cv.tsv", in_folder("a.wav"));
}

#define CUT(more, source)                                                      \
    "{\"id\": \"c1\", \"start\": 0.5, \"duration\": 2, \"channel\": 0, " more  \
    "\"supervisions\": [{\"text\": \"one\", \"speaker\": \"ann\"}, "           \
    "{\"text\": \"two\"}], \"recording\": {\"id\": \"r\", \"sources\": "       \
    "[" source "], \"sampling_rate\": 8000}, \"type\": \"MonoCut\"}\n"

/* Such a cut, with a transform of its recording. */
#define PLAYED(name, factor)                                                   \
    CUT("", "{\"type\": \"file\", \"source\": \"a.wav\"}], \"transforms\": "   \
            "[{\"name\": " name ", \"kwargs\": {\"factor\": " factor "}}")

/* Seconds 0.5 to 2.5 of what is played at 0.8 times the speed. */
static void test_speeds_of_lhotse_are_applied(void **state)
{
    static const char *const others[][2] = {
        {PLAYED("\"Speed\"", "0.1"), "of which a speed below 0.25 or above 4"},
        {PLAYED("\"Volume\"", "2"), "of which Volume is not applied"},
        {PLAYED("1", "2"), "of which one without a name is not applied"},
    };
    bm_manifest *m = NULL;

    (void)state;
    write_text("a.wav", "");
    write_text("m.jsonl", PLAYED("\"Speed\"", "0.8"));
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0,
                               BM_MANIFEST_SPEEDS));
    assert_row(m, 0, "c1", "one two", "ann", 0.4, 1.6);
    assert_true(near(bm_manifest_at(m, 0).speed, 0.8, 1e-12));
    bm_manifest_free(m);
    FOR_EACH (k, others) {
        write_text("m.jsonl", others[k][0]);
        assert_int_equal(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0,
                                          BM_MANIFEST_SPEEDS),
                         BM_ERR_FORMAT);
        if (strstr(bm_last_error(), others[k][1]) == NULL)
            fail_msg("%s: %s", others[k][1], bm_last_error());
    }
}

/* Rates are those of features.rate. */
static void test_a_rate_of_lhotse_is_no_obstacle(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    write_text("a.wav", "");
    write_text("m.jsonl",
               CUT("", "{\"type\": \"file\", \"source\": \"a.wav\"}], "
                       "\"transforms\": [{\"name\": \"Resample\", \"kwargs\": "
                       "{\"source_sampling_rate\": 16000, "
                       "\"target_sampling_rate\": 8000}}"));
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0, 0));
    assert_row(m, 0, "c1", "one two", "ann", 0.5, 2);
    assert_true(bm_manifest_at(m, 0).speed == 1);
    bm_manifest_free(m);
}

static void test_paths_of_hugging_face_are_read(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    write_text("a.wav", "");
    write_text("m.jsonl", "{\"audio\": {\"path\": \"a.wav\", "
                          "\"sampling_rate\": 8000}, \"sentence\": \"one\"}\n");
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0, 0));
    assert_row(m, 0, "a", "one", "", 0, 0);
    assert_string_equal(bm_manifest_at(m, 0).path, in_folder("a.wav"));
    bm_manifest_free(m);
}

static void test_cuts_of_lhotse_are_excerpts(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    write_text("a.wav", "");
    write_text("m.jsonl",
               CUT("", "{\"type\": \"file\", \"source\": \"a.wav\"}"));
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0, 0));
    assert_row(m, 0, "c1", "one two", "ann", 0.5, 2);
    assert_string_equal(bm_manifest_at(m, 0).path, in_folder("a.wav"));
    assert_int_equal(bm_manifest_at(m, 0).channel, 1); /* Lhotse's 0 */
    bm_manifest_free(m);
    write_text("m.jsonl",
               CUT("", "{\"type\": \"command\", \"source\": \"cat a\"}"));
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0, true));
    assert_string_equal(bm_manifest_at(m, 0).path, "cat a |");
    bm_manifest_free(m);
}

static void test_lists_of_wenet_are_manifests(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    write_text("a.wav", "");
    write_text("data.list",
               "{\"key\": \"w1\", \"wav\": \"a.wav\", \"txt\": \"one\"}\n"
               "{\"key\": \"w2\", \"wav\": \"a.wav\", \"txt\": \"two\", "
               "\"start\": 0.5, \"end\": 2.5}\n");
    assert_ok(bm_manifest_read(&m, in_folder("data.list"), "audio", 0, 0));
    assert_row(m, 0, "w1", "one", "", 0, 0);
    assert_row(m, 1, "w2", "two", "", 0.5, 2);
    assert_string_equal(bm_manifest_at(m, 1).path, in_folder("a.wav"));
    bm_manifest_free(m);
    write_text("data.list", "{\"key\": \"w1\", \"id\": \"w1\", "
                            "\"wav\": \"a.wav\", \"txt\": \"one\"}\n");
    assert_int_equal(
        bm_manifest_read(&m, in_folder("data.list"), "audio", 0, 0),
        BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "data.list:1: both \"id\" and "
                                            "\"key\"; give only one"));
}

/* Both programs open paths where they run; a list with its files beside it is
 * read, too. */
static void
test_paths_of_lhotse_and_wenet_are_of_the_working_directory(void **state)
{
    static const char *const lists[] = {
        CUT("", "{\"type\": \"file\", \"source\": \"wavs/b.wav\"}"),
        "{\"key\": \"w1\", \"wav\": \"wavs/b.wav\", \"txt\": \"one\"}\n"};
    char here[PATH_MAX];
    bm_manifest *m = NULL;

    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(mkdir(in_folder("run"), 0777), 0);
    assert_int_equal(mkdir(in_folder("run/wavs"), 0777), 0);
    assert_int_equal(mkdir(in_folder("wavs"), 0777), 0);
    write_text("wavs/b.wav", "");
    assert_int_equal(chdir(in_folder("run")), 0);
    FOR_EACH (k, lists) {
        write_text("m.jsonl", lists[k]);
        assert_path("m.jsonl", in_folder("wavs/b.wav"));
        write_text("run/wavs/b.wav", "");
        assert_path("m.jsonl", "wavs/b.wav");
        assert_int_equal(unlink(in_folder("run/wavs/b.wav")), 0);
    }
    write_text("m.jsonl", "{\"key\": \"w1\", \"wav\": \"no/b.wav\"}\n"
                          "{\"key\": \"w2\", \"wav\": \"no/c.wav\"}\n");
    assert_int_equal(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 0, 0),
                     BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_error(),
                           "in the working directory and then in the folder "
                           "of the list"));
    assert_int_equal(chdir(here), 0);
}

static void test_faults_of_other_formats_name_the_line(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"id,audio\na,\"a.wav\n", "m.jsonl:2: a quote is not closed"},
        {"id,audio\na\n", "m.jsonl:2: fewer values than the 2 columns"},
        {"id,audio\na,b,c\n", "m.jsonl:2: more values than the 2 columns"},
        {"id,audio,start\na,b,x\n",
         "m.jsonl:2: \"start\" is not a number of seconds from 0 to 1e+06: x"},
        {"audio,audio_filepath\na,b\n",
         "m.jsonl:1: both \"audio\" and \"audio_filepath\"; give only one"},
        {"path,wav_filename\na,b\n",
         "m.jsonl:1: both \"path\" and \"wav_filename\"; give only one"},
        {"id,audio\n\xff,b\n", "m.jsonl:2: byte 1 is not UTF-8; if the list is "
                               "in Latin-1, make UTF-8 "
                               "of it: iconv -f LATIN1 -t UTF-8 LIST > NEW"},
        {"{\"id\": \"caf\xe9\", \"audio\": \"a.wav\"}\n",
         "m.jsonl:1: byte 12 is not UTF-8; if the list is in Latin-1"},
        {"\xff\xfei,d,", "m.jsonl is a text in UTF-16, not a manifest; make "
                         "UTF-8 of it: iconv -f UTF-16 -t UTF-8 FILE > NEW"},
        {CUT("", "{\"type\": \"url\", \"source\": \"x\"}"),
         "m.jsonl:1: the recording is of type \"url\""},
        {CUT("", "{\"type\": \"command\", \"source\": \"cat a\"}"),
         "m.jsonl:1: a command, which is not run: cat a |"},
        {"{\"id\": \"m\", \"tracks\": [{\"cut\": {}, \"offset\": 0}], "
         "\"type\": "
         "\"MixedCut\"}\n",
         "m.jsonl:1: a cut of Lhotse that is mixed or padded"},
        {"{\"id\": \"p\", \"duration\": 1, \"type\": \"PaddingCut\"}\n",
         "m.jsonl:1: a cut of Lhotse that is mixed or padded"},
        {PLAYED("\"Speed\"", "0.9"), "of which Speed is not applied here"},
        {CUT("", ""), "m.jsonl:1: a cut without one source"},
        {"{\"id\": \"a\", \"features\": {}, \"supervisions\": []}\n",
         "m.jsonl:1: a cut of Lhotse without a recording; its features are not "
         "read, only recordings. Give --audio cuts that have them: lhotse cut"},
        {"{\"id\": \"a\", \"channel\": [0, 1], \"recording\": {}}\n",
         "m.jsonl:1: \"channel\" is not one channel, counted from 0"},
        {"{\"id\": 1.5, \"audio\": \"a.wav\"}\n",
         "m.jsonl:1: \"id\" is not a text"},
        {"{\"audio_filepath\": [\"a.wav\", \"b.wav\"], \"text\": \"a\"}\n",
         "m.jsonl:1: \"audio_filepath\" is a list of files, of which only one "
         "is read; write a line for each"},
        {"{\"id\": \"a\", \"audio\": {\"bytes\": \"\"}}\n",
         "m.jsonl:1: \"audio\" is an object without a \"path\"; write the"},
        {"{\"id\": \"a\", \"sources\": [], \"sampling_rate\": 8000}\n"
         "{\"id\": \"b\", \"sources\": [], \"sampling_rate\": 8000}\n",
         "m.jsonl:1: one of Lhotse's recordings, of which cuts are made; give "
         "--audio CUTS, which CutSet.from_manifests(recordings, "
         "supervisions).to_file(CUTS) writes, or lhotse cut simple -r "
         "RECORDINGS -s SUPERVISIONS CUTS\n  and 1 more"},
        {"{\"id\": \"a\", \"recording_id\": \"a\", \"start\": 0, "
         "\"duration\": 1, \"text\": \"one\"}\n",
         "m.jsonl:1: one of Lhotse's supervisions, of which cuts are made"},
    };

    (void)state;
    FOR_EACH (i, cases) {
        bm_manifest *m = NULL;

        write_text("m.jsonl", cases[i].text);
        assert_int_equal(
            bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 100, 0),
            BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].message, bm_last_error());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_manifest_has_one_row_per_line),
        cmocka_unit_test(test_all_faults_of_a_manifest_are_reported_at_once),
        cmocka_unit_test(test_only_some_of_many_faults_are_reported),
        cmocka_unit_test(test_a_list_of_another_kind_is_one_line),
        cmocka_unit_test(test_all_missing_files_are_reported_at_once),
        cmocka_unit_test(test_missing_and_empty_manifests_are_rejected),
        cmocka_unit_test(test_excerpts_have_a_start_and_a_duration),
        cmocka_unit_test(test_invalid_excerpts_are_refused),
        cmocka_unit_test(test_ids_with_blanks_are_refused),
        cmocka_unit_test(test_some_files_may_be_missing),
        cmocka_unit_test(test_tables_have_a_header),
        cmocka_unit_test(test_names_of_other_programs_are_known),
        cmocka_unit_test(test_a_refused_table_gets_a_remedy),
        cmocka_unit_test(test_manifests_may_be_compressed_or_standard_input),
        cmocka_unit_test(test_ids_are_made_of_names_of_files),
        cmocka_unit_test(test_excerpts_that_begin_together_get_their_ends),
        cmocka_unit_test(test_ids_of_two_folders_have_no_ends),
        cmocka_unit_test(test_common_voice_has_its_files_in_clips),
        cmocka_unit_test(test_a_rate_of_lhotse_is_no_obstacle),
        cmocka_unit_test(test_paths_of_hugging_face_are_read),
        cmocka_unit_test(test_cuts_of_lhotse_are_excerpts),
        cmocka_unit_test(test_speeds_of_lhotse_are_applied),
        cmocka_unit_test(test_lists_of_wenet_are_manifests),
        cmocka_unit_test(
            test_paths_of_lhotse_and_wenet_are_of_the_working_directory),
        cmocka_unit_test(test_faults_of_other_formats_name_the_line),
    };

    return cmocka_run_group_tests_name("manifest", tests, folder_make,
                                       folder_remove);
}

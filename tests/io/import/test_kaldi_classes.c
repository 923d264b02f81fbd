/* Classes of frames, symbol tables and statistics of speakers, as Kaldi writes
 * them. */
#include "io/import/frame_classes.h"
#include "tests/io/import/kaldi_directory.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define BYTES(text) text, sizeof text - 1

/* ---- classes of frames --------------------------------------------------- */

/* The classes of "u1" in a file. */
static void assert_classes(const char *path, const int32_t *expected, size_t n)
{
    bm_frame_classes *c = NULL;
    const int32_t *found = NULL;
    size_t got = 0;

    assert_ok(bm_frame_classes_read(&c, path, true));
    found = bm_frame_classes_find(c, "u1", &got);
    assert_int_equal(got, n);
    assert_memory_equal(found, expected, n * sizeof *expected);
    assert_null(bm_frame_classes_find(c, "u9", &got));
    bm_frame_classes_free(c);
}

static void test_alignments_of_every_form_are_read(void **state)
{
    static const char binary[] =
        "u0 \0B\4\0\0\0\0u1 \0B\4\2\0\0\0\4\5\0\0\0\4\7\0\0\0";
    static const int32_t expected[] = {5, 7};
    char list[300];
    gzFile file = NULL;

    (void)state;
    write_bytes("ali.ark", BYTES(binary));
    assert_classes(in_folder("ali.ark"), expected, 2);
    snprintf(list, sizeof list, "ark:%s", in_folder("ali.ark"));
    assert_classes(list, expected, 2);
    write_text("ali.txt", "u0 \nu1 5 7 \n");
    assert_classes(in_folder("ali.txt"), expected, 2);
    write_text("ali.txt", "u1  [ 5 7 ]\n");
    assert_classes(in_folder("ali.txt"), expected, 2);
    file = gzopen(in_folder("ali.gz"), "wb");
    assert_int_equal(gzwrite(file, binary, sizeof binary - 1),
                     sizeof binary - 1);
    assert_int_equal(gzclose(file), Z_OK);
    assert_classes(in_folder("ali.gz"), expected, 2);
    snprintf(list, sizeof list, "u1 %s:13\n", in_folder("ali.ark"));
    write_text("ali.scp", list);
    assert_classes(in_folder("ali.scp"), expected, 2);
}

/* As Kaldi's programs are given them. */
static void test_alignments_may_be_what_a_command_writes(void **state)
{
    static const int32_t expected[] = {5, 7};
    char line[3 * PATH_MAX];
    bm_frame_classes *c = NULL;

    (void)state;
    write_text("one.txt", "u1 5 7\n");
    write_text("two.txt", "u2 1\n");
    snprintf(line, sizeof line, "ark:cat %s %s|", in_folder("one.txt"),
             in_folder("two.txt"));
    assert_classes(line, expected, 2);
    assert_int_equal(bm_frame_classes_read(&c, line, false), BM_ERR_ARG);
    assert_non_null(strstr(bm_last_error(), "two.txt|; let pack run it with "
                                            "--allow-pipes, or write"));
    assert_int_equal(bm_frame_classes_read(&c, "ark:exit 3 |", true),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "exit code 3 of: exit 3"));
    assert_int_equal(bm_frame_classes_read(&c, "ark:echo u1 x |", true),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "echo u1 x |, byte "));
}

static void test_damaged_alignments_say_where(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *message;
    } cases[] = {
        {BYTES("u1 \0B\4\xff\xff\xff\x7f"),
         "byte 10: the number of integers is impossible"},
        {BYTES("u1 \0B\4\2\0\0\0\4\5\0\0\0\4\7"),
         "is impossible, or the file is truncated; make or copy it again"},
        {BYTES("u1 \0BFV \4\1\0\0\0\0\0\0\0"),
         "floats, where there should be integers; give an alignment"},
        {BYTES("u1 \0B\4\1\0\0\0\5\5\0\0\0"), "no integer of 4 bytes"},
        {BYTES("u1 1 -2\n"), "u1: class -2 of frame 1 is below 0"},
        {BYTES("u1 1 x\n"), "a word that is not an integer"},
        {BYTES("u1 1\nu1 2\n"), "u1 occurs twice"},
        {BYTES("\0\1"), "there is no key"},
        {BYTES("\n"), "is empty"},
    };

    (void)state;
    FOR_EACH (i, cases) {
        bm_frame_classes *c = NULL;

        write_bytes("ali.ark", cases[i].bytes, cases[i].size);
        assert_int_equal(bm_frame_classes_read(&c, in_folder("ali.ark"), false),
                         BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].message, bm_last_error());
    }
}

/* Four frames of u1 and two of u2, as features, with classes. */
static void make_frames(const char *classes)
{
    make_directory();
    write_text("data/y.ark", "u1  [\n 1\n 2\n 3\n 4 ]\nu2  [\n 5\n 6 ]\n");
    write_text("data/feats.scp", "u1 y.ark:3\nu2 y.ark:23\n");
    write_text("ali.txt", classes);
}

static bm_importer *open_frames(bm_config *config)
{
    bm_importer *i = NULL;

    assert_ok(
        bm_importer_open(&i, "features", config,
                         &(bm_import_source){.path = in_folder("data"),
                                             .targets = in_folder("ali.txt")}));
    bm_config_free(config);
    return i;
}

static void test_classes_follow_the_frames_that_are_kept(void **state)
{
    static const int32_t all[] = {0, 3, 3, 1}, kept[] = {0, 3};
    bm_importer *i = NULL;
    bm_item item;
    bm_shard_meta meta;

    (void)state;
    make_frames("u1 0 3 3 1\nu2 2\n");
    i = open_frames(NULL);
    i->ops->meta(i, &meta);
    assert_true(meta.per_frame);
    assert_int_equal(bm_vocab_size(i->vocab), 4);
    assert_string_equal(bm_vocab_symbol(i->vocab, 3), "3");
    item = next_item(i);
    assert_int_equal(item.n_labels, 4);
    assert_memory_equal(item.labels, all, sizeof all);
    item = next_item(i); /* one class for two frames */
    assert_non_null(strstr(item.problem->text, "2 frames, but targets for 1"));
    bm_importer_close(i);
    i = open_frames(SET("features.subsample=2"));
    item = next_item(i);
    assert_int_equal(item.n_labels, 2);
    assert_memory_equal(item.labels, kept, sizeof kept);
    item = next_item(i); /* classes of the frames that are left */
    assert_null(item.problem);
    assert_int_equal(item.n_labels, 1);
    assert_int_equal(item.labels[0], 2);
    bm_importer_close(i);
    make_frames("u1 0 3 3 1\n");
    i = open_frames(NULL);
    (void)next_item(i);
    assert_non_null(strstr(next_item(i).problem->text, "have none for it"));
    bm_importer_close(i);
}

/* ---- the program --------------------------------------------------------- */

static void test_a_network_is_trained_on_classes_of_frames(void **state)
{
    outcome o;

    (void)state;
    make_frames("u1 0 3 3 1\nu2 2 1\n");
    write_text("phones.txt", "<eps> 0\nSIL 1\na 2\nb 3\n#0 4\n#1 5\n");
    assert_code(BMUF("pack", "--kaldi", "data", "--targets", "ali.txt",
                     "--vocab", "phones.txt", "--out", "frames"),
                0);
    o = BMUF("info", "frames", "--json");
    assert_code(o, 0);
    assert_non_null(strstr(o.out, "\"frame\""));
    assert_code(BMUF("check", "frames"), 0);
    write_text("dnn.ini", "[data]\ntrain = frames\n[model]\n"
                          "net = linear:4 relu linear\nloss = cross_entropy\n"
                          "[train]\nepochs = 1\n");
    assert_code(BMUF("train", "dnn.ini", "--out", "dnn"), 0);
    o = BMUF("eval", "dnn", "frames", "--json");
    assert_code(o, 0);
    write_text("few.txt", "<eps> 0\nSIL 1\na 2\n");
    o = BMUF("pack", "--kaldi", "data", "--targets", "ali.txt", "--vocab",
             "few.txt", "--out", "few");
    assert_code(o, 65);
    assert_says(o.err, "left out u1: class 3 of frame 1, but the vocabulary "
                       "has classes 0 to 2; pack the training set again");
    assert_says(o.err, "1 with a class outside the vocabulary");
}

/* Class 3 of u2 is in no frame of the training set, as a rare state may be. */
static void test_a_further_set_has_the_classes_of_the_training_set(void **state)
{
    outcome o;

    (void)state;
    make_frames("u1 0 2 2 1\nu2 2 1\n");
    assert_code(BMUF("pack", "--kaldi", "data", "--targets", "ali.txt", "--out",
                     "seen"),
                0);
    write_text("ali.txt", "u1 0 1 1 1\nu2 3 1\n");
    o = BMUF("pack", "--kaldi", "data", "--targets", "ali.txt", "--vocab",
             "seen", "--out", "dev", "--max-left-out", "50");
    assert_code(o, 0);
    assert_says(o.out, "1 sequence, 4 frames, 4 labels, 3 classes");
    assert_says(o.err, "left out u2: class 3 of frame 0, but the vocabulary "
                       "has classes 0 to 2");
    write_text("seen.ini", "[data]\ntrain = seen\ndev = dev\n[model]\n"
                           "net = linear:4 relu linear\nloss = cross_entropy\n"
                           "[train]\nepochs = 1\n");
    assert_code(BMUF("train", "seen.ini", "--out", "seen-1"), 0);
    /* targets of both sets for each of them */
    write_text("ali.txt", "u1 0 2 2 1\nu2 2 1\nv1 3\n");
    o = BMUF("pack", "--kaldi", "data", "--targets", "ali.txt", "--out", "all");
    assert_code(o, 0);
    assert_says(o.out, "4 classes");
}

/* 50 frames, whose classes go from `first` up to `last` and begin again. */
static void make_alignment(int first, int last)
{
    char frames[700] = "u1  [\n", classes[300] = "u1";
    size_t n = strlen(frames), k = strlen(classes);

    for (int t = 0, class = first; t < 50; t++) {
        n += (size_t)sprintf(frames + n, " %d%s\n", t, t < 49 ? "" : " ]");
        k += (size_t)sprintf(classes + k, " %d%s", class, t < 49 ? "" : "\n");
        class = class == last ? first : class + 1;
    }
    make_directory();
    write_text("data/y.ark", frames);
    write_text("data/feats.scp", "u1 y.ark:3\n");
    write_text("ali.txt", classes);
}

/* transition-ids begin at 1, and few frames have each of them */
static void test_classes_that_are_hardly_pdf_ids_are_warned_of(void **state)
{
    static const struct {
        int first, last;
        const char *vocab, *message;
    } cases[] = {
        {0, 1, NULL, NULL}, /* 25 frames for each */
        {1, 2, NULL, "ali.txt: no frame has class 0"},
        {1, 2, "phones.txt", NULL},
        {0, 2, NULL, "ali.txt: 3 classes of only 50 frames"}, /* 17 for each */
        {0, 2, "phones.txt", NULL},
    };

    (void)state;
    write_text("phones.txt", "<eps> 0\na 1\nb 2\n");
    FOR_EACH (i, cases) {
        const char *vocab = cases[i].vocab, *expected = cases[i].message;
        outcome o;

        make_alignment(cases[i].first, cases[i].last);
        o = vocab == NULL
                ? BMUF("pack", "--kaldi", "data", "--targets", "ali.txt",
                       "--out", "doubt", "--force")
                : BMUF("pack", "--kaldi", "data", "--targets", "ali.txt",
                       "--out", "doubt", "--force", "--vocab", vocab);
        assert_code(o, 0);
        if (expected == NULL
                ? strstr(o.err, "ali.txt") != NULL
                : strstr(o.err, expected) == NULL ||
                      strstr(o.err, "ali-to-pdf final.mdl") == NULL)
            fail_msg("case %zu: '%s'", i, o.err);
    }
}

static void test_symbol_tables_are_vocabularies(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"<eps> 0\na 2\n", "words.txt:2: number 2 is too high; number the 2 "
                           "symbols of the table from 0 to 1"},
        {"<eps> 0\na 0\n", "words.txt:2: number 0 was there before"},
        {"<eps> 0\na\n", "words.txt:2: not \"SYMBOL NUMBER\""},
        {"a 1\nb 0\n", "words.txt: symbol 0 is \"b\"; it must be the blank"},
        {"<eps> 0\na 1\na 2\n", "duplicate symbol \"a\""},
    };
    bm_vocab *v = NULL;

    (void)state;
    write_text("words.txt", "<eps> 0\n!SIL 1\none 2\n#0 3\n<s> 4\n</s> 5");
    assert_true(bm_vocab_is_table(in_folder("words.txt")));
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_size(v), 3);
    assert_string_equal(bm_vocab_symbol(v, 0), "<blank>");
    assert_int_equal(bm_vocab_class(v, "one"), 2);
    bm_vocab_free(v);
    write_text("words.txt", "\xef\xbb\xbf<eps> 0\none 1\n");
    assert_true(bm_vocab_is_table(in_folder("words.txt")));
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_class(v, "one"), 1);
    bm_vocab_free(v);
    write_text("words.txt", "\xef\xbb\xbf<blank>\none\n");
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_class(v, "one"), 1);
    bm_vocab_free(v);
    write_text("words.txt", "<ctc> 0\n#1 1\na 2\n"); /* not at the end */
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_size(v), 3);
    bm_vocab_free(v);
    write_text("words.txt", "#0 3\none 2\n<eps> 0\n!SIL 1\n"); /* any order */
    assert_true(bm_vocab_is_table(in_folder("words.txt")));
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_size(v), 3);
    assert_int_equal(bm_vocab_class(v, "!SIL"), 1);
    assert_int_equal(bm_vocab_class(v, "one"), 2);
    bm_vocab_free(v);
    FOR_EACH (i, cases) {
        write_text("words.txt", cases[i].text);
        assert_int_equal(bm_vocab_read(&v, in_folder("words.txt"), true),
                         BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].message, bm_last_error());
    }
}

/* ---- statistics ---------------------------------------------------------- */

/* A matrix of doubles with its key. */
static size_t put_doubles(char *to, const char *key, const double *x, int rows,
                          int columns)
{
    static const char begin[6] = {'\0', 'B', 'D', 'M', ' ', 4};
    int n = sprintf(to, "%s ", key);
    char *at = to + n;

    memcpy(at, begin, sizeof begin);
    memcpy(at + 6, &rows, 4);
    at[10] = 4;
    memcpy(at + 11, &columns, 4);
    memcpy(at + 15, x, sizeof *x * (size_t)(rows * columns));
    return (size_t)n + 15 + sizeof *x * (size_t)(rows * columns);
}

/* Statistics of 2^30 frames, around a mean of 1000, whose variance floats cannot
 * tell from 0: sum / n = 1000, squares / n = 10^6 + 0.25. */
static void test_statistics_of_speakers_normalise_in_double(void **state)
{
    static const double n = 1 << 30;
    double ann[4] = {1000 * n, n, (1e6 + .25) * n, 0};
    double bob[4] = {5 * 4, 4, 29 * 4, 0}; /* mean 5, deviation 2 */
    char ark[400], list[100];
    size_t size = 0, first = 0;
    bm_config *config = SET("features.normalise=kaldi");
    bm_importer *i = NULL;
    bm_item item;

    (void)state;
    make_directory();
    write_text("data/y.ark",
               "u1  [\n 1000\n 1001\n 999.5 ]\nu2  [\n 5\n 6 ]\n");
    write_text("data/feats.scp", "u1 y.ark:3\nu2 y.ark:30\n");
    first = put_doubles(ark, "ann", ann, 2, 2);
    size = first + put_doubles(ark + first, "bob", bob, 2, 2);
    write_bytes("data/cmvn.ark", ark, size);
    snprintf(list, sizeof list,
             "ann cmvn.ark:4\nbob cmvn.ark:%zu\nzoe nowhere.ark:1\n",
             first + 4);
    write_text("data/cmvn.scp", list);
    assert_ok(bm_importer_open(&i, "features", config,
                               &(bm_import_source){.path = in_folder("data")}));
    bm_config_free(config);
    item = next_item(i);
    assert_int_equal(item.frames, 3);
    assert_true(near(item.x[0], 0, 1e-6) && near(item.x[1], 2, 1e-6) &&
                near(item.x[2], -1, 1e-6));
    item = next_item(i);
    assert_int_equal(item.frames, 2);
    assert_true(item.x[0] == 0 && item.x[1] == .5F);
    bm_importer_close(i);
}

static void test_wrong_statistics_say_what_is_wrong(void **state)
{
    static const double none[4] = {0, 0, 0, 0}, wide[6] = {1, 1, 1, 1, 1, 1},
                        good[4] = {5, 1, 26, 0},
                        odd[4] = {(double)NAN, 1, 1, 0};
    static const struct {
        const double *x;
        int columns;
        const char *list, *message;
    } cases[] = {
        {good, 2, "ann cmvn.ark:4\n",
         "no statistics for 1 speaker, e.g. 'bob'"},
        {good, 2, "ann cmvn.ark:4\nann cmvn.ark:4\n", "was there before"},
        {good, 2, "ann cmvn.ark:5\n", "neither a binary matrix"},
        {good, 2, "ann cmvn.ark:4000\n", "shorter"},
        {good, 2, "ann cat cmvn.ark |\n", "not a place"},
        {good, 2, "ann\n", "not a place"},
        {good, 2, "ann gone.ark:4\n", "gone.ark"},
        {wide, 3, "ann cmvn.ark:4\n", "2 x 3 numbers; of 1 features"},
        {none, 2, "ann cmvn.ark:4\n", "of no frame"},
        {odd, 2, "ann cmvn.ark:4\n", "not finite"},
    };

    (void)state;
    make_frames("");
    FOR_EACH (k, cases) {
        char ark[200];
        bm_importer *i = NULL;
        bm_config *config = SET("features.normalise=kaldi");

        write_bytes("data/cmvn.ark", ark,
                    put_doubles(ark, "ann", cases[k].x, 2, cases[k].columns));
        write_text("data/cmvn.scp", cases[k].list);
        assert_true(bm_importer_open(&i, "features", config,
                                     &(bm_import_source){
                                         .path = in_folder("data")}) != BM_OK);
        if (strstr(bm_last_error(), cases[k].message) == NULL)
            fail_msg("%s: %s", cases[k].message, bm_last_error());
        bm_config_free(config);
    }
}

/* ---- messages of bmuf pack ------------------------------------------------ */

static void test_messages_name_the_file_and_the_remedy(void **state)
{
    outcome o;

    (void)state;
    make_frames("u1 1 1 1 1\nu2 1 1\n");
    assert_fails(BMUF("pack", "--kaldi", "data", "--out", "m1", "--set",
                      "features.mels=20"),
                 78,
                 "features.mels is a setting of recordings, but of data its "
                 "feats.scp is read, whose features are made; remove the "
                 "setting, or give --audio data, which reads wav.scp");
    assert_fails(BMUF("pack", "--kaldi", "data", "--out", "m1", "--targets",
                      "ali.1.gz", "ali.2.gz"),
                 64,
                 "unexpected file 'ali.2.gz'; --targets takes one. Join "
                 "several: cat ali.*.gz > ali.gz");
    assert_fails(BMUF("pack", "--kaldi", "data", "--out", "m1", "--targets",
                      "ark:cat ali.txt|"),
                 64, "run it with --allow-pipes");
    o = BMUF("pack", "--kaldi", "data", "--out", "m2", "--targets",
             "ark:cat ali.txt|", "--allow-pipes");
    assert_code(o, 0);
    write_text("data/text", "u1 one\n");
    assert_fails(BMUF("pack", "--kaldi", "data", "--out", "m1"), 65,
                 "50 % of the sequences have no text, though others do, e.g. "
                 "u2, of which data/text has no line. This is more than 1 %");
    unlink(in_folder("data/cmvn.scp"));
    make_frames("");
    assert_fails(
        BMUF("pack", "--kaldi", "data", "--out", "m1", "--set",
             "features.normalise=kaldi"),
        66,
        "data/cmvn.scp is missing, which features.normalise = kaldi "
        "needs. Make it: compute-cmvn-stats --spk2utt=ark:DIR/spk2utt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignments_of_every_form_are_read),
        cmocka_unit_test(test_alignments_may_be_what_a_command_writes),
        cmocka_unit_test(test_damaged_alignments_say_where),
        cmocka_unit_test(test_messages_name_the_file_and_the_remedy),
        cmocka_unit_test(test_classes_follow_the_frames_that_are_kept),
        cmocka_unit_test(test_a_network_is_trained_on_classes_of_frames),
        cmocka_unit_test(
            test_a_further_set_has_the_classes_of_the_training_set),
        cmocka_unit_test(test_classes_that_are_hardly_pdf_ids_are_warned_of),
        cmocka_unit_test(test_symbol_tables_are_vocabularies),
        cmocka_unit_test(test_statistics_of_speakers_normalise_in_double),
        cmocka_unit_test(test_wrong_statistics_say_what_is_wrong),
    };

    return cmocka_run_group_tests_name("kaldi_classes", tests, folder_make,
                                       folder_remove);
}

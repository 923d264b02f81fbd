/*
 * The check of a data set reports all its problems; its description.
 */
#include "core/file/file.h"
#include "core/text/words.h"
#include "io/inspect/check.h"
#include "io/inspect/describe.h"
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <hdf5.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The output of a check of a directory; free() it. */
static char *checked_some(const char *directory, int stride, size_t limit,
                          size_t *problems)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_ok(bm_check_directory(directory, stride, limit, out, false, NULL,
                                 problems));
    fclose(out);
    return text;
}

static char *checked(const char *directory, int stride, size_t *problems)
{
    return checked_some(directory, stride, 0, problems);
}

static void assert_reported(const char *text, const char *piece)
{
    if (strstr(text, piece) == NULL)
        fail_msg("\"%s\" is not in:\n%s", piece, text);
}

static size_t lines_with(const char *text, const char *piece)
{
    size_t n = 0;

    for (; (text = strstr(text, piece)) != NULL; text++)
        n++;
    return n;
}

static void pack(corpus c)
{
    corpus_write(&c);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
}

static void test_good_data_have_no_problems(void **_)
{
    char *directory = corpus_directory(), *text = NULL;
    corpus c = corpus_make(directory, "set", 40);
    size_t problems = 9, frames = 0;
    char summary[64];

    (void)_;
    c.settings.shard_mb = 0.001;
    pack(c);
    text = checked(directory, 1, &problems);
    assert_int_equal(problems, 0);
    for (size_t i = 0; i < 40; i++)
        frames += corpus_frames(i);
    snprintf(summary, sizeof summary, "40 sequences, %zu frames", frames);
    assert_reported(text, summary);
    assert_reported(text, "no problems");
    assert_int_equal(lines_with(text, "\n"), 1);
    free(text);
    corpus_remove(directory);
}

/* The corpus's third label may repeat the second: feasibility by hand. */
static void test_a_stride_makes_sequences_too_short(void **_)
{
    char *directory = corpus_directory(), *text = NULL, line[256];
    size_t problems = 0, expected = 0;

    (void)_;
    pack(corpus_make(directory, "set", 14));
    text = checked(directory, 4, &problems);
    for (size_t i = 0; i < 14; i++) {
        int32_t labels[CORPUS_LABELS];
        size_t n = corpus_labels(i, labels), repeats = 0;

        for (size_t k = 1; k < n; k++)
            repeats += labels[k] == labels[k - 1];
        if ((corpus_frames(i) + 3) / 4 >= n + repeats)
            continue;
        expected++;
        snprintf(line, sizeof line,
                 "sequence set/%zu: %zu labels with %s need %zu frames, but "
                 "%zu / 4 = %zu",
                 i, n, bm_count_noun((long long)repeats, "repeat").text,
                 n + repeats, corpus_frames(i), (corpus_frames(i) + 3) / 4);
        assert_reported(text, line);
    }
    assert_true(expected > 2);
    assert_int_equal(problems, expected);
    free(text);
    corpus_remove(directory);
}

static void add(bm_shard_writer *w, const char *tag, const float *x,
                size_t frames, size_t labels)
{
    static const int32_t some[] = {1, 2, 3};
    assert_ok(bm_shard_writer_add(w, tag, NULL, x, frames, some, labels));
}

/* A shard of a set of its own in the directory. */
static bm_shard_writer *begin_shard(const char *directory, corpus *c,
                                    const char *name)
{
    bm_shard_writer *w = NULL;

    *c = corpus_make(directory, name, 0);
    assert_ok(
        bm_shard_writer_open(&w, directory, name, &c->settings, &c->meta));
    return w;
}

static void end_shard(bm_shard_writer *w, corpus *c)
{
    size_t shards = 0;

    assert_ok(bm_shard_writer_finish(w, &shards));
    bm_shard_writer_close(w);
    bm_vocab_free((bm_vocab *)c->meta.vocab);
}

static void test_invalid_sequences_are_reported_by_name(void **_)
{
    char *directory = corpus_directory(), *text = NULL;
    corpus c;
    bm_shard_writer *w = begin_shard(directory, &c, "invalid");
    float x[CORPUS_FRAMES * CORPUS_D] = {0};
    size_t problems = 0;

    (void)_;
    add(w, "good", x, CORPUS_FRAMES, 3);
    assert_ok(bm_shard_writer_add(w, "mute", NULL, x, CORPUS_FRAMES, NULL, 0));
    add(w, "hush", x, CORPUS_FRAMES, 0); /* its text says so */
    add(w, "void", x, 0, 0);
    x[3 * CORPUS_D + 4] = NAN;
    x[5 * CORPUS_D] = -INFINITY;
    add(w, "nan", x, CORPUS_FRAMES, 3);
    end_shard(w, &c);
    text = checked(directory, 1, &problems);
    assert_int_equal(problems, 3);
    assert_reported(text, "sequence mute: has no text, but others have");
    assert_reported(text, "sequence void: has no frames");
    assert_reported(text,
                    "sequence nan: 2 values are NaN or infinite, first in "
                    "frame 3, column 4");
    assert_reported(text, ": 3 problems\n");
    free(text);
    corpus_remove(directory);
}

static void test_a_set_without_labels_is_no_problem(void **_)
{
    char *directory = corpus_directory(), *text = NULL;
    corpus c;
    bm_shard_writer *w = begin_shard(directory, &c, "bare");
    float x[CORPUS_FRAMES * CORPUS_D] = {0};
    size_t problems = 1;

    (void)_;
    add(w, "one", x, CORPUS_FRAMES, 0);
    add(w, "two", x, CORPUS_FRAMES, 0);
    end_shard(w, &c);
    text = checked(directory, 1, &problems);
    assert_int_equal(problems, 0);
    assert_reported(text, "no problems; without labels eval gives no error");
    free(text);
    corpus_remove(directory);
}

/* A shard that has no text at all, beside one with texts. */
static void test_a_shard_without_texts_is_reported(void **_)
{
    char *directory = corpus_directory(), *text = NULL;
    float x[CORPUS_FRAMES * CORPUS_D] = {0};
    size_t problems = 0;

    (void)_;
    for (size_t shard = 0; shard < 2; shard++) {
        corpus c;
        bm_shard_writer *w = begin_shard(directory, &c, shard > 0 ? "y" : "x");

        add(w, shard > 0 ? "a" : "b", x, CORPUS_FRAMES, 0);
        if (shard == 0)
            add(w, "c", x, CORPUS_FRAMES, 3);
        else
            for (size_t i = 0; i < 2; i++)
                assert_ok(bm_shard_writer_add(w, i > 0 ? "d" : "e", NULL, x,
                                              CORPUS_FRAMES, NULL, 0));
        end_shard(w, &c);
    }
    text = checked(directory, 1, &problems);
    assert_int_equal(problems, 1);
    assert_reported(text, "y-00000.bmuf.h5: 2 sequences without a text, but "
                          "other shards have texts");
    free(text);
    corpus_remove(directory);
}

/* Within a shard and across two shards. */
static void test_duplicate_names_are_reported(void **_)
{
    static const char *const names[] = {"a", "b", "a", "c", "d"};
    char *directory = corpus_directory(), *text = NULL;
    float x[CORPUS_FRAMES * CORPUS_D] = {0};
    size_t problems = 0;

    (void)_;
    for (size_t shard = 0; shard < 2; shard++) {
        corpus c;
        bm_shard_writer *w = begin_shard(directory, &c, shard > 0 ? "y" : "x");

        for (size_t i = 0; i < 4; i++) /* a b a c, c d a b */
            add(w, names[shard > 0 ? (i + 3) % 5 : i], x, CORPUS_FRAMES, 3);
        end_shard(w, &c);
    }
    text = checked(directory, 1, &problems);
    assert_int_equal(problems, 4);
    assert_reported(text, "x-00000.bmuf.h5: sequence number 2 has the name of "
                          "number 0 of ");
    assert_reported(text, "y-00000.bmuf.h5: sequence number 0 has the name of "
                          "number 3 of ");
    assert_reported(text, "y-00000.bmuf.h5: sequence number 2 has the name of "
                          "number 2 of ");
    assert_reported(text, "y-00000.bmuf.h5: sequence number 3 has the name of "
                          "number 1 of ");
    assert_reported(text, "sequences with the name of another sequence: 4\n");
    free(text);
    corpus_remove(directory);
}

static void test_problems_beyond_the_limit_are_counted(void **_)
{
    char *directory = corpus_directory(), *text = NULL;
    size_t problems = 0, expected = 0;
    char line[64];

    (void)_;
    pack(corpus_make(directory, "set", 40));
    for (size_t i = 0; i < 40; i++) {
        int32_t labels[CORPUS_LABELS];
        expected += corpus_labels(i, labels) > 1; /* one frame is left */
    }
    assert_true(expected > 10);
    text = checked(directory, 100, &problems);
    assert_int_equal(problems, expected);
    assert_int_equal(lines_with(text, "sequence set/"), expected);
    snprintf(line, sizeof line, "\nsequences too short for CTC: %zu\n",
             expected);
    assert_reported(text, line);
    assert_int_equal(lines_with(text, "more"), 0);
    free(text);

    text = checked_some(directory, 100, 10, &problems);
    assert_int_equal(problems, expected);
    assert_int_equal(lines_with(text, "sequence set/"), 10);
    assert_reported(text, line);
    snprintf(line, sizeof line, ".. and %zu more sequences too short for CTC\n",
             expected - 10);
    assert_reported(text, line);
    free(text);
    corpus_remove(directory);
}

static void flip(const char *path, const char *array, off_t offset)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, array, H5P_DEFAULT);
    off_t at = (off_t)H5Dget_offset(id) + offset;
    unsigned char byte = 0;
    int fd = -1;

    H5Dclose(id);
    H5Fclose(file);
    fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void test_every_problem_of_every_shard_is_reported(void **_)
{
    char *directory = corpus_directory(), *text = NULL, path[256];
    corpus b = corpus_make(directory, "b", 12);
    corpus c = corpus_make(directory, "c", 12);
    corpus d = corpus_make(directory, "d", 12);
    size_t problems = 0;

    (void)_;
    pack(corpus_make(directory, "a", 12));
    b.meta.features = 7;
    bm_vocab_free((bm_vocab *)b.meta.vocab);
    b.meta.vocab = corpus_vocab(6);
    pack(b);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    c.meta.vocab = corpus_vocab(6);
    pack(c);
    d.meta.features_text = "{}";
    pack(d);
    snprintf(path, sizeof path, "%s/a-00000.bmuf.h5", directory);
    flip(path, "inputs", 0);
    flip(path, "targets/data/classes", 0);
    flip(path, "inputs", 800); /* another unit */
    flip(path, "bmuf/min_frames", 12 * 4 - 4);
    snprintf(path, sizeof path, "%s/d-00000.bmuf.h5", directory);
    flip(path, "bmuf/frame_offset", 8);
    flip(path, "seqTags", 1);
    snprintf(path, sizeof path, "%s/c-00001.bmuf.h5", directory);
    assert_ok(bm_file_write(path, "\211HDF\r\n\032\n", 8));
    snprintf(path, sizeof path, "%s/.01234567.e-00000.bmuf.h5.tmp", directory);
    assert_ok(bm_file_write(path, "", 0));

    text = checked(directory, 1, &problems);
    assert_reported(text,
                    "a-00000.bmuf.h5: the features of unit 0 (first sequence "
                    "a/0) are damaged");
    assert_reported(text,
                    "a-00000.bmuf.h5: the labels of unit 0 (first sequence "
                    "a/0) are damaged");
    assert_reported(text, "a-00000.bmuf.h5: the features of unit 1");
    assert_reported(text, "sequence a/11: /bmuf/min_frames");
    assert_reported(text, "b-00000.bmuf.h5 has 7 features per frame, ");
    assert_reported(text, "b-00000.bmuf.h5 has 6 classes, ");
    assert_reported(text, "c-00000.bmuf.h5 has 6 classes, ");
    assert_reported(text, "c-00001.bmuf.h5: empty, truncated");
    assert_reported(text,
                    "d-00000.bmuf.h5: features were made with other settings");
    assert_reported(text, "d-00000.bmuf.h5: /bmuf/frame_offset disagrees");
    assert_reported(text, "d-00000.bmuf.h5: /seqTags is damaged");
    assert_reported(text, ".01234567.e-00000.bmuf.h5.tmp: unfinished file");
    assert_reported(text, ": 5 shards, 48 sequences, ");
    assert_reported(text, ": 12 problems\n");
    assert_int_equal(problems, 12);
    free(text);
    corpus_remove(directory);
}

/* The report on set-00000 of a corpus of 12 sequences after `modify` has
 * changed it; free() it. */
static char *checked_after(void (*modify)(const char *path), int stride,
                           size_t *problems)
{
    char *directory = corpus_directory(), *text = NULL;

    pack(corpus_make(directory, "set", 12));
    modify(corpus_path(directory, "set-00000.bmuf.h5"));
    text = checked(directory, stride, problems);
    corpus_remove(directory);
    return text;
}

/* Unit 0 has labels 1; 2; 3 3 4; 4 4 1; 1 1 2. */
static void put_labels_out_of_range(const char *path)
{
    forge_label(path, 1, 0);
    forge_label(path, 3, 5);
    forge_label(path, 7, -7);
}

static void test_labels_out_of_range_are_reported(void **_)
{
    size_t problems = 0;
    char *text = checked_after(put_labels_out_of_range, 1, &problems);

    (void)_;
    assert_reported(text, "sequence set/1: label 0 is outside [1, 4]\n");
    assert_reported(text, "sequence set/2: label 5 is outside [1, 4]\n");
    assert_reported(text, "sequence set/3: label -7 is outside [1, 4]\n");
    /* one repeat less, and no blank label any more */
    assert_reported(
        text, "sequence set/2: /bmuf/min_frames disagrees with its labels\n");
    assert_reported(text, "sequences with labels out of range: 3\n");
    assert_int_equal(problems, 4);
    free(text);
}

static void damage_labels(const char *path)
{
    flip(path, "targets/data/classes", 0);
}

static void test_damaged_labels_are_reported_alone(void **_)
{
    size_t problems = 0;
    char *text = checked_after(damage_labels, 1, &problems);

    (void)_;
    assert_reported(text,
                    "set-00000.bmuf.h5: the labels of unit 0 (first sequence "
                    "set/0) are damaged");
    assert_reported(text, "damaged units or tables: 1\n");
    assert_null(strstr(text, "run bmuf check"));
    assert_int_equal(problems, 1);
    free(text);
}

static void damage_features(const char *path)
{
    flip(path, "inputs", 0);
}

static void spare(const char *path)
{
    (void)path;
}

static void damage_both(const char *path)
{
    damage_features(path);
    damage_labels(path);
}

/* A stride of 4 leaves 2 frames of the 8 of sequence 2, and 3 of the 11 of
 * sequence 3, for three labels of which two are equal. */
static void test_damage_does_not_hide_infeasible_sequences(void **_)
{
    static const char two[] = "2: 3 labels with 1 repeat need 4 frames, "
                              "but 8 / 4 = 2";
    static const char three[] = "3: 3 labels with 1 repeat need 4 frames, "
                                "but 11 / 4 = 3";
    size_t sound = 0, problems = 0;
    char *text = checked_after(spare, 4, &sound);

    (void)_;
    assert_reported(text, two);
    assert_reported(text, three);
    free(text);
    text = checked_after(damage_features, 4, &problems);
    assert_reported(text, "the features of unit 0");
    assert_reported(text, two);
    assert_reported(text, three);
    assert_int_equal(problems, sound + 1);
    free(text);
    text = checked_after(damage_both, 4, &problems);
    assert_reported(text, "the features of unit 0");
    assert_reported(text, "the labels of unit 0");
    assert_reported(text, "2: 3 labels need 3 frames, but 8 / 4 = 2");
    free(text);
}

static void damage_tags(const char *path)
{
    flip(path, "seqTags", 1);
}

static void test_sequences_without_tags_are_reported_by_number(void **_)
{
    size_t problems = 0;
    char *text = checked_after(damage_tags, 4, &problems);

    (void)_;
    assert_reported(text, "set-00000.bmuf.h5: /seqTags is damaged\n");
    assert_reported(text,
                    "set-00000.bmuf.h5: sequence number 2: 3 labels with");
    free(text);
}

static void test_a_directory_without_shards_is_missing_input(void **_)
{
    char *directory = corpus_directory();
    size_t problems = 0;

    (void)_;
    assert_int_equal(
        bm_check_directory(directory, 1, 0, stdout, false, NULL, &problems),
        BM_ERR_MISSING);
    corpus_remove(directory);
}

/* ---- whole data sets ------------------------------------------------------ */

/* Makes a shard as it was before shards had their number. */
static void make_old(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);

    assert_true(H5Adelete_by_name(file, "bmuf", "shard_count", H5P_DEFAULT) >=
                0);
    assert_true(H5Fclose(file) >= 0);
}

static char *shard_path(const char *directory, int index)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/set-%05d.bmuf.h5", directory, index);
    return path;
}

static void test_old_data_sets_are_opened_with_a_note(void **_)
{
    char *directory = corpus_directory(), *text = NULL;
    corpus c = corpus_make(directory, "set", 40);
    bm_dataset *d = NULL;
    size_t problems = 0;
    int n = 0;

    (void)_;
    c.settings.shard_mb = 0.002;
    pack(c);
    for (; access(shard_path(directory, n), F_OK) == 0; n++)
        make_old(shard_path(directory, n));
    assert_true(n > 3);
    text = checked(directory, 1, &problems);
    assert_int_equal(problems, 0);
    assert_reported(text, "was packed before shards had their number");
    free(text);
    assert_ok(bm_dataset_open(&d, directory));
    bm_dataset_close(d);
    assert_int_equal(unlink(shard_path(directory, n - 1)), 0);
    assert_ok(bm_dataset_open(&d, directory)); /* it cannot know */
    bm_dataset_close(d);
    assert_int_equal(unlink(shard_path(directory, 1)), 0);
    text = checked(directory, 1, &problems);
    assert_int_equal(problems, 1);
    assert_reported(text, "set-00001.bmuf.h5 is missing");
    free(text);
    assert_int_equal(bm_dataset_open(&d, directory), BM_ERR_FORMAT);
    corpus_remove(directory);
}

/* A forged place must not make it list a hundred million names. */
static void test_many_missing_shards_are_counted(void **_)
{
    static const int64_t index = 99999998, last = 99999999;
    char *directory = corpus_directory(), *text = NULL;
    size_t problems = 0;
    hid_t file = 0;

    (void)_;
    pack(corpus_make(directory, "set", 3));
    file = H5Fopen(shard_path(directory, 0), H5F_ACC_RDWR, H5P_DEFAULT);
    forge_attribute(file, "shard_index", H5T_STD_I64LE, &index);
    forge_attribute(file, "shard_count", H5T_STD_I64LE, &last);
    assert_true(H5Fclose(file) >= 0);
    text = checked(directory, 1, &problems);
    assert_int_equal(problems, 21);
    assert_reported(text, "set-00019.bmuf.h5 is missing");
    assert_reported(text, "99999978 more shards before ");
    free(text);
    file = H5Fopen(shard_path(directory, 0), H5F_ACC_RDWR, H5P_DEFAULT);
    forge_attribute(file, "shard_count", H5T_STD_I64LE, &index);
    assert_true(H5Fclose(file) >= 0);
    text = checked(directory, 1, &problems);
    assert_int_equal(problems, 1);
    assert_reported(text, "invalid place in its data set");
    free(text);
    corpus_remove(directory);
}

/* ---- describing ---------------------------------------------------------- */

static char *described(const char *path, bool json)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    assert_ok(bm_describe_data(path, json, out));
    fclose(out);
    return text;
}

static json_int_t number(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void test_a_data_set_is_described_as_json(void **_)
{
    char *directory = corpus_directory(), *text = NULL;
    corpus c = corpus_make(directory, "set", 70);
    json_t *root = NULL;
    const json_t *quantiles = NULL;
    /* 2, 5, .. 20 frames, ten times each: the 4th, 18th, 35th, 53rd, 67th */
    const int expected[] = {2, 2, 5, 11, 17, 20, 20};

    (void)_;
    c.settings.store = "u8";
    c.meta.text_form = "nfc";
    pack(c);
    text = described(directory, true);
    root = json_loads(text, 0, NULL);
    assert_non_null(root);
    assert_int_equal(number(root, "shards"), 1);
    assert_int_equal(number(root, "sequences"), 70);
    assert_int_equal(number(root, "frames"),
                     10 * (2 + 5 + 8 + 11 + 14 + 17 + 20));
    assert_int_equal(number(root, "labels"), 10 * (1 + 1 + 5 * 3));
    assert_int_equal(number(root, "features"), CORPUS_D);
    assert_int_equal(number(root, "classes"), 5);
    assert_string_equal(json_string_value(json_object_get(root, "store")),
                        "u8");
    assert_string_equal(json_string_value(json_object_get(
                            json_object_get(root, "made_with"), "kind")),
                        "corpus");
    assert_string_equal(json_string_value(json_object_get(root, "text_form")),
                        "nfc");
    quantiles = json_object_get(root, "frames_quantiles");
    FOR_EACH (i, expected)
        assert_int_equal(json_integer_value(json_array_get(quantiles, i)),
                         expected[i]);
    json_decref(root);
    free(text);
    corpus_remove(directory);
}

static void test_a_shard_is_described_as_text(void **_)
{
    char *directory = corpus_directory(), *text = NULL, path[256];
    corpus c = corpus_make(directory, "set", 70);

    (void)_;
    c.meta.frame_shift = 10; /* 770 frames: 2.14 hours */
    pack(c);
    snprintf(path, sizeof path, "%s/set-00000.bmuf.h5", directory);
    text = described(path, false);
    assert_reported(text, "70 in 1 shard,");
    assert_reported(text, "770, 2.14 hours");
    assert_reported(text, "5 a frame, stored as f32");
    assert_reported(text, "5 characters, blank included");
    assert_reported(text, "frames of a sequence 2, 2, 5, 11, 17, 20, 20 ");
    assert_reported(text, "{\"kind\": \"corpus\"}");
    free(text);
    corpus_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_data_have_no_problems),
        cmocka_unit_test(test_a_stride_makes_sequences_too_short),
        cmocka_unit_test(test_invalid_sequences_are_reported_by_name),
        cmocka_unit_test(test_a_set_without_labels_is_no_problem),
        cmocka_unit_test(test_a_shard_without_texts_is_reported),
        cmocka_unit_test(test_duplicate_names_are_reported),
        cmocka_unit_test(test_problems_beyond_the_limit_are_counted),
        cmocka_unit_test(test_every_problem_of_every_shard_is_reported),
        cmocka_unit_test(test_labels_out_of_range_are_reported),
        cmocka_unit_test(test_damaged_labels_are_reported_alone),
        cmocka_unit_test(test_damage_does_not_hide_infeasible_sequences),
        cmocka_unit_test(test_sequences_without_tags_are_reported_by_number),
        cmocka_unit_test(test_a_directory_without_shards_is_missing_input),
        cmocka_unit_test(test_old_data_sets_are_opened_with_a_note),
        cmocka_unit_test(test_many_missing_shards_are_counted),
        cmocka_unit_test(test_a_data_set_is_described_as_json),
        cmocka_unit_test(test_a_shard_is_described_as_text),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return RUN_GROUP("check", tests);
}

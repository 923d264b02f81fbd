/*
 * Files of RETURNN's HDFDataset, written here with HDF5 alone: as older programs
 * and as its SimpleHDFWriter lay them out.
 */
#include "io/import/importer.h"
#include "io/shard/shard.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What to write. Two sequences, of 3 and 2 frames of 2 features: 0, 1, .. 9. */
typedef struct layout {
    bool simple;       /* SimpleHDFWriter's: chunks, texts of any length */
    const char *key;   /* of the targets; NULL: none */
    const char *other; /* another key, with one label for each sequence */
    const char *const *labels; /* names of classes, NULL behind the last one */
    long classes;              /* attribute of targets/size; 0: none */
    int n_labels[2];           /* of the sequences */
    const char *tags[2];
    int columns;   /* of seqLengths; 0: as there are targets */
    int length;    /* of the first sequence; 0: 3 */
    int rank;      /* of inputs; 0: 2 */
    bool flat;     /* seqLengths has one dimension, and no targets/labels */
    bool old;      /* targetClasses, no targets */
    int first;     /* the first label */
    bool no_input; /* no inputs at all */
} layout;

static void write_array(hid_t file, const char *name, hid_t type, int rank,
                        const hsize_t *dim, const hsize_t *chunk,
                        const void *data)
{
    hid_t space = H5Screate_simple(rank, dim, NULL);
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), set = H5I_INVALID_HID;

    if (chunk != NULL) {
        assert_true(H5Pset_chunk(plist, rank, chunk) >= 0);
        assert_true(H5Pset_deflate(plist, 4) >= 0);
    }
    set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    assert_true(set >= 0);
    assert_true(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    H5Dclose(set);
    H5Pclose(plist);
    H5Sclose(space);
}

static void write_texts(hid_t file, const char *name, bool variable,
                        const char *const *texts, size_t n)
{
    enum { WIDTH = 12 };
    hid_t type = H5Tcopy(H5T_C_S1);
    char fixed[4][WIDTH] = {{0}};
    const hsize_t dim = n;

    assert_true(H5Tset_size(type, variable ? H5T_VARIABLE : WIDTH) >= 0);
    for (size_t i = 0; i < n; i++)
        snprintf(fixed[i], WIDTH, "%s", texts[i]);
    write_array(file, name, type, 1, &dim, NULL,
                variable ? (const void *)texts : fixed);
    H5Tclose(type);
}

static void write_targets(hid_t file, const layout *l)
{
    static const char *const dummy[] = {"dummy-label", NULL};
    const char *const *names = l->labels != NULL ? l->labels : dummy;
    hid_t size = H5I_INVALID_HID;
    int32_t labels[10];
    const hsize_t n = (hsize_t)l->n_labels[0] + (hsize_t)l->n_labels[1],
                  two = 2;
    size_t n_names = 0;
    char name[64];

    while (names[n_names] != NULL)
        n_names++;
    for (int i = 0; i < 10; i++)
        labels[i] = i == 0 ? l->first : i % 3;
    H5Gclose(
        H5Gcreate2(file, "targets", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "targets/data", H5P_DEFAULT, H5P_DEFAULT,
                        H5P_DEFAULT));
    H5Gclose(H5Gcreate2(file, "targets/labels", H5P_DEFAULT, H5P_DEFAULT,
                        H5P_DEFAULT));
    size =
        H5Gcreate2(file, "targets/size", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    snprintf(name, sizeof name, "targets/data/%s", l->key);
    write_array(file, name, H5T_STD_I32LE, 1, &n, NULL, labels);
    snprintf(name, sizeof name, "targets/labels/%s", l->key);
    if (!l->flat)
        write_texts(file, name, l->simple, names, n_names);
    if (l->classes > 0) {
        const hsize_t pair = 2;
        const long value[] = {l->classes, 1};
        hid_t space = H5Screate_simple(1, &pair, NULL);
        hid_t id = H5Acreate2(size, l->key, H5T_NATIVE_LONG, space, H5P_DEFAULT,
                              H5P_DEFAULT);

        assert_true(H5Awrite(id, H5T_NATIVE_LONG, value) >= 0);
        H5Aclose(id);
        H5Sclose(space);
    }
    H5Gclose(size);
    if (l->other != NULL) {
        snprintf(name, sizeof name, "targets/data/%s", l->other);
        write_array(file, name, H5T_STD_I32LE, 1, &two, NULL, labels);
    }
}

/* A row: frames, and the labels of the keys in order. */
static void write_lengths(hid_t file, const layout *l)
{
    int columns = 1 + (l->key != NULL) + (l->other != NULL);
    int32_t rows[6] = {0}, *at = rows;
    hsize_t dim[2] = {2, 0};

    if (l->columns > 0)
        columns = l->columns;
    for (int i = 0; i < 2; i++, at += columns) {
        int which = 1;

        at[0] = i == 0 ? (l->length > 0 ? l->length : 3) : 2;
        if (l->other != NULL && l->key != NULL && strcmp(l->other, l->key) < 0)
            at[which++] = 1;
        if (columns > which)
            at[which++] = l->n_labels[i];
        if (columns > which)
            at[which] = 1;
    }
    dim[1] = (hsize_t)columns;
    if (l->flat) {
        const int32_t lengths[] = {3, 2};
        write_array(file, "seqLengths", H5T_STD_I32LE, 1, dim, NULL, lengths);
    } else {
        write_array(file, "seqLengths", H5T_STD_I32LE, 2, dim, NULL, rows);
    }
}

static const char *write_file(const char *name, const layout *l)
{
    static const hsize_t dim[] = {5, 2, 1}, flat = 10, chunk[] = {2, 1};
    static const int32_t classes[] = {0, 1, 2, 0, 1};
    const char *path = in_folder(name);
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    float x[10];

    assert_true(file >= 0);
    for (int i = 0; i < 10; i++)
        x[i] = (float)i;
    if (!l->no_input)
        write_array(file, "inputs", H5T_NATIVE_FLOAT, l->rank > 0 ? l->rank : 2,
                    l->rank == 1 ? &flat : dim, l->simple ? chunk : NULL, x);
    if (l->old)
        write_array(file, "targetClasses", H5T_STD_I32LE, 1, dim, NULL,
                    classes);
    if (l->flat)
        write_texts(file, "labels", false, l->labels, 3);
    write_texts(file, "seqTags", l->simple, l->tags, 2);
    if (l->key != NULL)
        write_targets(file, l);
    write_lengths(file, l);
    assert_true(H5Fclose(file) >= 0);
    return path;
}

static bm_status open_file(bm_importer **i, const char *path,
                           const char *const *more, size_t n_more,
                           bm_config *config)
{
    bm_status status = BM_OK;

    if (config == NULL)
        config = SET("features.normalise=none");
    status = bm_importer_open(
        i, "returnn", config,
        &(bm_import_source){.path = path, .more = more, .n_more = n_more});
    bm_config_free(config);
    return status;
}

static void assert_item(bm_importer *i, const char *id, size_t frames,
                        float first, const int32_t *labels, size_t n)
{
    bm_item item = next_item(i);

    assert_non_null(item.id);
    if (item.problem != NULL)
        fail_msg("%s", item.problem->text);
    assert_string_equal(item.id, id);
    assert_int_equal(item.frames, frames);
    assert_int_equal(item.features, 2);
    for (size_t k = 0; k < 2 * frames; k++)
        assert_true(item.x[k] == first + (float)k);
    assert_int_equal(item.n_labels, n);
    for (size_t k = 0; k < n; k++)
        assert_int_equal(item.labels[k], labels[k]);
}

static const char *const abc[] = {"a", "b", " ", NULL};

/* Both layouts, in two files. The labels are 0 1 and 2 0 1 of theirs. */
static void test_sequences_and_labels_are_read(void **state)
{
    layout old = {.key = "classes",
                  .labels = abc,
                  .n_labels = {2, 3},
                  .tags = {"s1", "s2"}};
    layout new = {.simple = true,
                  .key = "classes",
                  .labels = abc,
                  .n_labels = {2, 3},
                  .tags = {"a/s3", "s4"}};
    const char *more[] = {write_file("new.hdf", &new)};
    bm_importer *i = NULL;
    bm_shard_meta meta;

    (void)state;
    assert_ok(open_file(&i, write_file("old.hdf", &old), more, 1, NULL));
    assert_int_equal(i->ops->size(i), 4);
    assert_false(bm_vocab_words(i->vocab));
    assert_int_equal(bm_vocab_size(i->vocab), 4);
    assert_string_equal(bm_vocab_symbol(i->vocab, 1), "a");
    assert_int_equal(bm_vocab_space(i->vocab), 3);
    for (int pass = 0; pass < 2; pass++) {
        assert_item(i, "s1", 3, 0, (const int32_t[]){1, 2}, 2);
        assert_item(i, "s2", 2, 6, (const int32_t[]){3, 1, 2}, 3);
        assert_item(i, "a/s3", 3, 0, (const int32_t[]){1, 2}, 2);
        assert_item(i, "s4", 2, 6, (const int32_t[]){3, 1, 2}, 3);
        assert_null(next_item(i).id);
    }
    i->ops->meta(i, &meta);
    assert_false(meta.per_frame);
    assert_int_equal(meta.features, 2);
    assert_true(near(meta.frame_shift, 0.01, 1e-12));
    assert_non_null(strstr(meta.features_text, "\"dim\": 2"));
    bm_importer_close(i);
}

/* Two sequences of 3 and 2 frames, with three classes, the last called `symbol`. */
static void assert_classes(bm_importer *i, const char *symbol)
{
    bm_shard_meta meta;

    i->ops->meta(i, &meta);
    assert_true(meta.per_frame);
    assert_int_equal(bm_vocab_size(i->vocab), 3);
    assert_string_equal(bm_vocab_symbol(i->vocab, 2), symbol);
    assert_item(i, "s1", 3, 0, (const int32_t[]){0, 1, 2}, 3);
    assert_item(i, "s2", 2, 6, (const int32_t[]){0, 1}, 2);
}

static void test_classes_of_frames_keep_their_numbers(void **state)
{
    layout l = {.simple = true,
                .key = "pdf",
                .classes = 3,
                .n_labels = {3, 2},
                .tags = {"s1", "s2"}};
    bm_importer *i = NULL;

    (void)state;
    assert_ok(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL));
    assert_classes(i, "2");
    bm_importer_close(i);
    assert_ok(
        open_file(&i, in_folder("f.hdf"), NULL, 0,
                  SET("features.normalise=none", "features.subsample=2")));
    assert_int_equal(next_item(i).n_labels, 2); /* of frames 0 and 2 */
    bm_importer_close(i);
}

static void test_a_blank_among_the_classes_is_the_blank(void **state)
{
    static const char *const first[] = {"<blank>", "yes", "no", NULL};
    static const char *const last[] = {"yes", "no", "<blank>", NULL};
    layout l = {.key = "classes", .n_labels = {2, 1}, .tags = {"s1", "s2"}};
    bm_importer *i = NULL;
    bm_item item;

    (void)state;
    l.labels = first;
    l.first = 1;
    assert_ok(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL));
    assert_true(bm_vocab_words(i->vocab));
    assert_item(i, "s1", 3, 0, (const int32_t[]){1, 1}, 2);
    bm_importer_close(i);
    l.labels = last;
    l.first = 0;
    assert_ok(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL));
    assert_int_equal(bm_vocab_size(i->vocab), 3);
    assert_item(i, "s1", 3, 0, (const int32_t[]){1, 2}, 2);
    bm_importer_close(i);
    l.first = 2; /* labels 2 and 1 */
    assert_ok(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL));
    item = next_item(i);
    assert_non_null(item.problem);
    assert_non_null(
        strstr(item.problem->text,
               "number 0 of its targets (from 0) is class 2, the blank"));
    bm_importer_close(i);
}

static void test_one_of_several_targets_is_chosen(void **state)
{
    layout l = {.key = "chars",
                .other = "a-size",
                .classes = 3,
                .n_labels = {2, 3},
                .tags = {"s1", "s2"}};
    bm_importer *i = NULL;

    (void)state;
    assert_int_equal(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL),
                     BM_ERR_FORMAT);
    assert_non_null(
        strstr(bm_last_error(), "Set features.target to one of: a-size chars"));
    assert_ok(
        open_file(&i, in_folder("f.hdf"), NULL, 0,
                  SET("features.target=chars", "features.normalise=none")));
    assert_item(i, "s1", 3, 0, (const int32_t[]){1, 2}, 2);
    bm_importer_close(i);
    l = (layout){.tags = {"s1", "s2"}};
    assert_ok(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL));
    assert_null(i->vocab);
    assert_null(next_item(i).labels);
    bm_importer_close(i);
}

/* As SimpleHDFWriter.insert_batch writes `extra` without `extra_type`: [1, 1]
 * and a dummy name; and without the attribute. */
static void test_classes_without_a_number_go_to_the_largest_label(void **state)
{
    layout l = {.simple = true,
                .key = "classes",
                .first = 5,
                .n_labels = {2, 3},
                .tags = {"s1", "s2"}};
    bm_importer *i = NULL;

    (void)state;
    for (l.classes = 0; l.classes <= 1; l.classes++) {
        assert_ok(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL));
        assert_int_equal(bm_vocab_size(i->vocab), 7); /* 0 to 5, the blank */
        assert_item(i, "s1", 3, 0, (const int32_t[]){6, 2}, 2);
        assert_item(i, "s2", 2, 6, (const int32_t[]){3, 1, 2}, 3);
        bm_importer_close(i);
    }
    l.classes = 0;
    l.first = 1 << 30;
    assert_int_equal(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL),
                     BM_ERR_FORMAT);
    assert_non_null(
        strstr(bm_last_error(), "'classes' have a label 1073741824"));
}

/* The first file has labels 0 to 2, the second 0 to 5. */
static void test_classes_without_a_number_are_those_of_all_files(void **state)
{
    layout one = {.simple = true,
                  .key = "classes",
                  .classes = 1,
                  .n_labels = {2, 3},
                  .tags = {"s1", "s2"}};
    layout two = one;
    const char *more[1];
    bm_importer *i = NULL;

    (void)state;
    two.first = 5;
    two.tags[0] = "s3";
    two.tags[1] = "s4";
    more[0] = write_file("two.hdf", &two);
    assert_ok(open_file(&i, write_file("one.hdf", &one), more, 1, NULL));
    assert_int_equal(bm_vocab_size(i->vocab), 7); /* 0 to 5, the blank */
    assert_item(i, "s1", 3, 0, (const int32_t[]){1, 2}, 2);
    assert_item(i, "s2", 2, 6, (const int32_t[]){3, 1, 2}, 3);
    assert_item(i, "s3", 3, 0, (const int32_t[]){6, 2}, 2);
    assert_item(i, "s4", 2, 6, (const int32_t[]){3, 1, 2}, 3);
    bm_importer_close(i);
}

/* As HDFDataset takes them: seqLengths of one dimension are those of inputs and
 * targets, and names of classes may be in /labels. */
static void test_old_files_are_read(void **state)
{
    static const char *const names[] = {"sil", "one", "two", NULL};
    layout l = {.key = "classes",
                .labels = names,
                .flat = true,
                .n_labels = {3, 2},
                .tags = {"s1", "s2"}};
    bm_importer *i = NULL;

    (void)state;
    assert_ok(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL));
    assert_classes(i, "two");
    bm_importer_close(i);
    l.key = NULL;
    assert_ok(open_file(&i, write_file("f.hdf", &l), NULL, 0, NULL));
    assert_item(i, "s1", 3, 0, NULL, 0);
    bm_importer_close(i);
}

static void test_faults_of_files_name_what_is_wrong(void **state)
{
#define GOOD                                                                   \
    .key = "classes", .classes = 3, .n_labels = {2, 3}, .tags = { "s1", "s2" }
    const struct {
        layout l;
        const char *message;
    } cases[] = {
        {{GOOD, .no_input = true}, "f.hdf has no /inputs"},
        {{GOOD, .rank = 1}, "/inputs are not dense"},
        {{GOOD, .length = 9}, "/seqLengths, row 0: 9 frames, which there are"},
        {{GOOD, .length = 2}, "/seqLengths adds up to 4 frames of 5"},
        {{GOOD, .rank = 3}, "/inputs has 3 dimensions, but should have two"},
        {{GOOD, .columns = 1}, "/seqLengths has 1 column, but needs 2"},
        {{.old = true, .tags = {"s1", "s2"}}, "/targetClasses, which HDFD"},
        {{.key = "classes",
          .classes = 3,
          .n_labels = {2, 3},
          .tags = {"x", "x"}},
         "two sequences are called 'x'"},
    };
    layout bad = {GOOD, .first = 7};
    bm_importer *i = NULL;

    (void)state;
    FOR_EACH (k, cases) {
        assert_int_equal(
            open_file(&i, write_file("f.hdf", &cases[k].l), NULL, 0, NULL),
            BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[k].message) == NULL)
            fail_msg("%s: %s", cases[k].message, bm_last_error());
    }
    assert_ok(open_file(&i, write_file("f.hdf", &bad), NULL, 0, NULL));
    assert_non_null(strstr(next_item(i).problem->text,
                           "label 0 is 7, but classes are 0 to 2; correct the "
                           "label, or write the file with all classes"));
    bm_importer_close(i);
    assert_int_equal(open_file(&i, in_folder("none.hdf"), NULL, 0, NULL),
                     BM_ERR_MISSING);
#undef GOOD
}

/* The message says what the file is, and which option reads it. */
static void test_files_of_other_kinds_are_refused(void **state)
{
    static const struct {
        const char *text, *kind, *use;
    } cases[] = {
        {"fLaC", "is a FLAC recording, not an HDF5 file of RETURNN", "--audio"},
        {"u1 raw.ark:12\n", "is a Kaldi scp file, not an", "--kaldi"},
        {"{\"id\": \"a\"}\n", "is JSON, not an", "manifests"},
        {"no HDF5\n", "is a text, not an", "manifests"},
        {"\1\2\3", "truncated", "HDF5"}, /* such an HDF5 file may exist */
    };
    bm_importer *i = NULL;

    (void)state;
    FOR_EACH (k, cases) {
        write_text("f.hdf", cases[k].text);
        assert_int_equal(open_file(&i, in_folder("f.hdf"), NULL, 0, NULL),
                         BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[k].kind) == NULL ||
            strstr(bm_last_error(), cases[k].use) == NULL)
            fail_msg("%s: %s", cases[k].kind, bm_last_error());
    }
}

/* Truncated anywhere, a file gives an error or sequences. */
static void test_damaged_files_never_crash(void **state)
{
    layout l = {.simple = true,
                .key = "classes",
                .labels = abc,
                .n_labels = {2, 3},
                .tags = {"s1", "s2"}};
    size_t size = 0;
    char *bytes = slurp(write_file("f.hdf", &l), &size);

    (void)state;
    for (size_t k = 0; k < 40; k++) {
        bm_importer *i = NULL;

        write_bytes("g.hdf", bytes, size * k / 40);
        assert_int_equal(open_file(&i, in_folder("g.hdf"), NULL, 0, NULL),
                         BM_ERR_FORMAT);
    }
    free(bytes);
}

/* The tree of names of the root group is damaged: HDF5 1.10 crashes, later ones
 * read the file. */
static void test_a_crash_of_hdf5_is_an_error(void **state)
{
    const char *path = BMUF_CORPUS "/returnn/names-damaged.hdf";
    bm_importer *i = NULL;
    bm_status status = open_file(&i, path, NULL, 0, NULL);

    (void)state;
    if (status == BM_OK) {
        bm_importer_close(i);
        return;
    }
    assert_int_equal(status, BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "names-damaged.hdf: HDF5 crashes"));
}

/* A shard of ours is such a file: packed again it has the same labels. */
static void test_a_shard_is_packed_again(void **state)
{
    layout l = {.key = "classes",
                .labels = abc,
                .n_labels = {2, 1},
                .tags = {"s1", "s2"}};
    outcome o, again;

    (void)state;
    (void)write_file("a.hdf", &l);
    l.tags[0] = "s3";
    l.tags[1] = "s4";
    (void)write_file("b.hdf", &l);
    assert_code(BMUF("pack", "--returnn", "a.hdf", "b.hdf", "--out", "one"), 0);
    o = BMUF("info", "one", "--json");
    assert_code(BMUF("pack", "--returnn", "one/data-00000.bmuf.h5", "--out",
                     "two", "--vocab", "one", "--set",
                     "features.normalise=none"),
                0);
    assert_code(BMUF("check", "two"), 0);
    again = BMUF("info", "two", "--json");
    assert_non_null(strstr(o.out, "\"labels\": 6"));
    assert_non_null(strstr(again.out, "\"labels\": 6"));
    assert_code(BMUF("pack", "--audio", "m.jsonl", "more", "--out", "x"), 64);
    assert_code(BMUF("pack", "--returnn", "a.hdf", "--out", "deltas", "--set",
                     "features.deltas=1"),
                0);
    o = BMUF("pack", "--returnn", "b.hdf", "--out", "like", "--vocab",
             "deltas");
    assert_code(o, 0);
    assert_says(o.err, "as deltas: features.deltas = 1");
}

/* "<space>" is a name like others there. */
static void test_a_vocabulary_keeps_all_subwords(void **state)
{
    static const char *const names[] = {"ch", "<space>", "a", NULL};
    const layout l = {.key = "classes",
                      .labels = names,
                      .n_labels = {2, 1},
                      .tags = {"s1", "s2"}};

    (void)state;
    (void)write_file("subwords.hdf", &l);
    assert_code(BMUF("pack", "--returnn", "subwords.hdf", "--out", "sub"), 0);
    assert_code(BMUF("pack", "--returnn", "subwords.hdf", "--out", "again",
                     "--vocab", "sub"),
                0);
    assert_says(BMUF("info", "sub", "--json").out, "\"labels\": 3");
    assert_says(BMUF("info", "again", "--json").out, "\"labels\": 3");
}

/* Names of classes are not composed. */
static void test_the_form_is_that_of_the_classes(void **state)
{
    static const char *const names[] = {"e\xcc\x81", "b", "c", NULL};
    const layout l = {.key = "classes",
                      .labels = names,
                      .n_labels = {2, 1},
                      .tags = {"s1", "s2"}};
    bm_shard *shard = NULL;

    (void)state;
    (void)write_file("decomposed.hdf", &l);
    assert_code(BMUF("pack", "--returnn", "decomposed.hdf", "--out", "nfd"), 0);
    assert_ok(bm_shard_open(&shard, in_folder("nfd/data-00000.bmuf.h5")));
    assert_string_equal(bm_shard_text_form(shard), "none");
    bm_shard_close(shard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences_and_labels_are_read),
        cmocka_unit_test(test_classes_of_frames_keep_their_numbers),
        cmocka_unit_test(test_a_blank_among_the_classes_is_the_blank),
        cmocka_unit_test(test_one_of_several_targets_is_chosen),
        cmocka_unit_test(test_classes_without_a_number_go_to_the_largest_label),
        cmocka_unit_test(test_classes_without_a_number_are_those_of_all_files),
        cmocka_unit_test(test_old_files_are_read),
        cmocka_unit_test(test_faults_of_files_name_what_is_wrong),
        cmocka_unit_test(test_files_of_other_kinds_are_refused),
        cmocka_unit_test(test_damaged_files_never_crash),
        cmocka_unit_test(test_a_crash_of_hdf5_is_an_error),
        cmocka_unit_test(test_a_shard_is_packed_again),
        cmocka_unit_test(test_a_vocabulary_keeps_all_subwords),
        cmocka_unit_test(test_the_form_is_that_of_the_classes),
    };

    return cmocka_run_group_tests_name("returnn", tests, folder_make,
                                       folder_remove);
}

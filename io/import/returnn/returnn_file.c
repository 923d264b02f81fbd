#include "io/import/returnn/returnn_file.h"

#include "core/child.h"
#include "core/file/file_kind.h"
#include "core/grow.h"
#include "core/log.h"
#include "core/text/words.h"
#include "io/import/returnn/returnn_keys.h"
#include "io/import/returnn/returnn_texts.h"
#include "io/shard/shard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_CLASSES = 1 << 24,
    LABELS_AT_A_TIME = 1 << 16,
    MOST_SECONDS = 600 /* of a processor, to open a file */
};

struct bm_returnn_file {
    char *path;
    bm_h5_file h5;
    bool is_open;
    bm_returnn_keys keys;
    size_t key; /* which of them; keys.n: none */
    size_t n, features, classes, n_symbols;
    uint64_t *frames, *labels; /* [n + 1]: where sequences begin */
    char **tags, **symbols;
    bm_h5_array inputs, targets;
    bool has_targets, counted; /* counted: `classes`, by the largest label */
    int32_t *row;              /* [room]: labels of a sequence */
    size_t room;
};

/* ---- tables -------------------------------------------------------------- */

/* Running sums of a column of the lengths [n, columns]. */
static bm_status add_up(const bm_returnn_file *f, const int64_t *lengths,
                        size_t columns, size_t column, uint64_t total,
                        const char *what, uint64_t **out)
{
    uint64_t *sum = calloc(f->n + 1, sizeof *sum);

    if (sum == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the lengths of %s",
                       f->path);
    *out = sum;
    for (size_t i = 0; i < f->n; i++) {
        int64_t length = lengths[i * columns + column];

        if (length < 0 || (uint64_t)length > total - sum[i])
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: /seqLengths, row %zu: %" PRId64
                           " %s, which there are not; the file is damaged or "
                           "was not closed",
                           f->path, i, length, what);
        sum[i + 1] = sum[i] + (uint64_t)length;
    }
    if (sum[f->n] != total)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /seqLengths adds up to %" PRIu64 " %s of %" PRIu64
                       "; the file is damaged or was not closed",
                       f->path, sum[f->n], what, total);
    return BM_OK;
}

static bm_status check_lengths(const bm_returnn_file *f, const bm_h5_array *a)
{
    if (H5Tget_class(a->type) != H5T_INTEGER)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /seqLengths has no whole numbers; write the "
                       "number of frames of each sequence there",
                       f->path);
    if (a->dim[0] != f->n)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /seqLengths has %" PRIu64
                       " rows, but /seqTags has %zu names; the file is "
                       "damaged or was not closed",
                       f->path, a->dim[0], f->n);
    if (a->rank == 1 || (a->dim[1] >= 1 && !f->has_targets) ||
        a->dim[1] == 1 + f->keys.n)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: /seqLengths has %s, but needs %zu, of the inputs and "
                   "of each target; if all have the same lengths, give it one "
                   "dimension",
                   f->path, bm_count_noun((long long)a->dim[1], "column").text,
                   1 + f->keys.n);
}

static bm_status read_lengths(bm_returnn_file *f)
{
    bm_h5_array a = {0};
    int64_t *lengths = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_h5_array_open_any(&f->h5, "seqLengths", &a));
    BM_TRY_DONE(check_lengths(f, &a));
    lengths = calloc(a.dim[0] * a.dim[1] + 1, sizeof *lengths);
    if (lengths == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for the lengths of %s", f->path);
    BM_TRY_DONE(
        bm_h5_rows_as(&f->h5, &a, 0, a.dim[0], H5T_NATIVE_INT64, lengths));
    BM_TRY_DONE(add_up(f, lengths, a.dim[1], 0, f->inputs.dim[0], "frames",
                       &f->frames));
    if (f->has_targets)
        BM_TRY_DONE(add_up(f, lengths, a.dim[1], a.rank == 1 ? 0 : 1 + f->key,
                           f->targets.dim[0], "labels", &f->labels));
done:
    free(lengths);
    bm_h5_array_close(&a);
    return status;
}

/* The dimensions of an object that is in the file itself; 0: it has none. */
static int count_dimensions(const bm_returnn_file *f, const char *name)
{
    H5L_info_t link;
    hid_t id = H5I_INVALID_HID, space = H5I_INVALID_HID;
    int n = 0;

    if (H5Lget_info(f->h5.id, name, &link, H5P_DEFAULT) < 0 ||
        link.type != H5L_TYPE_HARD)
        return 0;
    id = H5Dopen2(f->h5.id, name, H5P_DEFAULT);
    space = H5Dget_space(id);
    n = H5Sget_simple_extent_ndims(space);
    H5Sclose(space);
    H5Dclose(id);
    return n;
}

static bm_status open_inputs(bm_returnn_file *f)
{
    H5T_class_t class = H5T_NO_CLASS;

    if (!bm_returnn_has(&f->h5, "inputs"))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has no /inputs; give a file of RETURNN's "
                       "HDFDataset with inputs",
                       f->path);
    if (count_dimensions(f, "inputs") > 2)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /inputs has %d dimensions, but should have two, "
                       "frames x features; write x.reshape(len(x), -1) in its "
                       "place",
                       f->path, count_dimensions(f, "inputs"));
    BM_TRY(bm_h5_array_open_any(&f->h5, "inputs", &f->inputs));
    class = H5Tget_class(f->inputs.type);
    if (f->inputs.rank != 2 || f->inputs.dim[1] < 1 ||
        f->inputs.dim[1] > 1 << 20 ||
        (class != H5T_FLOAT && class != H5T_INTEGER))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /inputs are not dense: they should be numbers, "
                       "frames x features",
                       f->path);
    f->features = f->inputs.dim[1];
    return BM_OK;
}

/* ---- classes ------------------------------------------------------------- */

/* SimpleHDFWriter writes one name, "dummy-label", if it was given none. */
static bool is_named(const bm_returnn_file *f)
{
    return f->n_symbols > 1 ||
           (f->n_symbols == 1 && strcmp(f->symbols[0], "dummy-label") != 0);
}

/* The number of classes by the attribute of the target: a number, or a pair whose
 * second number is 1. */
static bm_status read_size(bm_returnn_file *f, const char *key)
{
    int64_t size[2] = {0};
    hid_t id = H5I_INVALID_HID, space = H5I_INVALID_HID;
    hssize_t n = 0;

    if (!bm_returnn_has(&f->h5, "targets/size") ||
        H5Aexists_by_name(f->h5.id, "targets/size", key, H5P_DEFAULT) <= 0)
        return BM_OK;
    id = H5Aopen_by_name(f->h5.id, "targets/size", key, H5P_DEFAULT,
                         H5P_DEFAULT);
    space = H5Aget_space(id);
    n = H5Sget_simple_extent_npoints(space);
    if ((n == 1 || n == 2) && H5Aread(id, H5T_NATIVE_INT64, size) >= 0 &&
        size[0] > 0 && size[0] <= MOST_CLASSES)
        f->classes = (size_t)size[0];
    H5Sclose(space);
    H5Aclose(id);
    return BM_OK;
}

/* The largest label; -1: there are none. */
static bm_status find_largest(const bm_returnn_file *f, int32_t *out)
{
    uint64_t labels = f->targets.dim[0];
    int32_t *row = malloc(LABELS_AT_A_TIME * sizeof *row), largest = -1;
    bm_status status = BM_OK;

    if (row == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the labels of %s",
                       f->path);
    for (uint64_t first = 0; first < labels && status == BM_OK;
         first += LABELS_AT_A_TIME) {
        uint64_t n = labels - first < LABELS_AT_A_TIME ? labels - first
                                                       : LABELS_AT_A_TIME;

        status =
            bm_h5_rows_as(&f->h5, &f->targets, first, n, H5T_NATIVE_INT32, row);
        for (uint64_t k = 0; k < n && status == BM_OK; k++)
            largest = row[k] > largest ? row[k] : largest;
    }
    free(row);
    *out = largest;
    return status;
}

/* SimpleHDFWriter writes a size of 1 for a target of which it was not told the
 * type. */
static bm_status count_classes(bm_returnn_file *f, const char *key)
{
    int32_t largest = -1;

    if (is_named(f) || f->classes > 1)
        return BM_OK;
    BM_TRY(find_largest(f, &largest));
    if (largest >= MOST_CLASSES)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the targets '%s' have a label %d, but classes are "
                       "0 to %d at most; choose other targets with "
                       "features.target",
                       f->path, key, (int)largest, MOST_CLASSES - 1);
    f->counted = true;
    f->classes = largest < 0 ? 1 : (size_t)largest + 1;
    bm_log(BM_NOTE,
           "%s: the targets '%s' have neither names nor a number of classes; "
           "%s, by the largest label",
           f->path, key, bm_count_noun((long long)f->classes, "class").text);
    return BM_OK;
}

/* ---- opening ------------------------------------------------------------- */

/* The names of the classes of a target. Where the group has none, HDFDataset
 * takes /labels for "classes". */
static bm_status read_symbols(bm_returnn_file *f, const char *key)
{
    char name[BM_RETURNN_LONGEST_KEY + 32];

    snprintf(name, sizeof name, "targets/labels/%s", key);
    if (bm_returnn_has(&f->h5, "targets/labels") &&
        bm_returnn_has(&f->h5, name))
        return bm_returnn_texts(&f->h5, name, BM_LONGEST_TAG, &f->n_symbols,
                                &f->symbols);
    if (strcmp(key, "classes") == 0 && bm_returnn_has(&f->h5, "labels"))
        return bm_returnn_texts(&f->h5, "labels", BM_LONGEST_TAG, &f->n_symbols,
                                &f->symbols);
    return BM_OK;
}

static bm_status open_targets(bm_returnn_file *f)
{
    const char *key = f->key < f->keys.n ? f->keys.name[f->key] : NULL;
    char name[BM_RETURNN_LONGEST_KEY + 32];

    if (key == NULL && bm_returnn_has(&f->h5, "targetClasses"))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has /targetClasses, which HDFDataset does not read "
                       "either; link them with h5py: f[\"targets/data/"
                       "classes\"] = f[\"targetClasses\"]",
                       f->path);
    if (key == NULL)
        return BM_OK;
    BM_TRY(read_symbols(f, key));
    snprintf(name, sizeof name, "targets/data/%s", key);
    BM_TRY(bm_h5_array_open_any(&f->h5, name, &f->targets));
    f->targets.name = "targets/data";
    f->has_targets = true;
    if (f->targets.rank != 1 || H5Tget_class(f->targets.type) != H5T_INTEGER)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the targets '%s' are not sparse: they should be "
                       "classes, one number a label",
                       f->path, key);
    BM_TRY(read_size(f, key));
    return count_classes(f, key);
}

/* What bm_h5_open would take for a damaged shard. An HDF5 file may begin with
 * other bytes: a binary file of unknown kind is left to the library. */
static bm_status check_kind(const char *path)
{
    const char *kind = bm_file_kind(path);

    if (kind == NULL)
        kind = bm_text_kind(path);
    if (kind == NULL || kind == bm_kind_binary || kind == bm_kind_hdf5)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT, "%s is %s, not an HDF5 file of RETURNN; %s",
                   path, kind, bm_file_kind_use(kind));
}

static bm_status open_all(bm_returnn_file *f, const char *target)
{
    BM_TRY(check_kind(f->path));
    BM_TRY(bm_h5_open(&f->h5, f->path));
    f->is_open = true;
    BM_TRY(bm_returnn_find_keys(&f->h5, &f->keys));
    BM_TRY(bm_returnn_choose_key(&f->h5, &f->keys, target, &f->key));
    BM_TRY(open_inputs(f));
    BM_TRY(open_targets(f));
    BM_TRY(
        bm_returnn_texts(&f->h5, "seqTags", BM_LONGEST_TAG, &f->n, &f->tags));
    return read_lengths(f);
}

static bm_status open_file(bm_returnn_file **out, const char *path,
                           const char *target)
{
    bm_returnn_file *f = calloc(1, sizeof *f);
    bm_status status = BM_OK;

    if (f == NULL || (f->path = strdup(path)) == NULL) {
        free(f);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    }
    bm_h5_enter();
    status = open_all(f, target);
    bm_h5_leave();
    if (status == BM_OK)
        *out = f;
    else
        bm_returnn_close(f);
    return status;
}

typedef struct trial {
    const char *path, *target;
} trial;

/* What fails here, fails in the parent again, which reports it. */
static void try_to_open(void *self, FILE *out)
{
    const trial *t = self;
    bm_returnn_file *f = NULL;

    (void)out;
    bm_log_use_style(&(bm_log_style){.most = BM_ERROR});
    if (open_file(&f, t->path, t->target) == BM_OK)
        bm_returnn_close(f);
}

/* HDF5 1.10 crashes when it opens some damaged files: a child tries first. */
bm_status bm_returnn_open(bm_returnn_file **out, const char *path,
                          const char *target)
{
    trial t = {path, target};
    bm_child child = {.work = try_to_open, .self = &t, .seconds = MOST_SECONDS};
    int ended = 0;

    BM_TRY(bm_child_run(&child, &ended));
    if (ended != 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: HDF5 crashes, or does not finish, when it opens "
                       "this file, which is damaged or was not closed; write "
                       "it again",
                       path);
    return open_file(out, path, target);
}

void bm_returnn_close(bm_returnn_file *f)
{
    if (f == NULL)
        return;
    if (f->is_open) {
        bm_h5_enter();
        bm_h5_array_close(&f->inputs);
        bm_h5_array_close(&f->targets);
        H5Fclose(f->h5.id);
        bm_h5_leave();
    }
    for (size_t i = 0; f->tags != NULL && i < f->n; i++)
        free(f->tags[i]);
    for (size_t i = 0; f->symbols != NULL && i < f->n_symbols; i++)
        free(f->symbols[i]);
    free(f->tags);
    free(f->symbols);
    free(f->frames);
    free(f->labels);
    free(f->row);
    free(f->path);
    free(f);
}

/* ---- sequences ----------------------------------------------------------- */

size_t bm_returnn_sequences(const bm_returnn_file *f)
{
    return f->n;
}

size_t bm_returnn_features(const bm_returnn_file *f)
{
    return f->features;
}

bool bm_returnn_labelled(const bm_returnn_file *f)
{
    return f->has_targets;
}

bool bm_returnn_per_frame(const bm_returnn_file *f)
{
    return f->has_targets && f->n > 0 &&
           memcmp(f->frames, f->labels, (f->n + 1) * sizeof *f->frames) == 0;
}

const char *bm_returnn_path(const bm_returnn_file *f)
{
    return f->path;
}

const char *bm_returnn_tag(const bm_returnn_file *f, size_t sequence)
{
    return f->tags[sequence];
}

const char *bm_returnn_symbol(const bm_returnn_file *f, size_t class)
{
    return is_named(f) && class < f->n_symbols ? f->symbols[class] : NULL;
}

size_t bm_returnn_classes(const bm_returnn_file *f)
{
    return is_named(f) ? f->n_symbols : f->classes;
}

bool bm_returnn_counted(const bm_returnn_file *f)
{
    return f->counted;
}

void bm_returnn_raise_classes(bm_returnn_file *f, size_t n)
{
    if (f->counted)
        f->classes = n;
}

bm_status bm_returnn_frames(bm_returnn_file *f, size_t sequence, bm_frames *x,
                            bm_problem *problem)
{
    uint64_t first = f->frames[sequence];
    uint64_t n = f->frames[sequence + 1] - first;
    bm_status status = BM_OK;

    if (n == 0) {
        bm_problem_set(problem, "no frames", "%s: no frames", f->path);
        return BM_OK;
    }
    BM_TRY(bm_frames_shape(x, n, f->features));
    bm_h5_enter();
    status =
        bm_h5_rows_as(&f->h5, &f->inputs, first, n, H5T_NATIVE_FLOAT, x->x);
    bm_h5_leave();
    if (status == BM_ERR_FORMAT) {
        bm_problem_set(problem, "damaged", "%s", bm_last_message());
        return BM_OK;
    }
    BM_TRY(status);
    bm_problem_check_finite(x->x, n, f->features, f->path, problem);
    return BM_OK;
}

bm_status bm_returnn_labels(bm_returnn_file *f, size_t sequence,
                            const int32_t **labels, size_t *n,
                            bm_problem *problem)
{
    uint64_t first = f->labels[sequence];
    size_t classes = bm_returnn_classes(f);
    bm_status status = BM_OK;

    *n = f->labels[sequence + 1] - first;
    BM_TRY(bm_grow(&f->row, *n, &f->room, sizeof *f->row));
    *labels = f->row;
    bm_h5_enter();
    status =
        bm_h5_rows_as(&f->h5, &f->targets, first, *n, H5T_NATIVE_INT32, f->row);
    bm_h5_leave();
    if (status == BM_ERR_FORMAT) {
        bm_problem_set(problem, "damaged", "%s", bm_last_message());
        return BM_OK;
    }
    BM_TRY(status);
    for (size_t i = 0; i < *n; i++)
        if (f->row[i] < 0 || (size_t)f->row[i] >= classes) {
            bm_problem_set(
                problem, "a label that is no class",
                "%s: label %zu is %d, but classes are 0 to %zu; "
                "correct the label, or write the file with all classes",
                f->path, i, (int)f->row[i], classes - 1);
            return BM_OK;
        }
    return BM_OK;
}

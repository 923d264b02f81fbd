/*
 * feature_files.c - files of arrays are read as a whole, and the sizes in their
 * headers compared with their length before they are used; archives of Kaldi are
 * read from the byte of a matrix on.
 */
#include "io/import/files/feature_files.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "io/import/files/feature_parts.h"
#include "io/import/files/kaldi_file.h"
#include "io/place.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const bm_option bm_feature_file_options[] = {
    {"dim", BM_INT, offsetof(bm_feature_file_settings, dim), "13", 1, 65536,
     "numbers",
     "numbers per frame of Sphinx's .mfc files; other files have their own"},
    {"shift_ms", BM_FLOAT, offsetof(bm_feature_file_settings, shift_ms), "10",
     0, 1000, "ms", "distance from one frame to the next; 0: no audio"},
    BM_CHAIN_OPTIONS(bm_feature_file_settings),
    {0},
};

/* Limit of a file in bytes: a day of features. */
static const size_t most_bytes = (size_t)1 << 31;

/* What a file is by its ending. */
typedef enum file_format { NPY, NPZ, HTK, KALDI } file_format;

static file_format format_of(const char *path)
{
    static const struct {
        const char *ending;
        file_format format;
    } endings[] = {
        {".npy", NPY}, {".npz", NPZ}, {".mfc", HTK},   {".htk", HTK},
        {".plp", HTK}, {".fbk", HTK}, {".fbank", HTK},
    };
    const char *dot = strrchr(path, '.');

    for (size_t i = 0; dot != NULL && i < sizeof endings / sizeof *endings; i++)
        if (strcasecmp(dot, endings[i].ending) == 0)
            return endings[i].format;
    return KALDI;
}

bool bm_feature_file_is(const char *path)
{
    return format_of(path) != KALDI;
}

/* Of the whole file. */
static bm_status read_whole(const bm_place *place, file_format format,
                            size_t mfc_dim, bm_frames *x, bm_problem *problem)
{
    const char *fault = NULL;
    char *file = NULL, detail[BM_MOST_DETAIL] = "";
    size_t size = 0;
    bm_status status = bm_file_read(place->file, most_bytes, &file, &size);

    if (status != BM_OK)
        return bm_problem_of(status, place->file, problem);
    if (format == NPY)
        status = bm_npy_read((const uint8_t *)file, size, x, &fault, detail);
    else if (format == NPZ)
        status = bm_npz_read((const uint8_t *)file, size, place->member, x,
                             &fault, detail);
    else
        status = bm_htk_read((const uint8_t *)file, size, mfc_dim, x, &fault,
                             detail);
    if (status == BM_OK && fault != NULL)
        bm_problem_set(problem, fault, "%s: %s%s", place->file, fault, detail);
    free(file);
    return status;
}

/* For what no list of features points at. */
static void check_kind(const char *path, bm_problem *problem)
{
    const char *kind = bm_file_kind(path);

    if (kind == NULL || kind == bm_kind_binary || kind == bm_kind_ark)
        return;
    if (kind == bm_kind_gzip)
        bm_problem_set(problem, "compressed",
                       "%s is %s; only lists may be compressed: unpack it",
                       path, kind);
    else
        bm_problem_set(problem, "not a matrix",
                       "%s is %s, neither a NumPy array, nor a file of HTK, "
                       "Sphinx or Kaldi",
                       path, kind);
}

static bm_status read_kaldi(const bm_place *place, bm_frames *x,
                            bm_problem *problem)
{
    bm_kaldi_file f = {0};
    bm_status status = bm_kaldi_open(&f, place->file);

    if (status != BM_OK)
        return bm_problem_of(status, place->file, problem);
    BM_TRY_DONE(bm_kaldi_seek(&f, place->offset, problem));
    if (!bm_problem_is(problem))
        status = bm_kaldi_matrix(&f, x, problem);
    if (status == BM_OK && bm_problem_is(problem))
        check_kind(place->file, problem);
done:
    bm_kaldi_close(&f);
    return status;
}

/* Keeps the rows and columns of the place. As in Kaldi, the last row may be up to
 * three after the end: programs round durations. */
static void cut(const bm_place *place, bm_frames *x, bm_problem *problem)
{
    enum { SPARE = 3 };
    bm_index_range r = place->rows, c = place->columns;
    size_t dim = x->dim;

    if (r.last == SIZE_MAX || (r.last >= x->n && r.last - x->n < SPARE))
        r.last = x->n - 1;
    if (c.last == SIZE_MAX)
        c.last = dim - 1;
    if (r.last >= x->n || r.first > r.last || c.last >= dim ||
        c.first > c.last) {
        bm_problem_set(problem, "excerpt outside the features",
                       "%s: rows or columns outside the matrix of %zu rows of "
                       "%zu",
                       place->file, x->n, dim);
        return;
    }
    x->n = r.last - r.first + 1;
    x->dim = c.last - c.first + 1;
    for (size_t t = 0; t < x->n; t++)
        memmove(x->x + t * x->dim, x->x + (r.first + t) * dim + c.first,
                x->dim * sizeof *x->x);
}

bm_status bm_feature_file_read(const char *path, size_t mfc_dim, bm_frames *x,
                               bm_problem *problem)
{
    bm_place place;
    file_format format = format_of(path);

    if (!bm_place_parse(&place, path)) {
        bm_problem_set(problem, "not a place",
                       "%s: not a place such as raw.ark:1234[0:99]", path);
        return BM_OK;
    }
    if (format == KALDI)
        format = format_of(place.file);
    if (format == KALDI)
        BM_TRY(read_kaldi(&place, x, problem));
    else
        BM_TRY(read_whole(&place, format, mfc_dim, x, problem));
    if (!bm_problem_is(problem) && place.cut)
        cut(&place, x, problem);
    if (!bm_problem_is(problem))
        bm_problem_check_finite(x->x, x->n, x->dim, path, problem);
    return BM_OK;
}

#include "io/import/files/kaldi_cmvn.h"

#include "core/file/path.h"
#include "core/text/words.h"
#include "io/features/feature_ops.h"
#include "io/import/files/kaldi_file.h"
#include "io/import/manifest/lines.h"
#include "io/import/manifest/manifest_parts.h"
#include "io/place.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct reading {
    const char *path;
    char directory[PATH_MAX];
    const char *const *names;
    size_t n, dim;
    bool *found; /* [n] */
    bm_doubles matrix;
    double *moments; /* [BM_MOMENTS(dim)] */
    bm_kaldi_cmvn_take *take;
    void *self;
} reading;

/* The number of a speaker; n: it is none of the names. */
static size_t number_of(const reading *r, const char *name)
{
    size_t low = 0, high = r->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(r->names[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->n && strcmp(r->names[low], name) == 0 ? low : r->n;
}

/* Reads the matrix at a place. */
static bm_status read_matrix(reading *r, const bm_place *place)
{
    bm_kaldi_file f = {0};
    bm_problem problem = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_kaldi_open(&f, place->file));
    BM_TRY_DONE(bm_kaldi_seek(&f, place->offset, &problem));
    if (!bm_problem_is(&problem))
        BM_TRY_DONE(bm_kaldi_doubles(&f, &r->matrix, &problem));
    if (bm_problem_is(&problem))
        status = BM_FAIL(BM_ERR_FORMAT, "%s: %s", r->path, problem.text);
done:
    bm_kaldi_close(&f);
    return status;
}

/* r->moments <- the matrix, which must be statistics. */
static bm_status take_moments(reading *r, const char *speaker)
{
    const bm_doubles *m = &r->matrix;
    const double *sums = m->x, *squares = m->x + m->columns;
    bool finite = true;

    if (m->rows != 2 || m->columns != r->dim + 1)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the statistics of %s are %zu x %zu numbers; of "
                       "%zu features they are 2 x %zu",
                       r->path, speaker, m->rows, m->columns, r->dim,
                       r->dim + 1);
    for (size_t i = 0; i < 2 * m->columns; i++)
        finite = finite && isfinite(m->x[i]);
    if (!finite || !(sums[r->dim] >= 1))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the statistics of %s are of no frame, or not "
                       "finite; make them again",
                       r->path, speaker);
    r->moments[0] = sums[r->dim];
    memcpy(r->moments + 1, sums, r->dim * sizeof *sums);
    memcpy(r->moments + 1 + r->dim, squares, r->dim * sizeof *squares);
    return BM_OK;
}

/* A line "speaker place". */
static bm_status read_line(reading *r, size_t number, char *line)
{
    char resolved[PATH_MAX];
    char *at = line + strspn(line, " \t"), *value = at + strcspn(at, " \t");
    size_t speaker;
    bm_place place;

    if (*value != '\0')
        *value++ = '\0';
    value += strspn(value, " \t");
    speaker = number_of(r, at);
    if (speaker == r->n || *at == '\0')
        return BM_OK;
    if (r->found[speaker])
        return BM_FAIL(BM_ERR_FORMAT, "%s:%zu: speaker %s was there before",
                       r->path, number, at);
    if (*value == '\0' || bm_manifest_is_pipe(value) ||
        !bm_place_parse(&place,
                        bm_kaldi_resolve(r->directory, value, resolved)) ||
        place.cut)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%zu: not a place such as cmvn.ark:1234", r->path,
                       number);
    BM_TRY(read_matrix(r, &place));
    BM_TRY(take_moments(r, at));
    r->found[speaker] = true;
    r->take(r->self, speaker, r->moments);
    return BM_OK;
}

static bm_status check_all(const reading *r)
{
    const char *first = NULL;
    size_t missing = 0;

    for (size_t k = 0; k < r->n; k++)
        if (!r->found[k] && missing++ == 0)
            first = r->names[k];
    if (missing == 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s has no statistics for %s, e.g. '%s'; make them of the "
                   "whole set with compute-cmvn-stats, or set "
                   "features.normalise=speaker",
                   r->path, bm_count_noun((long long)missing, "speaker").text,
                   first);
}

static bm_status read_list(reading *r)
{
    bm_lines *lines = NULL;
    char *line = NULL;
    size_t length = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_lines_open(&lines, r->path));
    for (;;) {
        BM_TRY_DONE(bm_lines_next(lines, &line, &length));
        if (line == NULL)
            break;
        BM_TRY_DONE(read_line(r, bm_lines_number(lines), line));
    }
    status = check_all(r);
done:
    bm_lines_close(lines);
    return status;
}

bm_status bm_kaldi_cmvn_read(const char *path, const char *const *names,
                             size_t n, size_t dim, bm_kaldi_cmvn_take *take,
                             void *self)
{
    reading r = {.path = path,
                 .names = names,
                 .n = n,
                 .dim = dim,
                 .take = take,
                 .self = self};
    bm_status status = BM_OK;

    if (access(path, F_OK) != 0)
        return BM_FAIL(
            BM_ERR_MISSING,
            "%s is missing, which features.normalise = kaldi needs. "
            "Make it: compute-cmvn-stats --spk2utt=ark:DIR/spk2utt "
            "scp:DIR/feats.scp ark,scp:DIR/cmvn.ark,DIR/cmvn.scp; or "
            "set features.normalise = speaker",
            path);
    BM_TRY(bm_path_folder(r.directory, path));
    r.found = calloc(n + 1, sizeof *r.found);
    r.moments = calloc(BM_MOMENTS(dim), sizeof *r.moments);
    if (r.found == NULL || r.moments == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu speakers", n);
    else
        status = read_list(&r);
    free(r.found);
    free(r.moments);
    free(r.matrix.x);
    return status;
}

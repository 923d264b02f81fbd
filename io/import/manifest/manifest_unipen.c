/*
 * manifest_unipen.c - segments of UNIPEN files as rows: a file, or all files of a
 * folder and of those within it. A row's shape is its delineation.
 */
#define _DEFAULT_SOURCE /* fts */
#include "io/import/manifest/manifest_parts.h"

#include "core/file/file.h"
#include "core/file/path.h"
#include "core/text/printable.h"
#include "io/import/pen/unipen.h"
#include "io/shard/shard.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* m->level is "" until a segment has a label, unless the user set it. */
typedef struct listing {
    bm_manifest *m;
    size_t top; /* bytes of paths before what ids are made of */
} listing;

/* id <- the path after `top`, without endings, and a number; false: too long. */
static bool make_id(const listing *l, const char *path, size_t number,
                    char id[BM_LONGEST_TAG + 1])
{
    const char *name = path + l->top;
    const char *dot = strchr(name + bm_path_folder_length(name), '.');
    size_t n = dot != NULL && dot > name ? (size_t)(dot - name) : strlen(name);
    int length =
        snprintf(id, BM_LONGEST_TAG + 1, "%.*s-%05zu", (int)n, name, number);

    for (char *c = id; *c != '\0'; c++)
        if (*c == '/' || *c == ' ')
            *c = '-';
    return length > 0 && length <= BM_LONGEST_TAG;
}

static bm_status add_segment(listing *l, const char *path, size_t number,
                             const bm_pen_segment *s)
{
    bm_manifest *m = l->m;
    char id[BM_LONGEST_TAG + 1];
    bool valid = bm_utf8_length(s->label) == strlen(s->label);

    if (!make_id(l, path, number, id) || !valid) {
        bm_manifest_fault(m, s->line,
                          valid ? "the name of the file is too long"
                                : "the label is not UTF-8");
        return BM_OK;
    }
    return bm_manifest_add(
        m, s->line,
        &(bm_manifest_fields){.id = id,
                              .path = path,
                              .shape = s->delineation,
                              .speaker = s->writer,
                              .text = s->label[0] != '\0' ? s->label : NULL});
}

static bm_status add_file(listing *l, const char *path)
{
    bm_manifest *m = l->m;
    bm_unipen u = {0};
    size_t number = 0;
    bm_status status = bm_unipen_read(&u, path, false);

    m->file = path;
    for (size_t i = 0; status == BM_OK && i < u.n_segments; i++) {
        const bm_pen_segment *s = &u.segments[i];

        if (m->level[0] == '\0' && s->label[0] != '\0')
            snprintf(m->level, sizeof m->level, "%s", s->type);
        if (strcmp(s->type, m->level) == 0)
            status = add_segment(l, path, ++number, s);
    }
    bm_unipen_free(&u);
    m->file = m->path;
    return status;
}

/* Byte order, whatever the locale. */
static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* A link to a folder above is passed over, as are hidden names. */
static bm_status add_folder(listing *l, char *path)
{
    char *roots[] = {path, NULL};
    FTS *folder = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
    FTSENT *e = NULL;
    bm_status status = BM_OK;

    if (folder == NULL)
        return BM_FAIL(BM_ERR_IO, "%s: %s", path, strerror(errno));
    while (status == BM_OK && (e = fts_read(folder)) != NULL) {
        if (e->fts_level > 0 && e->fts_name[0] == '.')
            (void)fts_set(folder, e, FTS_SKIP);
        else if (e->fts_info == FTS_DNR)
            status = BM_FAIL(BM_ERR_IO, "%s: %s", e->fts_path,
                             strerror(e->fts_errno));
        else if (e->fts_info == FTS_F)
            status = bm_manifest_pass(l->m, add_file(l, e->fts_path));
    }
    (void)fts_close(folder);
    return status;
}

bm_status bm_manifest_unipen(bm_manifest *m, const char *type)
{
    size_t top = bm_path_folder_length(m->path), n = strlen(m->path);
    listing l = {.m = m};
    bool folder = bm_is_folder(m->path);

    if (strcmp(m->path, "-") == 0)
        return BM_FAIL(BM_ERR_ARG,
                       "--unipen -: segments are read from a file, not from "
                       "standard input; write it to a file");
    m->folder = 0; /* paths are complete */
    m->file = m->path;
    snprintf(m->level, sizeof m->level, "%s", type);
    l.top = !folder ? top : n + (top < n);
    BM_TRY(folder ? add_folder(&l, m->path) : add_file(&l, m->path));
    if (m->n == 0 && m->faults.n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has no .SEGMENT%s%s with components; is it of "
                       "UNIPEN, and features.level one of its types?",
                       m->path, m->level[0] != '\0' ? " " : "", m->level);
    return BM_OK;
}

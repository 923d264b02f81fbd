/*
 * manifest_unipen.c - segments of UNIPEN files as rows: a file, or all files of a
 * folder and of those within it. A row's shape is its delineation.
 */
#include "io/import/manifest/manifest_parts.h"

#include "core/printable.h"
#include "io/import/pen/unipen.h"
#include "io/shard/shard.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEEPEST = 16 };

typedef struct listing {
    bm_manifest *m;
    char type[64]; /* of the segments; "": that of the first with a label */
    size_t top;    /* bytes of paths before what ids are made of */
} listing;

/* id <- the path after `top`, without endings, and a number; false: too long. */
static bool make_id(const listing *l, const char *path, size_t number,
                    char id[BM_LONGEST_TAG + 1])
{
    const char *name = path + l->top, *slash = strrchr(name, '/');
    const char *dot = strchr(slash != NULL ? slash + 1 : name, '.');
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

        if (l->type[0] == '\0' && s->label[0] != '\0')
            snprintf(l->type, sizeof l->type, "%s", s->type);
        if (strcmp(s->type, l->type) == 0)
            status = add_segment(l, path, ++number, s);
    }
    bm_unipen_free(&u);
    m->file = m->path;
    return status;
}

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static int is_seen(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Byte order, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* NOLINTNEXTLINE(misc-no-recursion): DEEPEST levels */
static bm_status add_folder(listing *l, const char *path, int depth)
{
    struct dirent **entries = NULL;
    int n = scandir(path, &entries, is_seen, by_name);
    bm_status status = BM_OK;

    if (n < 0)
        return BM_FAIL(BM_ERR_IO, "%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char inner[4096];
        int length =
            snprintf(inner, sizeof inner, "%s/%s", path, entries[i]->d_name);

        if (status == BM_OK && length > 0 && (size_t)length < sizeof inner)
            status = !is_folder(inner)
                         ? bm_manifest_pass(l->m, add_file(l, inner))
                     : depth < DEEPEST ? add_folder(l, inner, depth + 1)
                                       : BM_OK;
        free(entries[i]);
    }
    free(entries);
    return status;
}

bm_status bm_manifest_unipen(bm_manifest *m, const char *type)
{
    const char *slash = strrchr(m->path, '/');
    listing l = {.m = m};
    bool folder = is_folder(m->path);

    if (strcmp(m->path, "-") == 0)
        return BM_FAIL(BM_ERR_ARG,
                       "--unipen -: segments are read from a file, not from "
                       "standard input; write it to a file");
    m->folder = 0; /* paths are complete */
    m->file = m->path;
    snprintf(l.type, sizeof l.type, "%s", type);
    if (folder)
        l.top = strlen(m->path) + 1;
    else if (slash != NULL)
        l.top = (size_t)(slash - m->path) + 1;
    BM_TRY(folder ? add_folder(&l, m->path, 0) : add_file(&l, m->path));
    if (m->n == 0 && m->faults.n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has no .SEGMENT%s%s with components; is it of "
                       "UNIPEN, and features.level one of its types?",
                       m->path, l.type[0] != '\0' ? " " : "", l.type);
    return BM_OK;
}

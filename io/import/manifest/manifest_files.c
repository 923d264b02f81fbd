/*
 * manifest_files.c - where the file of a row is, and whether it can be opened.
 */
#include "io/import/manifest/manifest_parts.h"

#include "io/place.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char clips[] = "clips/";

bool bm_manifest_is_pipe(const char *path)
{
    size_t n = strlen(path);

    while (n > 0 && (path[n - 1] == ' ' || path[n - 1] == '\t'))
        n--;
    return n > 0 && path[n - 1] == '|';
}

/* A file, or a place in one. */
static bool is_there(const char *path)
{
    bm_place place;

    return access(path, F_OK) == 0 ||
           (bm_place_parse(&place, path) && access(place.file, F_OK) == 0);
}

static bool is_in(const bm_manifest *m, const char *folder, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.*s%s%s", (int)m->folder, m->path,
                     folder, name);

    return n > 0 && (size_t)n < sizeof path && is_there(path);
}

/* Is a path of a table a name in clips/, where Common Voice has its files? The
 * first file that is there decides. */
static bool is_clip(bm_manifest *m, const char *path)
{
    if (m->table.n == 0 || strchr(path, '/') != NULL)
        return false;
    if (!m->beside && !m->clips) {
        m->beside = is_in(m, "", path);
        m->clips = !m->beside && is_in(m, clips, path);
    }
    return m->clips;
}

/* Is a path one of the working directory? */
static bool is_here(bm_manifest *m, const bm_manifest_fields *f)
{
    if (!f->where_run)
        return false;
    m->folders = "a relative path is looked for in the working directory and "
                 "then in the folder of the list";
    return is_there(f->path);
}

bm_status bm_manifest_keep_path(bm_manifest *m, const bm_manifest_fields *f,
                                size_t *at)
{
    const char *path = f->path;
    size_t rest = 0;
    bool as_is = path[0] == '/' || bm_manifest_is_pipe(path) || is_here(m, f);
    bool clip = !as_is && is_clip(m, path);

    BM_TRY(bm_manifest_append(m, m->path, as_is ? 0 : m->folder, false, at));
    BM_TRY(
        bm_manifest_append(m, clips, clip ? strlen(clips) : 0, false, &rest));
    return bm_manifest_append(m, path, strlen(path), true, &rest);
}

/* The status of a file that cannot be used, "": it can. */
static const char *why_missing(const char *path)
{
    struct stat info;

    if (access(path, R_OK) != 0 || stat(path, &info) != 0)
        return strerror(errno);
    return S_ISREG(info.st_mode) ? "" : "not a regular file";
}

/* The same for the file of a row. */
static const char *why_unusable(const bm_manifest *m, const char *path)
{
    bool audio = bm_manifest_is_audio(m);
    bm_place place;

    if (bm_manifest_is_pipe(path))
        return "";
    if ((!audio && strcmp(m->kind, "feats") != 0) || access(path, F_OK) == 0)
        return why_missing(path);
    if (!bm_place_parse(&place, path) || (audio && place.cut))
        return audio ? "not a place such as wav.ark:1234"
                     : "not a place such as raw.ark:1234[0:99]";
    return why_missing(place.file);
}

/* One cause, and so one line. What lists the first file may be one of several. */
static bm_status refuse_all(const bm_manifest *m)
{
    const bm_manifest_entry *first = &m->entries[0];
    const char *path = m->text + first->path;

    return BM_FAIL(BM_ERR_MISSING,
                   "none of the %zu files of %s can be opened; %.500s:%zu: %s: "
                   "%s%s%s",
                   m->n, m->path, m->text + first->file, first->line, path,
                   why_unusable(m, path), m->folders[0] != '\0' ? "; " : "",
                   m->folders);
}

bm_status bm_manifest_find_missing(bm_manifest *m, double most_missing)
{
    for (size_t i = 0; i < m->n; i++) {
        const char *path = m->text + m->entries[i].path;
        const char *why = why_unusable(m, path);

        if (why[0] != '\0')
            bm_manifest_fault_row(m, &m->entries[i], "%.300s: %s", path, why);
    }
    if ((double)m->faults.n * 100 <= most_missing * (double)m->n) {
        m->faults = (bm_faults){0}; /* the rows are left out later */
        return BM_OK;
    }
    if (m->faults.n == m->n && m->n > 1)
        return refuse_all(m);
    if (m->faults.n == m->n)
        return bm_manifest_verdict(m, BM_ERR_MISSING, "file cannot be opened",
                                   "");
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: %zu of %zu files cannot be opened:%s%s\nThis is more "
                   "than %g %%, so nothing was packed; correct the files or "
                   "the manifest, or raise --max-left-out to %.0f",
                   m->path, m->faults.n, m->n, m->faults.text,
                   bm_faults_more(&m->faults).text, most_missing,
                   ceil((double)m->faults.n * 100 / (double)m->n));
}

const char *bm_manifest_why_missing(const bm_manifest *m, size_t row)
{
    return why_unusable(m, m->text + m->entries[row].path);
}

#define _DEFAULT_SOURCE /* fts */
#include "io/sound/sound_folder.h"

#include "core/grow.h"
#include "core/log.h"
#include "core/text/words.h"
#include "io/sound/sound.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static int by_path(const void *left, const void *right)
{
    const bm_sound_file *a = left, *b = right;

    return strcmp(a->path, b->path);
}

static bm_status keep(bm_sound_folder *f, const char *path, const bm_sound *s)
{
    BM_TRY(bm_grow(&f->files, f->n, &f->capacity, sizeof *f->files));
    f->files[f->n].seconds = s->seconds;
    f->files[f->n].rate = s->rate;
    f->files[f->n].path = strdup(path);
    if (f->files[f->n].path == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the name of a recording");
    f->n++;
    return BM_OK;
}

/* s->seconds <- the length, for which a recording is read if its header does not
 * tell, as that of some MP3 files does not. */
static bm_status measure(bm_sound *s, const char *path, bm_problem *problem)
{
    BM_TRY(bm_sound_probe(s, path, problem));
    if (bm_problem_is(problem) || s->seconds > 0)
        return BM_OK;
    BM_TRY(bm_sound_read(s, path, 0, (bm_excerpt){0}, problem));
    s->seconds = (double)s->n / (double)s->rate;
    return BM_OK;
}

/* Keeps a file if it is a recording. */
static bm_status look_at(bm_sound_folder *f, const char *path)
{
    bm_sound s = {0};
    bm_problem problem = {0};
    bm_status status = measure(&s, path, &problem);

    bm_sound_free(&s);
    BM_TRY(status);
    if (bm_problem_is(&problem) || !(s.seconds > 0))
        return BM_OK;
    return keep(f, path, &s);
}

/* Hidden names, and links to a folder above, are passed over. */
static bm_status walk(bm_sound_folder *f, const char *path)
{
    char *copy = strdup(path), *roots[] = {copy, NULL};
    FTS *folder = NULL;
    FTSENT *e = NULL;
    bm_status status = BM_OK;

    if (copy == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to list %s", path);
    folder = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    if (folder == NULL)
        BM_FAIL_DONE(BM_ERR_IO, "%s: %s", path, strerror(errno));
    while (status == BM_OK && (errno = 0, e = fts_read(folder)) != NULL) {
        bool top = e->fts_level == 0;

        if (!top && e->fts_name[0] == '.')
            (void)fts_set(folder, e, FTS_SKIP);
        else if (e->fts_info == FTS_DNR || e->fts_info == FTS_NS ||
                 e->fts_info == FTS_ERR)
            status = BM_FAIL(top ? BM_ERR_MISSING : BM_ERR_IO, "%s: %s",
                             e->fts_path, strerror(e->fts_errno));
        else if (top && e->fts_info == FTS_F)
            status = BM_FAIL(BM_ERR_MISSING, "%s: %s", path, strerror(ENOTDIR));
        else if (e->fts_info == FTS_F)
            status = look_at(f, e->fts_path);
    }
    if (status == BM_OK && errno != 0)
        status = BM_FAIL(BM_ERR_IO, "%s: %s", path, strerror(errno));
done:
    if (folder != NULL)
        (void)fts_close(folder);
    free(copy);
    return status;
}

/* The same for equal copies in other places. */
static uint64_t digest_of(const bm_sound_folder *f, const char *path)
{
    uint64_t digest = 0;

    for (size_t i = 0; i < f->n; i++) {
        const bm_sound_file *file = &f->files[i];
        const char *within = file->path + strlen(path);
        double about[] = {file->seconds, (double)file->rate};

        digest = XXH3_64bits_withSeed(within, strlen(within), digest);
        digest = XXH3_64bits_withSeed(about, sizeof about, digest);
    }
    return digest;
}

/* What has another rate is resampled whenever it is drawn, which takes several
 * times as long as all else. */
static void log_folder(const bm_sound_folder *f, const char *path,
                       const char *setting, long rate)
{
    double seconds = 0;
    size_t others = 0;
    char text[120] = "";

    for (size_t i = 0; i < f->n; i++) {
        seconds += f->files[i].seconds;
        others += f->files[i].rate != rate;
    }
    if (others > 0)
        snprintf(text, sizeof text,
                 "; %zu of them not at %ld Hz: they are resampled "
                 "whenever they are drawn, which is slow",
                 others, rate);
    bm_log(BM_NOTE, "%s = %s: %s, %.1f s%s", setting, path,
           bm_count_noun((long long)f->n, "recording").text, seconds, text);
}

bm_status bm_sound_folder_list(bm_sound_folder *f, const char *path,
                               const char *setting, long rate)
{
    bm_status status = walk(f, path);

    if (status == BM_ERR_MISSING && f->n == 0)
        return BM_FAIL(status, "%s = %s: %s", setting, path,
                       access(path, F_OK) != 0 ? "there is no such folder"
                                               : bm_last_message());
    BM_TRY(status);
    if (f->n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s = %s: there is no recording in this folder", setting,
                       path);
    qsort(f->files, f->n, sizeof *f->files, by_path);
    f->digest = digest_of(f, path);
    log_folder(f, path, setting, rate);
    return BM_OK;
}

void bm_sound_folder_free(bm_sound_folder *f)
{
    for (size_t i = 0; i < f->n; i++)
        free(f->files[i].path);
    free(f->files);
    *f = (bm_sound_folder){0};
}

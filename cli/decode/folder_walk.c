#include "cli/decode/folder_walk.h"

#include "core/file/file_kind.h"
#include "core/words.h"
#include "io/import/files/feature_files.h"
#include "io/shard/shard.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void bm_paths_free(bm_paths *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->path[i]);
    free((void *)p->path);
    *p = (bm_paths){0};
}

static bm_status add(bm_paths *p, const char *path)
{
    if (p->n == p->room) {
        size_t room = p->room > 0 ? 2 * p->room : 64;
        char **grown = realloc((void *)p->path, room * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu paths", room);
        p->path = grown;
        p->room = room;
    }
    p->path[p->n] = strdup(path);
    if (p->path[p->n] == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a path");
    p->n++;
    return BM_OK;
}

static bool ends_with_one_of(const char *name, const char *endings)
{
    const char *dot = strrchr(name, '.');
    char lower[8];
    size_t n = 0;

    if (dot == NULL || strlen(dot + 1) >= sizeof lower)
        return false;
    for (; dot[n + 1] != '\0'; n++)
        lower[n] =
            (char)(dot[n + 1] >= 'A' && dot[n + 1] <= 'Z' ? dot[n + 1] + 32
                                                          : dot[n + 1]);
    lower[n] = '\0';
    return bm_is_word_of(lower, endings);
}

/* A file with a usual ending counts even if it is damaged, which is then
 * reported. */
static bool is_of_kind(const char *path, bm_input_kind kind)
{
    const char *is = NULL;

    switch (kind) {
    case BM_RECORDINGS:
        is = bm_file_kind(path);
        return (is != NULL && bm_ends_with(is, "recording")) ||
               ends_with_one_of(path, "wav flac ogg opus oga mp3 sph nist aiff "
                                      "aif au snd w64 rf64 caf");
    case BM_IMAGES:
        is = bm_file_kind(path);
        return (is != NULL && bm_ends_with(is, "image")) ||
               ends_with_one_of(path, "png jpg jpeg tif tiff pbm pgm ppm pnm");
    case BM_FEATURE_FILES:
        return bm_feature_file_is(path);
    case BM_PACKED_ONLY:
        break;
    }
    return false;
}

/* Is a folder one of those that its path leads through, from the first `root`
 * bytes on? A link makes it so. */
static bool is_in_itself(const char *path, const struct stat *info, size_t root)
{
    char above[PATH_MAX];
    struct stat of;

    snprintf(above, sizeof above, "%s", path);
    for (char *slash = strrchr(above, '/');
         slash != NULL && (size_t)(slash - above) >= root;
         slash = strrchr(above, '/')) {
        slash[slash == above] = '\0';
        if (stat(above, &of) == 0 && of.st_dev == info->st_dev &&
            of.st_ino == info->st_ino)
            return true;
        if (slash == above)
            break;
    }
    return false;
}

/* Adds the files of a folder to `out`, and its folders to `folders`. root: bytes
 * of the path where the walk began. */
static bm_status read_folder(bm_paths *out, bm_paths *folders, size_t root,
                             const char *folder, bm_input_kind kind)
{
    DIR *d = opendir(folder);
    const struct dirent *entry = NULL;
    size_t n = strlen(folder);
    bm_status status = BM_OK;

    if (d == NULL)
        return BM_FAIL(BM_ERR_MISSING, "%s: %s", folder, strerror(errno));
    while (n > 1 && folder[n - 1] == '/')
        n--;
    while (status == BM_OK && (entry = readdir(d)) != NULL) {
        char path[PATH_MAX];
        struct stat info;
        bool there = false;

        if (entry->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof path, "%.*s/%s", (int)n, folder,
                             entry->d_name) >= sizeof path ||
            lstat(path, &info) != 0)
            continue;
        there = stat(path, &info) == 0;
        if (there && S_ISDIR(info.st_mode))
            status =
                is_in_itself(path, &info, root) ? BM_OK : add(folders, path);
        else if ((!there || S_ISREG(info.st_mode)) && is_of_kind(path, kind))
            status = add(out, path); /* without a target it fails later */
    }
    closedir(d);
    return status;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bm_status bm_folder_walk(bm_paths *out, const char *folder, bm_input_kind kind)
{
    bm_paths folders = {0};
    size_t root = strlen(folder);
    bm_status status = add(&folders, folder);

    while (root > 1 && folder[root - 1] == '/')
        root--;

    for (size_t i = 0; status == BM_OK && i < folders.n; i++)
        status = read_folder(out, &folders, root, folders.path[i], kind);
    bm_paths_free(&folders);
    BM_TRY(status);
    if (out->n > 0)
        qsort((void *)out->path, out->n, sizeof *out->path, compare);
    return BM_OK;
}

bool bm_folder_has_shards(const char *folder)
{
    DIR *d = opendir(folder);
    const struct dirent *entry = NULL;
    bool found = false;

    while (d != NULL && !found && (entry = readdir(d)) != NULL)
        found = bm_ends_with(entry->d_name, BM_SHARD_SUFFIX);
    if (d != NULL)
        closedir(d);
    return found;
}

bool bm_folder_is_kaldi(const char *folder, bm_input_kind kind)
{
    const char *list = kind == BM_RECORDINGS      ? "wav.scp"
                       : kind == BM_FEATURE_FILES ? "feats.scp"
                                                  : NULL;
    char path[PATH_MAX];
    int n = 0;

    if (list == NULL)
        return false;
    n = snprintf(path, sizeof path, "%s/%s.gz", folder, list);
    if (n < 0 || (size_t)n >= sizeof path)
        return false;
    if (access(path, F_OK) == 0)
        return true;
    path[n - 3] = '\0';
    return access(path, F_OK) == 0;
}

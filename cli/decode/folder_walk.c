#include "cli/decode/folder_walk.h"

#include "core/file/file_kind.h"
#include "core/grow.h"
#include "core/text/words.h"
#include "io/import/files/feature_files.h"
#include "io/import/lines/image_names.h"
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
    BM_TRY(bm_grow(&p->path, p->n, &p->room, sizeof *p->path));
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
               bm_is_image_name(path);
    case BM_FEATURE_FILES:
        return bm_feature_file_is(path);
    case BM_PACKED_ONLY:
        break;
    }
    return false;
}

/* Is a folder also one of its parents, below the first `root` bytes of the path? A
 * link that leads upwards is, and following it would never end. */
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

/* Is it PAGE XML or ALTO? */
static bool is_page(const char *path)
{
    char head[4097] = "";
    FILE *file = NULL;

    if (!ends_with_one_of(path, "xml") || bm_text_kind(path) != bm_kind_xml)
        return false;
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    head[fread(head, 1, sizeof head - 1, file)] = '\0';
    fclose(file);
    return strstr(head, "<PcGts") != NULL || strstr(head, "<alto") != NULL ||
           strstr(head, ":PcGts") != NULL || strstr(head, ":alto") != NULL;
}

/* What a walk has found. */
typedef struct walk {
    bm_paths *out;
    bm_paths folders; /* in which there may be more */
    bm_paths pages;   /* of images: PAGE XML and ALTO */
    bm_input_kind kind;
    size_t root; /* bytes of the path where it began */
} walk;

static bm_status add_file(walk *w, const char *path)
{
    if (is_of_kind(path, w->kind))
        return add(w->out, path);
    return w->kind == BM_IMAGES && is_page(path) ? add(&w->pages, path) : BM_OK;
}

/* Adds the files of a folder, and its folders. */
static bm_status read_folder(walk *w, const char *folder)
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
            status = is_in_itself(path, &info, w->root)
                         ? BM_OK
                         : add(&w->folders, path);
        else if (!there || S_ISREG(info.st_mode))
            status = add_file(w, path); /* without a target it fails later */
    }
    closedir(d);
    return status;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Do the names of both files differ in their ending only? */
static bool same_stem(const char *a, const char *b)
{
    const char *left = strrchr(a, '/') + 1, *right = strrchr(b, '/') + 1;
    size_t n = (size_t)(strrchr(left, '.') - left);

    return strncmp(left, right, n) == 0 && right[n] == '.' &&
           strchr(right + n + 1, '.') == NULL;
}

/* Fails if an image is of a whole page: decoding reads lines. */
static bm_status refuse_pages(const walk *w)
{
    for (size_t i = 0; i < w->pages.n; i++)
        for (size_t k = 0; k < w->out->n; k++) {
            const char *page = w->pages.path[i], *image = w->out->path[k];

            if (same_stem(page, image))
                return BM_FAIL(BM_ERR_FORMAT,
                               "%.300s is a page, whose lines are in %.300s; "
                               "pack the pages and give the packed set: bmuf "
                               "pack --images %.*s --out DIR --vocab MODEL "
                               "--no-text",
                               image, page,
                               (int)(strrchr(page, '/') + 1 - page), page);
        }
    return BM_OK;
}

bm_status bm_folder_walk(bm_paths *out, const char *folder, bm_input_kind kind)
{
    walk w = {.out = out, .kind = kind, .root = strlen(folder)};
    bm_status status = add(&w.folders, folder);

    while (w.root > 1 && folder[w.root - 1] == '/')
        w.root--;
    for (size_t i = 0; status == BM_OK && i < w.folders.n; i++)
        status = read_folder(&w, w.folders.path[i]);
    if (status == BM_OK)
        status = refuse_pages(&w);
    bm_paths_free(&w.folders);
    bm_paths_free(&w.pages);
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

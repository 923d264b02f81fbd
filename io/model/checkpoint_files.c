/*
 * checkpoint_files.c - names of checkpoints in a directory. There is no pointer
 * to the latest one: it is the newest that can be loaded.
 */
#include "core/file/file.h"
#include "core/file/path.h"
#include "core/log.h"
#include "io/model/checkpoint.h"
#include "io/model/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bm_checkpoint_path(const char *directory, int64_t blocks, char *out,
                        size_t room)
{
    snprintf(out, room, "%s/block-%08" PRId64 ".safetensors", directory,
             blocks);
}

/* The number in a name that bm_checkpoint_path makes; -1 for another name. */
static int64_t number_of(const char *name)
{
    char right[64];
    int64_t blocks = 0;

    if (sscanf(name, "block-%18" SCNd64, &blocks) != 1 || blocks < 0)
        return -1;
    snprintf(right, sizeof right, "block-%08" PRId64 ".safetensors", blocks);
    return strcmp(name, right) == 0 ? blocks : -1;
}

static bool is_left_over(const char *name)
{
    return bm_file_is_temporary(name, "block-", ".safetensors");
}

/* Inserts x into a list of at most `room` numbers, largest first. Returns the
 * new length. */
static size_t insert(int64_t *list, size_t n, size_t room, int64_t x)
{
    size_t at = n;

    while (at > 0 && list[at - 1] < x)
        at--;
    if (at == room)
        return n;
    if (n < room)
        n++;
    memmove(list + at + 1, list + at, (n - at - 1) * sizeof *list);
    list[at] = x;
    return n;
}

static bm_status cannot_list(const char *directory, int error)
{
    bool refused = error == EACCES || error == EPERM || error == ENOTDIR ||
                   error == ELOOP || error == ENAMETOOLONG;

    return BM_FAIL(refused ? BM_ERR_MISSING : BM_ERR_IO,
                   "%s: the checkpoints in it cannot be listed: %s", directory,
                   strerror(error));
}

/* With ENOTDIR the directory itself may be a file; if nothing is there, a folder
 * above it is one. */
static bool is_absent(const char *directory, int error)
{
    return error == ENOENT ||
           (error == ENOTDIR && access(directory, F_OK) != 0);
}

/* The newest ones with numbers of at most `last`; otherwise as
 * bm_checkpoint_list. */
static bm_status list_up_to(const char *directory, int64_t last,
                            int64_t *blocks, size_t room, size_t *n)
{
    DIR *files = opendir(directory);
    const struct dirent *file = NULL;
    int error = files == NULL ? errno : 0;

    *n = 0;
    if (files == NULL)
        return is_absent(directory, error) ? BM_OK
                                           : cannot_list(directory, error);
    for (errno = 0; (file = readdir(files)) != NULL; errno = 0) {
        int64_t x = number_of(file->d_name);

        if (x >= 0 && x <= last)
            *n = insert(blocks, *n, room, x);
    }
    error = errno;
    closedir(files);
    return error == 0 ? BM_OK : cannot_list(directory, error);
}

bm_status bm_checkpoint_list(const char *directory, int64_t *blocks,
                             size_t room, size_t *n)
{
    return list_up_to(directory, INT64_MAX, blocks, room, n);
}

static void discard(const char *directory, const char *name)
{
    char path[PATH_MAX];

    if (bm_path_join(path, directory, name) == BM_OK && unlink(path) != 0 &&
        errno != ENOENT)
        bm_log(BM_WARNING, "%s: cannot be removed: %s", path, strerror(errno));
}

/* The number of the oldest checkpoint to keep. */
static int64_t oldest_kept(const char *directory, const bm_retention *stay)
{
    size_t keep = stay->newest > 0 ? stay->newest : 1, n = 0;
    int64_t *list = calloc(keep, sizeof *list), oldest = 0;

    /* without memory or a list all are kept */
    if (list != NULL &&
        list_up_to(directory, stay->last, list, keep, &n) == BM_OK && n == keep)
        oldest = list[keep - 1];
    free(list);
    return oldest;
}

static bool is_kept(const bm_retention *stay, int64_t oldest, int64_t blocks)
{
    bool kept = blocks >= oldest;

    for (size_t i = 0; i < stay->n; i++)
        kept = kept || stay->blocks[i] == blocks;
    return kept;
}

void bm_checkpoint_prune(const char *directory, const bm_retention *stay)
{
    int64_t oldest = oldest_kept(directory, stay);
    DIR *files = opendir(directory);
    const struct dirent *file = NULL;

    while (files != NULL && (file = readdir(files)) != NULL) {
        int64_t blocks = number_of(file->d_name);
        if ((blocks >= 0 && !is_kept(stay, oldest, blocks)) ||
            is_left_over(file->d_name))
            discard(directory, file->d_name);
    }
    if (files != NULL)
        closedir(files);
}

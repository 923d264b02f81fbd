/* check_data.c - the folder of the training data: whether the host sees it, and
 * how fast it reads there. */
#define _GNU_SOURCE /* posix_fadvise */
#include "cli/doctor/check.h"
#include "core/clock.h"
#include "core/text/words.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20, MOST_BYTES = 256 << 20, SLOW_MB_S = 20 };

#define SECONDS 3.0

/* Reads a file, as long as there are bytes and seconds left. */
static bool read_file(const char *path, char *piece, double until,
                      size_t *bytes)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 1;

    if (file < 0)
        return false;
    (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    while (n > 0 && *bytes < MOST_BYTES && bm_clock() < until) {
        n = read(file, piece, PIECE);
        *bytes += n > 0 ? (size_t)n : 0;
    }
    close(file);
    return n >= 0;
}

static bool read_folder(bm_check_context *e, DIR *list, char *piece)
{
    double since = bm_clock(), seconds = 0;
    size_t bytes = 0, before = 0, files = 0;
    const struct dirent *entry = NULL;
    char path[PATH_MAX];

    while ((entry = readdir(list)) != NULL && bytes < MOST_BYTES &&
           bm_clock() < since + SECONDS) {
        if (!bm_ends_with(entry->d_name, ".h5"))
            continue;
        snprintf(path, sizeof path, "%s/%s", e->target->data, entry->d_name);
        before = bytes;
        errno = 0;
        if (!read_file(path, piece, since + SECONDS, &bytes) ||
            (bytes == before && bm_clock() < since + SECONDS)) {
            bm_find(e, BM_FATAL, "bmuf check FOLDER reads all of them",
                    "%s cannot be read: %s", path,
                    bytes == before && errno == 0 ? "it is empty"
                                                  : strerror(errno));
            return false;
        }
        files++;
    }
    seconds = bm_clock() - since;
    if (files == 0) {
        bm_find(e, BM_FATAL,
                "run bmuf pack, or correct data.train; every host needs the "
                "folder at the same path",
                "%s has no shards (*.h5)", e->target->data);
        return false;
    }
    if (bytes < 4 * PIECE) {
        bm_find(e, BM_FINE, "", "%s: too few bytes to measure reading",
                e->target->data);
        return true;
    }
    json_object_set_new(e->facts, "read_mb_s",
                        json_real(1e-6 * (double)bytes / seconds));
    if ((double)bytes / seconds < 1e6 * SLOW_MB_S)
        bm_find(e, BM_DOUBTFUL,
                "copy the data to a local disk, or train with fewer ranks",
                "%s reads %.1f MB/s: training may wait for it", e->target->data,
                1e-6 * (double)bytes / seconds);
    else
        bm_find(e, BM_FINE, "",
                "%s reads %.0f MB/s (files that were read "
                "before may come from memory)",
                e->target->data, 1e-6 * (double)bytes / seconds);
    return true;
}

static bool has_shards(DIR *list)
{
    const struct dirent *entry = NULL;

    while ((entry = readdir(list)) != NULL)
        if (bm_ends_with(entry->d_name, ".h5"))
            return true;
    return false;
}

/* Sets that are read after an epoch, or at the end. */
static void find_other(bm_check_context *e, const char *setting,
                       const char *folder)
{
    DIR *list = folder[0] != '\0' ? opendir(folder) : NULL;

    if (folder[0] != '\0' && (list == NULL || !has_shards(list)))
        bm_find(e, BM_FATAL,
                "run bmuf pack, or correct it; every host needs the folder at "
                "the same path",
                "%s = %s: %s", setting, folder,
                list == NULL ? strerror(errno) : "no shards (*.h5)");
    if (list != NULL)
        closedir(list);
}

static void host(bm_check_context *e)
{
    DIR *list = NULL;
    char *piece = NULL;

    if (e->target->data[0] == '\0') {
        bm_find(e, BM_SKIPPED, "give a CONFIG", "no data to read");
        return;
    }
    find_other(e, "data.dev", e->target->others[0]);
    find_other(e, "data.test", e->target->others[1]);
    list = opendir(e->target->data);
    piece = malloc(PIECE);
    if (list == NULL)
        bm_find(e, BM_FATAL,
                "run bmuf pack, or correct data.train; every host needs the "
                "folder at the same path",
                "%s: %s", e->target->data, strerror(errno));
    else if (piece != NULL)
        (void)read_folder(e, list, piece);
    free(piece);
    if (list != NULL)
        closedir(list);
}

const bm_check bm_check_data = {
    .name = "data",
    .help = "reading the training data of a configuration",
    .seconds = 20,
    .host = host,
};

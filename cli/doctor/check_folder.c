/*
 * check_folder.c - the folder that all hosts share: whether each host sees what
 * another one writes, and how soon; locks; the speed of writing to the disk and
 * of reading.
 */
#define _GNU_SOURCE /* posix_fadvise */
#include "cli/doctor/check.h"
#include "core/clock.h"
#include "core/file/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 20, PIECES = 16, LEAST_GB = 1 };

#define MOST_S 10.0 /* until a file is seen */
#define SOON_S 1.0

static const char mount[] =
    "mount one folder on all hosts at the same path, or give --folder FOLDER";

/* What all ranks know. */
typedef struct trial {
    bm_check_context *e;
    int rank, size;
    char path[PATH_MAX]; /* of rank 0's file; others add .RANK */
    char lock[64];       /* the name of a lock file */
} trial;

static bool is_first_on_host(const bm_comm *comm, int rank)
{
    return bm_comm_host(comm, rank) == rank;
}

static void name_of(const trial *t, int rank, char *out)
{
    if (rank == 0)
        snprintf(out, PATH_MAX, "%s", t->path);
    else
        snprintf(out, PATH_MAX, "%.*s.%d", PATH_MAX - 16, t->path, rank);
}

/* Returns 0, or the error; *seconds <- until the bytes are on the disk. */
static int write_file(const char *path, size_t pieces, double *seconds)
{
    double since = bm_clock();
    char *piece = calloc(1, PIECE);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int error = file < 0 || piece == NULL ? errno : 0;

    for (size_t i = 0; i < pieces && error == 0; i++)
        if (write(file, piece, PIECE) != PIECE)
            error = errno != 0 ? errno : ENOSPC;
    if (error == 0 && fsync(file) != 0)
        error = errno;
    if (file >= 0 && close(file) != 0 && error == 0)
        error = errno;
    free(piece);
    *seconds = bm_clock() - since;
    return error;
}

/* Waits until the file is there, as long as it should be. */
static bool see(const char *path, size_t bytes, double *seconds)
{
    const struct timespec pause = {0, 2000000};
    double since = bm_clock();

    for (*seconds = 0; *seconds < MOST_S; *seconds = bm_clock() - since) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        bool there = file >= 0 && lseek(file, 0, SEEK_END) == (off_t)bytes;

        if (file >= 0)
            close(file);
        if (there) {
            *seconds = bm_clock() - since;
            return true;
        }
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Bytes a second, or 0. */
static double read_speed(const char *path)
{
    double since = bm_clock();
    char *piece = malloc(PIECE);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    size_t bytes = 0;
    ssize_t n = file >= 0 && piece != NULL ? 1 : 0;

    if (file >= 0)
        (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    while (n > 0) {
        n = read(file, piece, PIECE);
        bytes += n > 0 ? (size_t)n : 0;
    }
    if (file >= 0)
        close(file);
    free(piece);
    return (double)bytes / (bm_clock() - since + 1e-9);
}

/* Rank 0's file; false on all ranks if it cannot be written. */
static bm_status try_writing(trial *t, bool *written)
{
    double seconds = 0;
    int error = 0;

    if (t->rank == 0) {
        error = write_file(t->path, PIECES, &seconds);
        if (error != 0)
            bm_find(t->e, BM_FATAL,
                    "give a folder that can be written with --folder FOLDER, "
                    "or make room",
                    "%s: %s", t->path, strerror(error));
        else
            json_object_set_new(t->e->facts, "write_mb_s",
                                json_real(1e-6 * PIECE * PIECES / seconds));
    }
    BM_TRY(bm_comm_max(t->e->comm, &error, 1));
    *written = error == 0;
    return BM_OK;
}

/* Every rank looks for the file of rank 0, and rank 0 for all others. */
static bm_status try_seeing(trial *t)
{
    char path[PATH_MAX];
    double seconds = 0;
    int error = 0;

    if (t->rank > 0 && !see(t->path, (size_t)PIECE * PIECES, &seconds))
        bm_find(t->e, BM_FATAL, mount,
                "%s is not the folder of rank 0: a file that rank 0 wrote did "
                "not appear within %.0f s",
                t->e->target->folder, MOST_S);
    else if (t->rank > 0)
        json_object_set_new(t->e->facts, "seen_after_s", json_real(seconds));
    if (t->rank > 0 && seconds > SOON_S && seconds < MOST_S)
        bm_find(t->e, BM_DOUBTFUL,
                "mount it with noac or a smaller acdirmax (NFS)",
                "a file of rank 0 is seen after %.1f s", seconds);
    name_of(t, t->rank, path);
    if (t->rank > 0)
        error = write_file(path, 1, &seconds);
    if (error != 0)
        bm_find(t->e, BM_FATAL, mount, "%s: %s", path, strerror(error));
    BM_TRY(bm_comm_barrier(t->e->comm));
    for (int r = 1; r < t->size && t->rank == 0; r++) {
        name_of(t, r, path);
        if (see(path, PIECE, &seconds))
            continue;
        bm_find(t->e, BM_FATAL, mount,
                "a file that rank %d has written is not seen within %.0f s", r,
                MOST_S);
        break; /* the others would take as long */
    }
    return BM_OK;
}

/* Rank 0 holds a lock, which the first rank of every host tries to take. */
static bm_status try_locks(trial *t)
{
    int held = -1, own = -1, failed = 0;

    if (t->rank == 0 &&
        bm_file_lock(&held, t->e->target->folder, t->lock) != BM_OK) {
        failed = 1;
        bm_find(t->e, BM_DOUBTFUL,
                "mount it with locks (NFS: without nolock; Lustre: with flock)",
                "files cannot be locked: two jobs may write the same run "
                "folder (%s)",
                bm_last_message());
    }
    BM_TRY(bm_comm_max(t->e->comm, &failed, 1));
    if (failed == 0 && is_first_on_host(t->e->comm, t->rank) &&
        bm_file_lock(&own, t->e->target->folder, t->lock) == BM_OK) {
        bm_find(t->e, BM_DOUBTFUL,
                "mount it with locks of all hosts (NFS: without local_lock)",
                "a lock of rank 0 is not seen: two jobs may write the same run "
                "folder");
    }
    BM_TRY(bm_comm_barrier(t->e->comm));
    if (own >= 0)
        close(own);
    bm_file_unlock(held, t->e->target->folder, t->lock);
    return BM_OK;
}

static void try_room(const trial *t)
{
    struct statvfs info;
    double gb = 0;

    if (t->rank != 0 || statvfs(t->e->target->folder, &info) != 0)
        return;
    gb = (double)info.f_bavail * (double)info.f_frsize / 1e9;
    json_object_set_new(t->e->facts, "free_gb", json_real(gb));
    if (gb < LEAST_GB)
        bm_find(t->e, BM_DOUBTFUL, "remove old runs, or use another folder",
                "%.2f GB are free; a checkpoint is up to four times as large "
                "as the model",
                gb);
}

static bm_status examine(trial *t)
{
    char path[PATH_MAX];
    bool written = false;
    double speed = 0;

    try_room(t);
    BM_TRY(try_writing(t, &written));
    if (!written) {
        name_of(t, t->rank, path);
        (void)unlink(path);
        return BM_OK;
    }
    BM_TRY(try_seeing(t));
    BM_TRY(try_locks(t));
    if (is_first_on_host(t->e->comm, t->rank)) {
        speed = read_speed(t->path);
        if (speed > 0)
            json_object_set_new(t->e->facts, "read_mb_s",
                                json_real(1e-6 * speed));
    }
    BM_TRY(bm_comm_barrier(t->e->comm));
    name_of(t, t->rank, path);
    (void)unlink(path);
    return BM_OK;
}

static bm_status together(bm_check_context *e)
{
    trial t = {
        .e = e, .rank = bm_comm_rank(e->comm), .size = bm_comm_size(e->comm)};
    int64_t who[2] = {getpid(), (int64_t)(1e6 * bm_time_of_day())};

    BM_TRY(bm_comm_broadcast_bytes(e->comm, who, sizeof who, 0));
    snprintf(t.lock, sizeof t.lock, ".bmuf-doctor-%lld-%llx.lock",
             (long long)who[0], (unsigned long long)who[1]);
    snprintf(t.path, sizeof t.path, "%.*s/.bmuf-doctor-%lld-%llx",
             PATH_MAX - 100, e->target->folder, (long long)who[0],
             (unsigned long long)who[1]);
    snprintf(e->doing, sizeof e->doing, "writing and reading in %.150s",
             e->target->folder);
    return examine(&t);
}

/* The value of the rank that has the least of it, or the most. */
static double extreme(const json_t *ranks, const char *key, bool most)
{
    double out = NAN;

    for (size_t r = 0; r < json_array_size(ranks); r++) {
        const json_t *x = json_object_get(
            json_object_get(json_array_get(ranks, r), "facts"), key);
        double now = json_number_value(x);

        if (x != NULL && (isnan(out) || (now > out) == most))
            out = now;
    }
    return out;
}

static void compare(bm_check_context *e, const json_t *ranks)
{
    double wrote = extreme(ranks, "write_mb_s", false);
    double seen = extreme(ranks, "seen_after_s", true);
    char delay[80] = "";

    if (!isnan(seen))
        snprintf(delay, sizeof delay, ", other ranks see files within %.3g s",
                 seen);
    if (!isnan(wrote))
        bm_find(e, BM_FINE, "",
                "%s: writes %.0f MB/s to the disk, reads %.0f MB/s (which may "
                "come from memory)%s",
                e->target->folder, wrote, extreme(ranks, "read_mb_s", false),
                delay);
}

const bm_check bm_check_folder = {
    .name = "folder",
    .help = "the folder that hosts share: files, locks, speed, room",
    .seconds = 60,
    .together = together,
    .compare = compare,
};

/*
 * scratch.c - see scratch.h. Folders are told apart by a file in them that the
 * supervisor locks: the kernel drops the lock when it dies. All files are
 * opened relative to folders that are open, and no symbolic link is followed.
 */
#define _GNU_SOURCE /* F_OFD_SETLK */
#include "cli/launch/scratch.h"

#include "core/file/file_lock.h"
#include "core/file/temporary.h"
#include "core/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static const char prefix[] = "bmuf-", lock_name[] = "supervisor";

enum {
    XS = 6,        /* characters after the prefix */
    FRESH_S = 60,  /* a younger folder may not be locked yet */
    DEEPEST = 16,  /* levels of folders that are removed */
    START_MB = 9,  /* measured, Open MPI 4.1.4: to start */
    SHARED_MB = 4, /* and for the shared memory of each rank */
};

/* Opens a folder; -1: there is none, or the name is a link. */
static int open_folder(int parent, const char *name)
{
    return openat(parent, name,
                  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* False if another process holds the lock. */
static bool lock(int file)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(file, F_OFD_SETLK, &whole) == 0;
}

/* Removes the files of a folder; inner <- one that is left, as it is a folder,
 * or "". */
static void remove_files(int folder, char inner[NAME_MAX + 1])
{
    int copy = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    DIR *list = copy >= 0 ? fdopendir(copy) : NULL;
    const struct dirent *entry = NULL;

    inner[0] = '\0';
    if (list != NULL)
        rewinddir(list);
    while (list != NULL && (entry = readdir(list)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0 &&
            unlinkat(folder, entry->d_name, 0) != 0)
            snprintf(inner, NAME_MAX + 1, "%s", entry->d_name);
    if (list != NULL)
        closedir(list);
    else if (copy >= 0)
        close(copy);
}

/* Removes the files of a folder and one folder below it that has no others.
 * False: there is none, or it cannot be removed. */
static bool remove_leaf(int top)
{
    char name[NAME_MAX + 1] = "", inner[NAME_MAX + 1];
    int parent = -1, folder = fcntl(top, F_DUPFD_CLOEXEC, 0);
    bool removed = false;

    for (int depth = 0; folder >= 0 && depth < DEEPEST; depth++) {
        remove_files(folder, inner);
        if (inner[0] == '\0') {
            removed = parent >= 0 && unlinkat(parent, name, AT_REMOVEDIR) == 0;
            break;
        }
        if (parent >= 0)
            close(parent);
        parent = folder;
        memcpy(name, inner, sizeof name);
        folder = open_folder(parent, name);
    }
    if (parent >= 0)
        close(parent);
    if (folder >= 0)
        close(folder);
    return removed;
}

/* Removes an open folder, as far as possible. */
static void remove_tree(int parent, const char *name, int folder)
{
    while (remove_leaf(folder))
        continue;
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* ---- folders of dead supervisors ---------------------------------------- */

/* Whether the lock file names this host and can be locked. */
static bool can_take(int folder)
{
    int file = openat(folder, lock_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    char text[300] = "", ours[256] = "", theirs[256] = "";
    bool taken = false;

    if (file < 0)
        return false;
    taken = gethostname(ours, sizeof ours - 1) == 0 &&
            read(file, text, sizeof text - 1) > 0 &&
            sscanf(text, "host %255[^,],", theirs) == 1 &&
            strcmp(ours, theirs) == 0 && lock(file);
    close(file);
    return taken;
}

static bool is_stale(int folder)
{
    struct stat info;

    return fstat(folder, &info) == 0 && info.st_uid == geteuid() &&
           time(NULL) - info.st_mtime > FRESH_S && can_take(folder);
}

static void remove_stale(void)
{
    DIR *list = opendir(bm_temporary_folder());
    const struct dirent *entry = NULL;
    size_t n = sizeof prefix - 1;

    while (list != NULL && (entry = readdir(list)) != NULL) {
        int folder = -1;

        if (strncmp(entry->d_name, prefix, n) != 0 ||
            strlen(entry->d_name) != n + XS)
            continue;
        folder = open_folder(dirfd(list), entry->d_name);
        if (folder < 0)
            continue;
        if (is_stale(folder))
            remove_tree(dirfd(list), entry->d_name, folder);
        close(folder);
    }
    if (list != NULL)
        closedir(list);
}

/* ---- this job's folder -------------------------------------------------- */

static bm_status check_room(long ranks)
{
    static const char advice[] = "free some, or set TMPDIR to another folder";
    const char *top = bm_temporary_folder();
    struct statvfs info;
    double mb = 0, all = START_MB + SHARED_MB * (double)ranks;

    if (statvfs(top, &info) != 0)
        return BM_FAIL(BM_ERR_CREATE,
                       "TMPDIR %s: %s; set TMPDIR to another folder", top,
                       strerror(errno));
    mb = (double)info.f_bavail * (double)info.f_frsize / (1 << 20);
    if (mb < START_MB)
        return BM_FAIL(BM_ERR_CREATE,
                       "TMPDIR %s: %.1f MB are free, but Open MPI needs %d MB "
                       "there to start; %s",
                       top, mb, START_MB, advice);
    if (mb < all)
        bm_log(BM_WARNING,
               "TMPDIR %s: %.1f MB are free, but the shared memory of %ld "
               "ranks needs %.0f MB, without which they exchange more slowly; "
               "%s",
               top, mb, ranks, all, advice);
    return BM_OK;
}

bm_status bm_scratch_folder_open(bm_scratch_folder *s, long ranks)
{
    s->lock = -1;
    remove_stale();
    BM_TRY(check_room(ranks));
    snprintf(s->path, sizeof s->path, "%s/%sXXXXXX", bm_temporary_folder(),
             prefix);
    if (mkdtemp(s->path) == NULL)
        return BM_FAIL(BM_ERR_CREATE,
                       "TMPDIR %s: cannot make a folder: %s; set TMPDIR to "
                       "another folder",
                       bm_temporary_folder(), strerror(errno));
    /* Where locks are impossible, others leave the folder alone. */
    if (bm_file_lock(&s->lock, s->path, lock_name) != BM_OK)
        s->lock = -1;
    return BM_OK;
}

void bm_scratch_folder_close(bm_scratch_folder *s)
{
    int folder = open_folder(AT_FDCWD, s->path);

    bm_file_unlock(s->lock, s->path, lock_name);
    s->lock = -1;
    if (folder < 0)
        return;
    remove_tree(AT_FDCWD, s->path, folder);
    close(folder);
}

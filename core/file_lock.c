#define _GNU_SOURCE /* F_OFD_SETLK */
#include "core/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The text in the file is for the message to the next one. */
static bm_status sign(int lock, const char *path)
{
    char owner[200], host[100] = "?";
    ssize_t n = 0;

    gethostname(host, sizeof host - 1);
    n = snprintf(owner, sizeof owner, "host %s, process %ld\n", host,
                 (long)getpid());
    if (ftruncate(lock, 0) != 0 || write(lock, owner, (size_t)n) != n)
        return BM_FAIL(BM_ERR_IO, "%s: %s", path, strerror(errno));
    return BM_OK;
}

static bm_status in_use(int lock, const char *directory)
{
    char owner[200] = "";
    ssize_t n = read(lock, owner, sizeof owner - 1);

    owner[n > 0 ? n : 0] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
    return BM_FAIL(BM_ERR_CREATE,
                   "%s is in use by another job (%s); wait for it, or give "
                   "another --out",
                   directory, owner);
}

/* Did another process remove the file between our open and our lock? */
static bool was_removed(int lock, const char *path)
{
    struct stat ours, there;

    return fstat(lock, &ours) == 0 &&
           (stat(path, &there) != 0 || ours.st_ino != there.st_ino ||
            ours.st_dev != there.st_dev);
}

bm_status bm_file_lock(int *out, const char *directory, const char *name)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[PATH_MAX];
    int lock = -1;
    bm_status status = BM_OK;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    do {
        if (lock >= 0)
            close(lock);
        lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (lock < 0)
            return BM_FAIL(BM_ERR_CREATE, "%s: %s", path, strerror(errno));
        if (fcntl(lock, F_OFD_SETLK, &whole) != 0)
            BM_TRY_DONE(in_use(lock, directory));
    } while (was_removed(lock, path));
    BM_TRY_DONE(sign(lock, path));
    *out = lock;
    lock = -1;
done:
    if (lock >= 0)
        close(lock);
    return status;
}

void bm_file_unlock(int lock, const char *directory, const char *name)
{
    char path[PATH_MAX];

    if (lock < 0)
        return;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    unlink(path);
    close(lock);
}

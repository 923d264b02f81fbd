#define _GNU_SOURCE /* F_OFD_SETLK */
#include "core/file/file_lock.h"

#include "core/file/path.h"
#include "core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* When a process of this host began, in ticks since the host did, as numbers of
 * processes are used again; 0: there is none. */
static long long began(long pid)
{
    char path[64], line[1024] = "";
    const char *end = NULL;
    long long ticks = 0;
    FILE *file = NULL;

    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fgets(line, sizeof line, file) != NULL)
        end = strrchr(line, ')'); /* names may hold anything */
    fclose(file);
    for (int field = 2; end != NULL && field < 22; field++)
        end = strchr(end + 1, ' ');
    if (end == NULL || sscanf(end, "%lld", &ticks) != 1)
        return 0;
    return ticks;
}

/* The text in the file is for the message to the next one, and for hosts whose
 * file system has no locks. */
static bm_status sign(int lock, const char *path)
{
    char owner[200], host[100] = "?";
    ssize_t n = 0;

    gethostname(host, sizeof host - 1);
    n = snprintf(owner, sizeof owner, "host %s, process %ld, begun %lld\n",
                 host, (long)getpid(), began(getpid()));
    if (ftruncate(lock, 0) != 0 || write(lock, owner, (size_t)n) != n)
        return BM_FAIL(BM_ERR_IO, "%s: %s", path, strerror(errno));
    return BM_OK;
}

/* Whether the process that the text names runs on this host. */
static bool owner_lives(int lock)
{
    char owner[200] = "", host[100] = "?", theirs[100] = "";
    long pid = 0;
    long long begun = 0;

    return pread(lock, owner, sizeof owner - 1, 0) > 0 &&
           sscanf(owner, "host %99[^,], process %ld, begun %lld", theirs, &pid,
                  &begun) == 3 &&
           gethostname(host, sizeof host - 1) == 0 &&
           strcmp(host, theirs) == 0 && pid != (long)getpid() && begun != 0 &&
           began(pid) == begun;
}

/* Some network file systems have no locks. Then only a process of this host can
 * be found, and fence.h has to shut out others. */
static bool take(int lock, const char *directory, const char *name)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int error = 0;

    if (fcntl(lock, F_OFD_SETLK, &whole) == 0)
        return true;
    error = errno;
    if ((error != ENOSYS && error != ENOLCK && error != EOPNOTSUPP &&
         error != EINVAL) ||
        owner_lives(lock))
        return false;
    bm_log(BM_WARNING,
           "%s/%s: its file system has no locks (%s); make sure that no job on "
           "another host uses this directory",
           directory, name, strerror(error));
    return true;
}

static bm_status in_use(int lock, const char *directory)
{
    char owner[200] = "";
    ssize_t n = read(lock, owner, sizeof owner - 1);

    owner[n > 0 ? n : 0] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
    if (strstr(owner, ", begun") != NULL)
        *strstr(owner, ", begun") = '\0';
    return BM_FAIL(BM_ERR_CREATE,
                   "%s is in use by another job (%s); wait for it, or give "
                   "another --out",
                   directory, owner[0] != '\0' ? owner : "just started");
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
    char path[PATH_MAX];
    int lock = -1;
    bm_status status = BM_OK;

    BM_TRY(bm_path_join(path, directory, name));
    do {
        if (lock >= 0)
            close(lock);
        lock = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (lock < 0)
            return BM_FAIL(BM_ERR_CREATE, "%s: %s", path, strerror(errno));
        if (!take(lock, directory, name))
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
    if (bm_path_join(path, directory, name) == BM_OK)
        unlink(path);
    close(lock);
}

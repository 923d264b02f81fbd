/*
 * disk.c - a disk that fails, for programs that load it with LD_PRELOAD.
 *
 *     BMUF_DISK="write 3 1 5 checkpoints /tmp/struck"
 *
 * Calls of write number 3 to 3 + 1 - 1, of those on files whose path has
 * "checkpoints", fail with errno 5; each of them adds a byte to /tmp/struck.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

int open(const char *path, int flags, ...);
int posix_fallocate(int fd, off_t offset, off_t size);
ssize_t read(int fd, void *data, size_t size);
ssize_t write(int fd, const void *data, size_t size);
int fsync(int fd);
int rename(const char *from, const char *to);

static atomic_long seen; /* calls that count */

static void note(const char *log)
{
    long fd =
        syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND, 0666);

    if (fd >= 0) {
        (void)syscall(SYS_write, (int)fd, "x", 1);
        (void)syscall(SYS_close, (int)fd);
    }
}

/* Whether this call is to fail; sets errno. */
static bool fails(const char *call, const char *path)
{
    const char *how = getenv("BMUF_DISK");
    char name[32], where[256], log[1024];
    long first = 0, count = 0, number = 0;
    int error = 0;

    if (how == NULL || sscanf(how, "%31s %ld %ld %d %255s %1023s", name, &first,
                              &count, &error, where, log) != 6)
        return false;
    if (strcmp(name, call) != 0 || strstr(path, where) == NULL)
        return false;
    number = atomic_fetch_add(&seen, 1) + 1;
    if (number < first || number - first >= count)
        return false;
    note(log);
    errno = error;
    return true;
}

static bool fails_on(const char *call, int fd)
{
    char link[64], path[4096];
    int before = errno;
    ssize_t n = 0;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    errno = before;
    return fails(call, path);
}

/* Fills a pointer to the function that one here stands in for. */
static void find(void *next, const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    memcpy(next, &function, sizeof function);
}

int open(const char *path, int flags, ...)
{
    static int (*next)(const char *, int, ...);
    va_list more;
    mode_t mode = 0;

    va_start(more, flags);
    if (flags & O_CREAT)
        mode = va_arg(more, mode_t);
    va_end(more);
    if (next == NULL)
        find((void *)&next, "open");
    return fails("open", path) ? -1 : next(path, flags, mode);
}

int posix_fallocate(int fd, off_t offset, off_t size)
{
    static int (*next)(int, off_t, off_t);

    if (next == NULL)
        find((void *)&next, "posix_fallocate");
    return fails_on("posix_fallocate", fd) ? errno : next(fd, offset, size);
}

ssize_t read(int fd, void *data, size_t size)
{
    static ssize_t (*next)(int, void *, size_t);

    if (next == NULL)
        find((void *)&next, "read");
    return fails_on("read", fd) ? -1 : next(fd, data, size);
}

ssize_t write(int fd, const void *data, size_t size)
{
    static ssize_t (*next)(int, const void *, size_t);

    if (next == NULL)
        find((void *)&next, "write");
    return fails_on("write", fd) ? -1 : next(fd, data, size);
}

int fsync(int fd)
{
    static int (*next)(int);

    if (next == NULL)
        find((void *)&next, "fsync");
    return fails_on("fsync", fd) ? -1 : next(fd);
}

int rename(const char *from, const char *to)
{
    static int (*next)(const char *, const char *);

    if (next == NULL)
        find((void *)&next, "rename");
    return fails("rename", from) ? -1 : next(from, to);
}

/*
 * file_replace.c - atomic replacement of files. A temporary file is always a
 * new one: a name that exists, be it a link, is never opened or removed.
 */
#include "core/clock.h"
#include "core/file/fence.h"
#include "core/file/file.h"
#include "core/file/path.h"
#include "core/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char hex[] = "0123456789abcdef";
enum { DIGITS = 8 };
_Static_assert(BM_FILE_MORE == DIGITS + 6, "\".\", \".\" and \".tmp\"");

/* "dir/" of "dir/name"; "./" of "name". */
static void directory_of(const char *path, char out[PATH_MAX])
{
    size_t n = bm_path_folder_length(path);

    snprintf(out, PATH_MAX, "%.*s", n > 0 ? (int)n : 2, n > 0 ? path : "./");
}

static uint64_t unpredictable(void)
{
    uint64_t bits = 0;

    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits)
        bits = bm_rng_at((uint64_t)(1e9 * bm_clock()), (uint64_t)getpid());
    return bits;
}

/* A new name in the directory of r->path. */
static void choose_name(bm_file_replacement *r)
{
    size_t n = bm_path_folder_length(r->path);
    char digits[DIGITS + 1] = "";
    uint64_t bits = unpredictable();
    int length = 0;

    for (int i = 0; i < DIGITS; i++)
        digits[i] = hex[bits >> 4 * i & 15];
    length = snprintf(r->temporary, sizeof r->temporary, "%.*s.%s.%s.tmp",
                      (int)n, r->path, digits, r->path + n);
    BM_ASSERT(length > 0 && (size_t)length < sizeof r->temporary);
}

bool bm_file_is_temporary(const char *name, const char *beginning,
                          const char *ending)
{
    size_t n = strlen(name), of = DIGITS + 2, k = strlen(ending);

    if (n < of + k + 4 || name[0] != '.' || strspn(name + 1, hex) != DIGITS ||
        name[DIGITS + 1] != '.' || strcmp(name + n - 4, ".tmp") != 0)
        return false;
    return strncmp(name + of, beginning, strlen(beginning)) == 0 &&
           strncmp(name + n - 4 - k, ending, k) == 0;
}

bm_status bm_file_remove_temporaries(const char *directory,
                                     const char *beginning, const char *ending)
{
    DIR *d = opendir(directory);
    const struct dirent *entry = NULL;
    char path[PATH_MAX + 256];
    bm_status status = BM_OK;

    if (d == NULL)
        return BM_FAIL(BM_ERR_IO, "%s: %s", directory, strerror(errno));
    while (status == BM_OK && (entry = readdir(d)) != NULL) {
        if (!bm_file_is_temporary(entry->d_name, beginning, ending))
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (unlink(path) != 0 && errno != ENOENT)
            status = BM_FAIL(BM_ERR_IO, "cannot remove %s: %s", path,
                             strerror(errno));
    }
    closedir(d);
    return status;
}

static bm_status cannot_create(const char *path, int error)
{
    char directory[PATH_MAX];
    struct stat info;

    directory_of(path, directory);
    if (error == ENOENT && stat(directory, &info) != 0)
        return BM_FAIL(BM_ERR_CREATE,
                       "%s cannot be created: there is no directory %s", path,
                       directory);
    return BM_FAIL(error == ENOSPC || error == EDQUOT || error == EIO
                       ? BM_ERR_IO
                       : BM_ERR_CREATE,
                   "%s cannot be created: %s", path, strerror(error));
}

static bm_status check_target(const char *path)
{
    struct stat info;

    if (path[0] == '\0' || strlen(path) > BM_FILE_LONGEST_PATH)
        return BM_FAIL(BM_ERR_CREATE, "%.60s%s: the path is %s", path,
                       path[0] != '\0' ? "..." : "",
                       path[0] != '\0' ? "too long" : "empty");
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return BM_FAIL(BM_ERR_CREATE,
                       S_ISDIR(info.st_mode)
                           ? "%s is a directory"
                           : "%s is a device or a pipe, which cannot be "
                             "replaced by a file",
                       path);
    return BM_OK;
}

bm_status bm_file_replace_begin(bm_file_replacement *r, const char *path)
{
    enum { TRIALS = 100 };
    static const int flags =
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int error = EEXIST;

    r->fd = -1;
    r->stream = NULL;
    r->synced = false;
    r->path[0] = r->temporary[0] = '\0';
    BM_TRY(check_target(path));
    snprintf(r->path, sizeof r->path, "%s", path);
    for (int i = 0; i < TRIALS && (error == EEXIST || error == EINTR); i++) {
        choose_name(r);
        r->fd = open(r->temporary, flags, 0666);
        if (r->fd >= 0)
            return BM_OK;
        error = errno;
    }
    r->temporary[0] = '\0';
    return cannot_create(path, error);
}

bm_status bm_file_replace_stream(bm_file_replacement *r)
{
    r->stream = fdopen(r->fd, "wb");
    if (r->stream == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to write %s", r->path);
    return BM_OK;
}

bm_status bm_file_replace_write(bm_file_replacement *r, const void *data,
                                size_t size)
{
    const char *from = data;

    while (size > 0) {
        ssize_t k = write(r->fd, from, size);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return BM_FAIL(BM_ERR_IO, "%s cannot be written: %s", r->path,
                           k < 0 ? strerror(errno) : "no space");
        from += k;
        size -= (size_t)k;
    }
    return BM_OK;
}

/* No retry after a failed fsync: the kernel may have dropped the data. */
static int sync_fd(int fd)
{
    int failed = 0;

    do
        failed = fsync(fd);
    while (failed != 0 && errno == EINTR);
    return failed;
}

static int sync_directory(const char *path)
{
    char directory[PATH_MAX];
    int fd = -1, failed = 0;

    directory_of(path, directory);
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    failed = sync_fd(fd);
    if (failed != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return close(fd);
}

/* Returns 0, or the errno of what failed first. */
static int flush_file(bm_file_replacement *r, bool durable)
{
    if (r->stream != NULL && fflush(r->stream) != 0)
        return errno;
    if (r->stream != NULL && ferror(r->stream))
        return EIO; /* an earlier write, whose errno is gone */
    if (durable && !r->synced && sync_fd(r->fd) != 0)
        return errno;
    r->synced = durable;
    return 0;
}

bm_status bm_file_replace_sync(bm_file_replacement *r)
{
    int error = flush_file(r, true);

    if (error != 0)
        return BM_FAIL(BM_ERR_IO, "%s cannot be written: %s", r->path,
                       strerror(error));
    return BM_OK;
}

/* Likewise. */
static int close_file(bm_file_replacement *r, bool durable)
{
    int error = flush_file(r, durable), failed = 0;

    failed = r->stream != NULL ? fclose(r->stream) : close(r->fd);
    if (failed != 0 && error == 0)
        error = errno;
    r->stream = NULL;
    r->fd = -1;
    return error;
}

bm_status bm_file_replace_commit(bm_file_replacement *r, bool durable)
{
    int error = close_file(r, durable);
    bm_status shut_out = error == 0 ? bm_fence_check() : BM_OK;

    if (shut_out != BM_OK) {
        bm_file_replace_abort(r);
        return shut_out;
    }
    if (error == 0 && rename(r->temporary, r->path) != 0)
        error = errno;
    if (error == 0) {
        r->temporary[0] = '\0';
        if (durable && sync_directory(r->path) != 0)
            error = errno;
    }
    if (error == 0)
        return BM_OK;
    bm_file_replace_abort(r);
    return BM_FAIL(BM_ERR_IO, "%s cannot be written: %s", r->path,
                   strerror(error));
}

void bm_file_replace_abort(bm_file_replacement *r)
{
    if (r->temporary[0] == '\0')
        return;
    if (r->stream != NULL)
        fclose(r->stream);
    else if (r->fd >= 0)
        close(r->fd);
    r->stream = NULL;
    r->fd = -1;
    unlink(r->temporary);
    r->temporary[0] = '\0';
}

bm_status bm_file_write(const char *path, const void *data, size_t size)
{
    bm_file_replacement r;
    bm_status status = BM_OK;

    BM_TRY(bm_file_replace_begin(&r, path));
    status = bm_file_replace_write(&r, data, size);
    if (status == BM_OK)
        status = bm_file_replace_commit(&r, true);
    bm_file_replace_abort(&r);
    return status;
}

int bm_file_reserve(int fd, off_t size)
{
    int error = 0;

    do
        error = posix_fallocate(fd, 0, size);
    while (error == EINTR);
    return error;
}

bm_status bm_file_try(const char *path)
{
    bm_file_replacement r;

    BM_TRY(bm_file_replace_begin(&r, path));
    bm_file_replace_abort(&r);
    return BM_OK;
}

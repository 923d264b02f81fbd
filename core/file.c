#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Length of the directory of a path, with the slash. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

void bm_file_temporary(const char *path, char *out, size_t room)
{
    size_t n = directory_length(path);
    snprintf(out, room, "%.*s.%s.tmp", (int)n, path, path + n);
}

/* No retry after a failed fsync: the kernel may have dropped the data. */
static int sync_path(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC), failed = 0;

    if (fd < 0)
        return -1;
    do
        failed = fsync(fd);
    while (failed != 0 && errno == EINTR);
    if (failed != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return close(fd);
}

bm_status bm_file_commit(const char *temporary, const char *path)
{
    size_t n = directory_length(path);
    char directory[PATH_MAX];

    snprintf(directory, sizeof directory, "%.*s", (int)n, path);
    if (sync_path(temporary, O_RDONLY) != 0 || rename(temporary, path) != 0 ||
        sync_path(n > 0 ? directory : ".", O_RDONLY | O_DIRECTORY) != 0) {
        int error = errno;
        unlink(temporary);
        return BM_FAIL(BM_ERR_IO, "%s: cannot rename or sync the new file: %s",
                       path, strerror(error));
    }
    return BM_OK;
}

bm_status bm_file_try(const char *path)
{
    char temporary[PATH_MAX];
    struct stat info;
    int fd = -1;

    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return BM_FAIL(BM_ERR_CREATE, "%s is a directory", path);
    bm_file_temporary(path, temporary, sizeof temporary);
    fd = open(temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", temporary, strerror(errno));
    close(fd);
    unlink(temporary);
    return BM_OK;
}

bm_status bm_file_write(const char *path, const void *data, size_t size)
{
    char temporary[PATH_MAX];
    const char *from = data;
    int fd = -1;

    bm_file_temporary(path, temporary, sizeof temporary);
    fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", temporary, strerror(errno));
    while (size > 0) {
        ssize_t k = write(fd, from, size);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            break;
        from += k;
        size -= (size_t)k;
    }
    if (close(fd) != 0 || size > 0) {
        int error = errno;
        unlink(temporary);
        return BM_FAIL(BM_ERR_IO, "%s: %s", temporary, strerror(error));
    }
    return bm_file_commit(temporary, path);
}

bm_status bm_file_read(const char *path, size_t most, char **out, size_t *size)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    char *text = NULL;
    size_t n = 0;
    bm_status status = BM_OK;

    if (file == NULL)
        return BM_FAIL(errno == ENOENT ? BM_ERR_MISSING : BM_ERR_IO, "%s: %s",
                       path, strerror(errno));
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode))
        BM_FAIL_DONE(BM_ERR_IO, "%s is not a regular file", path);
    n = (size_t)info.st_size;
    if (n > most)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s has %zu bytes; at most %zu are read",
                     path, n, most);
    text = malloc(n + 1);
    if (text == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu bytes of %s", n, path);
    if (fread(text, 1, n, file) != n)
        BM_FAIL_DONE(BM_ERR_IO, "%s cannot be read: %s", path,
                     ferror(file) ? strerror(errno) : "it became shorter");
    text[n] = '\0';
    *out = text;
    *size = n;
    text = NULL;
done:
    free(text);
    fclose(file);
    return status;
}

bm_status bm_file_make_directory(const char *path)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n >= sizeof part)
        return BM_FAIL(BM_ERR_CREATE, "%.60s...: the path is too long", path);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return BM_FAIL(BM_ERR_CREATE, "%s: %s", part, strerror(errno));
    }
    return BM_OK;
}

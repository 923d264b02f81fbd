/*
 * file.c - reading regular files, and making directories.
 */
#include "core/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a directory";
    if (S_ISFIFO(mode))
        return "a pipe";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

static bm_status not_regular(const char *path, mode_t mode)
{
    return BM_FAIL(BM_ERR_MISSING, "%s is %s, not a regular file", path,
                   kind_of(mode));
}

static bm_status cannot_open(const char *path, int error)
{
    struct stat info;
    bm_status status = BM_ERR_MISSING;

    if (error == ENXIO && stat(path, &info) == 0) /* a socket */
        return not_regular(path, info.st_mode);
    if (error == EIO || error == ESTALE || error == ETIMEDOUT)
        status = BM_ERR_IO;
    else if (error == EMFILE || error == ENFILE || error == ENOMEM)
        status = BM_ERR_MEMORY;
    return BM_FAIL(status, "%s: %s", path, strerror(error));
}

/* Not to block: without it, a pipe that nobody writes to is waited for. */
bm_status bm_file_open_regular(int *out, const char *path)
{
    struct stat info;
    int fd = -1;

    do
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return cannot_open(path, errno);
    if (fstat(fd, &info) != 0) {
        int error = errno;
        close(fd);
        return BM_FAIL(BM_ERR_IO, "%s: %s", path, strerror(error));
    }
    if (!S_ISREG(info.st_mode)) {
        close(fd);
        return not_regular(path, info.st_mode);
    }
    *out = fd;
    return BM_OK;
}

bm_status bm_file_open_stream(FILE **out, const char *path)
{
    FILE *file = NULL;
    int fd = -1;

    BM_TRY(bm_file_open_regular(&fd, path));
    file = fdopen(fd, "rb");
    if (file == NULL) {
        close(fd);
        return BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", path);
    }
    *out = file;
    return BM_OK;
}

bm_status bm_file_read(const char *path, size_t most, char **out, size_t *size)
{
    FILE *file = NULL;
    struct stat info = {0};
    char *text = NULL;
    size_t n = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_file_open_stream(&file, path));
    if (fstat(fileno(file), &info) != 0)
        BM_FAIL_DONE(BM_ERR_IO, "%s: %s", path, strerror(errno));
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

bool bm_is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool bm_is_same_file(const char *path, const char *other)
{
    struct stat a, b;

    return stat(path, &a) == 0 && stat(other, &b) == 0 &&
           a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bm_status bm_file_make_directory(const char *path)
{
    char part[PATH_MAX];
    struct stat info;
    size_t n = strlen(path);

    if (n == 0)
        return BM_FAIL(BM_ERR_CREATE, "the name of the folder is empty");
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
    if (bm_is_folder(path))
        return BM_OK;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        return BM_FAIL(BM_ERR_CREATE, "%s is a link, but not to a folder",
                       path);
    return BM_FAIL(BM_ERR_CREATE, "%s is not a folder", path);
}

void bm_file_name(const char *path, char *out, size_t room)
{
    size_t end = strlen(path), begin = 0;

    while (end > 1 && path[end - 1] == '/')
        end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';)
        begin--;
    snprintf(out, room, "%.*s", (int)(end - begin), path + begin);
}

#include "core/file/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *bm_temporary_folder(void)
{
    const char *given = getenv("TMPDIR");

    return given != NULL && given[0] != '\0' ? given : "/tmp";
}

/* The path for mkstemp and mkdtemp; errno <- why if it is too long. */
static bool make_path(char out[PATH_MAX], const char *name)
{
    int n = snprintf(out, PATH_MAX, "%s/bmuf-%s-XXXXXX", bm_temporary_folder(),
                     name);

    errno = ENAMETOOLONG;
    return n > 0 && n < PATH_MAX;
}

static bm_status cannot_make(const char *what)
{
    return BM_FAIL(BM_ERR_CREATE,
                   "TMPDIR %.200s: cannot make a %s: %s; set TMPDIR to another "
                   "folder",
                   bm_temporary_folder(), what, strerror(errno));
}

bm_status bm_temporary_folder_make(char out[PATH_MAX], const char *name)
{
    if (make_path(out, name) && mkdtemp(out) != NULL)
        return BM_OK;
    out[0] = '\0';
    return cannot_make("folder");
}

bm_status bm_temporary_file(int *out)
{
    char path[PATH_MAX];
    int fd = make_path(path, "file") ? mkstemp(path) : -1;

    if (fd < 0)
        return cannot_make("file");
    (void)unlink(path);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    *out = fd;
    return BM_OK;
}

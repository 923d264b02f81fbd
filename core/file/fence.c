#include "core/file/fence.h"

#include "core/file/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char path[PATH_MAX]; /* "": none */
    char own[BM_FENCE_ROOM];
} fence;

/* text <- the first line of the file; false: it cannot be read. */
static bool read_attempt(const char *path, char text[BM_FENCE_ROOM])
{
    int file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    ssize_t n = 0;

    text[0] = '\0';
    if (file < 0)
        return false;
    n = read(file, text, BM_FENCE_ROOM - 1);
    close(file);
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return n > 0;
}

static void path_in(const char *directory, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/attempt", directory);
}

int bm_fence_number(const char *own)
{
    long n = strtol(own, NULL, 10);

    return n > 0 && n < INT_MAX ? (int)n : 0;
}

bm_status bm_fence_begin(const char *directory, int least,
                         char own[BM_FENCE_ROOM])
{
    char path[PATH_MAX], text[BM_FENCE_ROOM], host[100] = "?";
    int number = 0;

    path_in(directory, path);
    if (read_attempt(path, text))
        number = bm_fence_number(text);
    number = number + 1 > least ? number + 1 : least;
    gethostname(host, sizeof host - 1);
    snprintf(own, BM_FENCE_ROOM, "%d %s %ld", number, host, (long)getpid());
    snprintf(text, sizeof text, "%.*s\n", BM_FENCE_ROOM - 2, own);
    return bm_file_write(path, text, strlen(text));
}

void bm_fence_join(const char *directory, const char *own)
{
    path_in(directory, fence.path);
    snprintf(fence.own, sizeof fence.own, "%s", own);
}

void bm_fence_leave(void)
{
    fence.path[0] = '\0';
}

/* text <- the newest attempt, if it is a later one. */
static bool is_shut_out(char text[BM_FENCE_ROOM])
{
    return fence.path[0] != '\0' && read_attempt(fence.path, text) &&
           strcmp(text, fence.own) != 0;
}

bool bm_fence_stands(void)
{
    char text[BM_FENCE_ROOM];

    return !is_shut_out(text);
}

bm_status bm_fence_check(void)
{
    char text[BM_FENCE_ROOM];

    if (!is_shut_out(text))
        return BM_OK;
    return BM_FAIL(BM_ERR_COMM,
                   "%s: attempt %d of this run has begun (number, host, "
                   "process: %s); this process belongs to attempt %d, and "
                   "writes nothing more",
                   fence.path, bm_fence_number(text), text,
                   bm_fence_number(fence.own));
}

#include "core/file/fence.h"

#include "core/file/file.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The file that names the newest attempt, and the attempt of this process. */
typedef struct membership {
    char path[PATH_MAX]; /* "": none */
    char own[BM_FENCE_ROOM];
} membership;

static membership fence;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `fence` */

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

static void set(const membership *m)
{
    pthread_mutex_lock(&lock);
    fence = *m;
    pthread_mutex_unlock(&lock);
}

void bm_fence_join(const char *directory, const char *own)
{
    membership m;

    path_in(directory, m.path);
    snprintf(m.own, sizeof m.own, "%s", own);
    set(&m);
}

void bm_fence_leave(void)
{
    set(&(membership){0});
}

/* text <- the newest attempt, if it is a later one than that of *m, which gets
 * what this process belongs to. */
static bool is_shut_out(membership *m, char text[BM_FENCE_ROOM])
{
    pthread_mutex_lock(&lock);
    *m = fence;
    pthread_mutex_unlock(&lock);
    return m->path[0] != '\0' && read_attempt(m->path, text) &&
           strcmp(text, m->own) != 0;
}

bool bm_fence_stands(void)
{
    char text[BM_FENCE_ROOM];
    membership m;

    return !is_shut_out(&m, text);
}

bm_status bm_fence_check(void)
{
    char text[BM_FENCE_ROOM];
    membership m;

    if (!is_shut_out(&m, text))
        return BM_OK;
    return BM_FAIL(BM_ERR_COMM,
                   "%s: attempt %d of this run has begun (number, host, "
                   "process: %s); this process belongs to attempt %d, and "
                   "writes nothing more",
                   m.path, bm_fence_number(text), text, bm_fence_number(m.own));
}

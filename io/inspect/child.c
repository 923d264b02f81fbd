#include "io/inspect/child.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void limit(int what, rlim_t most)
{
    struct rlimit now;

    if (getrlimit(what, &now) == 0 && most < now.rlim_max) {
        now.rlim_cur = now.rlim_max = most;
        (void)setrlimit(what, &now);
    }
}

static void live(const bm_child *child, int fd)
{
    FILE *say = fdopen(fd, "w");

    if (say == NULL)
        _exit(1);
    limit(RLIMIT_CORE, 0);
    if (child->seconds > 0)
        limit(RLIMIT_CPU, child->seconds);
    if (child->memory > 0)
        limit(RLIMIT_AS, child->memory);
    child->work(child->self, say);
    _exit(fclose(say) == 0 ? 0 : 1);
}

static void listen_to(const bm_child *child, FILE *from)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n = 0;

    while ((n = getline(&line, &room, from)) > 0)
        if (line[n - 1] == '\n') { /* else it died while it said so */
            line[n - 1] = '\0';
            child->hear(child->self, line);
        }
    free(line);
}

bm_status bm_child_run(const bm_child *child, int *ended)
{
    int fds[2], result = 0;
    FILE *from = NULL;
    pid_t pid = 0;

    if (pipe(fds) != 0)
        return BM_FAIL(BM_ERR_IO, "no pipe to a child: %s", strerror(errno));
    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        live(child, fds[1]);
    }
    close(fds[1]);
    from = pid > 0 ? fdopen(fds[0], "r") : NULL;
    if (from == NULL) {
        int error = errno;
        close(fds[0]);
        if (pid > 0)
            waitpid(pid, &result, 0);
        return BM_FAIL(BM_ERR_MEMORY, "no child process: %s", strerror(error));
    }
    listen_to(child, from);
    fclose(from);
    while (waitpid(pid, &result, 0) < 0 && errno == EINTR)
        ;
    *ended = WIFSIGNALED(result)        ? WTERMSIG(result)
             : WEXITSTATUS(result) == 0 ? 0
                                        : -1;
    return BM_OK;
}

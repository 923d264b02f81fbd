#include "core/child.h"

#include <errno.h>
#include <signal.h>
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

/* A crash ends the child: handlers of the parent, such as MPI's, would report it,
 * or go on. */
static void restore_signals(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                SIGILL,  SIGABRT, SIGXCPU};

    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
}

static void run_child(const bm_child *child, int fd)
{
    FILE *out = fdopen(fd, "w");

    if (out == NULL)
        _exit(1);
    restore_signals();
    limit(RLIMIT_CORE, 0);
    if (child->seconds > 0)
        limit(RLIMIT_CPU, child->seconds);
    if (child->memory > 0)
        limit(RLIMIT_AS, child->memory);
    child->work(child->self, out);
    _exit(fclose(out) == 0 ? 0 : 1);
}

static void read_lines(const bm_child *child, FILE *from)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n = 0;

    while ((n = getline(&line, &room, from)) > 0)
        if (line[n - 1] == '\n') { /* else the child died within the line */
            line[n - 1] = '\0';
            child->receive(child->self, line);
        }
    free(line);
}

bm_status bm_child_run(const bm_child *child, int *ended)
{
    int fds[2], result = 0;
    FILE *from = NULL;
    pid_t pid = 0, waited = 0;

    if (pipe(fds) != 0)
        return BM_FAIL(BM_ERR_IO, "cannot create a pipe to a child process: %s",
                       strerror(errno));
    pid = fork();
    if (pid == 0) {
        close(fds[0]);
        run_child(child, fds[1]);
    }
    close(fds[1]);
    from = pid > 0 ? fdopen(fds[0], "r") : NULL;
    if (from == NULL) {
        int error = errno;
        close(fds[0]);
        if (pid > 0)
            waitpid(pid, &result, 0);
        return BM_FAIL(BM_ERR_MEMORY, "cannot start a child process: %s",
                       strerror(error));
    }
    read_lines(child, from);
    fclose(from);
    do {
        waited = waitpid(pid, &result, 0);
    } while (waited < 0 && errno == EINTR);
    *ended = waited < 0                 ? -1
             : WIFSIGNALED(result)      ? WTERMSIG(result)
             : WEXITSTATUS(result) == 0 ? 0
                                        : -1;
    return BM_OK;
}

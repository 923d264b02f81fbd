#include "cli/tune/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void become(pid_t parent, char *const *words, int log)
{
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0)
        _exit(bm_status_exit(BM_ERR_IO));
    execv("/proc/self/exe", words);
    _exit(bm_status_exit(BM_ERR_MISSING));
}

bm_status bm_children_start(bm_children *c, size_t id, char *const *words,
                            const char *log)
{
    int file = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    pid_t parent = getpid(), child = -1;

    BM_ASSERT(c->n < BM_CHILDREN);
    if (file < 0)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", log, strerror(errno));
    fflush(NULL);
    child = fork();
    if (child == 0)
        become(parent, words, file);
    close(file);
    if (child < 0)
        return BM_FAIL(BM_ERR_MEMORY, "cannot start a trial: %s",
                       strerror(errno));
    c->list[c->n].process = child;
    c->list[c->n++].id = id;
    return BM_OK;
}

bool bm_children_wait(bm_children *c, size_t *id, int *code)
{
    for (int pause = 0; pause < 2; pause++) {
        for (size_t i = 0; i < c->n; i++) {
            int state = 0;

            if (waitpid(c->list[i].process, &state, WNOHANG) == 0)
                continue;
            *id = c->list[i].id;
            *code =
                WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
            c->list[i] = c->list[--c->n];
            return true;
        }
        if (pause == 0)
            poll(NULL, 0, 100);
    }
    return false;
}

void bm_children_signal(const bm_children *c, int number)
{
    for (size_t i = 0; i < c->n; i++)
        kill(c->list[i].process, number);
}

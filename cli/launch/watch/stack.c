#define _GNU_SOURCE /* gettid, tgkill */
#include "cli/launch/watch/stack.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES = 64 };

static char heading[100];

static void on_signal(int number)
{
    void *frames[FRAMES];
    int error = errno, n = 0;
    ssize_t written = 0;

    if (gettid() != getpid()) { /* a thread of a library got it */
        tgkill(getpid(), getpid(), number);
        errno = error;
        return;
    }
    n = backtrace(frames, FRAMES);
    written = write(STDERR_FILENO, heading, strlen(heading));
    (void)written;
    backtrace_symbols_fd(frames, n, STDERR_FILENO);
    errno = error;
}

void bm_stack_on_signal(const char *rank)
{
    struct sigaction action = {0};
    void *frame[1];

    (void)backtrace(frame, 1); /* loads a library, which a handler must not */
    snprintf(heading, sizeof heading, "rank %s: stack of process %ld:\n", rank,
             (long)getpid());
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGUSR2, &action, NULL);
}

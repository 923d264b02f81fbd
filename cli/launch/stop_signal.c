#define _GNU_SOURCE /* siginfo_t */
#include "cli/launch/stop_signal.h"

#include "core/clock.h"

#include <stddef.h>

/* Two signals within `together` are one that came on two ways, as `timeout`
 * sends it to its child and to the group of both. */
static const double together = 0.05, later = 5;

void bm_stop_signal_catch(void (*handler)(int, siginfo_t *, void *), int flags)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
    struct sigaction action = {0}, before;

    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | SA_RESTART | flags;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (sigaction(numbers[i], NULL, &before) != 0 ||
            before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

bool bm_stop_signal_note(bm_stop_signal *s, int number, const siginfo_t *info)
{
    double now = bm_clock(), after = now - s->since;

    if (s->first == 0) {
        s->sender = info->si_pid;
        s->since = now;
        s->first = number;
        return false;
    }
    return after > later || (info->si_pid == s->sender && after > together);
}

#define _GNU_SOURCE /* siginfo_t */
#include "cli/align/stop_request.h"

#include "cli/launch/stop_signal.h"

static bm_stop_signal stop;

static void die(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (bm_stop_signal_note(&stop, number, info))
        die(number);
}

void bm_stop_request_catch(void)
{
    bm_stop_signal_catch(on_signal, 0);
}

bm_status bm_stop_request_check(void)
{
    if (stop.first == 0)
        return BM_OK;
    return BM_FAIL(BM_STOPPED, "align: stopped by signal %d", (int)stop.first);
}

void bm_stop_request_obey(void)
{
    if (stop.first != 0)
        die((int)stop.first);
}

#include "cli/launch/watch/watchdog.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The spans that a rank may be in. */
static const struct {
    const char *span, *phase;
    bool waits;      /* for other ranks */
    double patience; /* factor of hang_s */
} phases[] = {
    {"setup", "open", false, 10}, /* reads all of the data's tables */
    {"stall", "read", false, 1},
    {"read", "read", false, 1},
    {"forward", "compute", false, 1},
    {"loss", "compute", false, 1},
    {"backward", "compute", false, 1},
    {"update", "compute", false, 1},
    {"learn", "compute", false, 1},
    {"block", "compute", false, 1},
    {"eval", "dev", false, 1},
    {"checkpoint", "checkpoint", false, 10}, /* an fsync may take minutes */
    {"exchange", "exchange", true, 1},
    {"filter", "exchange", true, 1},
    {"wait", "exchange", true, 1},
    {"start", "start", false, 1},
};

enum {
    N_PHASES = sizeof phases / sizeof phases[0],
    OTHER = N_PHASES, /* a span that is not in the table */
    BUSY = 10,        /* factor for a rank that uses the processor */
    WARN = 4,         /* warns after this part of a limit */
    NAP_S = 5         /* the supervisor itself was stopped or suspended */
};
_Static_assert((int)OTHER < (int)BM_WATCHDOG_PHASES, "a row for each phase");

static int find(const char *span)
{
    int i = 0;

    while (i < N_PHASES && strcmp(phases[i].span, span) != 0)
        i++;
    return i;
}

static const char *name_of(const bm_watched *r)
{
    int i = find(r->last.phase);

    return i < N_PHASES ? phases[i].phase : r->last.phase;
}

static bool waits(const bm_watched *r)
{
    int i = find(r->last.phase);

    return i < N_PHASES && phases[i].waits;
}

bm_status bm_watchdog_new(bm_watchdog *w, int ranks,
                          const bm_watchdog_limits *limits, double now)
{
    *w = (bm_watchdog){
        .limits = *limits, .ranks = ranks, .began = now, .looked = now};
    w->of = calloc((size_t)ranks, sizeof *w->of);
    if (w->of == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to watch %d ranks", ranks);
    return BM_OK;
}

void bm_watchdog_free(bm_watchdog *w)
{
    free(w->of);
    w->of = NULL;
}

/* A pause has ended. */
static void note_pause(bm_watchdog *w, const bm_watched *r, double now)
{
    double *longest = &w->longest[find(r->last.phase)];

    if (!waits(r) && now - r->moved > *longest)
        *longest = now - r->moved;
}

void bm_watchdog_update(bm_watchdog *w, int rank, const bm_heartbeat *h,
                        double now)
{
    bm_watched *r = &w->of[rank];

    if (h->state == BM_HEARTBEAT_NONE || h->beats == 0) {
        r->last.state = h->state;
        return;
    }
    if (!r->seen || h->beats != r->last.beats)
        r->beat = now;
    if (!r->seen || h->progress != r->last.progress) {
        if (r->seen)
            note_pause(w, r, now);
        r->moved = now;
        r->cpu_s = h->cpu_s;
        r->warned = false;
    }
    r->seen = true;
    r->last = *h;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The limit of a rank's present pause. */
static double limit_of(const bm_watchdog *w, const bm_watched *r, double now)
{
    int i = find(r->last.phase);
    double limit = w->limits.hang_s * (i < N_PHASES ? phases[i].patience : 1);
    bool busy = r->last.cpu_s - r->cpu_s > 0.05 * (now - r->moved);

    limit = larger(limit, w->limits.hang_factor * w->longest[i]);
    return busy ? BUSY * limit : limit;
}

/* Whether all ranks have met, of which one is heard at least; *absent <- one
 * that has not. */
static bool have_met(const bm_watchdog *w, int *absent)
{
    bool heard = false;

    *absent = -1;
    for (int i = w->ranks; i-- > 0;) {
        const bm_watched *r = &w->of[i];

        heard = heard || r->seen;
        if (r->seen ? strcmp(r->last.phase, "start") == 0 : !w->limits.near)
            *absent = i;
    }
    if (!heard)
        *absent = 0;
    return *absent < 0;
}

/* While the supervisor did not look, nothing was heard of any rank. */
static void forgive(bm_watchdog *w, double seconds)
{
    w->began += seconds;
    for (int i = 0; i < w->ranks; i++) {
        w->of[i].beat += seconds;
        w->of[i].moved += seconds;
    }
}

static bm_verdict verdict(int rank, const bm_watched *r, int why,
                          double seconds, double limit)
{
    bm_verdict v = {.rank = rank,
                    .seconds = seconds,
                    .limit_s = limit,
                    .phase = name_of(r)};

    v.why = why;
    if (seconds > limit)
        v.what = BM_WATCHDOG_HANGS;
    else if (seconds > limit / WARN)
        v.what = BM_WATCHDOG_WARN;
    return v;
}

/* The worse of two; the earlier one of two that are equal. */
static void keep_worse(bm_verdict *worst, bm_verdict v)
{
    if (v.what > worst->what)
        *worst = v;
}

/* A warning that was given before says nothing new. */
static bm_verdict once(bm_verdict v, bool *warned)
{
    if (v.what == BM_WATCHDOG_WARN && *warned)
        v.what = BM_WATCHDOG_FINE;
    *warned = *warned || v.what == BM_WATCHDOG_WARN;
    return v;
}

static bm_verdict judge(const bm_watchdog *w, int rank, double now)
{
    const bm_watched *r = &w->of[rank];
    bm_verdict v =
        verdict(rank, r, BM_WATCHDOG_SILENT, now - r->beat, w->limits.hang_s);

    if (v.what == BM_WATCHDOG_FINE && !waits(r))
        v = verdict(rank, r, BM_WATCHDOG_STUCK, now - r->moved,
                    limit_of(w, r, now));
    return v;
}

/* All ranks wait: the limit is that of the last one that began to. */
static bm_verdict judge_wait(bm_watchdog *w, double now)
{
    double seconds = INFINITY;
    int last = 0;

    for (int i = 0; i < w->ranks; i++) {
        const bm_watched *r = &w->of[i];

        if (r->last.state != BM_HEARTBEAT_ALIVE || !waits(r))
            return (bm_verdict){0};
        if (now - r->moved < seconds) {
            seconds = now - r->moved;
            last = i;
        }
    }
    return verdict(
        last, &w->of[last], BM_WATCHDOG_ALL_WAIT, seconds,
        larger(w->limits.hang_s, w->limits.hang_factor * w->longest_wait));
}

bm_verdict bm_watchdog_look(bm_watchdog *w, double now)
{
    bm_verdict worst = {0}, wait;
    int absent = -1;

    if (now - w->looked > NAP_S)
        forgive(w, now - w->looked);
    w->looked = now;
    w->met = w->met || have_met(w, &absent);
    if (!w->met) {
        if (absent >= 0 && now - w->began > w->limits.start_s)
            worst = verdict(absent, &w->of[absent], BM_WATCHDOG_ABSENT,
                            now - w->began, w->limits.start_s);
        return worst;
    }
    if (w->limits.hang_s == 0)
        return worst;
    for (int i = 0; i < w->ranks; i++)
        if (w->of[i].last.state == BM_HEARTBEAT_ALIVE)
            keep_worse(&worst, once(judge(w, i, now), &w->of[i].warned));
    wait = judge_wait(w, now);
    if (wait.seconds < w->waited) { /* that pause has ended */
        w->warned_of_wait = false;
        w->longest_wait = larger(w->longest_wait, w->waited);
    }
    w->waited = wait.seconds;
    keep_worse(&worst, once(wait, &w->warned_of_wait));
    return worst;
}

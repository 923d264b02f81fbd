#include "bmuf/async/virtual_clock.h"

#include "bmuf/exchange/exchange.h"
#include "core/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A worker. */
typedef struct runner {
    double seconds; /* of a step, the mean */
    double time;    /* end of its period */
    int64_t steps;  /* of its share */
    bm_period at;
    bool waiting; /* has pushed, and is not in an update yet */
    bm_rng random;
} runner;

struct bm_virtual_clock {
    const bm_server_policy *policy; /* borrowed */
    double spread;
    uint64_t key;
    int workers;
    double now;
    runner *of; /* [workers] */
};

/* Reads `text` into the workers' seconds unless `of` is NULL; one number goes
 * to all. Returns how many numbers there are, or -1 if one is invalid. */
static int read_times(const char *text, int workers, runner *of)
{
    int n = 0;

    for (; *text != '\0'; text += strspn(text, " ,\t\n")) {
        char *end = NULL;
        double x = strtod(text, &end);

        if (end == text || !(x > 0) || !isfinite(x))
            return -1;
        if (of != NULL && n < workers)
            of[n].seconds = x;
        n++;
        text = end;
    }
    for (int k = 1; of != NULL && n == 1 && k < workers; k++)
        of[k].seconds = of[0].seconds;
    return n;
}

/* One for all, or one for each. */
static bool are_enough(int times, long workers)
{
    return times == 1 || times == workers;
}

void bm_clock_check(const bm_config *config, bm_faults *faults)
{
    bm_clock_settings set = {0};
    bm_job job = {0};
    int n = 0;

    bm_config_peek(config, "clock", bm_clock_options, &set);
    bm_config_peek(config, "job", bm_job_options, &job);
    n = read_times(set.times, 0, NULL);
    if (n < 0)
        bm_config_fault(faults, config, "clock", "times",
                        "clock.times = %s: not all of these are positive "
                        "numbers of seconds",
                        set.times);
    else if (!are_enough(n, job.workers))
        bm_config_fault(faults, config, "clock", "times",
                        "clock.times has %d numbers for job.workers = %ld; "
                        "give one for each worker, or one for all",
                        n, job.workers);
}

bm_status bm_virtual_clock_open(bm_virtual_clock **out,
                                const bm_clock_settings *settings,
                                const bm_server_policy *policy, int workers,
                                uint64_t seed)
{
    bm_virtual_clock *c = calloc(1, sizeof *c);
    bm_status status = BM_OK;

    if (c == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a virtual clock");
    c->policy = policy;
    c->spread = settings->spread;
    c->key = bm_rng_make(seed, "pace", 0).key;
    c->workers = workers;
    c->of = calloc((size_t)workers, sizeof *c->of);
    if (c->of == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a virtual clock");
    if (!are_enough(read_times(settings->times, workers, c->of), workers))
        BM_FAIL_DONE(BM_ERR_CONFIG,
                     "clock.times = %s: give a number of seconds for each of "
                     "the %d workers, or one for all",
                     settings->times, workers);
    *out = c;
    c = NULL;
done:
    bm_virtual_clock_close(c);
    return status;
}

void bm_virtual_clock_close(bm_virtual_clock *c)
{
    if (c == NULL)
        return;
    free(c->of);
    free(c);
}

static bool has_data(const runner *r)
{
    return r->at.from < r->at.to;
}

/* Starts the next period now. */
static void begin(bm_virtual_clock *c, runner *r)
{
    int64_t left = r->steps - r->at.to;

    r->waiting = false;
    r->at.from = r->at.to;
    r->at.to += left < c->policy->push_every ? left : c->policy->push_every;
    r->time = c->now;
    for (int64_t i = r->at.from; i < r->at.to; i++)
        r->time +=
            r->seconds * fmax(0.1, 1 + c->spread * bm_rng_normal(&r->random));
}

void bm_virtual_clock_block(bm_virtual_clock *c, bm_position at,
                            const double *steps)
{
    uint64_t key = bm_rng_fork(bm_rng_fork(c->key, (uint64_t)at.epoch),
                               (uint64_t)at.block);

    c->now = 0;
    for (int k = 0; k < c->workers; k++) {
        runner *r = &c->of[k];

        r->steps = (int64_t)steps[k];
        r->at = (bm_period){0, 0};
        r->random = (bm_rng){bm_rng_fork(key, (uint64_t)k), 0};
        begin(c, r);
    }
}

/* The worker that pushes next; NULL: all wait or have ended. */
static runner *first_to_push(bm_virtual_clock *c)
{
    runner *first = NULL;

    for (int k = 0; k < c->workers; k++) {
        runner *r = &c->of[k];

        if (has_data(r) && !r->waiting &&
            (first == NULL || r->time < first->time))
            first = r;
    }
    return first;
}

int bm_virtual_clock_next(bm_virtual_clock *c, int *who)
{
    runner *r = NULL;
    int n = 0;

    for (int pushes = 0;
         pushes < c->policy->group && (r = first_to_push(c)) != NULL;
         pushes++) {
        r->waiting = true;
        c->now = r->time;
    }
    for (int k = 0; k < c->workers; k++)
        if (c->of[k].waiting)
            who[n++] = k;
    return n;
}

void bm_virtual_clock_resume(bm_virtual_clock *c, const int *who, int n)
{
    for (int i = 0; i < n; i++)
        begin(c, &c->of[who[i]]);
}

bm_period bm_virtual_clock_period(const bm_virtual_clock *c, int worker)
{
    return c->of[worker].at;
}

double bm_virtual_clock_now(const bm_virtual_clock *c)
{
    return c->now;
}

#include "bmuf/async/virtual_clock.h"

#include "bmuf/exchange/exchange.h"
#include "core/rng.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const bm_option bm_clock_options[] = {
    {"kind", BM_CHOICE, offsetof(bm_clock_settings, kind), "virtual", 0, 0,
     "virtual real",
     "asgd, softsync, easgd: the order in which workers meet the server is "
     "computed, or is as it comes"},
    {"times", BM_TEXT, offsetof(bm_clock_settings, times), "1", 0, 0, NULL,
     "virtual: seconds of a mini-batch of worker 0, 1 and so on, as step_s of "
     "a "
     "journal has them; or one number for all"},
    {"spread", BM_FLOAT, offsetof(bm_clock_settings, spread), "0.05", 0, 1,
     NULL, "virtual: standard deviation of a mini-batch's time over its mean"},
    {0},
};

typedef struct runner {
    double seconds; /* of a mini-batch, the mean */
    double time;    /* when its period is over */
    int64_t steps;  /* of its share */
    bm_period at;
    bool waiting; /* has pushed */
    bm_rng random;
} runner;

struct bm_virtual_clock {
    bm_server_policy server_policy;
    double spread;
    uint64_t key;
    int workers;
    double now;
    runner *of; /* [workers] */
};

bool bm_clock_is_real(const bm_clock_settings *settings)
{
    return strcmp(settings->kind, "real") == 0;
}

/* The numbers of `text`, one for all or one for each; how many there are, or -1
 * if something is no time. */
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
static bool fits(int times, long workers)
{
    return times == 1 || times == workers;
}

/* Real time passes as it does. */
static void check_real(const bm_clock_settings *set, const bm_config *config,
                       bm_faults *faults)
{
    const char *odd = NULL;

    if (bm_config_changed(config, "clock", bm_clock_options, "times"))
        odd = "times";
    else if (bm_config_changed(config, "clock", bm_clock_options, "spread"))
        odd = "spread";
    if (bm_clock_is_real(set) && odd != NULL)
        bm_config_fault(faults, config, "clock", odd,
                        "clock.%s is for clock.kind = virtual, and this one is "
                        "real; leave one out",
                        odd);
}

void bm_clock_check(const bm_config *config, bm_faults *faults)
{
    bm_clock_settings set = {0};
    bm_job job = {0};
    int n = 0;

    bm_config_peek(config, "clock", bm_clock_options, &set);
    bm_config_peek(config, "job", bm_job_options, &job);
    n = read_times(set.times, 0, NULL);
    check_real(&set, config, faults);
    if (n < 0)
        bm_config_fault(faults, config, "clock", "times",
                        "clock.times = %s: not all of these are seconds",
                        set.times);
    else if (n == 0 || (job.workers > 1 && !fits(n, job.workers)))
        bm_config_fault(faults, config, "clock", "times",
                        "clock.times has %d numbers for job.workers = %ld; "
                        "give as many, or one for all",
                        n, job.workers);
}

bm_status bm_virtual_clock_open(bm_virtual_clock **out,
                                const bm_clock_settings *settings,
                                const bm_server_policy *server_policy,
                                int workers, uint64_t seed)
{
    bm_virtual_clock *p = calloc(1, sizeof *p);
    bm_status status = BM_OK;

    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a clock");
    p->server_policy = *server_policy;
    p->spread = settings->spread;
    p->key = bm_rng_make(seed, "pace", 0).key;
    p->workers = workers;
    p->of = calloc((size_t)workers, sizeof *p->of);
    if (p->of == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a clock");
    if (!fits(read_times(settings->times, workers, p->of), workers))
        BM_FAIL_DONE(BM_ERR_CONFIG,
                     "clock.times = %s: not one number of seconds for each of "
                     "%d workers, nor one for all",
                     settings->times, workers);
    *out = p;
    p = NULL;
done:
    bm_virtual_clock_close(p);
    return status;
}

void bm_virtual_clock_close(bm_virtual_clock *p)
{
    if (p == NULL)
        return;
    free(p->of);
    free(p);
}

static bool has_data(const runner *r)
{
    return r->at.from < r->at.to;
}

/* The next period begins now. */
static void begin(bm_virtual_clock *p, runner *r)
{
    int64_t left = r->steps - r->at.to;

    r->waiting = false;
    r->at.from = r->at.to;
    r->at.to +=
        left < p->server_policy.push_every ? left : p->server_policy.push_every;
    r->time = p->now;
    for (int64_t i = r->at.from; i < r->at.to; i++)
        r->time +=
            r->seconds * fmax(0.1, 1 + p->spread * bm_rng_normal(&r->random));
}

void bm_virtual_clock_block(bm_virtual_clock *p, bm_position at,
                            const double *steps)
{
    uint64_t key = bm_rng_fork(bm_rng_fork(p->key, (uint64_t)at.epoch),
                               (uint64_t)at.block);

    p->now = 0;
    for (int k = 0; k < p->workers; k++) {
        runner *r = &p->of[k];

        r->steps = (int64_t)steps[k];
        r->at = (bm_period){0, 0};
        r->random = (bm_rng){bm_rng_fork(key, (uint64_t)k), 0};
        begin(p, r);
    }
}

/* The worker that comes next; NULL: there is none. */
static runner *first_to_come(bm_virtual_clock *p)
{
    runner *first = NULL;

    for (int k = 0; k < p->workers; k++) {
        runner *r = &p->of[k];

        if (has_data(r) && !r->waiting &&
            (first == NULL || r->time < first->time))
            first = r;
    }
    return first;
}

int bm_virtual_clock_next(bm_virtual_clock *p, int *who)
{
    runner *r = NULL;
    int n = 0;

    for (int come = 0;
         come < p->server_policy.group && (r = first_to_come(p)) != NULL;
         come++) {
        r->waiting = true;
        p->now = r->time;
    }
    for (int k = 0; k < p->workers; k++)
        if (p->of[k].waiting)
            who[n++] = k;
    return n;
}

void bm_virtual_clock_go_on(bm_virtual_clock *p, const int *who, int n)
{
    for (int i = 0; i < n; i++)
        begin(p, &p->of[who[i]]);
}

bm_period bm_virtual_clock_period(const bm_virtual_clock *p, int worker)
{
    return p->of[worker].at;
}

double bm_virtual_clock_now(const bm_virtual_clock *p)
{
    return p->now;
}

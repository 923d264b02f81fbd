#include "cli/doctor/timed_check.h"

#include "cli/doctor/report.h"
#include "core/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- a check of one host -------------------------------------------------- */

typedef struct timed_check {
    bm_check_context context;
    const bm_check *check;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool done;
} timed_check;

static void *run(void *self)
{
    timed_check *t = self;

    t->check->host(&t->context);
    pthread_mutex_lock(&t->mutex);
    t->done = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

/* False: it has not ended. */
static bool wait_for(timed_check *t, double seconds)
{
    struct timespec until;
    int error = 0;
    bool done = false;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)seconds;
    until.tv_nsec += (long)(1e9 * (seconds - floor(seconds)));
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&t->mutex);
    while (!t->done && error == 0)
        error = pthread_cond_timedwait(&t->changed, &t->mutex, &until);
    done = t->done;
    pthread_mutex_unlock(&t->mutex);
    return done;
}

static timed_check *timed_check_new(const bm_check *check,
                                    const bm_check_target *target)
{
    timed_check *t = calloc(1, sizeof *t);
    pthread_condattr_t clock;

    if (t == NULL)
        return NULL;
    t->check = check;
    t->context = (bm_check_context){
        .target = target, .facts = json_object(), .findings = json_array()};
    pthread_mutex_init(&t->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &clock);
    pthread_condattr_destroy(&clock);
    return t;
}

static void timed_check_free(timed_check *t)
{
    json_decref(t->context.facts);
    json_decref(t->context.findings);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

static void add_missing(const bm_check *check, json_t *report, const char *why)
{
    bm_check_context e = {.facts = json_object(), .findings = json_array()};

    bm_find(&e, BM_SKIPPED, "look at what the host waits for: dmesg, mount",
            "%s", why);
    bm_report_add(report, check->name, &e);
    json_decref(e.facts);
    json_decref(e.findings);
}

bool bm_timed_check_run(const bm_check *check, const bm_check_target *target,
                        json_t *report)
{
    timed_check *t = timed_check_new(check, target);
    pthread_t thread;
    char why[100];

    if (t == NULL || pthread_create(&thread, NULL, run, t) != 0) {
        add_missing(check, report, "no thread could be started for the check");
        if (t != NULL)
            timed_check_free(t);
        return false;
    }
    if (!wait_for(t, check->seconds)) {
        pthread_detach(thread);
        snprintf(why, sizeof why, "the check did not end within %.3g s",
                 check->seconds);
        add_missing(check, report, why);
        return false; /* t is still in use */
    }
    pthread_join(thread, NULL);
    bm_report_add(report, check->name, &t->context);
    timed_check_free(t);
    return true;
}

/* ---- waits of ranks for each other ---------------------------------------- */

static struct {
    pthread_mutex_t mutex;
    bool started, active;
    double until;
    void (*give_up)(void *self);
    void *self;
} guard = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *watch(void *unused)
{
    const struct timespec pause = {0, 100000000};

    for (;;) {
        bool late = false;

        nanosleep(&pause, NULL);
        pthread_mutex_lock(&guard.mutex);
        late = guard.active && bm_clock() > guard.until;
        if (late)
            guard.give_up(guard.self); /* with the mutex: nobody goes on */
        pthread_mutex_unlock(&guard.mutex);
    }
    return unused;
}

void bm_guard_begin(double seconds, void (*give_up)(void *self), void *self)
{
    pthread_t thread;

    pthread_mutex_lock(&guard.mutex);
    guard.active = true;
    guard.until = bm_clock() + seconds;
    guard.give_up = give_up;
    guard.self = self;
    if (!guard.started && pthread_create(&thread, NULL, watch, NULL) == 0) {
        guard.started = true;
        pthread_detach(thread);
    }
    pthread_mutex_unlock(&guard.mutex);
}

void bm_guard_end(void)
{
    pthread_mutex_lock(&guard.mutex);
    guard.active = false;
    pthread_mutex_unlock(&guard.mutex);
}

#include "cli/doctor/visit.h"

#include "cli/doctor/report.h"
#include "core/clock.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- a check of one host -------------------------------------------------- */

typedef struct visit {
    bm_exam exam;
    const bm_check *check;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool done;
} visit;

static void *run(void *self)
{
    visit *v = self;

    v->check->host(&v->exam);
    pthread_mutex_lock(&v->mutex);
    v->done = true;
    pthread_cond_signal(&v->changed);
    pthread_mutex_unlock(&v->mutex);
    return NULL;
}

/* False: it has not ended. */
static bool wait_for(visit *v, double seconds)
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
    pthread_mutex_lock(&v->mutex);
    while (!v->done && error == 0)
        error = pthread_cond_timedwait(&v->changed, &v->mutex, &until);
    done = v->done;
    pthread_mutex_unlock(&v->mutex);
    return done;
}

static visit *visit_new(const bm_check *check, const bm_patient *patient)
{
    visit *v = calloc(1, sizeof *v);
    pthread_condattr_t clock;

    if (v == NULL)
        return NULL;
    v->check = check;
    v->exam = (bm_exam){
        .patient = patient, .facts = json_object(), .findings = json_array()};
    pthread_mutex_init(&v->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&v->changed, &clock);
    pthread_condattr_destroy(&clock);
    return v;
}

static void visit_free(visit *v)
{
    json_decref(v->exam.facts);
    json_decref(v->exam.findings);
    pthread_cond_destroy(&v->changed);
    pthread_mutex_destroy(&v->mutex);
    free(v);
}

static void add_missing(const bm_check *check, json_t *report, const char *why)
{
    bm_exam e = {.facts = json_object(), .findings = json_array()};

    bm_find(&e, BM_SKIPPED, "look at what the host waits for: dmesg, mount",
            "%s", why);
    bm_report_add(report, check->name, &e);
    json_decref(e.facts);
    json_decref(e.findings);
}

bool bm_visit_host(const bm_check *check, const bm_patient *patient,
                   json_t *report)
{
    visit *v = visit_new(check, patient);
    pthread_t thread;
    char why[100];

    if (v == NULL || pthread_create(&thread, NULL, run, v) != 0) {
        add_missing(check, report, "no thread could be started for the check");
        if (v != NULL)
            visit_free(v);
        return false;
    }
    if (!wait_for(v, check->seconds)) {
        pthread_detach(thread);
        snprintf(why, sizeof why, "the check did not end within %.3g s",
                 check->seconds);
        add_missing(check, report, why);
        return false; /* v is still in use */
    }
    pthread_join(thread, NULL);
    bm_report_add(report, check->name, &v->exam);
    visit_free(v);
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

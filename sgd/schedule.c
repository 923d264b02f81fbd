#include "sgd/schedule.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const bm_option bm_schedule_options[] = {
    {"kind", BM_CHOICE, offsetof(bm_schedule_settings, kind), "cosine", 0, 0,
     "cosine onecycle noam constant exponential newbob",
     "how the learning rate decreases"},
    {"decay", BM_FLOAT, offsetof(bm_schedule_settings, decay), "0.5", 0, 1,
     NULL, "factor of the rate, per epoch (exponential) or per decay (newbob)"},
    {"threshold", BM_FLOAT, offsetof(bm_schedule_settings, threshold), "0.01",
     0, 1, NULL, "newbob: smallest relative improvement of the error"},
    {"patience", BM_INT, offsetof(bm_schedule_settings, patience), "0", 0, 1e6,
     "evaluations",
     "newbob: evaluations without improvement before the rate decays"},
    {"ramp", BM_FLAG, offsetof(bm_schedule_settings, ramp), "no", 0, 0, NULL,
     "newbob: once the rate has decayed, it decays at every evaluation"},
    {"least", BM_FLOAT, offsetof(bm_schedule_settings, least), "1e-6", 0, 1,
     NULL, "newbob: training ends below this fraction of the starting rate"},
    {"warmup", BM_FLOAT, offsetof(bm_schedule_settings, warmup), "0", 0, 1e6,
     "epochs",
     "epochs in which the rate grows linearly from a tenth; 0: no warm-up; "
     "onecycle: epochs of its rise, 0: three tenths of all"},
    {"stop_after", BM_INT, offsetof(bm_schedule_settings, stop_after), "0", 0,
     1e6, "evaluations",
     "early stopping: evaluations of data.dev in a row without a new smallest "
     "error after which training ends, counted once the error is below 80 %; "
     "0: never"},
    {0},
};

/* A kind of schedule: its factor of the rate, and its action at an evaluation,
 * which returns true if training should end. */
typedef struct kind {
    const char *name;
    double (*factor)(const bm_schedule *s, double epochs);
    bool (*evaluated)(bm_schedule *s, bool better); /* NULL: returns false */
    bool spans_run; /* the factor depends on the epochs of the run */
    bool rises;     /* it contains a warm-up */
} kind;

/* From `from` at x = 0 to `to` at x = 1 and later, along half a cosine. */
static double anneal(double from, double to, double x)
{
    return to + (from - to) * (0.5 + 0.5 * cos(acos(-1) * fmin(x, 1)));
}

static double cosine(const bm_schedule *s, double epochs)
{
    return anneal(1, 0, epochs / s->epochs);
}

/* PyTorch's defaults: three tenths, from 1 / 25, to 1e-4 of that. */
static double onecycle(const bm_schedule *s, double epochs)
{
    double rise = s->set.warmup > 0 ? s->set.warmup : 0.3 * s->epochs;
    double fall = s->epochs - rise, start = 1.0 / 25;

    if (epochs < rise)
        return anneal(start, 1, epochs / rise);
    return anneal(1, 1e-4 * start, fall > 0 ? (epochs - rise) / fall : 1);
}

static double noam(const bm_schedule *s, double epochs)
{
    return epochs > s->set.warmup ? sqrt(s->set.warmup / epochs) : 1;
}

static double constant(const bm_schedule *s, double epochs)
{
    (void)s;
    (void)epochs;
    return 1;
}

static double exponential(const bm_schedule *s, double epochs)
{
    return pow(s->set.decay, epochs);
}

static double decayed(const bm_schedule *s, double epochs)
{
    (void)epochs;
    return s->state.factor;
}

/* CTC begins with a plateau: a network that says blank everywhere has an error
 * near 1, which stays there for some epochs. That is no reason to decay or to
 * stop. */
static const double plateau = 0.8;

static bool on_plateau(const bm_schedule *s)
{
    return s->state.best < 0 || s->state.best > plateau;
}

static bool newbob(bm_schedule *s, bool better)
{
    bool ramps = s->set.ramp && s->state.factor < 1;

    s->state.bad = better ? 0 : s->state.bad + 1;
    if (ramps || s->state.bad > (double)s->set.patience) {
        s->state.factor *= s->set.decay;
        s->state.bad = 0;
    }
    return s->state.factor < s->set.least;
}

static const kind kinds[] = {
    {"cosine", cosine, NULL, true, false},
    {"onecycle", onecycle, NULL, true, true},
    {"noam", noam, NULL, false, false},
    {"constant", constant, NULL, false, false},
    {"exponential", exponential, NULL, false, false},
    {"newbob", decayed, newbob, false, false},
};

static const kind *find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

bm_schedule bm_schedule_make(const bm_schedule_settings *set, double rate,
                             long epochs)
{
    BM_ASSERT(find(set->kind) != NULL);
    return (bm_schedule){.set = *set,
                         .start = rate,
                         .epochs = (double)epochs,
                         .state = {.factor = 1, .last = -1, .best = -1}};
}

double bm_schedule_rate(const bm_schedule *s, double epochs)
{
    const kind *k = find(s->set.kind);
    double rate = s->start * k->factor(s, epochs);

    if (!k->rises && epochs < s->set.warmup)
        rate *= 0.1 + 0.9 * epochs / s->set.warmup;
    return rate;
}

/* False if (new - old) / |new| > -threshold. An error of 0 is the limit: better
 * than any other error, and not better than 0. */
static bool improves(const bm_schedule *s, double error)
{
    if (!isfinite(error))
        return false;
    if (s->state.last < 0)
        return true; /* the first one */
    if (error == s->state.last)
        return s->set.threshold == 0;
    return error - s->state.last <= -s->set.threshold * fabs(error);
}

static bool waited_enough(const bm_schedule *s)
{
    return s->set.stop_after > 0 &&
           s->state.waited >= (double)s->set.stop_after;
}

bool bm_schedule_evaluated(bm_schedule *s, double error)
{
    const kind *k = find(s->set.kind);
    bool better = improves(s, error);
    bool best = isfinite(error) && (s->state.best < 0 || error < s->state.best),
         ends;

    if (isfinite(error))
        s->state.last = error;
    if (best)
        s->state.best = error;
    if (on_plateau(s))
        return false;
    s->state.waited = best ? 0 : s->state.waited + 1;
    ends = k->evaluated != NULL && k->evaluated(s, better);
    return ends || waited_enough(s);
}

void bm_schedule_explain(const bm_schedule *s, char *out, size_t room)
{
    if (waited_enough(s))
        snprintf(out, room, "schedule.stop_after = %ld", s->set.stop_after);
    else
        snprintf(out, room, "schedule.least = %g", s->set.least);
}

bool bm_schedule_spans_run(const bm_schedule_settings *set)
{
    return find(set->kind)->spans_run;
}

#include "sgd/schedule.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const bm_option bm_schedule_options[] = {
    {"kind", BM_CHOICE, offsetof(bm_schedule_settings, kind), "cosine", 0, 0,
     "cosine constant exponential newbob", "how the learning rate decreases"},
    {"decay", BM_FLOAT, offsetof(bm_schedule_settings, decay), "0.5", 0, 1,
     NULL, "factor of the rate, per epoch (exponential) or per decay (newbob)"},
    {"threshold", BM_FLOAT, offsetof(bm_schedule_settings, threshold), "0.01",
     0, 1, NULL, "newbob: smallest relative improvement of the error"},
    {"patience", BM_INT, offsetof(bm_schedule_settings, patience), "0", 0, 1e6,
     "evaluations",
     "newbob: evaluations without improvement before the rate decays"},
    {"least", BM_FLOAT, offsetof(bm_schedule_settings, least), "1e-6", 0, 1,
     NULL, "newbob: training ends below this fraction of the starting rate"},
    {"warmup", BM_FLOAT, offsetof(bm_schedule_settings, warmup), "0", 0, 1e6,
     "epochs",
     "epochs in which the rate grows linearly from a tenth; 0: no warm-up"},
    {0},
};

/* A kind of schedule: its factor of the rate, and its action at an evaluation,
 * which returns true if training should end. */
typedef struct kind {
    const char *name;
    double (*factor)(const bm_schedule *s, double epochs);
    bool (*evaluated)(bm_schedule *s, bool better); /* NULL: returns false */
} kind;

static double cosine(const bm_schedule *s, double epochs)
{
    return 0.5 + 0.5 * cos(acos(-1) * fmin(epochs / s->epochs, 1));
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
    return s->factor;
}

/* CTC begins with a plateau: a network that says blank everywhere has an error
 * near 1, which stays there for some epochs. That is no reason to decay. */
static const double plateau = 0.8;

static bool newbob(bm_schedule *s, bool better)
{
    if (s->best < 0 || s->best > plateau)
        return false;
    s->bad = better ? 0 : s->bad + 1;
    if (s->bad > (double)s->set.patience) {
        s->factor *= s->set.decay;
        s->bad = 0;
    }
    return s->factor < s->set.least;
}

static const kind kinds[] = {
    {"cosine", cosine, NULL},
    {"constant", constant, NULL},
    {"exponential", exponential, NULL},
    {"newbob", decayed, newbob},
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
                         .factor = 1,
                         .last = -1,
                         .best = -1};
}

double bm_schedule_rate(const bm_schedule *s, double epochs)
{
    double rate = s->start * find(s->set.kind)->factor(s, epochs);

    if (epochs < s->set.warmup)
        rate *= 0.1 + 0.9 * epochs / s->set.warmup;
    return rate;
}

/* False if (new - old) / |new| > -threshold. An error of 0 is the limit: better
 * than any other error, and not better than 0. */
static bool improves(const bm_schedule *s, double error)
{
    if (!isfinite(error))
        return false;
    if (s->last < 0)
        return true; /* the first one */
    if (error == s->last)
        return s->set.threshold == 0;
    return error - s->last <= -s->set.threshold * fabs(error);
}

bool bm_schedule_evaluated(bm_schedule *s, double error)
{
    const kind *k = find(s->set.kind);
    bool better = improves(s, error);

    if (isfinite(error)) {
        s->last = error;
        s->best = s->best < 0 || error < s->best ? error : s->best;
    }
    return k->evaluated != NULL && k->evaluated(s, better);
}

void bm_schedule_save(const bm_schedule *s, double *numbers)
{
    const double state[] = {s->factor, s->last, s->bad, s->best};

    _Static_assert(sizeof state == BM_SCHEDULE_STATE * sizeof(double), "");
    memcpy(numbers, state, sizeof state);
}

void bm_schedule_load(bm_schedule *s, const double *numbers)
{
    s->factor = numbers[0];
    s->last = numbers[1];
    s->bad = numbers[2];
    s->best = numbers[3];
}

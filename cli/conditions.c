#include "cli/conditions.h"

#include "bmuf/strategy.h"
#include "cli/settings.h"
#include "core/text/words.h"
#include "models/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PER_BLOCK "a strategy that exchanges once per block (such as bmuf)"
#define PER_EVENT "an asynchronous strategy (such as asgd)"

/*
 * A condition is one or several of these, joined by " or ":
 *
 *     section.key                the setting is given
 *     section.key = word,word    the setting has one of these values
 *     section.key != word
 *     section.key > 0
 *     PER_BLOCK, PER_EVENT       how often train.strategy exchanges
 *
 * where the setting that it names must apply itself: clock.times applies only
 * with clock.kind = virtual, and clock.kind with an asynchronous strategy.
 * Conditions that must all hold are joined by ", and with ". The section of a
 * strategy applies only with that strategy, if it has no row here.
 */
static const struct condition {
    const char *names; /* section.key, several joined by ' ', or a section */
    const char *when;  /* "": always */
} conditions[] = {
    {"data.train data.dev data.test", ""},
    {"model.net model.loss", ""},
    {"model.infeasible", "model.loss = ctc"},
    {"train.strategy train.epochs train.rate train.diverged "
     "train.checkpoint_every train.checkpoint_copies train.keep "
     "train.keep_every train.ema train.label_smoothing train.init train.from "
     "train.freeze train.rates",
     ""},
    {"train.keep_best", "data.dev"},
    {"job.workers job.sum job.coordinator job.seed job.threads job.bind "
     "job.device job.precision job.exchange job.trace job.tensorboard "
     "job.metrics job.start_limit job.hang_limit job.hang_factor",
     ""},
    {"job.topology", "job.sum = hier"},
    {"job.audit", PER_BLOCK},
    {"batch.sequences batch.frames batch.order batch.accumulate", ""},
    {"batch.buckets", "batch.order = random,sortagrad,laplace"},
    {"augment.share", ""},
    {"augment.reverb augment.noise_sound augment.speed augment.warp "
     "augment.time_masks augment.frequency_masks augment.offset "
     "augment.contrast augment.noise augment.slant augment.height "
     "augment.shift augment.elastic augment.stroke augment.cutouts",
     "augment.share > 0"},
    {"augment.reverb_share", "augment.reverb != no"},
    {"augment.t60 augment.direct", "augment.reverb = made"},
    {"augment.noise_sound_share augment.snr", "augment.noise_sound != no"},
    {"augment.time_width augment.time_share", "augment.time_masks > 0"},
    {"augment.frequency_width", "augment.frequency_masks > 0"},
    {"augment.elastic_grid", "augment.elastic > 0"},
    {"augment.cutout_size", "augment.cutouts > 0"},
    {"block.frames_per_worker block.frames_total block.steps block.workers",
     ""},
    {"block.warmup", PER_BLOCK " or " PER_EVENT " or train.strategy = onebit"},
    {"block.seconds block.fragments block.overlap", PER_BLOCK},
    {"compress.code", PER_BLOCK},
    {"compress.share", "compress.code = topk"},
    {"sgd.update sgd.weight_decay sgd.clip", ""},
    {"sgd.momentum", "sgd.update = momentum,muon,rmsprop"},
    {"sgd.nesterov", "sgd.momentum > 0"},
    {"sgd.beta1", "sgd.update = adamw"},
    {"sgd.beta2 sgd.epsilon", "sgd.update = adamw,rmsprop"},
    {"sgd.local_state", PER_BLOCK " or asgd.update = local, and with "
                                  "sgd.momentum > 0 or sgd.update = "
                                  "adamw,rmsprop"},
    {"schedule.kind schedule.warmup schedule.stop_after", ""},
    {"schedule.decay", "schedule.kind = exponential,newbob"},
    {"schedule.threshold schedule.patience schedule.ramp schedule.least",
     "schedule.kind = newbob"},
    {"clock.kind", PER_EVENT},
    {"clock.times clock.spread", "clock.kind = virtual"},
    {"clock.shards", "clock.kind = real"},
    {"tune", ""},
    {"ssgd", "train.strategy = ssgd or block.warmup > 0"},
    {"ssgd.bucket", "ssgd.overlap = bucket"},
};

static const struct condition *find(const char *name)
{
    for (size_t i = 0; i < sizeof conditions / sizeof conditions[0]; i++)
        if (bm_is_word_of(name, conditions[i].names))
            return &conditions[i];
    return NULL;
}

/* "train.strategy = slowmo" for section slowmo; NULL: no strategy's section. */
static const char *own_strategy(const char *section)
{
    static const struct {
        const char *name, *when;
    } all[] = {
#define X(strategy) {#strategy, "train.strategy = " #strategy},
        BM_STRATEGIES(X)
#undef X
    };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i].name, section) == 0)
            return all[i].when;
    return NULL;
}

/* Of all settings of a section; NULL: none. */
static const char *of_section(const char *section)
{
    const struct condition *row = find(section);

    return row != NULL ? row->when : own_strategy(section);
}

const char *bm_condition(const char *section, const char *key)
{
    const struct condition *row = NULL;
    char name[64];

    snprintf(name, sizeof name, "%s.%s", section, key);
    row = find(name);
    return row != NULL ? row->when : of_section(section);
}

/* ---- whether they hold --------------------------------------------------- */

static const char *value_of(const bm_config *config, const char *section,
                            const char *key)
{
    const char *text = bm_config_text(config, section, key);

    if (text != NULL)
        return text;
    for (const bm_section *s = bm_train_sections(); s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++)
            if (strcmp(s->name, section) == 0 && strcmp(o->key, key) == 0)
                return o->fallback;
    return "";
}

static bool is_text(const char *term, size_t length, const char *text)
{
    return length == strlen(text) && memcmp(term, text, length) == 0;
}

/* One of the words that ',' separates. */
static bool is_one_of(const char *value, char *words)
{
    char *rest = NULL;

    for (char *w = strtok_r(words, ",", &rest); w != NULL;
         w = strtok_r(NULL, ",", &rest))
        if (strcmp(w, value) == 0)
            return true;
    return false;
}

/* The condition of a setting that does not hold; NULL: the setting counts. */
typedef const char *judge(const bm_config *config, const char *section,
                          const char *key);

/* Whether one term holds, and the setting that it names counts, as `named` says.
 * If that is all that lacks, *why is what it needs itself. */
static bool holds(const bm_config *config, judge *named, const char *term,
                  size_t length, const char **why)
{
    char text[160], section[32] = "", key[32] = "", relation[8] = "",
                    right[80] = "";
    const char *value = value_of(config, "train", "strategy");
    bool yes = false;
    int words = 0;

    if (is_text(term, length, PER_BLOCK))
        return bm_strategy_find(value)->per == BM_BLOCK;
    if (is_text(term, length, PER_EVENT))
        return bm_strategy_find(value)->per == BM_EVENT;
    BM_ASSERT(length < sizeof text);
    memcpy(text, term, length);
    text[length] = '\0';
    words =
        sscanf(text, "%31[^.].%31s %7s %79s", section, key, relation, right);
    BM_ASSERT(words == 4 || words == 2);
    value = value_of(config, section, key);
    if (words == 2)
        yes = value[0] != '\0';
    else if (strcmp(relation, ">") == 0)
        yes = strtod(value, NULL) > strtod(right, NULL);
    else if (strcmp(relation, "!=") == 0)
        yes = strcmp(value, right) != 0;
    else
        yes = is_one_of(value, right);
    if (yes)
        *why = named(config, section, key);
    return yes && *why == NULL;
}

/* What is left of a text behind its first part, which ends at `mark` or at
 * `end`; NULL: nothing. *length <- of that part. */
static const char *part(const char *text, const char *end, const char *mark,
                        size_t *length)
{
    const char *at = strstr(text, mark);
    bool last = at == NULL || at >= end;

    *length = (size_t)((last ? end : at) - text);
    return last ? NULL : at + strlen(mark);
}

/* Whether one of several terms holds. */
static bool one_holds(const bm_config *config, judge *named, const char *term,
                      const char *end, const char **why)
{
    while (term != NULL) {
        size_t length = 0;
        const char *next = part(term, end, " or ", &length);

        if (holds(config, named, term, length, why))
            return true;
        term = next;
    }
    return false;
}

static bool hold(const bm_config *config, judge *named, const char *when,
                 const char **why)
{
    const char *end = when + strlen(when);

    while (when != NULL) {
        size_t length = 0;
        const char *next = part(when, end, ", and with ", &length);

        if (!one_holds(config, named, when, when + length, why))
            return false;
        when = next;
    }
    return true;
}

static const char *judge_by(const bm_config *config, judge *named,
                            const char *section, const char *key)
{
    const char *both[] = {of_section(section), bm_condition(section, key)};

    for (size_t i = 0; i < 2; i++) {
        const char *why = NULL;

        if (both[i] != NULL && both[i][0] != '\0' &&
            !hold(config, named, both[i], &why))
            return why != NULL ? why : both[i];
    }
    return NULL;
}

static const char *none(const bm_config *config, const char *section,
                        const char *key)
{
    (void)config;
    (void)section;
    (void)key;
    return NULL;
}

/* Chains of conditions have up to two links: clock.times applies only with
 * clock.kind, which applies only with an asynchronous strategy. */
static const char *missing_next(const bm_config *config, const char *section,
                                const char *key)
{
    return judge_by(config, none, section, key);
}

static const char *missing(const bm_config *config, const char *section,
                           const char *key)
{
    return judge_by(config, missing_next, section, key);
}

bool bm_condition_holds(const bm_config *config, const char *section,
                        const char *key)
{
    return missing(config, section, key) == NULL;
}

static void check_net(const bm_config *config,
                      void (*warn)(void *self, const char *text), void *self)
{
    char why[300], text[500];

    if (!bm_model_doubt(config, why, sizeof why))
        return;
    snprintf(text, sizeof text, "%s: model.net: %s",
             bm_config_origin(config, "model", "net"), why);
    warn(self, text);
}

void bm_conditions_check(const bm_config *config,
                         void (*warn)(void *self, const char *text), void *self)
{
    char text[400];

    for (const bm_section *s = bm_train_sections(); s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++) {
            const char *origin = bm_config_origin(config, s->name, o->key);
            const char *why = NULL;

            if (bm_config_changed(config, s->name, s->options, o->key) &&
                strcmp(origin, "default") != 0)
                why = missing(config, s->name, o->key);
            if (why == NULL)
                continue;
            snprintf(text, sizeof text,
                     "%s: %s.%s = %s has no effect: it applies only with %s",
                     origin, s->name, o->key,
                     bm_config_text(config, s->name, o->key), why);
            warn(self, text);
        }
    check_net(config, warn, self);
}

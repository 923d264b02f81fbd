#include "cli/tune/space.h"

#include "core/log.h"
#include "core/text/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char time_constant[] = "time constant", gain[] = "gain";

static void assign(bm_assignments *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void assign(bm_assignments *out, const char *format, ...)
{
    va_list args;

    BM_ASSERT(out->n < sizeof out->row / sizeof *out->row);
    va_start(args, format);
    vsnprintf(out->row[out->n++].text, BM_SPACE_TEXT, format, args);
    va_end(args);
}

static bm_axis *add(bm_space *s, const char *name, double low, double high,
                    bool integer)
{
    bm_axis *a = &s->axis[s->n++];

    BM_ASSERT(s->n <= BM_SEARCH_AXES);
    *a = (bm_axis){.scale = BM_AXIS_log,
                   .low = integer ? round(low) : low,
                   .high = integer ? round(high) : high,
                   .integer = integer};
    snprintf(a->name, sizeof a->name, "%s", name);
    return a;
}

static void add_words(bm_space *s, const char *name, int n,
                      const char *const *words)
{
    bm_axis *a = &s->axis[s->n++];

    *a = (bm_axis){.scale = BM_AXIS_WORDS, .n_words = n};
    snprintf(a->name, sizeof a->name, "%s", name);
    for (int k = 0; k < n; k++)
        snprintf(a->words[k], BM_AXIS_TEXT, "%s", words[k]);
}

/* Mini-batches of a worker in a block. */
static double steps_of(const bm_regime *r)
{
    return r->block_frames / r->workers / r->batch_frames;
}

/* As many as local momentum takes to build up, if it is reset; slightly less, so
 * that rounding does not make 11 of 10. */
static double least_steps(const bm_regime *r)
{
    return r->reset ? ceil((1 - 1e-9) / (1 - r->local_momentum)) : 2;
}

/* As set, which may be more than the even blocks of an epoch have. */
static double given_steps(const bm_settings *set, const bm_regime *r)
{
    double steps = bm_series_at(&set->block.steps, r->from);

    return steps > 0 ? steps : fmax(round(steps_of(r)), 1);
}

/* An epoch has at least two blocks. */
static void add_steps(bm_space *s, const bm_settings *set, const bm_regime *r)
{
    double given = given_steps(set, r), least = least_steps(r);
    double most = r->epoch_frames / r->workers / r->batch_frames / 2;

    if (set->block.frames_per_worker.value[0] > 0)
        assign(&s->fixed, "block.frames_per_worker=0");
    if (set->block.frames_total.value[0] > 0)
        assign(&s->fixed, "block.frames_total=0");
    (void)add(s, "block.steps", fmin(least, given),
              fmax(fmax(most, given), 2 * least), true);
}

static double time_constant_of(const bm_regime *r)
{
    return r->momentum > 0 ? -r->block_frames / log(r->momentum) : 0;
}

static double gain_of(const bm_regime *r)
{
    return r->rate / (1 - r->momentum) / r->workers;
}

/* Within what bm_advise does not warn of: a gain from 1, that of averaging, to one
 * and a half of N, and no time constant that is too long. Within one below the
 * shortest block there is no momentum, and the gain would be the block rate. */
static void add_filter(bm_space *s, const bm_settings *set, const bm_regime *r)
{
    double given = time_constant_of(r), high = bm_longest_time_constant(r);
    double shortest = fmin(least_steps(r), given_steps(set, r)) * r->workers *
                      r->batch_frames;
    double low = fmin(fmax(r->epoch_frames / 64, shortest), high / 2);

    if (given > 0) {
        low = fmin(low, given);
        high = fmax(high, given);
    }
    if (bm_config_text(set->config, "bmuf", "time_constant") != NULL)
        assign(&s->fixed, "bmuf.time_constant=0"); /* the momentum follows */
    (void)add(s, time_constant, low, high, false);
    (void)add(s, gain, fmin(1. / r->workers, gain_of(r)), fmax(1.5, gain_of(r)),
              false);
}

/* A first epoch by a quarter of the workers (docs/tuning.md), if there are
 * others. */
static void add_workers(bm_space *s, const bm_settings *set, const bm_regime *r)
{
    char growing[BM_AXIS_TEXT];
    const char *const words[] = {"0", growing};

    if (set->block.workers.value[0] > 0 || r->workers < 4 || r->epochs < 2 ||
        bm_fragments_wanted(&set->block))
        return;
    snprintf(growing, sizeof growing, "%d@0 %d@1", r->workers / 4, r->workers);
    add_words(s, "block.workers", 2, words);
}

static void add_usual(bm_space *s, const bm_settings *set, const bm_regime *r)
{
    static const char *const states[] = {"reset", "keep"};
    bool many = r->workers > 1;

    (void)add(s, "train.rate", set->train.rate / 5, set->train.rate * 5, false);
    if (r->blocks && many) {
        add_steps(s, set, r);
        if (bm_sgd_has_state(&set->sgd))
            add_words(s, "sgd.local_state", 2, states);
        add_workers(s, set, r);
    }
    if (r->filtered && !r->renamed && many)
        add_filter(s, set, r);
}

/* The nearest place of a value on an axis; the middle if it is not a number. */
static double nearest(const bm_axis *a, double value)
{
    int best = 0;

    if (isnan(value))
        return 0.5;
    if (a->scale == BM_AXIS_WORDS) {
        for (int k = 1; k < a->n_words; k++)
            if (fabs(strtod(a->words[k], NULL) - value) <
                fabs(strtod(a->words[best], NULL) - value))
                best = k;
        return (best + 0.5) / a->n_words;
    }
    return bm_axis_place_of(a, fmin(fmax(value, a->low), a->high));
}

/* NAN unless all of a text is a number. */
static double number_of(const char *text)
{
    char *end = NULL;
    double x = strtod(text, &end);

    return end == text || *end != '\0' ? NAN : x;
}

static bool has_number(const bm_axis *a, double x)
{
    if (a->scale != BM_AXIS_WORDS)
        return !isnan(bm_axis_place_of(a, x));
    for (int k = 0; k < a->n_words; k++)
        if (fabs(number_of(a->words[k]) - x) <= 1e-9 * fabs(x))
            return true;
    return false;
}

/* What follows from several settings; NAN: the axis is a setting of its own. */
static double derived_value(const bm_axis *a, const bm_settings *set,
                            const bm_regime *r)
{
    if (strcmp(a->name, time_constant) == 0)
        return time_constant_of(r);
    if (strcmp(a->name, gain) == 0)
        return gain_of(r);
    if (strcmp(a->name, "block.steps") == 0)
        return given_steps(set, r);
    if (strcmp(a->name, "bmuf.momentum") == 0)
        return r->momentum;
    if (strcmp(a->name, "train.rate") == 0)
        return set->train.rate;
    return NAN;
}

static bool is_derived(const bm_axis *a)
{
    return strchr(a->name, '.') == NULL;
}

/* The text of a setting "section.key"; NULL: it was not given. */
static const char *given_text(const char *name, const bm_config *config)
{
    size_t n = strcspn(name, ".");
    char section[64] = "";

    memcpy(section, name, n);
    return bm_config_text(config, section, name + n + 1);
}

static bool changes(const char *name, const bm_config *config)
{
    const char *text = given_text(name, config);
    bm_series x;

    return text != NULL && bm_series_read(text, true, &x) &&
           bm_series_changes(&x);
}

/* The setting behind an axis that changes in training, VALUE@EPOCH; NULL: none. */
static const char *changing_setting(const bm_axis *a, const bm_config *config)
{
    static const char *const rows[][4] = {
        {time_constant, "bmuf.momentum"},
        {gain, "bmuf.rate", "bmuf.momentum"},
        {"block.steps", "block.steps", "block.frames_per_worker",
         "block.frames_total"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 1; k < 4 && rows[i][k] != NULL; k++)
            if (strcmp(rows[i][0], a->name) == 0 && changes(rows[i][k], config))
                return rows[i][k];
    return !is_derived(a) && changes(a->name, config) ? a->name : NULL;
}

/* The text of the setting of an axis, or of its default. NULL: it has neither, or
 * says that the value follows from others: a number that is not given, or 0. */
static const char *own_text(const bm_axis *a, const bm_config *config,
                            bool follows)
{
    const char *text = NULL;

    if (is_derived(a))
        return NULL;
    text = given_text(a->name, config);
    if (follows && (text == NULL || number_of(text) == 0)) {
        text = bm_axis_option(bm_train_sections(), a->name)->fallback;
        return text == NULL || !isnan(number_of(text)) ? NULL : text;
    }
    return text != NULL
               ? text
               : bm_axis_option(bm_train_sections(), a->name)->fallback;
}

static bm_given_value given_on(const bm_axis *a, const bm_settings *set,
                               const bm_regime *r)
{
    double derived = derived_value(a, set, r), x = NAN, place = NAN;
    const char *changing = changing_setting(a, set->config);
    const char *text = own_text(a, set->config, !isnan(derived));
    bm_given_value g = {0};

    if (text != NULL) {
        place = bm_axis_place(a, text);
        x = number_of(text);
    }
    if (isnan(x))
        x = isnan(derived) && text != NULL ? strtod(text, NULL) : derived;
    g.there = !isnan(place) || (changing == NULL && has_number(a, x));
    g.u = fmin(isnan(place) ? nearest(a, x) : place, 1 - 1e-9);
    if (g.there)
        bm_axis_text(a, g.u, g.number);
    else if (changing != NULL)
        g.text = given_text(changing, set->config);
    else if (text != NULL && isnan(number_of(text)) && isnan(derived))
        g.text = text;
    else
        snprintf(g.number, sizeof g.number, "%.6g", x);
    return g;
}

/* The end of a range can stand for a number beyond it, nothing in a list for
 * another value. */
static void find_given(bm_space *s, const bm_settings *set, const bm_regime *r)
{
    for (size_t k = 0; k < s->n; k++) {
        const bm_given_value g = given_on(&s->axis[k], set, r);
        bool ranges = s->axis[k].scale != BM_AXIS_WORDS &&
                      (g.text == NULL || !isnan(number_of(g.text)));

        s->given[k] = g;
        s->given_apart = s->given_apart || !(g.there || ranges);
    }
}

/* Trials do not have the changes of a setting that is searched. */
static void warn_of_changes(const bm_space *s, const bm_settings *set)
{
    const char *said = NULL;

    for (size_t k = 0; k < s->n; k++) {
        const char *name = changing_setting(&s->axis[k], set->config);

        if (name == NULL || name == said || s->given[k].there)
            continue;
        said = name;
        bm_log(BM_WARNING,
               "%s = %s changes in training; other trials have one value in "
               "all epochs, as it is searched: to keep the changes, give "
               "--over without it",
               name, given_text(name, set->config));
    }
}

bool bm_space_is_given(const bm_space *s, const double *x)
{
    for (size_t k = 0; k < s->n; k++) {
        char text[BM_AXIS_TEXT];

        bm_axis_text(&s->axis[k], x[k], text);
        if (!s->given[k].there || strcmp(text, s->given[k].number) != 0)
            return false;
    }
    return s->fixed.n == 0;
}

void bm_space_given(const bm_space *s, double *x)
{
    for (size_t k = 0; k < s->n; k++)
        x[k] = s->given[k].u;
}

/* Why trials that differ in a setting cannot be compared; NULL: they can. */
static const char *why_not(const char *name)
{
    static const struct {
        const char *names; /* "section." stands for all of a section */
        const char *why;
    } rows[] = {
        {"data. model.loss", "trials on other data, or with another loss, "
                             "have errors of another kind"},
        {"tune.", "it is a setting of the search, not of a trial"},
        {"job.seed", "a search would choose the luckiest seed; tune.seeds is "
                     "how many seeds the finalists are trained with"},
        {"train.from", "the epochs of that run are not in the budget"},
        {"train.checkpoint_every train.keep train.checkpoint_copies "
         "job.metrics",
         "it is the same in all trials, which keep their last checkpoint "
         "alone"},
    };
    char section[64];

    snprintf(section, sizeof section, "%.*s.", (int)strcspn(name, "."), name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (bm_is_word_of(name, rows[i].names) ||
            bm_is_word_of(section, rows[i].names))
            return rows[i].why;
    return NULL;
}

static bm_status read_axis(bm_axis *out, const char *text)
{
    const char *why = NULL;

    BM_TRY(bm_axis_parse(out, text, bm_train_sections()));
    why = why_not(out->name);
    return why == NULL
               ? BM_OK
               : BM_FAIL(BM_ERR_CONFIG,
                         "tune.over: %s cannot be searched: %s; leave it out",
                         out->name, why);
}

static bool has_setting(const bm_space *s, const char *name)
{
    size_t n = strlen(name);

    for (size_t k = 0; k < s->n; k++)
        if (strcmp(s->axis[k].name, name) == 0)
            return true;
    for (size_t k = 0; k < s->fixed.n; k++)
        if (strncmp(s->fixed.row[k].text, name, n) == 0 &&
            s->fixed.row[k].text[n] == '=')
            return true;
    return false;
}

bm_status bm_space_new(bm_space *out, const char *over, const bm_settings *set,
                       const bm_regime *regime)
{
    char text[BM_AXIS_MOST_TEXT] = "";

    *out = (bm_space){.workers = regime->workers,
                      .batch_frames = regime->batch_frames};
    if (over[strspn(over, " ")] == '\0')
        add_usual(out, set, regime);
    while (over[strspn(over, " ")] != '\0') {
        bm_axis a = {0};

        over = bm_axis_next(over, text);
        BM_TRY(read_axis(&a, text));
        if (has_setting(out, a.name))
            return BM_FAIL(BM_ERR_CONFIG,
                           "tune.over: %s is there twice; give its values in "
                           "one list or range",
                           a.name);
        if (a.n_words == 1 && out->fixed.n < BM_SPACE_FIXED)
            assign(&out->fixed, "%s=%s", a.name, a.words[0]);
        else if (out->n < BM_SEARCH_AXES)
            out->axis[out->n++] = a;
        else
            return BM_FAIL(BM_ERR_CONFIG, "tune.over: at most %d settings",
                           BM_SEARCH_AXES);
    }
    if (out->n == 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "tune.over: %s: a single value is the same in all "
                       "trials; give a range, as train.rate=0.01..0.2, or "
                       "several values, as train.rate=0.01,0.1",
                       text);
    find_given(out, set, regime);
    warn_of_changes(out, set);
    return BM_OK;
}

/* NULL: the space does not have this axis. */
static const bm_axis *find(const bm_space *s, const char *name, const double *x,
                           double *u)
{
    for (size_t k = 0; k < s->n; k++)
        if (strcmp(s->axis[k].name, name) == 0) {
            *u = x[k];
            return &s->axis[k];
        }
    return NULL;
}

/* Momentum and rate for the size of a block at x; in a space that has one of
 * these axes, all are. */
static void derive(const bm_space *s, const double *x, bm_assignments *out)
{
    double u = 0, block = s->workers * s->batch_frames, eta = 0;
    const bm_axis *a = find(s, "block.steps", x, &u);

    BM_ASSERT(a != NULL);
    block *= bm_axis_value(a, u);
    a = find(s, time_constant, x, &u);
    eta = fmin(exp(-block / bm_axis_value(a, u)), 0.9999);
    assign(out, "bmuf.momentum=%.4g", eta);
    a = find(s, gain, x, &u);
    assign(out, "bmuf.rate=%.3g", bm_axis_value(a, u) * s->workers * (1 - eta));
}

void bm_space_assign(const bm_space *s, const double *x, bm_assignments *out)
{
    bool derived = false;

    *out = s->fixed;
    for (size_t k = 0; k < s->n; k++) {
        char value[BM_AXIS_TEXT];

        derived = derived || is_derived(&s->axis[k]);
        if (is_derived(&s->axis[k]))
            continue;
        bm_axis_text(&s->axis[k], x[k], value);
        assign(out, "%s=%s", s->axis[k].name, value);
    }
    if (derived)
        derive(s, x, out);
}

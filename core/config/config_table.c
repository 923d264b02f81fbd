/*
 * config_table.c - checks settings against tables. Faults are collected, so
 * that a user can correct all of them at once.
 */
#include "core/config/config_parts.h"
#include "core/text/printable.h"
#include "core/text/words.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A parsed setting. */
typedef union value {
    long number;
    double real;
    bool flag;
    const char *text;
    bm_series series;
} value;

void bm_config_fault(bm_faults *faults, const bm_config *config,
                     const char *section, const char *key, const char *format,
                     ...)
{
    va_list args;

    va_start(args, format);
    bm_fault_add_list(faults, bm_config_origin(config, section, key), format,
                      args);
    va_end(args);
}

static bm_status verdict(const bm_faults *f)
{
    if (f->n == 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_CONFIG, "%s:%s%s",
                   bm_count_noun((long long)f->n, "invalid setting").text,
                   f->text, bm_faults_more(f).text);
}

enum {
    NAMES = 480, /* characters of a list of names */
    LONGEST_WORD = 64,
};

static void add_name(const char *name, char list[NAMES])
{
    size_t n = strlen(list);

    snprintf(list + n, NAMES - n, "%s%s", n > 0 ? " " : "", name);
}

static const bm_option *option_of(const bm_option *options, const char *key)
{
    while (options->key != NULL && strcmp(options->key, key) != 0)
        options++;
    return options->key != NULL ? options : NULL;
}

static bool has_setting(const bm_section *sections, const char *name)
{
    char whole[100];

    for (; sections->name != NULL; sections++)
        for (const bm_option *o = sections->options; o->key != NULL; o++) {
            snprintf(whole, sizeof whole, "%s.%s", sections->name, o->key);
            if (strcmp(whole, name) == 0)
                return true;
        }
    return false;
}

/* The setting of the sections for which others have this key; NULL: none. */
static const char *named_by_others(const char *key, const bm_section *sections,
                                   const bm_foreign_word *foreign)
{
    char word[LONGEST_WORD];

    bm_word_plain(key, strlen(key), word, sizeof word);
    for (; foreign != NULL && foreign->setting != NULL; foreign++)
        if (foreign->setting[0] == '\0' &&
            bm_is_word_of(word, foreign->theirs) &&
            has_setting(sections, foreign->ours))
            return foreign->ours;
    return NULL;
}

/* What to set in place of an unknown key: a key with nearly this name, what
 * others call so, this key of another section, or any of the section.
 * `sections` and `foreign` may be NULL. */
static void report_key(bm_faults *f, const bm_entry *e,
                       const bm_section *sections, const bm_option *options,
                       const bm_foreign_word *foreign)
{
    char names[NAMES] = "", near[64] = "";
    const char *ours = NULL;

    for (const bm_option *o = options; o->key != NULL; o++)
        add_name(o->key, names);
    if (bm_nearest_word(e->key, names, near, sizeof near)) {
        bm_fault_add(f, e->origin, "%s.%s is unknown; the nearest is %s.%s",
                     e->section, e->key, e->section, near);
        return;
    }
    ours = named_by_others(e->key, sections, foreign);
    if (ours != NULL) {
        bm_fault_add(f, e->origin, "%s.%s is unknown; there is %s", e->section,
                     e->key, ours);
        return;
    }
    for (; sections != NULL && sections->name != NULL; sections++)
        if (option_of(sections->options, e->key) != NULL) {
            bm_fault_add(f, e->origin, "%s.%s is unknown; there is %s.%s",
                         e->section, e->key, sections->name, e->key);
            return;
        }
    bm_fault_add(f, e->origin, "%s.%s is unknown; [%s] has: %s", e->section,
                 e->key, e->section, names);
}

static void report_section(bm_faults *f, const bm_entry *e,
                           const bm_section *sections)
{
    char names[NAMES] = "", near[64] = "";

    for (; sections->name != NULL; sections++)
        add_name(sections->name, names);
    if (bm_nearest_word(e->section, names, near, sizeof near))
        bm_fault_add(f, e->origin,
                     "section [%s] is unknown; the nearest is [%s]", e->section,
                     near);
    else
        bm_fault_add(f, e->origin,
                     "section [%s] is unknown; the sections are: %s",
                     e->section, names);
}

static const bm_section *section_of(const bm_section *sections,
                                    const char *name)
{
    while (sections->name != NULL && strcmp(sections->name, name) != 0)
        sections++;
    return sections->name != NULL ? sections : NULL;
}

/* False unless all of the text is a value of the option's type. */
static bool parse(const bm_option *o, const char *text, value *out)
{
    char *end = NULL;

    errno = 0;
    switch (o->type) {
    case BM_INT:
        out->number = strtol(text, &end, 10);
        return errno == 0 && end != text && *end == '\0';
    case BM_FLOAT:
        out->real = strtod(text, &end);
        return end != text && *end == '\0' && isfinite(out->real);
    case BM_FLAG:
        out->flag = strcmp(text, "yes") == 0;
        return out->flag || strcmp(text, "no") == 0;
    case BM_AUTO:
        out->real = NAN;
        if (strcmp(text, "auto") == 0)
            return true;
        out->real = strtod(text, &end);
        return end != text && *end == '\0' && isfinite(out->real);
    case BM_SERIES:
        return bm_series_read(text, strcmp(o->fallback, "auto") == 0,
                              &out->series);
    case BM_TEXT:
        out->text = text;
        return true;
    case BM_CHOICE:
        out->text = text;
        return bm_is_word_of(text, o->unit);
    }
    return false;
}

static bool is_within(const bm_option *o, double x)
{
    return (o->min == 0 && o->max == 0) || isnan(x) ||
           (x >= o->min && x <= o->max);
}

static bool within_bounds(const bm_option *o, const value *v)
{
    bool all = true;

    if (o->type == BM_INT)
        return is_within(o, (double)v->number);
    if (o->type == BM_FLOAT || o->type == BM_AUTO)
        return is_within(o, v->real);
    for (int i = 0; o->type == BM_SERIES && i < v->series.n; i++)
        all = all && is_within(o, v->series.value[i]);
    return all;
}

/* ---- words of other programs --------------------------------------------- */

/* out <- the word of the list that is plainly this one. */
static bool written_as(const char *word, const char *list,
                       char out[LONGEST_WORD])
{
    char ours[LONGEST_WORD];

    for (size_t n = strcspn(list, " "); n > 0;
         list += n + (list[n] == ' '), n = strcspn(list, " ")) {
        bm_word_plain(list, n, ours, sizeof ours);
        if (strcmp(ours, word) == 0) {
            snprintf(out, LONGEST_WORD, "%.*s", (int)n, list);
            return true;
        }
    }
    return false;
}

/* out <- "; set adamw, .." if others say `text` for a choice, else "". */
static void propose(const char *section, const bm_option *o,
                    const bm_foreign_word *foreign, const char *text,
                    char out[2 * LONGEST_WORD])
{
    char word[LONGEST_WORD], ours[LONGEST_WORD], setting[100];

    out[0] = '\0';
    bm_word_plain(text, strlen(text), word, sizeof word);
    snprintf(setting, sizeof setting, "%s.%s", section, o->key);
    if (written_as(word, o->unit, ours))
        snprintf(out, 2 * LONGEST_WORD, "; set %s", ours);
    for (; foreign != NULL && foreign->setting != NULL; foreign++)
        if (strcmp(setting, foreign->setting) == 0 &&
            bm_is_word_of(word, foreign->theirs))
            snprintf(out, 2 * LONGEST_WORD, "; set %s", foreign->ours);
}

static void report_choice(bm_faults *f, const char *where, const char *section,
                          const bm_option *o, const bm_foreign_word *foreign,
                          const char *text)
{
    char instead[2 * LONGEST_WORD];
    size_t length = strlen(o->unit);

    length -= bm_ends_with(o->unit, " ");
    propose(section, o, foreign, text, instead);
    bm_fault_add(f, where, "%s.%s: '%s' is not one of: %.*s%s", section, o->key,
                 text, (int)length, o->unit, instead);
}

/* What to do where a number is given as a list of VALUE@EPOCH, or NULL. */
static const char *by_epochs(const char *section, const bm_option *o,
                             const bm_foreign_word *foreign, const char *text)
{
    char setting[100];

    snprintf(setting, sizeof setting, "%s.%s", section, o->key);
    if (strchr(text, '@') == NULL)
        return NULL;
    for (; foreign != NULL && foreign->setting != NULL; foreign++)
        if (strcmp(setting, foreign->setting) == 0 &&
            strcmp(foreign->theirs, "@") == 0)
            return foreign->ours;
    return NULL;
}

static void report_value(bm_faults *f, const char *where, const char *section,
                         const bm_option *o, const bm_foreign_word *foreign,
                         const char *text)
{
    static const char *const kinds[] = {
        [BM_INT] = "an integer",
        [BM_FLOAT] = "a number",
        [BM_FLAG] = "yes or no",
        [BM_AUTO] = "a number or auto",
        [BM_SERIES] = "a number, or VALUE@EPOCH .. with epochs from 0 up",
        [BM_TEXT] = "text",
    };

    const char *instead = by_epochs(section, o, foreign, text);

    if (o->type == BM_CHOICE)
        report_choice(f, where, section, o, foreign, text);
    else
        bm_fault_add(f, where, "%s.%s: '%s' is not %s%s%s", section, o->key,
                     text, kinds[o->type], instead != NULL ? "; " : "",
                     instead != NULL ? instead : "");
}

/* ---- checks -------------------------------------------------------------- */

static void check_option(bm_faults *f, const bm_config *config,
                         const char *section, const bm_option *o,
                         const bm_foreign_word *foreign)
{
    const bm_entry *e = bm_config_find(config, section, o->key);
    const char *text = e != NULL ? e->value : o->fallback;
    const char *where = e != NULL ? e->origin : "default";
    value v = {0};

    if (text == NULL)
        bm_fault_add(f, config != NULL ? config->path : NULL,
                     "%s.%s is not set; add [%s] %s = %s (%s)", section, o->key,
                     section, o->key,
                     o->type == BM_TEXT && o->unit != NULL ? o->unit : "VALUE",
                     o->help);
    else if (!bm_is_utf8(text))
        bm_fault_add(f, where,
                     "%s.%s is not UTF-8; convert the configuration, or rename "
                     "the file that it names",
                     section, o->key);
    else if (!parse(o, text, &v))
        report_value(f, where, section, o, foreign, text);
    else if (!within_bounds(o, &v))
        bm_fault_add(f, where, "%s.%s: %s is outside [%.12g, %.12g]%s%s",
                     section, o->key, text, o->min, o->max, o->unit ? " " : "",
                     o->unit ? o->unit : "");
}

static void check_section(bm_faults *f, const bm_config *config,
                          const bm_section *sections, const char *section,
                          const bm_option *options,
                          const bm_foreign_word *foreign)
{
    for (size_t i = 0; config != NULL && i < config->n; i++) {
        const bm_entry *e = &config->entries[i];
        if (strcmp(e->section, section) == 0 &&
            option_of(options, e->key) == NULL)
            report_key(f, e, sections, options, foreign);
    }
    for (const bm_option *o = options; o->key != NULL; o++)
        check_option(f, config, section, o, foreign);
}

bm_status bm_config_check(const bm_config *config, const bm_section *sections)
{
    bm_faults f = config->faults;

    BM_ASSERT(sections->name != NULL);
    for (size_t i = 0; i < config->n; i++)
        if (section_of(sections, config->entries[i].section) == NULL)
            report_section(&f, &config->entries[i], sections);
    for (const bm_section *s = sections; s->name != NULL; s++)
        check_section(&f, config, sections, s->name, s->options, s->foreign);
    for (const bm_section *s = sections; s->name != NULL; s++)
        if (s->check != NULL)
            s->check(config, &f);
    return verdict(&f);
}

static void store(const bm_option *o, const value *v, void *field)
{
    switch (o->type) {
    case BM_INT:
        *(long *)field = v->number;
        break;
    case BM_FLOAT:
    case BM_AUTO:
        *(double *)field = v->real;
        break;
    case BM_FLAG:
        *(bool *)field = v->flag;
        break;
    case BM_SERIES:
        *(bm_series *)field = v->series;
        break;
    case BM_TEXT:
    case BM_CHOICE:
        *(const char **)field = v->text;
        break;
    }
}

/* The value that is set if it is valid, else the default, else 0 or "". */
static value look_up(const bm_config *config, const char *section,
                     const bm_option *o)
{
    const bm_entry *e = bm_config_find(config, section, o->key);
    value v = {0};

    if (e != NULL && parse(o, e->value, &v) && within_bounds(o, &v))
        return v;
    v = (value){0};
    if (o->fallback != NULL)
        (void)parse(o, o->fallback, &v);
    else if (o->type == BM_TEXT || o->type == BM_CHOICE)
        v.text = "";
    return v;
}

void bm_config_peek(const bm_config *config, const char *section,
                    const bm_option *options, void *settings)
{
    for (const bm_option *o = options; o->key != NULL; o++) {
        value v = look_up(config, section, o);
        store(o, &v, (char *)settings + o->offset);
    }
}

static bool equal(bm_option_type type, const value *a, const value *b)
{
    switch (type) {
    case BM_INT:
        return a->number == b->number;
    case BM_FLOAT:
    case BM_AUTO:
        return a->real == b->real || (isnan(a->real) && isnan(b->real));
    case BM_FLAG:
        return a->flag == b->flag;
    case BM_SERIES:
        return bm_series_equal(&a->series, &b->series);
    case BM_TEXT:
    case BM_CHOICE:
        return strcmp(a->text, b->text) == 0;
    }
    return false;
}

bool bm_config_changed(const bm_config *config, const char *section,
                       const bm_option *options, const char *key)
{
    const bm_option *o = option_of(options, key);
    value now, usual;

    BM_ASSERT(o != NULL);
    now = look_up(config, section, o);
    usual = look_up(NULL, section, o);
    return !equal(o->type, &now, &usual);
}

bm_status bm_config_fill(const bm_config *config, const char *section,
                         const bm_option *options, void *settings)
{
    bm_faults f = config != NULL ? config->faults : (bm_faults){0};

    check_section(&f, config, NULL, section, options, NULL);
    BM_TRY(verdict(&f));
    bm_config_peek(config, section, options, settings);
    return BM_OK;
}

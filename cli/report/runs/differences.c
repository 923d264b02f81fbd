#include "cli/report/runs/differences.h"

#include "cli/settings.h"
#include "core/text/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *value_of(const bm_config *config, const char *section,
                            const bm_option *o)
{
    const char *text =
        config != NULL ? bm_config_text(config, section, o->key) : "?";

    if (text == NULL)
        text = o->fallback;
    return text != NULL ? text : "";
}

typedef struct collector {
    bm_differences *d;
    bool whole; /* there was enough memory */
} collector;

/* Adds a setting that differs, once; called by bm_config_compare. */
static void add(void *self, const char *section, const bm_option *o,
                const char *in_a, const char *in_b)
{
    collector *c = self;
    bm_differences *d = c->d;
    struct bm_difference *grown = NULL;

    (void)in_a;
    (void)in_b;
    for (size_t k = 0; k < d->n; k++)
        if (d->settings[k].option == o && d->settings[k].section == section)
            return;
    grown = realloc(d->settings, (d->n + 1) * sizeof *grown);
    c->whole = c->whole && grown != NULL;
    if (grown == NULL)
        return;
    d->settings = grown;
    d->settings[d->n++] = (struct bm_difference){section, o};
}

/* Of the first run that has a config.ini from each of the others. */
static bm_status compare(bm_differences *d)
{
    collector c = {d, true};
    size_t first = 0;

    while (first < d->n_runs && d->configs[first] == NULL)
        first++;
    for (size_t r = first + 1; r < d->n_runs; r++)
        if (d->configs[r] != NULL)
            bm_config_compare(d->configs[first], d->configs[r],
                              bm_train_sections(), add, &c);
    return c.whole ? BM_OK
                   : BM_FAIL(BM_ERR_MEMORY, "no memory to compare settings");
}

static bm_status read_configs(bm_differences *d, const char *const *runs)
{
    for (size_t r = 0; r < d->n_runs; r++) {
        char path[4200];

        snprintf(path, sizeof path, "%s/config.ini", runs[r]);
        if (access(path, F_OK) != 0)
            continue;
        BM_TRY(bm_config_new(&d->configs[r]));
        BM_TRY(bm_config_read(d->configs[r], path));
    }
    return BM_OK;
}

bm_status bm_differences_read(bm_differences *d, size_t n_runs,
                              const char *const *runs)
{
    bm_status status = BM_OK;

    *d = (bm_differences){.n_runs = n_runs};
    d->configs = calloc(n_runs + 1, sizeof(bm_config *));
    if (d->configs == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to compare runs");
    BM_TRY_DONE(read_configs(d, runs));
    BM_TRY_DONE(compare(d));
    return BM_OK;
done:
    bm_differences_free(d);
    return status;
}

void bm_differences_free(bm_differences *d)
{
    for (size_t r = 0; d->configs != NULL && r < d->n_runs; r++)
        bm_config_free(d->configs[r]);
    free((void *)d->configs);
    free(d->settings);
    *d = (bm_differences){0};
}

const char *bm_difference_value(const bm_differences *d, size_t run, size_t k)
{
    return value_of(d->configs[run], d->settings[k].section,
                    d->settings[k].option);
}

const char *bm_difference_name(const bm_differences *d, size_t k, char out[64])
{
    snprintf(out, 64, "%s.%s", d->settings[k].section,
             d->settings[k].option->key);
    return out;
}

static const bm_option *find(const char *section, const char *key)
{
    for (const bm_section *s = bm_train_sections(); s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++)
            if (strcmp(s->name, section) == 0 && strcmp(o->key, key) == 0)
                return o;
    return NULL;
}

const char *bm_run_setting(const bm_differences *d, size_t run,
                           const char *section, const char *key)
{
    const bm_option *o = find(section, key);

    if (d->configs[run] == NULL || o == NULL)
        return NULL;
    return value_of(d->configs[run], section, o);
}

bool bm_is_setting(const char *name)
{
    const char *dot = strchr(name, '.');
    char section[64];

    if (dot == NULL || dot - name >= (long)sizeof section)
        return false;
    snprintf(section, sizeof section, "%.*s", (int)(dot - name), name);
    return find(section, dot + 1) != NULL;
}

typedef struct difference_check {
    const char *key; /* may differ; NULL: none */
    bool other;      /* something else does */
} difference_check;

/* Called by bm_config_compare. */
static void check_difference(void *self, const char *section,
                             const bm_option *o, const char *in_a,
                             const char *in_b)
{
    difference_check *c = self;
    char name[64];

    (void)in_a;
    (void)in_b;
    snprintf(name, sizeof name, "%s.%s", section, o->key);
    c->other = c->other || (!bm_is_word_of(name, "job.seed job.metrics "
                                                 "job.trace job.tensorboard") &&
                            (c->key == NULL || strcmp(name, c->key) != 0));
}

bool bm_differ_in_seed_only(const bm_differences *d, size_t a, size_t b,
                            const char *key)
{
    difference_check c = {key, false};

    if (a == b)
        return true;
    if (d->configs[a] == NULL || d->configs[b] == NULL)
        return false;
    bm_config_compare(d->configs[a], d->configs[b], bm_train_sections(),
                      check_difference, &c);
    return !c.other;
}

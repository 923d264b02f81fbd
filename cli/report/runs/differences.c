#include "cli/report/runs/differences.h"

#include "cli/settings.h"

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

/* As numbers, if both are. */
static bool equal(const char *a, const char *b)
{
    char *end_a = NULL, *end_b = NULL;
    double x = strtod(a, &end_a), y = strtod(b, &end_b);

    if (end_a == a || end_b == b || *end_a != '\0' || *end_b != '\0')
        return strcmp(a, b) == 0;
    return x == y;
}

static bool differ(const bm_differences *d, const char *section,
                   const bm_option *o)
{
    const char *first = NULL;

    for (size_t r = 0; r < d->n_runs; r++) {
        const char *value = value_of(d->configs[r], section, o);

        if (d->configs[r] == NULL)
            continue;
        if (first != NULL && !equal(first, value))
            return true;
        first = value;
    }
    return false;
}

static bm_status add(bm_differences *d, const char *section, const bm_option *o)
{
    struct bm_difference *grown =
        realloc(d->settings, (d->n + 1) * sizeof *grown);

    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to compare settings");
    d->settings = grown;
    d->settings[d->n++] = (struct bm_difference){section, o};
    return BM_OK;
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
    for (const bm_section *s = bm_train_sections(); s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++)
            if (differ(d, s->name, o))
                BM_TRY_DONE(add(d, s->name, o));
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

bool bm_differ_in_seed_only(const bm_differences *d, size_t a, size_t b,
                            const char *key)
{
    if (a == b)
        return true;
    if (d->configs[a] == NULL || d->configs[b] == NULL)
        return false;
    for (size_t k = 0; k < d->n; k++) {
        char name[64];

        bm_difference_name(d, k, name);
        if (strcmp(name, "job.seed") != 0 &&
            (key == NULL || strcmp(name, key) != 0) &&
            !equal(bm_difference_value(d, a, k), bm_difference_value(d, b, k)))
            return false;
    }
    return true;
}

#include "io/features/feature_text.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Keys of the two lists of numbers. */
static const char mean_key[] = "mean", scale_key[] = "scale";

bm_status bm_cmvn_make(bm_cmvn *n, size_t dim)
{
    bm_cmvn_free(n);
    n->mean = calloc(dim + 1, sizeof *n->mean);
    n->scale = calloc(dim + 1, sizeof *n->scale);
    if (n->mean == NULL || n->scale == NULL) {
        bm_cmvn_free(n);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the means of %zu features",
                       dim);
    }
    n->dim = dim;
    return BM_OK;
}

bm_status bm_cmvn_copy(bm_cmvn *n, const bm_cmvn *from)
{
    BM_TRY(bm_cmvn_make(n, from->dim));
    for (size_t d = 0; d < n->dim; d++) {
        n->mean[d] = from->mean[d];
        n->scale[d] = from->scale[d];
    }
    return BM_OK;
}

void bm_cmvn_free(bm_cmvn *n)
{
    free(n->mean);
    free(n->scale);
    n->mean = n->scale = NULL;
    n->dim = 0;
}

void bm_cmvn_apply(const bm_cmvn *n, float *x, size_t frames, size_t columns)
{
    BM_ASSERT(n->dim > 0 && columns % n->dim == 0);
    for (size_t i = 0; i < frames * columns; i += n->dim)
        for (size_t d = 0; d < n->dim; d++)
            x[i + d] = (float)((x[i + d] - n->mean[d]) * n->scale[d]);
}

static json_t *list(const double *x, size_t n)
{
    json_t *out = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(out, json_real(x[i]));
    return out;
}

int bm_cmvn_describe(const bm_cmvn *n, json_t *description)
{
    int failed =
        json_object_set_new(description, mean_key, list(n->mean, n->dim)) |
        json_object_set_new(description, scale_key, list(n->scale, n->dim));

    return failed != 0 ? -1 : 0;
}

static json_t *to_json(const bm_option *o, const void *settings)
{
    const char *field = (const char *)settings + o->offset;

    switch (o->type) {
    case BM_INT:
        return json_integer(*(const long *)(const void *)field);
    case BM_FLOAT:
    case BM_AUTO:
        return json_real(*(const double *)(const void *)field);
    case BM_FLAG:
        return json_boolean(*(const bool *)(const void *)field);
    case BM_SERIES: /* features do not change in the course of training */
        break;
    case BM_TEXT:
    case BM_CHOICE:
        return json_string(*(const char *const *)(const void *)field);
    }
    return NULL;
}

/* The text of a setting that the table has. */
static const char *text_of(const bm_option *options, const char *key,
                           const void *settings)
{
    while (strcmp(options->key, key) != 0)
        options++;
    return *(const char *const *)(const void *)((const char *)settings +
                                                options->offset);
}

static const char *const later[] = {"contrast",     "slant",  "binarise",
                                    "cepstra",      "energy", "pitch",
                                    "right_to_left"};

static bool is_later(const char *key)
{
    bool found = false;

    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        found = found || strcmp(key, later[i]) == 0;
    return found;
}

/* Settings that were added later are left out at their defaults, "no" or 0: they
 * differ in nothing from descriptions that were made before. So is the length of
 * a window that is not used. */
static bool is_left_out(const bm_option *options, const bm_option *o,
                        const void *settings)
{
    const char *field = (const char *)settings + o->offset;

    if (strcmp(o->key, "sliding") == 0)
        return strcmp(text_of(options, "normalise", settings), o->key) != 0;
    if (!is_later(o->key))
        return false;
    if (o->type == BM_FLAG)
        return !*(const bool *)(const void *)field;
    if (o->type == BM_INT)
        return *(const long *)(const void *)field == 0;
    return strcmp(*(const char *const *)(const void *)field, "no") == 0;
}

bm_status bm_features_describe(char **out, const char *kind,
                               const bm_option *options, const void *settings,
                               const bm_cmvn *norm)
{
    bool normed = norm != NULL && norm->dim > 0;
    json_t *object = json_object();
    int failed = json_object_set_new(object, "kind", json_string(kind));

    *out = NULL;
    for (const bm_option *o = options; o->key != NULL; o++)
        if (!is_left_out(options, o, settings))
            failed |= json_object_set_new(object, o->key, to_json(o, settings));
    if (normed)
        failed |= bm_cmvn_describe(norm, object);
    if (failed == 0)
        *out = json_dumps(object, normed ? JSON_REAL_PRECISION(17)
                                         : JSON_REAL_PRECISION(12));
    json_decref(object);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to describe features");
    return BM_OK;
}

bm_status bm_features_describe_more(char **description, const char *key,
                                    const bm_option *options,
                                    const void *settings)
{
    json_t *all = json_loads(*description, 0, NULL), *object = json_object();
    bool normed = json_object_get(all, mean_key) != NULL;
    char *text = NULL;
    int failed = 0;

    for (const bm_option *o = options; o->key != NULL; o++)
        failed |= json_object_set_new(object, o->key, to_json(o, settings));
    failed |= json_object_set_new(all, key, object);
    if (failed == 0)
        text = json_dumps(all, normed ? JSON_REAL_PRECISION(17)
                                      : JSON_REAL_PRECISION(12));
    json_decref(all);
    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to describe features");
    free(*description);
    *description = text;
    return BM_OK;
}

bm_status bm_features_kind(const char *description, char **out)
{
    json_t *all = json_loads(description, 0, NULL);
    const char *kind = json_string_value(json_object_get(all, "kind"));
    bm_status status = BM_OK;

    *out = kind != NULL ? strdup(kind) : NULL;
    if (kind != NULL && *out == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a kind of features");
    json_decref(all);
    return status;
}

/* features.key = value, as in a configuration. Precondition: value is there. */
static bm_status give(bm_config *config, const char *key, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    const char *word = json_is_string(value) ? json_string_value(value)
                       : json_is_boolean(value)
                           ? json_is_true(value) ? "yes" : "no"
                           : text;
    bm_status status = BM_OK;

    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for settings of features");
    status = bm_config_derive(config, "features", key, word);
    free(text);
    return status;
}

bool bm_features_right_to_left(const char *description)
{
    json_t *all = json_loads(description, 0, NULL);
    const char *value =
        json_string_value(json_object_get(all, "right_to_left"));
    bool yes = value != NULL && strcmp(value, "yes") == 0;

    json_decref(all);
    return yes;
}

bm_status bm_features_settings(const char *description,
                               const bm_option *options, bm_config **config,
                               void *settings)
{
    json_t *all = json_loads(description, 0, NULL);
    bm_config *given = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_config_new(&given));
    for (const bm_option *o = options; o->key != NULL; o++) {
        const json_t *value = json_object_get(all, o->key);

        if (value != NULL && status == BM_OK)
            status = give(given, o->key, value);
    }
    if (status == BM_OK)
        status = bm_config_fill(given, "features", options, settings);
    if (status == BM_ERR_CONFIG || status == BM_ERR_ARG)
        status = BM_FAIL(BM_ERR_FORMAT, "the features of the model: %s",
                         bm_last_message());
    if (status == BM_OK) {
        *config = given;
        given = NULL;
    }
done:
    bm_config_free(given);
    json_decref(all);
    return status;
}

/* Whether the list begins with n finite numbers, out [n]. */
static bool read_list(const json_t *list, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *x = json_array_get(list, i);

        if (!json_is_number(x) || !isfinite(json_number_value(x)))
            return false;
        out[i] = json_number_value(x);
    }
    return true;
}

bm_status bm_cmvn_read(bm_cmvn *n, const char *description)
{
    json_t *all = json_loads(description, 0, NULL);
    const json_t *mean = json_object_get(all, mean_key),
                 *scale = json_object_get(all, scale_key);
    size_t dim = json_array_size(mean);
    bm_status status = BM_OK;

    bm_cmvn_free(n);
    if (mean == NULL && scale == NULL)
        goto done;
    if (dim == 0 || json_array_size(scale) != dim)
        BM_FAIL_DONE(BM_ERR_FORMAT,
                     "the means and scales of features are not two lists of "
                     "one length");
    BM_TRY_DONE(bm_cmvn_make(n, dim));
    if (!read_list(mean, n->dim, n->mean) ||
        !read_list(scale, n->dim, n->scale)) {
        bm_cmvn_free(n);
        status = BM_FAIL(BM_ERR_FORMAT,
                         "the means and scales of features are not numbers");
    }
done:
    json_decref(all);
    return status;
}

/* ---- differences ----------------------------------------------------------- */

typedef struct differences {
    char *out;
    size_t room, n;
} differences;

static void add(differences *d, const char *text)
{
    size_t at = strlen(d->out);

    d->n++;
    snprintf(d->out + at, d->room - at, "\n  %s", text);
}

/* Of the recordings, or compared by other means. */
static bool is_compared(const char *key)
{
    static const char *const free_to_differ[] = {"channel", "seed", "copies",
                                                 mean_key, scale_key};

    for (size_t i = 0; i < sizeof free_to_differ / sizeof free_to_differ[0];
         i++)
        if (strcmp(key, free_to_differ[i]) == 0)
            return false;
    return true;
}

static bool is_text(const json_t *o, const char *key, const char *text)
{
    const char *found = json_string_value(json_object_get(o, key));

    return found != NULL && strcmp(found, text) == 0;
}

/* A value as a setting has it, "yes"; "": not a value of a setting. If there is
 * none, that of a setting which was left out, where the other description has
 * `other`. */
static void write_setting(const char *key, const json_t *value,
                          const json_t *other, char *out, size_t room)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));

    out[0] = '\0';
    if (value == NULL && is_later(key))
        snprintf(out, room, "%s", json_is_number(other) ? "0" : "no");
    else if (json_is_string(value) || json_is_boolean(value))
        snprintf(out, room, "%s",
                 json_is_string(value) ? json_string_value(value)
                 : json_is_true(value) ? "yes"
                                       : "no");
    else if (json_is_number(value) && text != NULL)
        snprintf(out, room, "%s", text);
    free(text);
}

/* "features.rate is 8000, should be 22050: --set features.rate=22050" */
static void add_value(differences *d, const char *key, const json_t *model,
                      const json_t *data)
{
    char is[64], was[64], text[400], remedy[160] = "";

    write_setting(key, data, model, is, sizeof is);
    write_setting(key, model, data, was, sizeof was);
    if (was[0] != '\0')
        snprintf(remedy, sizeof remedy, ": --set features.%.40s=%s", key, was);
    snprintf(text, sizeof text, "features.%.40s is %s, should be %s%s", key,
             is[0] != '\0' ? is : "not set", was[0] != '\0' ? was : "not set",
             remedy);
    add(d, text);
}

/* Descriptions without means have reals of 12 digits. */
static bool equal_at(const json_t *a, const json_t *b, const char *key)
{
    const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
    double u = json_number_value(x), v = json_number_value(y);

    if (json_is_real(x) && json_is_real(y))
        return fabs(u - v) <= 1e-11 * fabs(u);
    return json_equal(x, y) != 0;
}

/* Both were normalised, each over a whole set: was it the same one? */
static bool same_norm(const json_t *model, const json_t *data)
{
    return json_object_get(model, mean_key) == NULL ||
           json_object_get(data, mean_key) == NULL ||
           (equal_at(model, data, mean_key) &&
            equal_at(model, data, scale_key));
}

/* Whether the set can be normalised as the model's features were. */
static bool is_before(const json_t *data, const json_t *model)
{
    return is_text(data, "normalise", "none") &&
           is_text(model, "normalise", "global") &&
           json_object_get(model, mean_key) != NULL;
}

static void compare(differences *d, json_t *model, json_t *data, bool *raw)
{
    bool before = is_before(data, model);
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(model, key, value)
    {
        bool norm =
            strcmp(key, "normalise") == 0 || strcmp(key, "variance") == 0;

        if (is_compared(key) && !(before && norm) &&
            !equal_at(model, data, key))
            add_value(d, key, value, json_object_get(data, key));
    }
    json_object_foreach(data, key,
                        value) if (is_compared(key) &&
                                   json_object_get(model, key) == NULL)
        add_value(d, key, NULL, value);
    if (is_text(data, "normalise", "global") && !same_norm(model, data))
        add(d, "features.normalise = global has the means of another set");
    *raw = before && d->n == 0;
}

size_t bm_features_differ(const char *model, const char *data, char *out,
                          size_t room, bool *raw)
{
    differences d = {out, room, 0};
    json_t *a = json_loads(model, 0, NULL), *b = json_loads(data, 0, NULL);

    *raw = false;
    out[0] = '\0';
    if (a != NULL && b != NULL)
        compare(&d, a, b, raw);
    else if (model[0] != '\0' && data[0] != '\0' && strcmp(model, data) != 0)
        add(&d, "their descriptions are no JSON and differ");
    json_decref(a);
    json_decref(b);
    return d.n;
}

char *bm_features_brief(const char *description)
{
    json_t *all = json_loads(description, 0, NULL);
    char *text = NULL;

    json_object_del(all, mean_key);
    json_object_del(all, scale_key);
    text = all != NULL ? json_dumps(all, JSON_REAL_PRECISION(12))
                       : strdup(description);
    json_decref(all);
    return text;
}

bm_status bm_features_follow(const char *description, const char *kind,
                             const bm_option *options, bm_config *config,
                             char *out, size_t room)
{
    json_t *all = json_loads(description, 0, NULL);
    bm_status status = BM_OK;

    out[0] = '\0';
    for (const bm_option *o = options;
         o->key != NULL && is_text(all, "kind", kind); o++) {
        const json_t *value = json_object_get(all, o->key);
        size_t at = strlen(out);

        if (value == NULL || !is_compared(o->key) ||
            bm_config_text(config, "features", o->key) != NULL)
            continue;
        BM_TRY_DONE(give(config, o->key, value));
        if (bm_config_changed(config, "features", options, o->key))
            snprintf(out + at, room - at, "%sfeatures.%s = %s",
                     at > 0 ? ", " : "", o->key,
                     bm_config_text(config, "features", o->key));
    }
done:
    json_decref(all);
    return status;
}

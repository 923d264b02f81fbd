/* show.c - bmuf show: a picture of a sequence, as stored and augmented. */
#include "bmuf/trainer/infeasible.h"
#include "cli/outputs.h"
#include "cli/settings.h"
#include "cli/verbs.h"
#include "core/text/words.h"
#include "io/augment/augment_text.h"
#include "io/batch/sound_augment.h"
#include "io/inspect/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 4 }; /* pixels between sequences */

/* A sequence as stored, or in an epoch. */
typedef struct version {
    float *x; /* [frames, D] */
    size_t frames;
} version;

typedef struct show {
    bm_dataset *d;
    bm_config *config;
    bm_settings set;
    int64_t sequence;
    int32_t *labels;
    size_t n_labels;
    bool per_frame;
    bm_layout layout;
    bm_sound_augmenter *sound; /* NULL: recordings are not changed */
    bm_augmenter *augmenter;
    bm_backend *be;
    bm_model *model;   /* planned: it decides which speeds fit */
    long first;        /* epoch, from 1 */
    long n;            /* augmented versions */
    version *versions; /* [1 + n]; [0] is as stored */
} show;

/* ---- the sequence ------------------------------------------------------------ */

/* The sequence with that name. */
static bm_status find(show *s, const char *name)
{
    const char *tag = "";

    for (int64_t i = 0; i < (int64_t)s->d->n; i++) {
        BM_TRY(bm_dataset_tag(s->d, i, &tag));
        if (strcmp(tag, name) == 0) {
            s->sequence = i;
            return BM_OK;
        }
    }
    if (s->d->n > 0)
        BM_TRY(bm_dataset_tag(s->d, 0, &tag));
    return BM_FAIL(BM_ERR_MISSING,
                   "%s has no sequence '%s'; its first one is '%s'",
                   s->d->directory, name, tag);
}

static void *copy(const void *x, size_t n, size_t size)
{
    void *y = malloc(n * size + 1);

    if (y != NULL && n > 0)
        memcpy(y, x, n * size);
    return y;
}

/* Copies the sequence out of its unit. */
static bm_status take(show *s, const bm_unit_at *unit, const bm_sequences *in)
{
    size_t k = (size_t)(s->sequence - unit->first);
    const float *x = in->x;
    const int32_t *labels = in->targets;
    version *v = &s->versions[0];

    for (size_t i = 0; i < k; i++) {
        x += (size_t)in->frames[i] * in->features;
        labels += in->labels[i];
    }
    v->frames = (size_t)in->frames[k];
    s->n_labels = (size_t)in->labels[k];
    v->x = copy(x, v->frames * in->features, sizeof *x);
    s->labels = copy(labels, s->n_labels, sizeof *labels);
    if (v->x == NULL || s->labels == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a sequence of %zu frames",
                       v->frames);
    if (v->frames == 0)
        return BM_FAIL(BM_ERR_FORMAT, "the sequence has no frames");
    return BM_OK;
}

static bm_status read_sequence(show *s)
{
    bm_sequences in = {0};
    size_t unit = 0;
    bm_status status = BM_OK;

    while (unit + 1 < s->d->n_units &&
           s->d->units[unit + 1].first <= s->sequence)
        unit++;
    status = bm_dataset_read(s->d, unit, &in);
    if (status == BM_OK)
        status = take(s, &s->d->units[unit], &in);
    bm_sequences_free(&in);
    return status;
}

static bm_status open_sequence(show *s, const char *directory, const char *name)
{
    BM_TRY(bm_dataset_open(&s->d, directory));
    BM_TRY(find(s, name));
    s->versions = calloc((size_t)s->n + 1, sizeof *s->versions);
    if (s->versions == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %ld versions", s->n);
    BM_TRY(read_sequence(s));
    s->layout =
        bm_layout_of(bm_shard_features_text(s->d->shards[0]), s->d->features);
    s->per_frame = bm_shard_per_frame(s->d->shards[0]);
    return BM_OK;
}

/* ---- augmented --------------------------------------------------------------- */

static bm_status open_augmenter(show *s)
{
    bm_model_shape shape = {s->d->features, s->d->classes, 1};

    BM_TRY(bm_backend_open(&s->be, "cpu", 0));
    BM_TRY(bm_settings_locate_net(
        &s->set, bm_model_plan(&s->model, &s->set.model, &shape, s->be)));
    BM_TRY(bm_sound_augmenter_open(&s->sound, s->d, NULL, &s->set.augment));
    return bm_augmenter_new(&s->augmenter, &s->set.augment, &s->layout,
                            s->per_frame);
}

static bm_status augment(show *s, version *v, int64_t epoch)
{
    uint64_t key =
        bm_augment_key((uint64_t)s->set.job.seed, epoch, s->sequence);
    bm_augmented in = {s->versions[0].x, s->versions[0].frames, s->labels,
                       s->n_labels};
    bm_fit fit = bm_infeasible_fit(s->model);
    int32_t *targets = NULL;
    bm_status status = BM_OK;

    if (s->sound != NULL)
        BM_TRY(bm_sound_augment(s->sound, key, s->sequence, &in));
    v->frames = bm_augment_frames(s->augmenter, key, &in, &fit);
    v->x = malloc(v->frames * s->d->features * sizeof *v->x + 1);
    targets = malloc(v->frames * sizeof *targets);
    if (v->x == NULL || targets == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu frames", v->frames);
    else
        status = bm_augment(s->augmenter, key, &in, v->frames, v->x, targets);
    free(targets);
    return status;
}

/* The versions of successive epochs. */
static bm_status make_versions(show *s)
{
    if (s->n == 0)
        return BM_OK;
    if (!bm_augment_any(&s->set.augment))
        return BM_FAIL(BM_ERR_ARG,
                       "show: --augmented needs settings of [augment] that "
                       "change something, in the configuration or as --set "
                       "augment.warp=10, and augment.share above 0");
    BM_TRY(open_augmenter(s));
    for (long k = 1; k <= s->n; k++)
        BM_TRY(augment(s, &s->versions[k], s->first + k - 2));
    return BM_OK;
}

/* ---- the picture ------------------------------------------------------------- */

static bm_drawing drawing_of(const show *s)
{
    const version *v = &s->versions[0];
    bm_drawing d = {.layout = s->layout,
                    .zoom = bm_drawing_zoom(&s->layout),
                    .low = v->x[0],
                    .high = v->x[0]};

    for (size_t i = 0; i < v->frames * s->d->features; i++) {
        d.low = v->x[i] < d.low ? v->x[i] : d.low;
        d.high = v->x[i] > d.high ? v->x[i] : d.high;
    }
    return d;
}

/* What the rows of the picture are. */
static void print_versions(const show *s)
{
    char text[800];

    printf("stored     %s of %s, %s\n",
           bm_count_noun((long long)s->versions[0].frames, "frame").text,
           bm_count_noun((long long)s->d->features, "feature").text,
           bm_count_noun((long long)s->n_labels, "label").text);
    for (long k = 1; k <= s->n; k++)
        printf("epoch %-4ld %s\n", s->first + k - 1,
               bm_count_noun((long long)s->versions[k].frames, "frame").text);
    bm_augment_describe(&s->set.augment, &s->layout, text, sizeof text);
    if (s->n > 0)
        printf("augmented  %s\n", text);
}

static bm_status draw(const show *s, const char *path)
{
    bm_drawing d = drawing_of(s);
    size_t width = 0, height = bm_drawing_height(&d) + GAP;
    bm_picture p = {0};
    bm_status status = BM_OK;

    for (long k = 0; k <= s->n; k++) {
        size_t w = bm_drawing_width(&d, s->versions[k].frames);

        width = w > width ? w : width;
    }
    BM_TRY(bm_picture_new(&p, width, (size_t)(s->n + 1) * height - GAP));
    for (long k = 0; k <= s->n; k++)
        bm_picture_draw(&p, &d, s->versions[k].x, s->versions[k].frames,
                        (size_t)k * height);
    status = bm_picture_write(&p, path);
    if (status == BM_OK) {
        print_versions(s);
        printf("wrote      %s, %zu x %zu pixels\n", path, p.width, p.height);
    }
    bm_picture_free(&p);
    return status;
}

/* ---- the verb ---------------------------------------------------------------- */

/* Without a configuration any network does. */
static bm_status read_settings(show *s, const bm_arguments *a)
{
    const char *path = bm_argument(a, "config");
    const char *const more[] = {"data.train=shown",
                                path == NULL ? "model.net=linear" : NULL, NULL};

    if (bm_argument(a, "epoch") != NULL && bm_argument(a, "augmented") == NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "show: --epoch is the first of the epochs of "
                       "--augmented; give it, too");
    BM_TRY(bm_settings_read_with(a, path, more, &s->config, &s->set));
    BM_TRY(bm_argument_number(a, "epoch", 1, 1, 1000000, &s->first));
    return bm_argument_number(a, "augmented", 0, 0, 100, &s->n);
}

static void close_show(show *s)
{
    for (long k = 0; s->versions != NULL && k <= s->n; k++)
        free(s->versions[k].x);
    free(s->versions);
    free(s->labels);
    bm_augmenter_free(s->augmenter);
    bm_sound_augmenter_close(s->sound);
    bm_model_free(s->model);
    bm_backend_close(s->be);
    bm_dataset_close(s->d);
    bm_config_free(s->config);
}

/* The picture's file: --out, or one of the sequence's name in this folder, which is not
 * that of the image that it was packed from. */
static bm_status name_file(const bm_arguments *a, char *out, size_t room)
{
    const char *given = bm_argument(a, "out");
    int n = snprintf(out, room, "%s%s", given != NULL ? given : a->nouns[1],
                     given != NULL ? "" : ".show.png");

    for (char *c = out; given == NULL && *c != '\0'; c++)
        if (*c == '/')
            *c = '-';
    if (given != NULL && !bm_ends_with(given, ".png"))
        return BM_FAIL(BM_ERR_ARG,
                       "show: --out %s: the picture is a PNG; give it a name "
                       "that ends in .png",
                       given);
    if (n < 0 || (size_t)n >= room)
        return BM_FAIL(BM_ERR_ARG, "show: the name of the file is too long");
    return BM_OK;
}

static bm_status check_file(const bm_arguments *a, const char *path)
{
    const bm_output out = {"--out", path};
    const char *const inputs[] = {a->nouns[0], bm_argument(a, "config"), NULL};

    return bm_outputs_check(&out, 1, inputs);
}

static bm_status show_sequence(const bm_arguments *a)
{
    show s = {0};
    char path[4096];
    bm_status status = BM_OK;

    BM_TRY(name_file(a, path, sizeof path));
    BM_TRY(check_file(a, path));
    BM_TRY_DONE(read_settings(&s, a));
    BM_TRY_DONE(open_sequence(&s, a->nouns[0], a->nouns[1]));
    BM_TRY_DONE(make_versions(&s));
    BM_TRY_DONE(draw(&s, path));
done:
    close_show(&s);
    return status;
}

static const bm_flag flags[] = {
    {"augmented", "K", "below it, draw what K epochs of training make of it", 0,
     false},
    {"epoch", "N", "the first of these epochs; default: 1", 0, false},
    {"config", "CONFIG", "take [augment] and the network from this file", 0,
     false},
    {"set", "SECTION.KEY=VALUE", "change a setting; may be repeated", 0, true},
    {"out", "FILE", "the picture; default: ID.show.png", 'o', false},
    {0},
};

const bm_verb bm_verb_show = {
    .name = "show",
    .nouns = "DIR ID",
    .help = "draw the features of a sequence, and what augmentation makes of "
            "them",
    .text = "  bmuf show data/train a1\n"
            "  bmuf show data/train a1 --config my.ini --augmented 4 --out "
            "a1.png\n"
            "  bmuf show lines/train p7 --augmented 4 --set "
            "augment.elastic=0.02\n\n"
            "Writes a PNG image: a line of text, or a spectrogram with low "
            "frequencies at the\nbottom. DIR has shards, ID is the name of a "
            "sequence.\ndocs/data/augmentation.md describes the settings.\n",
    .flags = flags,
    .least = 2,
    .most = 2,
    .run = show_sequence,
};

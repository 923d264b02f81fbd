#include "io/augment/augment_text.h"

#include "core/text/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what is done ----------------------------------------------------------- */

typedef struct list {
    char *out;
    size_t capacity;
} list;

__attribute__((format(printf, 2, 3))) static void add(list *l,
                                                      const char *format, ...)
{
    size_t n = strlen(l->out);
    va_list rest;

    va_start(rest, format);
    if (n > 0)
        n += (size_t)snprintf(l->out + n, l->capacity - n, ", ");
    if (n < l->capacity)
        vsnprintf(l->out + n, l->capacity - n, format, rest);
    va_end(rest);
}

static void add_sound(list *l, const bm_augment_settings *s)
{
    if (bm_augment_has_reverb(s) && strcmp(s->reverb, "made") == 0)
        add(l, "%g %% in made rooms (%s s)", 100 * s->reverb_share, s->t60);
    else if (bm_augment_has_reverb(s))
        add(l, "%g %% in rooms of %s", 100 * s->reverb_share, s->reverb);
    if (bm_augment_has_noises(s))
        add(l, "%g %% with noise (%s, %s dB)", 100 * s->noise_sound_share,
            s->noise_sound, s->snr);
}

static void add_time(list *l, const bm_augment_settings *s)
{
    if (s->speed[0] != '\0')
        add(l, "speed %s", s->speed);
    if (s->warp > 1)
        add(l, "time warping by less than %ld frames", s->warp);
}

static void add_place(list *l, const bm_augment_settings *s,
                      const bm_layout *layout)
{
    double pixels = (double)layout->bands;

    if (s->slant > 0)
        add(l, "slant up to %g", s->slant);
    if (s->height > 0)
        add(l, "height +-%g %%", 100 * s->height);
    if (s->shift > 0)
        add(l, "shift up to %.3g of %zu rows", s->shift * pixels,
            layout->bands);
    if (s->elastic > 0)
        add(l, "elastic distortion by %.3g pixels over %.3g",
            s->elastic * pixels, s->elastic_grid * pixels);
    if (s->stroke > 0)
        add(l, "strokes +-%g pixels", s->stroke);
}

static void add_values(list *l, const bm_augment_settings *s,
                       const bm_layout *layout)
{
    bool image = layout->kind == BM_FRAMES_IMAGE;

    if (s->contrast > 0)
        add(l, "contrast +-%g %%", 100 * s->contrast);
    if (s->offset > 0)
        add(l, "%s +-%g", image ? "brightness" : "volume", s->offset);
    if (s->noise > 0)
        add(l, "noise up to %g", s->noise);
}

static const char *noun_of(const bm_layout *l)
{
    switch (l->kind) {
    case BM_FRAMES_IMAGE:
        return "rows";
    case BM_FRAMES_CEPSTRA:
        return "cepstra";
    case BM_FRAMES_SPEECH:
    case BM_FRAMES_OTHER:
        break;
    }
    return "bands";
}

static void add_masks(list *l, const bm_augment_settings *s,
                      const bm_layout *layout)
{
    if (s->time_masks > 0 && s->time_share > 0)
        add(l, "%s of up to %ld frames and %g %%",
            bm_count_noun(s->time_masks, "time mask").text, s->time_width,
            100 * s->time_share);
    if (s->frequency_masks > 0)
        add(l, "%s of up to %ld of %zu %s",
            bm_count_noun(s->frequency_masks, "frequency mask").text,
            s->frequency_width, layout->bands, noun_of(layout));
    if (s->cutouts > 0 && s->cutout_size > 0)
        add(l, "%s of up to %.3g x %.3g",
            bm_count_noun(s->cutouts, "cut-out").text,
            s->cutout_size * (double)layout->bands,
            s->cutout_size * (double)layout->bands);
}

void bm_augment_describe(const bm_augment_settings *s, const bm_layout *layout,
                         char *out, size_t capacity)
{
    list l = {out, capacity};

    out[0] = '\0';
    if (!bm_augment_any(s))
        return;
    if (s->share < 1)
        add(&l, "of %g %% of the sequences", 100 * s->share);
    add_sound(&l, s);
    add_time(&l, s);
    add_place(&l, s, layout);
    add_values(&l, s, layout);
    add_masks(&l, s, layout);
}

/* ---- what is doubtful ------------------------------------------------------- */

/* Each cepstrum is a sum over all bands: to mask some of them hides no band. */
static void advise_cepstra(const bm_augment_settings *s,
                           void (*warn)(void *self, const char *text),
                           void *self)
{
    const struct {
        const char *key;
        long value;
    } masks[] = {{"frequency_masks", s->frequency_masks},
                 {"cutouts", s->cutouts}};
    char text[200];

    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++)
        if (masks[i].value > 0) {
            snprintf(text, sizeof text,
                     "augment.%s = %ld masks bands, but data.train has "
                     "cepstra; set it to 0, or pack bands with "
                     "features.cepstra = 0",
                     masks[i].key, masks[i].value);
            warn(self, text);
        }
}

/* What a setting that is not 0 does not do, because of its value or another. */
static void advise_idle(const bm_augment_settings *s,
                        void (*warn)(void *self, const char *text), void *self)
{
    if (s->warp == 1)
        warn(self, "augment.warp = 1 moves no frame; set at least 2, or 0");
    if (s->time_masks > 0 && s->time_share == 0)
        warn(self, "augment.time_masks has no effect with augment.time_share "
                   "= 0, the largest width of a mask");
    if (s->cutouts > 0 && s->cutout_size == 0)
        warn(self, "augment.cutouts has no effect with augment.cutout_size = "
                   "0, the largest side of a rectangle");
}

void bm_augment_advise(const bm_augment_settings *s, const bm_layout *l,
                       void (*warn)(void *self, const char *text), void *self)
{
    const struct {
        const char *key;
        double value;
    } images[] = {{"slant", s->slant},
                  {"height", s->height},
                  {"shift", s->shift},
                  {"elastic", s->elastic},
                  {"stroke", s->stroke}};
    char text[200];

    if (!bm_augment_any(s))
        return;
    advise_idle(s, warn, self);
    if (l->kind == BM_FRAMES_CEPSTRA)
        advise_cepstra(s, warn, self);
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++)
        if (images[i].value > 0 &&
            (l->kind == BM_FRAMES_SPEECH || l->kind == BM_FRAMES_CEPSTRA)) {
            snprintf(text, sizeof text,
                     "augment.%s = %g distorts images, but data.train has "
                     "recordings",
                     images[i].key, images[i].value);
            warn(self, text);
        }
    if (s->frequency_masks > 0 && 2 * (size_t)s->frequency_width > l->bands) {
        snprintf(
            text, sizeof text,
            "augment.frequency_width = %ld: a mask may have more than half "
            "of the %zu %s",
            s->frequency_width, l->bands, noun_of(l));
        warn(self, text);
    }
}

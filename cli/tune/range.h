/*
 * range.h - a setting that is searched, as a number in [0, 1]:
 *
 *     block.steps=5..200             the scale is log, as both ends are positive
 *     train.rate=0.01..0.2:log
 *     bmuf.momentum=0.5..0.99:logit  even in the logarithm of eta / (1 - eta)
 *     sgd.momentum=0..0.95:linear
 *     sgd.local_state=reset,keep     one of these
 *     model.net=conv:8,3x3 linear, lstm:8 linear  likewise: if a comma has a
 *                                    blank after it, only such commas separate
 *     job.workers=16                 fixed
 */
#ifndef BM_CLI_TUNE_RANGE_H
#define BM_CLI_TUNE_RANGE_H

#include "core/config/config.h"

#include <stdbool.h>

#define BM_AXIS_SCALES(X) X(log) X(linear) X(logit)

typedef enum bm_axis_scale {
#define X(name) BM_AXIS_##name,
    BM_AXIS_SCALES(X)
#undef X
        BM_AXIS_WORDS,
} bm_axis_scale;

enum {
    BM_AXIS_TEXT = 240, /* bytes of a value */
    BM_AXIS_MOST_WORDS = 16,
    BM_AXIS_MOST_TEXT = 64 + BM_AXIS_MOST_WORDS * (BM_AXIS_TEXT + 2),
};

typedef struct bm_axis {
    char name[64]; /* "section.key", or what usual.h derives settings from */
    bm_axis_scale scale;
    double low, high; /* of a number */
    bool integer;
    char words[BM_AXIS_MOST_WORDS][BM_AXIS_TEXT];
    int n_words;
} bm_axis;

/* The setting "section.key"; NULL: there is none. Borrowed from `sections`. */
const bm_option *bm_axis_option(const bm_section *sections, const char *name);

/* Parses the text of a range; the setting must be in `sections`. Fails with
 * BM_ERR_CONFIG, and says what is wrong and what is possible. */
BM_CHECKED bm_status bm_axis_parse(bm_axis *out, const char *text,
                                   const bm_section *sections);

/* out <- the next range of a text with several, each up to the next word
 * SECTION.KEY=.., so that values may have blanks; "": there is none. Returns the
 * rest of the text. */
const char *bm_axis_next(const char *text, char out[BM_AXIS_MOST_TEXT]);

/* The number at u in [0, 1), or that of a word. */
double bm_axis_value(const bm_axis *a, double u);

/* The same as the text of a setting, with three digits. */
void bm_axis_text(const bm_axis *a, double u, char out[BM_AXIS_TEXT]);

/* The place of a value; NAN: it is not on the axis. */
double bm_axis_place(const bm_axis *a, const char *value);
double bm_axis_place_of(const bm_axis *a, double value);

/* "5 .. 200, log"; "reset, keep". */
void bm_axis_describe(const bm_axis *a, char *out, size_t room);

#endif

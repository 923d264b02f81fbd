/*
 * config.h - one INI file plus section.key=value overrides, checked against
 * tables.
 *
 * Each module owns a plain struct of settings and a table that describes it.
 * The table is the only place where a setting is named, typed, bounded,
 * defaulted and explained: parsing, --help, docs/options.md and the error for
 * an invalid value use it.
 *
 *     static const bm_option options[] = {
 *         {"momentum", BM_FLOAT, offsetof(settings, momentum), "0.9", 0, 1,
 *          NULL, "fraction of the last update kept in the next one"},
 *         {0},
 *     };
 *
 * A program reads the file, adds the overrides and calls bm_config_check, which
 * reports all faults at once. Then every module fills its struct:
 *
 *     BM_TRY(bm_config_new(&config));
 *     BM_TRY(bm_config_read(config, "run.ini"));
 *     BM_TRY(bm_config_set(config, "bmuf.momentum=0.95"));
 *     BM_TRY(bm_config_check(config, sections));
 *
 * In the file, a comment begins with ; or # at the start of a line or after a
 * blank. A value in double quotes is taken as it is: "data/a # b". An indented
 * line that is neither a comment nor "key = value" continues the value above it.
 * The last override of a setting wins.
 *
 * A bm_config is not thread-safe while it is changed.
 */
#ifndef BM_CORE_CONFIG_CONFIG_H
#define BM_CORE_CONFIG_CONFIG_H

#include "core/config/faults.h"
#include "core/config/series.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef enum bm_option_type {
    BM_INT,    /* long */
    BM_FLOAT,  /* double */
    BM_FLAG,   /* bool: yes or no */
    BM_AUTO,   /* double, or the word auto: NAN */
    BM_SERIES, /* bm_series; with the word auto if that is the default */
    BM_TEXT,   /* const char *, owned by the bm_config */
    BM_CHOICE, /* BM_TEXT, one of the words in `unit` */
} bm_option_type;

typedef struct bm_option {
    const char *key;      /* lower case, words joined by '_' */
    bm_option_type type;  /* decides the C type of the field at `offset` */
    size_t offset;        /* of the field in the owner's struct */
    const char *fallback; /* default, as text; NULL: must be set */
    double min, max;      /* inclusive bounds of a number; both 0: unbounded */
    const char *unit;     /* "frames"; words of a BM_CHOICE; what a BM_TEXT is,
                             "FOLDER"; NULL: none */
    const char *help;     /* one line */
} bm_option;

typedef struct bm_config bm_config;

/* What other programs call a setting or a choice, for the message of one that is
 * unknown here. Lists end with an all-zero row. */
typedef struct bm_foreign_word {
    const char *setting; /* of the choice: "sgd.update"; "": a setting's name */
    const char *theirs;  /* words as bm_word_plain writes them: "nag nesterov";
                           "@": a list of VALUE@EPOCH for a number */
    const char *ours;    /* "momentum, and sgd.nesterov = yes"; "train.rate" */
} bm_foreign_word;

/* A section with its table and the check of settings that exclude each other.
 * Lists of sections end with an all-zero row. */
typedef struct bm_section {
    const char *name;
    const bm_option *options;
    /* Called by bm_config_check, also if other settings are invalid. Reads with
     * bm_config_peek, reports with bm_config_fault. NULL: no-op. */
    void (*check)(const bm_config *config, bm_faults *faults);
    const bm_foreign_word *foreign; /* NULL: none */
} bm_section;

/* An empty configuration; free with bm_config_free, which accepts NULL. Fails
 * with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_config_new(bm_config **out);
void bm_config_free(bm_config *config);

/*
 * Adds all settings of a file. Fails with BM_ERR_MISSING, BM_ERR_IO or
 * BM_ERR_MEMORY, and with BM_ERR_CONFIG if the file is of another kind. Faults
 * in the text are no failure: bm_config_check and bm_config_fill report them.
 */
BM_CHECKED bm_status bm_config_read(bm_config *config, const char *path);

/* The same from a text; `path`, in messages, is where it was found. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_config_read_text(bm_config *config, const char *path,
                                         const char *text);

/* Adds one "section.key=value" of the command line, which is copied. Fails with
 * BM_ERR_ARG if it has another form or could not be written to a file and read
 * back, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_config_set(bm_config *config, const char *assignment);

/* Adds a value that follows from other settings; its origin is "default". Fails
 * with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_config_derive(bm_config *config, const char *section,
                                      const char *key, const char *text);

/*
 * Fails with BM_ERR_CONFIG and one message with all faults, one per line with
 * its origin: "run.ini:7: bmuf.momentun is unknown; the nearest is
 * bmuf.momentum".
 */
BM_CHECKED bm_status bm_config_check(const bm_config *config,
                                     const bm_section *sections);

/* For a section's check: adds a fault with the origin of section.key. */
void bm_config_fault(bm_faults *faults, const bm_config *config,
                     const char *section, const char *key, const char *format,
                     ...) __attribute__((format(printf, 5, 6)));

/*
 * Fills `settings` from [section] by the table `options`, which ends with an
 * all-zero row. Texts are borrowed from the config. Fails with BM_ERR_CONFIG if
 * the table rejects a setting or one is missing. `config` may be NULL: every
 * setting takes its default.
 */
BM_CHECKED bm_status bm_config_fill(const bm_config *config,
                                    const char *section,
                                    const bm_option *options, void *settings);

/* The same without a check: an invalid or missing setting takes its default,
 * or 0 or "" if it has none. Cannot fail. */
void bm_config_peek(const bm_config *config, const char *section,
                    const bm_option *options, void *settings);

/*
 * Whether a setting has a valid value other than its default. A configuration
 * that bm_config_write wrote gives every setting, most of them their default;
 * bm_config_text cannot tell those from settings that the user chose. `key`
 * must be in the table.
 */
bool bm_config_changed(const bm_config *config, const char *section,
                       const bm_option *options, const char *key);

/* Calls differ() for every setting of the sections that has another value in b
 * than in a; 0.02 and 2e-2 are equal. A setting that is not set has its
 * default, or "" if it has none. */
void bm_config_compare(const bm_config *a, const bm_config *b,
                       const bm_section *sections,
                       void (*differ)(void *self, const char *section,
                                      const bm_option *o, const char *in_a,
                                      const char *in_b),
                       void *self);

/* Writes every setting of the sections with its value, in the format that
 * bm_config_read reads. Fails with BM_ERR_IO. */
BM_CHECKED bm_status bm_config_write(const bm_config *config,
                                     const bm_section *sections, FILE *file);

/* The text of a setting as it was set, borrowed; NULL: not set. The way to ask
 * whether a setting was set. */
const char *bm_config_text(const bm_config *config, const char *section,
                           const char *key);

/* Where a setting was set: "run.ini:12", "command line", "default".
 * Borrowed. */
const char *bm_config_origin(const bm_config *config, const char *section,
                             const char *key);

#endif

/*
 * importer.h - where `bmuf pack` reads the sequences for shards from.
 * To add one: write io/import/import_<name>.c, and add a line to BM_IMPORTERS.
 */
#ifndef BM_IO_IMPORT_IMPORTER_H
#define BM_IO_IMPORT_IMPORTER_H

#include "core/config.h"
#include "io/features/feature_text.h"
#include "io/import/problem.h"
#include "io/shard/shard.h"

#define BM_IMPORTERS(X)                                                        \
    X(audio)                                                                   \
    X(images)                                                                  \
    X(features)

typedef struct bm_importer bm_importer;

/* One sequence, borrowed until the next call. */
typedef struct bm_item {
    const char *id, *speaker;  /* speaker: "" if unknown */
    const char *text;          /* the transcript */
    bool has_text;             /* there is one, if only "" */
    const bm_problem *problem; /* why it cannot be used; NULL: x is valid */
    const char *remark;        /* "digital silence", static; NULL: none */
    float *x;                  /* [frames, features] */
    size_t frames, features;
} bm_item;

typedef struct bm_importer_ops {
    const char *name;    /* bmuf pack --<name> */
    const char *help;    /* one line, for the list of settings */
    const char *section; /* of its settings: "features" */
    const bm_option *options;
    size_t settings_size;
    const char *store; /* default of shard.store: "f32", "u8" */
    /* Called once, with settings filled in. Sets i->self. After a failure close
     * is called. */
    bm_status (*open)(bm_importer *i, const char *path, double most_missing);
    /* Frees i->self, which may be NULL. */
    void (*close)(bm_importer *i);
    /* The text of the next sequence alone, to build a vocabulary; borrowed. At
     * the end *text is NULL, and the next call starts again. */
    bm_status (*text)(bm_importer *i, const char **text);
    /* The next sequence. At the end item->id is NULL, and the next call starts
     * again. */
    bm_status (*next)(bm_importer *i, bm_item *item);
    /* The number of sequences, with those that have a problem. */
    size_t (*size)(const bm_importer *i);
    /* What all sequences have in common. Texts are borrowed from the importer;
     * `vocab` stays NULL. */
    void (*meta)(const bm_importer *i, bm_shard_meta *meta);
} bm_importer_ops;

struct bm_importer {
    const bm_importer_ops *ops;
    void *settings; /* filled from the options table */
    bm_cmvn norm;   /* of the training set, for normalise = global */
    void *self;
};

/* Opens `path`, a manifest, with the importer called `name`. config: may be
 * NULL, for defaults. Fails with BM_ERR_ARG for an unknown name, BM_ERR_CONFIG
 * for a setting, BM_ERR_FORMAT for the manifest or if no file can be read,
 * BM_ERR_MISSING if there is no manifest or more than most_missing percent of
 * its files are missing; the fault of one file is the problem of its item.
 * like: the features text of the training set, by whose means normalise =
 * global goes; NULL: by those of this manifest. Close with bm_importer_close;
 * NULL is a no-op. */
BM_CHECKED bm_status bm_importer_open(bm_importer **out, const char *name,
                                      const bm_config *config, const char *path,
                                      double most_missing, const char *like);
void bm_importer_close(bm_importer *i);

/* All importers, ending with NULL. */
const bm_importer_ops *const *bm_importer_list(void);

#define X(name) extern const bm_importer_ops bm_importer_##name;
BM_IMPORTERS(X)
#undef X

#endif

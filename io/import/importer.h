/*
 * importer.h - where `bmuf pack` takes sequences from to write shards.
 * To add one: write io/import_<name>.c, then add its line to BM_IMPORTERS.
 */
#ifndef BM_IO_IMPORT_IMPORTER_H
#define BM_IO_IMPORT_IMPORTER_H

#include "core/config.h"
#include "io/shard/shard.h"

#define BM_IMPORTERS(X)                                                        \
    X(audio)                                                                   \
    X(images)                                                                  \
    X(features)

typedef struct bm_importer bm_importer;

/* One sequence, borrowed until the next call. */
typedef struct bm_item {
    const char *id, *speaker; /* speaker "" if not known */
    const char *text;         /* what is said; NULL if there are labels */
    const char *problem;      /* why it cannot be used; NULL: x is good */
    float *x;                 /* [frames, features] */
    size_t frames, features;
} bm_item;

typedef struct bm_importer_ops {
    const char *name;    /* bmuf pack --<name> */
    const char *help;    /* one line, for the list of settings */
    const char *section; /* of its settings, "features" */
    const bm_option *options;
    size_t settings_size;
    const char *store; /* what suits it in shards: "f32", "u8" */
    bm_status (*open)(bm_importer *i, const char *path);
    void (*close)(bm_importer *i);
    /* The text of the next sequence alone, to learn a vocabulary from. *text
     * NULL at the end; the sequences begin again then. */
    bm_status (*text)(bm_importer *i, const char **text);
    /* The next sequence; item->id NULL at the end. */
    bm_status (*next)(bm_importer *i, bm_item *item);
    /* What shards tell of all of them. Known after open; texts are borrowed
     * from the importer; `vocab` is left NULL. */
    void (*meta)(const bm_importer *i, bm_shard_meta *meta);
} bm_importer_ops;

struct bm_importer {
    const bm_importer_ops *ops;
    void *settings; /* filled from the options table */
    void *self;
};

/* Opens `path` (a manifest) with the importer called `name`; `config` may be
 * NULL: all defaults. Faults of a setting, of the manifest, or of all files at
 * once are told here; those of one file are that item's problem. */
BM_CHECKED bm_status bm_importer_open(bm_importer **out, const char *name,
                                      const bm_config *config,
                                      const char *path);
void bm_importer_close(bm_importer *i);

/* The importers of this build, ending with NULL. */
const bm_importer_ops *const *bm_importer_list(void);

#define X(name) extern const bm_importer_ops bm_importer_##name;
BM_IMPORTERS(X)
#undef X

#endif

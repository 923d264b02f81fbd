/*
 * importer.h - where `bmuf pack` reads the sequences for shards from.
 * To add one: write io/import/import_<name>.c, and add a line to BM_IMPORTERS.
 */
#ifndef BM_IO_IMPORT_IMPORTER_H
#define BM_IO_IMPORT_IMPORTER_H

#include "comm/comm.h"
#include "core/config/config.h"
#include "io/features/feature_text.h"
#include "io/import/copies/copies_settings.h"
#include "io/problem.h"
#include "io/shard/shard.h"

/* Names, and what the FILE of each is. */
#define BM_IMPORTERS(X)                                                        \
    X(audio, "manifest of audio; one line per sequence")                       \
    X(images, "manifest of images, a folder, PAGE XML, ALTO or a PyLaia list") \
    X(features, "manifest of features; one line per sequence")                 \
    X(idx, "images in MNIST's format, with a class for each; see --labels")    \
    X(unipen, "file of UNIPEN, or a folder of them; one segment per sequence") \
    X(returnn, "HDF5 file of RETURNN; more may follow after the options")

typedef struct bm_importer bm_importer;

/* What to import. Texts are borrowed until bm_importer_open returns. */
typedef struct bm_import_source {
    const char *path; /* a manifest, or what else the importer reads */
    const char *const
        *more; /* further files, of returnn; n_more = 0 elsewhere */
    size_t n_more;
    const char *targets;   /* classes of frames, as frame_classes.h has them;
                             NULL: labels are made of texts */
    size_t classes;        /* of the vocabulary for them; 0: they make one. A
                             sequence with another class has a problem */
    const char *like;      /* the features text of the training set, by whose
                             means normalise = global goes; NULL: by its own */
    const char *image_dir; /* folder of the images of a PyLaia list; NULL: it is
                              no such list */
    const char *level;     /* type of the segments, which unipen sets from its
                              own settings; the caller leaves it NULL */
    double most_missing;   /* percent of files that may be missing */
    size_t threads;        /* that read files; 0: one */
    bool pipes;            /* paths that are commands are run */
    bool samples;          /* items have the samples of their recordings */
    bm_comm *comm; /* of ranks that share the work; NULL: this process alone.
                      Borrowed until the importer is closed */
} bm_import_source;

/* One sequence, borrowed until the next call, with all texts. */
typedef struct bm_item {
    const char *id, *speaker; /* speaker: "" if unknown */
    const char *text;         /* the transcript */
    bool has_text;            /* there is one, if only "" */
    const int32_t *labels;    /* classes, in place of a text; NULL: a text */
    size_t n_labels;
    const bm_problem *problem; /* why it cannot be used; NULL: x is valid */
    const char *remark;        /* "digital silence"; NULL: none */
    float *x;                  /* [frames, features] */
    size_t frames, features;
    const bm_waveform *recording; /* what they were made of; NULL: not asked
                                     for */
} bm_item;

/* Gets one sequence, on the thread of the caller. */
typedef bm_status bm_import_take(void *self, const bm_item *item);

typedef struct bm_importer_ops {
    const char *name;    /* bmuf pack --<name> */
    const char *kind;    /* of the features that it describes */
    const char *help;    /* one line, for the list of settings */
    const char *section; /* of its settings: "features" */
    const bm_option *options;
    size_t settings_size;
    const char *store; /* default of shard.store: "f32", "u8" */
    bool words;        /* default of --units; false: characters */
    bool recordings;   /* it reads recordings: it has the settings of [copies],
                          and samples */
    /* Called once, with settings filled in. Sets i->self. After a failure close
     * is called. */
    bm_status (*open)(bm_importer *i, const bm_import_source *source);
    /* Collective. Called next: what takes a pass through all sequences. NULL:
     * nothing does. */
    bm_status (*complete)(bm_importer *i);
    /* Frees i->self, which may be NULL. */
    void (*close)(bm_importer *i);
    /* The text of the next sequence alone, to build a vocabulary; borrowed. At
     * the end *text is NULL, and the next call starts again. Not called if
     * there are labels. */
    bm_status (*text)(bm_importer *i, const char **text);
    /* The next sequence. At the end item->id is NULL, and the next call starts
     * again. */
    bm_status (*next)(bm_importer *i, bm_item *item);
    /* Collective. Calls take(self, item) on rank 0 with all sequences in
     * order, which are read by source.threads of each rank. A failure of `take`
     * ends it. NULL: `next` does it, and ranks cannot share the work. */
    bm_status (*each)(bm_importer *i, bm_import_take *take, void *self);
    /* On rank 0: makes `each` begin after the sequences with these n ids, which
     * are in order, and go to take(self, item) without x and classes; *left_out
     * <- number of others between them. Fails with BM_ERR_FORMAT if they are
     * not there, and as `take`. NULL: the importer cannot resume. */
    bm_status (*skip)(bm_importer *i, const char *const *ids, size_t n,
                      bm_import_take *take, void *self, size_t *left_out);
    /* The number of sequences, with those that have a problem. */
    size_t (*size)(const bm_importer *i);
    /* What all sequences have in common. Texts are borrowed from the importer;
     * `vocab` stays NULL. */
    void (*meta)(const bm_importer *i, bm_shard_meta *meta);
} bm_importer_ops;

struct bm_importer {
    const bm_importer_ops *ops;
    void *settings;            /* filled from the options table */
    bm_copies_settings copies; /* filled likewise; texts as in settings */
    bm_cmvn norm;              /* of the training set, for normalise = global */
    bm_vocab *vocab; /* of the labels; set by open, NULL: texts are in theirs */
    bool numbered;   /* labels are classes of any vocabulary, by number */
    const char *no_texts; /* why no sequence has a text, for a warning, as
                             bm_manifest_why_no_texts; NULL: some have, or
                             labels are no texts */
    double without_text;  /* fraction of the sequences, if others have one */
    const char *first_without; /* text: as bm_manifest_first_without_text */
    bm_comm *comm;             /* borrowed; NULL: one process */
    void *self;
};

/* Collective, if the source has a comm: then all ranks must see the same files
 * by the same paths. Opens a source with the importer called `name`. config: may
 * be NULL, for defaults. Fails with BM_ERR_ARG for an unknown name,
 * BM_ERR_CONFIG for a setting, BM_ERR_FORMAT for the manifest or if no file can
 * be read, BM_ERR_MISSING if there is no manifest or more files are missing
 * than may be; the fault of one file is the problem of its item. Close with
 * bm_importer_close; NULL is a no-op. */
BM_CHECKED bm_status bm_importer_open(bm_importer **out, const char *name,
                                      const bm_config *config,
                                      const bm_import_source *source);
void bm_importer_close(bm_importer *i);

/* Collective. Calls take(self, item) with all sequences, in order, on rank 0;
 * the other ranks only read. Fails as reading or `take` does, on rank 0 alone:
 * the others must be ended. */
BM_CHECKED bm_status bm_importer_each(bm_importer *i, bm_import_take *take,
                                      void *self);

/* All importers, ending with NULL. */
const bm_importer_ops *const *bm_importer_list(void);

#define X(name, file) extern const bm_importer_ops bm_importer_##name;
BM_IMPORTERS(X)
#undef X

#endif

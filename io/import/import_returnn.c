/*
 * import_returnn.c - HDF5 files of RETURNN: inputs are processed by the chain of
 * feature_chain.h, targets are labels. Classes of frames keep their numbers; of
 * label sequences class k becomes k + 1, since 0 is the blank, unless it is
 * theirs, too.
 */
#include "core/grow.h"
#include "core/text/words.h"
#include "io/import/files/feature_files.h"
#include "io/import/importer.h"
#include "io/import/returnn/returnn_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct returnn_settings {
    const char *target;
    double shift_ms;
    bm_chain_settings chain;
} returnn_settings;

static const bm_option options[] = {
    {"target", BM_TEXT, offsetof(returnn_settings, target), "", 0, 0, "KEY",
     "which of the targets are the labels; without it: classes, or the only "
     "one"},
    {"shift_ms", BM_FLOAT, offsetof(returnn_settings, shift_ms), "10", 0, 1000,
     "ms", "distance from one frame to the next; 0: no audio"},
    BM_CHAIN_OPTIONS(returnn_settings),
    {0},
};

typedef struct returnn {
    bm_returnn_file **files; /* [n_files] */
    size_t n_files, n;       /* n: sequences of all */
    size_t file, next;       /* the next sequence is `next` of `file` */
    bool labelled, per_frame;
    int32_t *classes; /* ours of theirs */
    size_t n_classes;
    bm_chain *chain;
    size_t subsample;
    double frame_shift;
    bm_frames frames; /* as read */
    int32_t *labels;  /* [room] */
    size_t room;
    bm_problem problem;
    char *described;
} returnn;

/* ---- classes ------------------------------------------------------------- */

static bool is_blank(const char *symbol)
{
    return symbol != NULL &&
           bm_is_word_of(symbol, "<blank> <blk> <ctc> <eps> [blank]");
}

/* Is every symbol one character, or the space? */
static bool are_characters(const bm_returnn_file *f)
{
    for (size_t k = 0; k < bm_returnn_classes(f); k++) {
        const char *c = bm_returnn_symbol(f, k);
        size_t n = 0;

        if (c == NULL)
            return false;
        if (is_blank(c) || strcmp(c, "<space>") == 0)
            continue;
        for (; *c != '\0'; c++)
            n += ((unsigned char)*c & 0xc0) != 0x80;
        if (n != 1)
            return false;
    }
    return true;
}

/* Appends a symbol to the text of a vocabulary file: without blanks. */
static void print_symbol(const bm_returnn_file *f, size_t k, FILE *out)
{
    const char *c = bm_returnn_symbol(f, k);

    if (c == NULL || *c == '\0') {
        fprintf(out, "%zu\n", k);
        return;
    }
    if (strcmp(c, " ") == 0)
        c = "<space>";
    for (; *c != '\0'; c++)
        fputc((unsigned char)*c <= ' ' ? '_' : *c, out);
    fputc('\n', out);
}

/* Numbers our classes and prints them. */
static void print_classes(returnn *self, const bm_returnn_file *f, FILE *out)
{
    int32_t next = 1;
    bool first = is_blank(bm_returnn_symbol(f, 0)) || self->per_frame;

    fputs("<blank>\n", out);
    for (size_t k = 0; k < self->n_classes; k++) {
        bool blank =
            k == 0 ? first
                   : !self->per_frame && is_blank(bm_returnn_symbol(f, k));

        self->classes[k] = blank ? 0 : next++;
        if (!blank)
            print_symbol(f, k, out);
    }
}

static bm_status make_vocab(bm_importer *i)
{
    returnn *self = i->self;
    const bm_returnn_file *f = self->files[0];
    char *text = NULL;
    size_t size = 0;
    FILE *out = NULL;
    bm_status status = BM_OK;

    self->n_classes = bm_returnn_classes(f);
    self->classes = calloc(self->n_classes + 1, sizeof *self->classes);
    if (self->classes != NULL)
        out = open_memstream(&text, &size);
    if (out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu classes",
                       self->n_classes);
    print_classes(self, f, out);
    if (fclose(out) != 0)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu classes",
                         self->n_classes);
    else
        status = bm_vocab_parse(&i->vocab, text, !are_characters(f));
    free(text);
    return status;
}

/* ---- files --------------------------------------------------------------- */

/* All files must have what the first one has. */
static bm_status check_file(const returnn *self, const bm_returnn_file *f,
                            const char *path, const char *first)
{
    const bm_returnn_file *a = self->files[0];
    bool counted = bm_returnn_counted(a) && bm_returnn_counted(f);
    bool same = bm_returnn_features(a) == bm_returnn_features(f) &&
                bm_returnn_labelled(a) == bm_returnn_labelled(f) &&
                (counted || bm_returnn_classes(a) == bm_returnn_classes(f));

    for (size_t k = 0; same && k < bm_returnn_classes(a); k++) {
        const char *x = bm_returnn_symbol(a, k), *y = bm_returnn_symbol(f, k);

        same = (x == NULL) == (y == NULL) && (x == NULL || strcmp(x, y) == 0);
    }
    if (same)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s has %zu features and %zu classes, %s has %zu and %zu, "
                   "or other names of classes; pack them as different sets",
                   path, bm_returnn_features(f), bm_returnn_classes(f), first,
                   bm_returnn_features(a), bm_returnn_classes(a));
}

/* Classes that were counted go up to the largest label of all files. */
static void share_classes(returnn *self)
{
    size_t most = 0;

    for (size_t k = 0; k < self->n_files; k++) {
        size_t n = bm_returnn_classes(self->files[k]);
        most = n > most ? n : most;
    }
    for (size_t k = 0; k < self->n_files; k++)
        bm_returnn_raise_classes(self->files[k], most);
}

static bm_status open_files(returnn *self, const bm_import_source *source,
                            const char *target)
{
    self->files = calloc(source->n_more + 1, sizeof(bm_returnn_file *));
    if (self->files == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for files");
    self->per_frame = true;
    for (size_t k = 0; k <= source->n_more; k++) {
        const char *path = k == 0 ? source->path : source->more[k - 1];
        bm_returnn_file *f = NULL;

        BM_TRY(bm_returnn_open(&f, path, target));
        self->files[self->n_files++] = f;
        BM_TRY(check_file(self, f, path, source->path));
        self->n += bm_returnn_sequences(f);
        if (bm_returnn_sequences(f) > 0 && !bm_returnn_per_frame(f))
            self->per_frame = false;
    }
    share_classes(self);
    self->labelled = bm_returnn_labelled(self->files[0]);
    self->per_frame = self->per_frame && self->labelled;
    if (self->n == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s has no sequences", source->path);
    return BM_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names must be unique. */
static bm_status check_tags(const returnn *self)
{
    const char **all = calloc(self->n, sizeof(char *));
    size_t n = 0;
    bm_status status = BM_OK;

    if (all == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu names", self->n);
    for (size_t k = 0; k < self->n_files; k++)
        for (size_t s = 0; s < bm_returnn_sequences(self->files[k]); s++)
            all[n++] = bm_returnn_tag(self->files[k], s);
    qsort(all, n, sizeof(char *), by_text);
    for (size_t k = 1; k < n && status == BM_OK; k++)
        if (strcmp(all[k], all[k - 1]) == 0)
            status = BM_FAIL(BM_ERR_FORMAT,
                             "two sequences are called '%.100s'; give each "
                             "file once, and names that are unique",
                             all[k]);
    free(all);
    return status;
}

/* ---- the importer -------------------------------------------------------- */

/* Moves to the next file with a sequence; false: there is none. */
static bool find_next(returnn *self)
{
    while (self->file < self->n_files &&
           self->next == bm_returnn_sequences(self->files[self->file])) {
        self->file++;
        self->next = 0;
    }
    if (self->file < self->n_files)
        return true;
    self->file = 0;
    return false;
}

/* The first pass of normalise = global. */
static bm_status learn(returnn *self)
{
    if (!bm_chain_learns(self->chain))
        return BM_OK;
    for (; find_next(self); self->next++) {
        bm_problem problem = {0};

        BM_TRY(bm_returnn_frames(self->files[self->file], self->next,
                                 &self->frames, &problem));
        if (!bm_problem_is(&problem))
            BM_TRY(bm_chain_learn(self->chain, 0, &self->frames));
    }
    return BM_OK;
}

/* Described like features that were read from files, so that `decode` takes
 * such files. */
static bm_status describe(bm_importer *i)
{
    returnn *self = i->self;
    const returnn_settings *s = i->settings;
    const bm_cmvn *norm = NULL;
    bm_feature_file_settings file = {
        .dim = (long)bm_returnn_features(self->files[0]),
        .shift_ms = s->shift_ms,
        .chain = s->chain,
    };

    BM_TRY(bm_chain_norm(self->chain, &norm));
    return bm_features_describe(&self->described, i->ops->kind,
                                bm_feature_file_options, &file, norm);
}

static bm_status returnn_open(bm_importer *i, const bm_import_source *source)
{
    const returnn_settings *s = i->settings;
    returnn *self = calloc(1, sizeof *self);

    i->self = self;
    if (self == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an importer");
    BM_TRY(open_files(self, source, s->target));
    BM_TRY(check_tags(self));
    if (self->labelled)
        BM_TRY(make_vocab(i));
    else
        i->no_texts = "the files have no targets";
    BM_TRY(bm_chain_new(&self->chain, &s->chain, i->ops->section,
                        bm_returnn_features(self->files[0]), 1));
    if (bm_chain_needs_speakers(self->chain))
        return BM_FAIL(BM_ERR_CONFIG,
                       "%s.normalise = speaker, but files of RETURNN have no "
                       "speakers; normalise by utterance or global",
                       i->ops->section);
    self->subsample = (size_t)s->chain.subsample;
    self->frame_shift = s->shift_ms / 1000 * (double)self->subsample;
    BM_TRY(bm_chain_give(self->chain, i->ops->section, &i->norm));
    BM_TRY(learn(self));
    return describe(i);
}

static void returnn_close(bm_importer *i)
{
    returnn *self = i->self;

    if (self == NULL)
        return;
    for (size_t k = 0; k < self->n_files; k++)
        bm_returnn_close(self->files[k]);
    free(self->files);
    bm_chain_free(self->chain);
    bm_frames_free(&self->frames);
    free(self->classes);
    free(self->labels);
    free(self->described);
    free(self);
}

/* Without targets a set has no labels. */
static bm_status returnn_text(bm_importer *i, const char **text)
{
    (void)i;
    *text = NULL;
    return BM_OK;
}

/* Translates the labels of a sequence; of a class for each frame those of the
 * frames that are kept. */
static bm_status read_labels(returnn *self, bm_item *item)
{
    const int32_t *theirs = NULL;
    size_t n = 0, step = self->per_frame ? self->subsample : 1;

    BM_TRY(bm_returnn_labels(self->files[self->file], self->next, &theirs, &n,
                             &self->problem));
    if (bm_problem_is(&self->problem))
        return BM_OK;
    BM_TRY(bm_grow(&self->labels, n, &self->room, sizeof *self->labels));
    item->n_labels = 0;
    for (size_t k = 0; k < n; k += step) {
        int32_t own = self->classes[theirs[k]];

        if (own == 0 && !self->per_frame)
            bm_problem_set(&self->problem, "blank",
                           "%s: number %zu of its targets (from 0) is class "
                           "%d, the blank; a target cannot be the blank: take "
                           "it out",
                           bm_returnn_path(self->files[self->file]), k,
                           theirs[k]);
        self->labels[item->n_labels++] = own;
    }
    item->labels = self->labels;
    return BM_OK;
}

static bm_status returnn_next(bm_importer *i, bm_item *item)
{
    returnn *self = i->self;
    const bm_frames *x = &self->frames;

    *item = (bm_item){0};
    if (!find_next(self))
        return BM_OK;
    self->problem.text[0] = '\0';
    *item = (bm_item){.speaker = "", .text = ""};
    item->id = bm_returnn_tag(self->files[self->file], self->next);
    BM_TRY(bm_returnn_frames(self->files[self->file], self->next, &self->frames,
                             &self->problem));
    if (!bm_problem_is(&self->problem)) {
        BM_TRY(bm_chain_apply(self->chain, 0, &self->frames, &x));
        item->x = x->x;
        item->frames = x->n;
        item->features = x->dim;
        if (self->labelled)
            BM_TRY(read_labels(self, item));
    }
    item->problem = bm_problem_is(&self->problem) ? &self->problem : NULL;
    self->next++;
    return BM_OK;
}

static size_t returnn_size(const bm_importer *i)
{
    return ((const returnn *)i->self)->n;
}

static void returnn_meta(const bm_importer *i, bm_shard_meta *meta)
{
    const returnn *self = i->self;

    *meta = (bm_shard_meta){
        .features = bm_chain_features(self->chain),
        .features_text = self->described,
        .frame_shift = self->frame_shift,
        .per_frame = self->per_frame,
    };
}

const bm_importer_ops bm_importer_returnn = {
    .name = "returnn",
    .kind = "features",
    .help = "HDF5 files of RETURNN",
    .section = "features",
    .options = options,
    .settings_size = sizeof(returnn_settings),
    .store = "f32",
    .words = true,
    .open = returnn_open,
    .close = returnn_close,
    .text = returnn_text,
    .next = returnn_next,
    .size = returnn_size,
    .meta = returnn_meta,
};

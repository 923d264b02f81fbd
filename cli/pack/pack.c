/* pack.c - bmuf pack: packs recordings, line images or features into shards. */
#include "cli/device.h"
#include "cli/json_output.h"
#include "cli/pack/labels.h"
#include "cli/pack/resume.h"
#include "cli/progress.h"
#include "cli/settings.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/file_lock.h"
#include "core/log.h"
#include "core/words.h"
#include "io/import/importer.h"
#include "io/shard/shard_list.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WARNINGS = 10, MOST_KINDS = 16, FIRST_IDS = 3 };

static const char lock_name[] = ".pack.lock";
static const char vocab_name[] = "vocab.txt";

/* How many items are of each kind, and the names of the first. */
typedef struct kinds {
    struct counted {
        const char *kind;
        size_t n;
        char ids[200];
    } of[MOST_KINDS];
    size_t n;
} kinds;

typedef struct packing {
    bm_importer *importer;
    bm_config *config;
    bm_texts texts;
    bm_labels labels;
    bm_packed before; /* what an earlier packing has left */
    bm_shard_writer *writer;
    const char *directory;
    bool json;            /* the report, instead of text */
    bool resumed;         /* behind the shards that are there */
    int lock;             /* of the directory; -1: not taken */
    double most_left_out; /* percent */

    kinds reasons, remarks; /* of items left out, of items packed */
    size_t n, left_out, frames, n_labels;
    size_t seen; /* packed or left out */
} packing;

/* What to do with the files of an earlier packing. */
typedef enum found { REFUSE, REMOVE, KEEP } found;

/* Removes the shards, or refuses or keeps them. Unless it refuses, removes the
 * vocabulary and the temporary files of a packing that was killed. */
static bm_status clear_directory(const char *path, found what)
{
    DIR *directory = opendir(path);
    const struct dirent *entry = NULL;
    bm_status status = BM_OK;

    if (directory == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", path, strerror(errno));
    while (status == BM_OK && (entry = readdir(directory)) != NULL) {
        char file[4096];
        bool shard = bm_ends_with(entry->d_name, BM_SHARD_SUFFIX);

        if (!shard && strcmp(entry->d_name, vocab_name) != 0 &&
            !bm_file_is_temporary(entry->d_name, "", BM_SHARD_SUFFIX))
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (shard && what == REFUSE)
            status = BM_FAIL(BM_ERR_CREATE,
                             "%s already has shards; give another --out, "
                             "--force to replace them, or --resume to go on "
                             "with a packing that was stopped",
                             path);
        else if (what != REFUSE && !(shard && what == KEEP) &&
                 unlink(file) != 0)
            status = BM_FAIL(BM_ERR_IO, "cannot remove %s: %s", file,
                             strerror(errno));
    }
    closedir(directory);
    return status;
}

/* Reads what is there, and lets the importer begin after it. */
static bm_status go_on(packing *p, const char *name, const char *store,
                       const bm_shard_meta *meta)
{
    static const char kind[] = "before the packing was stopped";
    const bm_packed *b = &p->before;
    size_t left_out = 0;

    BM_TRY(bm_packed_read(&p->before, p->directory, name, store, meta));
    BM_TRY(p->importer->ops->skip(p->importer, (const char *const *)b->tags,
                                  b->n, &left_out));
    if (left_out > 0) {
        p->reasons.of[p->reasons.n++] =
            (struct counted){.kind = kind, .n = left_out};
        p->left_out = left_out;
    }
    p->n = b->n;
    p->frames = b->frames;
    p->n_labels = b->labels;
    p->seen = b->n + left_out;
    bm_log(BM_NOTE, "%s: going on behind %s of %s", p->directory,
           bm_count_noun((long long)b->n, "sequence").text,
           bm_count_noun((long long)b->shards, "shard").text);
    return BM_OK;
}

static bm_status open_writer(packing *p, const char *name)
{
    const bm_importer_ops *ops = p->importer->ops;
    bm_shard_settings set = {0};
    bm_shard_meta meta = {0};

    BM_TRY(bm_config_fill(p->config, "shard", bm_shard_options, &set));
    if (bm_config_text(p->config, "shard", "store") == NULL)
        set.store = ops->store;
    ops->meta(p->importer, &meta);
    meta.vocab = p->texts.vocab;
    meta.text_form = p->texts.form;
    if (!p->resumed)
        return bm_shard_writer_open(&p->writer, p->directory, name, &set,
                                    &meta);
    BM_TRY(go_on(p, name, set.store, &meta));
    return bm_shard_writer_resume(&p->writer, p->directory, name, &set, &meta,
                                  &p->before.place);
}

/* Counts an item of this kind. */
static void count(kinds *all, const char *kind, const char *id)
{
    struct counted *k = all->of;

    while (k < all->of + all->n && strcmp(k->kind, kind) != 0)
        k++;
    if (k == all->of + MOST_KINDS)
        k--;
    if (k == all->of + all->n) {
        all->n++;
        k->kind = all->n < MOST_KINDS ? kind : "for other reasons";
    }
    if (k->n++ < FIRST_IDS)
        snprintf(k->ids + strlen(k->ids), sizeof k->ids - strlen(k->ids),
                 "%s%.60s", k->n > 1 ? ", " : "", id);
}

/* out <- "3 file not found, 2 shorter than a window" */
static void list_kinds(const kinds *all, char *out, size_t room)
{
    int at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < all->n && at >= 0 && (size_t)at < room; i++)
        at += snprintf(out + at, room - (size_t)at, "%s%zu %s",
                       i > 0 ? ", " : "", all->of[i].n, all->of[i].kind);
}

static bm_status pack_item(void *self, const bm_item *item)
{
    packing *p = self;
    bool labelled = item->has_text || item->labels != NULL;

    bm_progress_count("sequences", ++p->seen,
                      p->importer->ops->size(p->importer));
    if (item->problem != NULL) {
        if (p->left_out++ < MOST_WARNINGS)
            bm_log(BM_WARNING, "left out %s: %s", item->id,
                   item->problem->text);
        count(&p->reasons, item->problem->kind, item->id);
        return BM_OK;
    }
    if (item->remark != NULL)
        count(&p->remarks, item->remark, item->id);
    BM_TRY(bm_labels_make(&p->labels, &p->texts, item));
    BM_TRY(bm_shard_writer_add(p->writer, item->id, item->speaker, item->x,
                               item->frames, labelled ? p->labels.x : NULL,
                               p->labels.n));
    p->n++;
    p->frames += item->frames;
    p->n_labels += p->labels.n;
    return BM_OK;
}

static void warn(const packing *p)
{
    const bm_labels *l = &p->labels;

    if (p->left_out > MOST_WARNINGS)
        bm_log(BM_WARNING, "left out %zu more", p->left_out - MOST_WARNINGS);
    for (size_t i = 0; i < p->remarks.n; i++) {
        const struct counted *k = &p->remarks.of[i];

        bm_log(BM_WARNING, "%zu of %s %s %s: %s%s", k->n,
               bm_count_noun((long long)p->n, "sequence").text,
               k->n == 1 ? "is" : "are", k->kind, k->ids,
               k->n > FIRST_IDS ? ", .." : "");
    }
    if (l->unknown > 0)
        bm_log(BM_WARNING,
               "%s in %s %s not in the vocabulary and %s skipped, e.g. '%s'",
               bm_count_noun((long long)l->unknown, "symbol").text,
               bm_count_noun((long long)l->with_unknown, "text").text,
               l->unknown == 1 ? "is" : "are", l->unknown == 1 ? "was" : "were",
               l->first_unknown);
}

/* Fails if there is nothing, or too much was left out. */
static bm_status check_left_out(const packing *p)
{
    size_t all = p->n + p->left_out;
    double percent = 100 * (double)p->left_out / (double)(all > 0 ? all : 1);
    char reasons[1024];

    list_kinds(&p->reasons, reasons, sizeof reasons);
    if (p->n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "nothing to pack: left out all %zu of the manifest: %s",
                       all, reasons);
    if (percent > p->most_left_out)
        return BM_FAIL(BM_ERR_FORMAT,
                       "left out %zu of %zu: %s. This is more than %g %%, and "
                       "nothing was packed; mend the files or the manifest, or "
                       "let them pass with --max-left-out %.0f",
                       p->left_out, all, reasons, p->most_left_out,
                       ceil(percent));
    return BM_OK;
}

static void print_summary(const packing *p, size_t shards)
{
    char reasons[1024];

    list_kinds(&p->reasons, reasons, sizeof reasons);
    printf(
        "%s, %s, %s, %s in %s in %s; left out %zu of %zu%s%s; %s\n",
        bm_count_noun((long long)p->n, "sequence").text,
        bm_count_noun((long long)p->frames, "frame").text,
        bm_count_noun((long long)p->n_labels, "label").text,
        bm_count_noun((long long)bm_vocab_size(p->texts.vocab), "class").text,
        bm_count_noun((long long)shards, "shard").text, p->directory,
        p->left_out, p->n + p->left_out, p->left_out > 0 ? ": " : "", reasons,
        bm_count_noun((long long)p->labels.unknown, "unknown symbol").text);
}

static json_t *json_of(const kinds *all)
{
    json_t *o = json_object();

    for (size_t i = 0; i < all->n; i++)
        json_object_set_new(o, all->of[i].kind,
                            json_integer((json_int_t)all->of[i].n));
    return o;
}

static void print_json(const packing *p, size_t shards)
{
    bm_json_print(
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I}", "path",
                  p->directory, "shards", (json_int_t)shards, "sequences",
                  (json_int_t)p->n, "frames", (json_int_t)p->frames, "labels",
                  (json_int_t)p->n_labels, "classes",
                  (json_int_t)bm_vocab_size(p->texts.vocab), "left_out",
                  (json_int_t)p->left_out, "reasons", json_of(&p->reasons),
                  "remarks", json_of(&p->remarks), "unknown_symbols",
                  (json_int_t)p->labels.unknown),
        JSON_INDENT(2));
}

static bm_status write_all(packing *p, const char *name)
{
    char path[4096];
    size_t shards = 0;

    BM_TRY(open_writer(p, name));
    bm_progress_open(true);
    BM_TRY(bm_importer_each(p->importer, pack_item, p));
    bm_progress_close();
    warn(p);
    BM_TRY(check_left_out(p));
    BM_TRY(bm_shard_writer_finish(p->writer, &shards));
    snprintf(path, sizeof path, "%s/%s", p->directory, vocab_name);
    BM_TRY(bm_vocab_write(p->texts.vocab, path));
    if (p->json)
        print_json(p, shards);
    else
        print_summary(p, shards);
    return BM_OK;
}

static bm_status get_most_left_out(const bm_arguments *a, double *out)
{
    const char *text = bm_argument(a, "max-left-out");
    char *end = NULL;

    *out = 1;
    if (text == NULL)
        return BM_OK;
    *out = strtod(text, &end);
    if (end == text || *end != '\0' || !(*out >= 0 && *out <= 100))
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --max-left-out %s is not a percentage from 0 to "
                       "100",
                       text);
    return BM_OK;
}

/* Features if the data directory has some, else recordings. */
static const bm_importer_ops *importer_of_kaldi(const char *directory)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/feats.scp", directory);
    return access(path, F_OK) == 0 ? &bm_importer_features : &bm_importer_audio;
}

/* The importer and manifest of the command line. */
static bm_status find_source(const bm_arguments *a,
                             const bm_importer_ops **importer,
                             const char **path)
{
    const bm_importer_ops *const *all = bm_importer_list();
    const char *kaldi = bm_argument(a, "kaldi");

    *importer = NULL;
    for (size_t i = 0; all[i] != NULL; i++) {
        const char *given = bm_argument(a, all[i]->name);

        if (given == NULL)
            continue;
        if (*importer != NULL)
            return BM_FAIL(BM_ERR_ARG, "pack: --%s and --%s: give only one",
                           (*importer)->name, all[i]->name);
        *importer = all[i];
        *path = given;
    }
    if (kaldi != NULL && *importer != NULL)
        return BM_FAIL(BM_ERR_ARG, "pack: --kaldi and --%s: give only one",
                       (*importer)->name);
#define X(name, file) " --" #name
    if (kaldi == NULL && *importer == NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "pack needs a FILE after one of%s, or --kaldi DIR",
                       BM_IMPORTERS(X));
#undef X
    if (kaldi != NULL) {
        *importer = importer_of_kaldi(kaldi);
        *path = kaldi;
    }
    return BM_OK;
}

/* --labels FILE is features.labels=FILE. */
static bm_status set_labels(const bm_arguments *a,
                            const bm_importer_ops *importer, bm_config *config)
{
    const char *path = bm_argument(a, "labels");
    char setting[4200];

    if (path == NULL)
        return BM_OK;
    if (importer != &bm_importer_idx)
        return BM_FAIL(BM_ERR_ARG, "pack: --labels goes with --idx alone");
    snprintf(setting, sizeof setting, "features.labels=%s", path);
    return bm_config_set(config, setting);
}

/* Classes of frames are for what has a manifest. */
static bm_status check_targets(const bm_arguments *a,
                               const bm_importer_ops *importer)
{
    if (bm_argument(a, "targets") == NULL ||
        (importer != &bm_importer_idx && importer != &bm_importer_returnn))
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "pack: --targets does not go with --%s, which "
                   "has classes of its own",
                   importer->name);
}

static bm_status check_resume(const bm_arguments *a,
                              const bm_importer_ops *importer)
{
    if (bm_argument(a, "resume") == NULL)
        return BM_OK;
    if (bm_argument(a, "force") != NULL)
        return BM_FAIL(BM_ERR_ARG, "pack: --resume and --force: give only one");
    if (importer->skip == NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --resume does not go with --%s; pack it anew "
                       "with --force",
                       importer->name);
    return BM_OK;
}

/* Further files after the options. */
static bm_status take_more(const bm_arguments *a,
                           const bm_importer_ops *importer,
                           bm_import_source *source)
{
    source->more = a->nouns;
    source->n_more = (size_t)a->n_nouns;
    if (a->n_nouns == 0 || importer == &bm_importer_returnn)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "pack: '%s' is one file too many; only --returnn takes "
                   "several",
                   a->nouns[0]);
}

/* A folder of images is for lists of images. */
static bm_status check_image_dir(const bm_arguments *a,
                                 const bm_importer_ops *importer)
{
    if (bm_argument(a, "image-dir") == NULL || importer == &bm_importer_images)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG, "pack: --image-dir goes with --images alone");
}

static bm_status pack(const bm_arguments *a)
{
    packing p = {.directory = bm_argument(a, "out"),
                 .lock = -1,
                 .json = bm_argument(a, "json") != NULL,
                 .resumed = bm_argument(a, "resume") != NULL};
    const char *name = bm_argument(a, "name");
    bm_import_source source = {.targets = bm_argument(a, "targets"),
                               .image_dir = bm_argument(a, "image-dir"),
                               .pipes = bm_argument(a, "allow-pipes") != NULL};
    const bm_importer_ops *importer = NULL;
    long threads = 1;
    bm_section sections[4];
    bm_status status = BM_OK;

    BM_TRY(find_source(a, &importer, &source.path));
    if (p.directory == NULL)
        return BM_FAIL(BM_ERR_ARG, "pack needs --out DIR");
    BM_TRY(check_targets(a, importer));
    BM_TRY(check_image_dir(a, importer));
    BM_TRY(take_more(a, importer, &source));
    BM_TRY(check_resume(a, importer));
    BM_ASSERT(importer != NULL);
    BM_TRY(get_most_left_out(a, &p.most_left_out));
    BM_TRY(bm_argument_number(a, "threads", bm_cores(), 1, 1024, &threads));
    source.threads = (size_t)threads;
    bm_pack_sections(importer, sections);
    BM_TRY_DONE(bm_config_new(&p.config));
    BM_TRY_DONE(bm_arguments_set(a, p.config));
    BM_TRY_DONE(set_labels(a, importer, p.config));
    BM_TRY_DONE(bm_config_check(p.config, sections));
    BM_TRY_DONE(bm_texts_open(&p.texts, a, importer->words));
    source.like = p.texts.features_text;
    source.most_missing = p.most_left_out;
    BM_TRY_DONE(
        bm_importer_open(&p.importer, importer->name, p.config, &source));
    BM_TRY_DONE(bm_labels_open(&p.labels, &p.texts, p.importer));
    BM_TRY_DONE(bm_file_make_directory(p.directory));
    BM_TRY_DONE(bm_file_lock(&p.lock, p.directory, lock_name));
    BM_TRY_DONE(clear_directory(p.directory, p.resumed ? KEEP
                                             : bm_argument(a, "force") != NULL
                                                 ? REMOVE
                                                 : REFUSE));
    BM_TRY_DONE(write_all(&p, name != NULL ? name : "data"));
done:
    bm_shard_writer_close(p.writer);
    bm_packed_free(&p.before);
    bm_texts_free(&p.texts);
    bm_importer_close(p.importer);
    bm_config_free(p.config);
    bm_file_unlock(p.lock, p.directory, lock_name);
    bm_labels_free(&p.labels);
    return status;
}

static const bm_flag flags[] = {
#define X(name, file) {#name, "FILE", file, 0, false},
    BM_IMPORTERS(X)
#undef X
        {"kaldi", "DIR",
         "data directory of Kaldi: its feats.scp, or else its wav.scp", 0,
         false},
    {"out", "DIR", "directory for the shards", 'o', false},
    {"set", "SECTION.KEY=VALUE", "change a setting; may be repeated", 0, true},
    {"labels", "FILE",
     "classes of --idx; default: its name with labels-idx1 for images-idx3", 0,
     false},
    {"targets", "FILE",
     "archive or list of Kaldi with a class for each frame, for loss = "
     "cross_entropy",
     0, false},
    {"allow-pipes", NULL,
     "run the commands that a list has in place of files ('sph2pipe .. |')", 0,
     false},
    {"image-dir", "DIR",
     "folder of the images of a list of PyLaia, after --images LIST", 0, false},
    {"units", "characters|words",
     "what the labels of the texts are; default: characters, of --idx words", 0,
     false},
    {"vocab", "FILE|DIR|MODEL",
     "use the vocabulary of the training shards or of a model, and the means "
     "of its set if features.normalise = global",
     0, false},
    {"name", "NAME", "shards are NAME-00000.bmuf.h5, ..; default: data", 0,
     false},
    {"text", "nfc|none",
     "normalise texts to Unicode's form C, or not; default: nfc", 0, false},
    {"max-left-out", "PERCENT",
     "fail if more of the manifest cannot be used; default: 1", 0, false},
    {"threads", "N", "files at a time; default: all cores", 0, false},
    {"force", NULL, "replace the shards in --out", 0, false},
    {"resume", NULL,
     "continue a packing that was stopped, with the same options", 0, false},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_pack = {
    .name = "pack",
    .nouns = "[FILE ..]",
    .help = "pack recordings, images or features into shards",
    .text =
        "  bmuf pack --audio train.jsonl --out data/train\n"
        "  bmuf pack --audio test.jsonl --out data/test --vocab data/train\n"
        "  bmuf pack --kaldi data/train --out shards/train\n"
        "  bmuf pack --returnn a.hdf b.hdf --out data/train\n"
        "  bmuf pack --images pages/ --out shards/train\n"
        "  bmuf pack --idx train-images-idx3-ubyte.gz --out data/train\n\n"
        "A manifest has one JSON object per line; paths are relative to its "
        "directory:\n"
        "  {\"id\": \"u1\", \"audio\": \"u1.wav\", \"text\": \"one two\", "
        "\"speaker\": \"s1\"}\n"
        "with \"image\" or \"feats\" for \"audio\". \"start\" and "
        "\"duration\" in seconds take\nan excerpt of a recording. Tables with "
        "a "
        "header, manifests of NeMo and cuts of\nLhotse are read, too, all of "
        "them also as .gz; - is standard input. bmuf\noptions --pack lists the "
        "settings.\n"
        "--images also takes a folder with NAME.png and NAME.gt.txt, PAGE XML "
        "or ALTO, a\nfolder or list of such files, and lists of PyLaia with "
        "--image-dir.\n\n"
        "With --vocab DIR, labels are words or characters as in those shards. "
        "With\n--vocab FILE, a text file such as vocab.txt, add --units words "
        "if its symbols\nare words; those of Kaldi's words.txt and phones.txt "
        "are.\n",
    .flags = flags,
    .least = 0,
    .most = BM_MOST_INPUTS,
    .run = pack,
};

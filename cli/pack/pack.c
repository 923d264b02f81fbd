/* pack.c - bmuf pack: packs recordings, line images or features into shards. */
#include "cli/json_output.h"
#include "cli/pack/texts.h"
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
    bm_shard_writer *writer;
    const char *directory;
    bool json;            /* the report, instead of text */
    int lock;             /* of the directory; -1: not taken */
    double most_left_out; /* percent */
    int32_t *labels;      /* [room] */
    size_t room;

    kinds reasons, remarks; /* of items left out, of items packed */
    size_t n, left_out, unknown, with_unknown, frames, n_labels;
    char first_unknown[64];
    size_t seen; /* packed or left out */
} packing;

/* Fails if there are shards. With `force` removes them, the vocabulary, and the
 * temporary files of a packing that was killed. */
static bm_status clear_directory(const char *path, bool force)
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
        if (shard && !force)
            status = BM_FAIL(BM_ERR_CREATE,
                             "%s already has shards; give another --out, or "
                             "--force to replace them",
                             path);
        else if (force && unlink(file) != 0)
            status = BM_FAIL(BM_ERR_IO, "cannot remove %s: %s", file,
                             strerror(errno));
    }
    closedir(directory);
    return status;
}

static bm_status learn_vocab(packing *p)
{
    const char *text = NULL;

    for (;;) {
        BM_TRY(p->importer->ops->text(p->importer, &text));
        if (text == NULL)
            break;
        BM_TRY(bm_texts_normalise(&p->texts, text, &text));
        BM_TRY(bm_vocab_learn(p->texts.vocab, text));
    }
    bm_vocab_sort(p->texts.vocab);
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
    return bm_shard_writer_open(&p->writer, p->directory, name, &set, &meta);
}

static bm_status encode(packing *p, const char *text, size_t *n)
{
    size_t unknown = 0;
    char first[64] = "";

    BM_TRY(bm_texts_normalise(&p->texts, text, &text));
    if (strlen(text) + 1 > p->room) {
        size_t room = 2 * strlen(text) + 64;
        int32_t *grown = realloc(p->labels, room * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", room);
        p->labels = grown;
        p->room = room;
    }
    *n = bm_vocab_encode(p->texts.vocab, text, p->labels, &unknown, first);
    p->unknown += unknown;
    p->with_unknown += unknown > 0;
    if (unknown > 0 && p->first_unknown[0] == '\0')
        memcpy(p->first_unknown, first, sizeof first);
    return BM_OK;
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

static bm_status pack_all(packing *p)
{
    bm_item item = {0};

    bm_progress_open(true);
    for (;;) {
        size_t n = 0;

        BM_TRY(p->importer->ops->next(p->importer, &item));
        if (item.id == NULL)
            return BM_OK;
        bm_progress_count("sequences", ++p->seen,
                          p->importer->ops->size(p->importer));
        if (item.problem != NULL) {
            if (p->left_out++ < MOST_WARNINGS)
                bm_log(BM_WARNING, "left out %s: %s", item.id,
                       item.problem->text);
            count(&p->reasons, item.problem->kind, item.id);
            continue;
        }
        if (item.remark != NULL)
            count(&p->remarks, item.remark, item.id);
        BM_TRY(encode(p, item.text != NULL ? item.text : "", &n));
        BM_TRY(bm_shard_writer_add(p->writer, item.id, item.speaker, item.x,
                                   item.frames,
                                   item.has_text ? p->labels : NULL, n));
        p->n++;
        p->frames += item.frames;
        p->n_labels += n;
    }
}

static void warn(const packing *p)
{
    if (p->left_out > MOST_WARNINGS)
        bm_log(BM_WARNING, "left out %zu more", p->left_out - MOST_WARNINGS);
    for (size_t i = 0; i < p->remarks.n; i++) {
        const struct counted *k = &p->remarks.of[i];

        bm_log(BM_WARNING, "%zu of %s %s %s: %s%s", k->n,
               bm_count_noun((long long)p->n, "sequence").text,
               k->n == 1 ? "is" : "are", k->kind, k->ids,
               k->n > FIRST_IDS ? ", .." : "");
    }
    if (p->unknown > 0)
        bm_log(BM_WARNING,
               "%s in %s %s not in the vocabulary and %s skipped, e.g. '%s'",
               bm_count_noun((long long)p->unknown, "symbol").text,
               bm_count_noun((long long)p->with_unknown, "text").text,
               p->unknown == 1 ? "is" : "are", p->unknown == 1 ? "was" : "were",
               p->first_unknown);
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
        bm_count_noun((long long)p->unknown, "unknown symbol").text);
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
                  (json_int_t)p->unknown),
        JSON_INDENT(2));
}

static bm_status write_all(packing *p, const char *name)
{
    char path[4096];
    size_t shards = 0;

    BM_TRY(open_writer(p, name));
    BM_TRY(pack_all(p));
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

/* The importer and manifest of the command line. */
static bm_status find_source(const bm_arguments *a,
                             const bm_importer_ops **importer,
                             const char **path)
{
    const bm_importer_ops *const *all = bm_importer_list();

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
#define X(name) " --" #name
    if (*importer == NULL)
        return BM_FAIL(BM_ERR_ARG, "pack needs a manifest FILE after one of%s",
                       BM_IMPORTERS(X));
#undef X
    return BM_OK;
}

static bm_status pack(const bm_arguments *a)
{
    packing p = {.directory = bm_argument(a, "out"),
                 .lock = -1,
                 .json = bm_argument(a, "json") != NULL};
    const char *name = bm_argument(a, "name"), *path = NULL;
    const bm_importer_ops *importer = NULL;
    bm_section sections[3];
    bm_status status = BM_OK;

    BM_TRY(find_source(a, &importer, &path));
    if (p.directory == NULL)
        return BM_FAIL(BM_ERR_ARG, "pack needs --out DIR");
    BM_ASSERT(importer != NULL);
    BM_TRY(get_most_left_out(a, &p.most_left_out));
    bm_pack_sections(importer, sections);
    BM_TRY_DONE(bm_config_new(&p.config));
    BM_TRY_DONE(bm_arguments_set(a, p.config));
    BM_TRY_DONE(bm_config_check(p.config, sections));
    BM_TRY_DONE(bm_texts_open(&p.texts, a));
    BM_TRY_DONE(bm_importer_open(&p.importer, importer->name, p.config, path,
                                 p.most_left_out, p.texts.features_text));
    if (p.texts.learned)
        BM_TRY_DONE(learn_vocab(&p));
    BM_TRY_DONE(bm_file_make_directory(p.directory));
    BM_TRY_DONE(bm_file_lock(&p.lock, p.directory, lock_name));
    BM_TRY_DONE(clear_directory(p.directory, bm_argument(a, "force") != NULL));
    BM_TRY_DONE(write_all(&p, name != NULL ? name : "data"));
done:
    bm_shard_writer_close(p.writer);
    bm_texts_free(&p.texts);
    bm_importer_close(p.importer);
    bm_config_free(p.config);
    bm_file_unlock(p.lock, p.directory, lock_name);
    free(p.labels);
    return status;
}

static const bm_flag flags[] = {
#define X(name)                                                                \
    {#name, "FILE", "manifest of " #name "; one line per sequence", 0, false},
    BM_IMPORTERS(X)
#undef X
        {"out", "DIR", "directory for the shards", 'o', false},
    {"set", "SECTION.KEY=VALUE", "change a setting; may be repeated", 0, true},
    {"units", "characters|words",
     "what the labels of the texts are; default: characters", 0, false},
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
    {"force", NULL, "replace the shards in --out", 0, false},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_pack = {
    .name = "pack",
    .nouns = "",
    .help = "pack recordings, line images or features into shards",
    .text =
        "  bmuf pack --audio train.jsonl --out data/train\n"
        "  bmuf pack --audio test.jsonl --out data/test --vocab data/train\n\n"
        "A manifest has one JSON object per line; paths are relative to its "
        "directory:\n"
        "  {\"id\": \"u1\", \"audio\": \"u1.wav\", \"text\": \"one two\", "
        "\"speaker\": \"s1\"}\n"
        "with \"image\" or \"feats\" for \"audio\". \"start\" and "
        "\"duration\" in seconds take\nan excerpt of a recording. bmuf "
        "options --pack lists the settings.\n\n"
        "With --vocab DIR, labels are words or characters as in those shards. "
        "With\n--vocab FILE, a text file such as vocab.txt, add --units words "
        "if its symbols\nare words.\n",
    .flags = flags,
    .least = 0,
    .most = 0,
    .run = pack,
};

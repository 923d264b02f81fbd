/* pack.c - bmuf pack: packs recordings, line images or features into shards. */
#include "cli/settings.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/log.h"
#include "core/words.h"
#include "io/import/importer.h"
#include "io/shard/shard_list.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WARNINGS = 10 };

typedef struct packing {
    bm_importer *importer;
    bm_config *config;
    bm_vocab *vocab;
    bm_shard_writer *writer;
    const char *directory;
    int32_t *labels; /* [room] */
    size_t room;

    size_t n, unusable, unknown, with_unknown, frames, n_labels;
    char first_unknown[64];
    double since, logged;
} packing;

/* Fails if there are shards. With `force` removes them, and the temporary files
 * of a packing that was killed. */
static bm_status clear_directory(const char *path, bool force)
{
    DIR *directory = NULL;
    const struct dirent *entry = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_file_make_directory(path));
    directory = opendir(path);
    if (directory == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", path, strerror(errno));
    while (status == BM_OK && (entry = readdir(directory)) != NULL) {
        char file[4096];

        bool shard = bm_ends_with(entry->d_name, BM_SHARD_SUFFIX);

        if (!shard && !bm_ends_with(entry->d_name, BM_SHARD_SUFFIX ".tmp"))
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

static bm_status learn_vocab(packing *p, bool words)
{
    const char *text = NULL;

    BM_TRY(bm_vocab_new(&p->vocab, words));
    for (;;) {
        BM_TRY(p->importer->ops->text(p->importer, &text));
        if (text == NULL)
            break;
        BM_TRY(bm_vocab_learn(p->vocab, text));
    }
    bm_vocab_sort(p->vocab);
    return BM_OK;
}

/* The vocabulary of the shards at `path`; *out is NULL if there are none. */
static bm_status copy_vocab(const char *path, bm_vocab **out)
{
    char **paths = NULL;
    size_t n = 0;
    bm_shard *shard = NULL;
    bm_status status = bm_shard_list(path, &paths, &n);

    if (status == BM_ERR_MISSING)
        return BM_OK;
    BM_TRY_DONE(status);
    if (bm_ends_with(paths[0], BM_SHARD_SUFFIX)) {
        BM_TRY_DONE(bm_shard_open(&shard, paths[0]));
        status = bm_vocab_copy(out, bm_shard_vocab(shard));
    }
done:
    bm_shard_close(shard);
    bm_shard_list_free(paths, n);
    return status;
}

static const char *kind(bool words)
{
    return words ? "words" : "characters";
}

/* From --vocab or from the texts. Shards record whether their symbols are
 * words; a text file does not. */
static bm_status get_vocab(packing *p, const bm_arguments *a)
{
    const char *units = bm_argument(a, "units");
    const char *path = bm_argument(a, "vocab");
    bool words = units != NULL && strcmp(units, kind(true)) == 0;

    if (units != NULL && strcmp(units, kind(words)) != 0)
        return BM_FAIL(BM_ERR_ARG,
                       "pack: --units %s is not one of: words characters",
                       units);
    if (path == NULL)
        return learn_vocab(p, words);
    BM_TRY(copy_vocab(path, &p->vocab));
    if (p->vocab == NULL)
        return bm_vocab_read(&p->vocab, path, words);
    if (units != NULL && words != bm_vocab_words(p->vocab))
        return BM_FAIL(
            BM_ERR_ARG,
            "pack: --units %s, but the symbols of --vocab %s are %s; remove "
            "--units",
            units, path, kind(!words));
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
    meta.vocab = p->vocab;
    return bm_shard_writer_open(&p->writer, p->directory, name, &set, &meta);
}

static bm_status encode(packing *p, const char *text, size_t *n)
{
    size_t unknown = 0;
    char first[64] = "";

    if (strlen(text) + 1 > p->room) {
        size_t room = 2 * strlen(text) + 64;
        int32_t *grown = realloc(p->labels, room * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", room);
        p->labels = grown;
        p->room = room;
    }
    *n = bm_vocab_encode(p->vocab, text, p->labels, &unknown, first);
    p->unknown += unknown;
    p->with_unknown += unknown > 0;
    if (unknown > 0 && p->first_unknown[0] == '\0')
        memcpy(p->first_unknown, first, sizeof first);
    return BM_OK;
}

static void show_progress(packing *p)
{
    double now = bm_clock();

    if (now - p->logged < 5)
        return;
    p->logged = now;
    bm_log(BM_NOTE, "%zu sequences, %.0f per second", p->n,
           (double)p->n / (now - p->since));
}

static bm_status pack_all(packing *p)
{
    bm_item item = {0};

    p->since = p->logged = bm_clock();
    for (;;) {
        size_t n = 0;

        BM_TRY(p->importer->ops->next(p->importer, &item));
        if (item.id == NULL)
            return BM_OK;
        if (item.problem != NULL) {
            if (p->unusable++ < MOST_WARNINGS)
                bm_log(BM_WARNING, "skipped %s: %s", item.id, item.problem);
            continue;
        }
        BM_TRY(encode(p, item.text != NULL ? item.text : "", &n));
        BM_TRY(bm_shard_writer_add(p->writer, item.id, item.speaker, item.x,
                                   item.frames, p->labels, n));
        p->n++;
        p->frames += item.frames;
        p->n_labels += n;
        show_progress(p);
    }
}

static bm_status write_all(packing *p, const char *name)
{
    char path[4096];
    size_t shards = 0;

    BM_TRY(open_writer(p, name));
    BM_TRY(pack_all(p));
    if (p->unusable > MOST_WARNINGS)
        bm_log(BM_WARNING, "skipped %zu more", p->unusable - MOST_WARNINGS);
    if (p->unknown > 0)
        bm_log(BM_WARNING,
               "%zu symbols in %zu texts are not in the vocabulary and were "
               "skipped, e.g. '%s'",
               p->unknown, p->with_unknown, p->first_unknown);
    if (p->n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "nothing to pack: no sequence of the manifest is valid");
    BM_TRY(bm_shard_writer_finish(p->writer, &shards));
    snprintf(path, sizeof path, "%s/vocab.txt", p->directory);
    BM_TRY(bm_vocab_write(p->vocab, path));
    printf("%zu sequences, %zu frames, %zu labels, %zu classes in %zu shard%s "
           "in %s; %zu sequences skipped, %zu unknown symbols\n",
           p->n, p->frames, p->n_labels, bm_vocab_size(p->vocab), shards,
           shards == 1 ? "" : "s", p->directory, p->unusable, p->unknown);
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
    packing p = {.directory = bm_argument(a, "out")};
    const char *name = bm_argument(a, "name"), *path = NULL;
    const bm_importer_ops *importer = NULL;
    bm_section sections[3];
    bm_status status = BM_OK;

    BM_TRY(find_source(a, &importer, &path));
    if (p.directory == NULL)
        return BM_FAIL(BM_ERR_ARG, "pack needs --out DIR");
    BM_ASSERT(importer != NULL);
    bm_pack_sections(importer, sections);
    BM_TRY_DONE(bm_config_new(&p.config));
    BM_TRY_DONE(bm_arguments_set(a, p.config));
    BM_TRY_DONE(bm_config_check(p.config, sections));
    BM_TRY_DONE(bm_importer_open(&p.importer, importer->name, p.config, path));
    BM_TRY_DONE(get_vocab(&p, a));
    BM_TRY_DONE(clear_directory(p.directory, bm_argument(a, "force") != NULL));
    BM_TRY_DONE(write_all(&p, name != NULL ? name : "data"));
done:
    bm_shard_writer_close(p.writer);
    bm_vocab_free(p.vocab);
    bm_importer_close(p.importer);
    bm_config_free(p.config);
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
    {"units", "KIND", "labels are characters (default) or words of the texts",
     0, false},
    {"vocab", "FILE|DIR", "use this vocabulary, e.g. of the training shards", 0,
     false},
    {"name", "NAME", "shards are NAME-00000.bmuf.h5, ..; default: data", 0,
     false},
    {"force", NULL, "replace the shards in --out", 0, false},
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
        "with \"image\" or \"feats\" for \"audio\". bmuf options --pack lists "
        "the settings.\n\n"
        "With --vocab DIR, labels are words or characters as in those shards. "
        "With --vocab\nFILE, a text file such as vocab.txt, add --units words "
        "if its symbols are words.\n",
    .flags = flags,
    .least = 0,
    .most = 0,
    .run = pack,
};

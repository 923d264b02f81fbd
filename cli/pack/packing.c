/*
 * packing.c - packs the sequences of an importer: rank 0 counts them, makes their
 * labels and writes the shards.
 */
#include "cli/pack/packing.h"

#include "cli/json_output.h"
#include "cli/pack/labels.h"
#include "cli/pack/resume.h"
#include "cli/progress.h"
#include "core/file/file.h"
#include "core/file/file_lock.h"
#include "core/file/path.h"
#include "core/log.h"
#include "core/text/words.h"
#include "io/shard/shard_list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_WARNINGS = 10, MOST_KINDS = 16, FIRST_IDS = 3 };

static const char lock_name[] = ".pack.lock";
static const char vocab_name[] = "vocab.txt";

/* How many items are of each kind, and the names of the first. */
typedef struct kinds {
    struct counted {
        char kind[80];
        size_t n;
        char ids[200];
    } of[MOST_KINDS];
    size_t n;
} kinds;

typedef struct packing {
    const bm_packing_plan *plan;
    bm_importer *importer; /* borrowed */
    bm_texts *texts;       /* borrowed */
    bm_labels labels;
    bm_packed before; /* what an earlier packing has left */
    bm_shard_writer *writer;
    int lock; /* of the directory; -1: not taken */

    kinds reasons, remarks; /* of items left out, of items packed */
    size_t named, unnamed;  /* items left out, of this packing */
    bool no_text_named;     /* an item without a text was */
    size_t n, left_out, frames, n_labels;
    size_t seen; /* packed or left out */
} packing;

/* What is in the directory of the set. */
typedef struct remains {
    size_t shards;
    char other[NAME_MAX + 1]; /* a shard of another NAME; "": there is none */
    bool vocab;
} remains;

static bm_status look_around(const bm_packing_plan *plan, remains *out)
{
    DIR *directory = opendir(plan->directory);
    const struct dirent *entry = NULL;

    if (directory == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", plan->directory,
                       strerror(errno));
    while ((entry = readdir(directory)) != NULL) {
        const char *file = entry->d_name;

        out->vocab |= strcmp(file, vocab_name) == 0;
        if (!bm_ends_with(file, BM_SHARD_SUFFIX))
            continue;
        out->shards++;
        if (!bm_shard_is_named(file, plan->name))
            snprintf(out->other, sizeof out->other, "%s", file);
    }
    closedir(directory);
    return BM_OK;
}

static void set_vocab_path(const packing *p, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", p->plan->directory, vocab_name);
}

/* A vocabulary without shards is the user's: it stays unless it is the same. */
static bm_status check_vocab(const packing *p)
{
    char path[PATH_MAX], *there = NULL, *own = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    set_vocab_path(p, path);
    BM_TRY_DONE(bm_vocab_print(p->texts->vocab, &own));
    BM_TRY_DONE(bm_file_read(path, SIZE_MAX, &there, &size));
    if (strcmp(own, there) != 0)
        status = BM_FAIL(BM_ERR_CREATE,
                         "%s would be replaced by the vocabulary of the set; "
                         "move it, give another --out, or --force to replace "
                         "it",
                         path);
done:
    free(own);
    free(there);
    return status;
}

/* Refuses what would be mixed with the set, or lost. */
static bm_status check_remains(const packing *p, const remains *r)
{
    const bm_packing_plan *plan = p->plan;

    if (plan->force)
        return BM_OK;
    if (r->shards == 0)
        return r->vocab ? check_vocab(p) : BM_OK;
    if (!plan->resume)
        return BM_FAIL(BM_ERR_CREATE,
                       "%s already has shards; give another --out, "
                       "--force to replace them, or --resume to go on "
                       "with a packing that was stopped",
                       plan->directory);
    if (r->other[0] == '\0')
        return BM_OK;
    return BM_FAIL(
        BM_ERR_CREATE,
        "%s has %s, which is not a shard of '%.60s', so packing cannot be "
        "resumed; give the --name that it was packed with, or another --out",
        plan->directory, r->other, plan->name);
}

/* Removes the temporary files of a packing that was killed; `all`: the shards
 * and the vocabulary, too. */
static bm_status clear_directory(const char *path, bool all)
{
    DIR *directory = opendir(path);
    const struct dirent *entry = NULL;
    bm_status status = BM_OK;

    if (directory == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", path, strerror(errno));
    while (status == BM_OK && (entry = readdir(directory)) != NULL) {
        char file[PATH_MAX];
        bool own = bm_ends_with(entry->d_name, BM_SHARD_SUFFIX) ||
                   strcmp(entry->d_name, vocab_name) == 0;

        if (!bm_file_is_temporary(entry->d_name, "", BM_SHARD_SUFFIX) &&
            !(own && all))
            continue;
        status = bm_path_join(file, path, entry->d_name);
        if (status == BM_OK && unlink(file) != 0)
            status = BM_FAIL(BM_ERR_IO, "cannot remove %s: %s", file,
                             strerror(errno));
    }
    closedir(directory);
    return status;
}

/* The directory, locked, with nothing in it but what packing goes on with. */
static bm_status take_directory(packing *p)
{
    const bm_packing_plan *plan = p->plan;
    remains found = {0};

    BM_TRY(bm_file_make_directory(plan->directory));
    BM_TRY(bm_file_lock(&p->lock, plan->directory, lock_name));
    BM_TRY(look_around(plan, &found));
    BM_TRY(check_remains(p, &found));
    return clear_directory(plan->directory, plan->force && found.shards > 0);
}

/* Counts the symbols of a sequence that is packed already. */
static bm_status count_symbols(void *self, const bm_item *item)
{
    packing *p = self;

    if (!item->has_text || p->labels.per_frame || p->plan->no_text)
        return BM_OK;
    return bm_labels_make(&p->labels, p->texts, item);
}

/* Reads what is there, and lets the importer begin after it. */
static bm_status go_on(packing *p, const char *store, const bm_shard_meta *meta)
{
    const bm_packing_plan *plan = p->plan;
    const bm_packed *b = &p->before;
    size_t left_out = 0;

    BM_TRY(
        bm_packed_read(&p->before, plan->directory, plan->name, store, meta));
    BM_TRY(p->importer->ops->skip(p->importer, (const char *const *)b->tags,
                                  b->n, count_symbols, p, &left_out));
    if (left_out > 0) {
        p->reasons.of[p->reasons.n++] = (struct counted){
            .kind = "in what is packed already", .n = left_out};
        p->left_out = left_out;
    }
    p->n = b->n;
    p->frames = b->frames;
    p->n_labels = b->labels;
    p->seen = b->n + left_out;
    if (!b->complete)
        bm_log(BM_NOTE, "%s: resuming after %s in %s", plan->directory,
               bm_count_noun((long long)b->n, "sequence").text,
               bm_count_noun((long long)b->shards, "shard").text);
    return BM_OK;
}

/* Not for a set that is complete. */
static bm_status open_writer(packing *p)
{
    const bm_importer_ops *ops = p->importer->ops;
    const bm_packing_plan *plan = p->plan;
    bm_shard_settings set = plan->set;
    bm_shard_meta meta = {0};

    if (set.store == NULL)
        set.store = ops->store;
    ops->meta(p->importer, &meta);
    meta.vocab = p->texts->vocab;
    meta.text_form = p->texts->form;
    if (!plan->resume)
        return bm_shard_writer_open(&p->writer, plan->directory, plan->name,
                                    &set, &meta);
    BM_TRY(go_on(p, set.store, &meta));
    if (p->before.complete)
        return BM_OK;
    return bm_shard_writer_resume(&p->writer, plan->directory, plan->name, &set,
                                  &meta, &p->before.place);
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
        snprintf(k->kind, sizeof k->kind, "%s",
                 all->n < MOST_KINDS ? kind : "for other reasons");
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

/* Among texts a sequence without one would be trained as if nothing were said. */
static const bm_problem no_text = {
    "without a text",
    "it has no text, but other sequences have; give it one (an empty one if "
    "nothing is said), or pack all with --no-text, to be decoded"};

/* Names the first ones, of those without a text one. */
static void leave_out(packing *p, const bm_item *item, const bm_problem *why)
{
    bool again = why == &no_text && p->no_text_named;

    if (p->named < MOST_WARNINGS && !again) {
        bm_log(BM_WARNING, "left out %s: %s", item->id, why->text);
        p->named++;
        p->no_text_named |= why == &no_text;
    } else {
        p->unnamed++;
    }
    p->left_out++;
    count(&p->reasons, why->kind, item->id);
}

static bool is_labelled(const packing *p, const bm_item *item)
{
    return !p->plan->no_text && (item->has_text || item->labels != NULL);
}

/* Why a sequence is left out; NULL: it is packed. */
static const bm_problem *problem_of(const packing *p, const bm_item *item)
{
    if (item->problem != NULL || is_labelled(p, item) || p->plan->no_text ||
        p->importer->no_texts != NULL)
        return item->problem;
    return &no_text;
}

static bm_status pack_item(void *self, const bm_item *item)
{
    packing *p = self;
    const bm_problem *problem = problem_of(p, item);

    bm_progress_count("sequences", ++p->seen,
                      p->importer->ops->size(p->importer));
    if (problem != NULL) {
        leave_out(p, item, problem);
        return BM_OK;
    }
    if (item->remark != NULL)
        count(&p->remarks, item->remark, item->id);
    if (!p->plan->no_text)
        BM_TRY(bm_labels_make(&p->labels, p->texts, item));
    BM_TRY(bm_shard_writer_add_recording(
        p->writer, item->id, item->speaker, item->x, item->frames,
        is_labelled(p, item) ? p->labels.x : NULL, p->labels.n,
        item->recording));
    p->n++;
    p->frames += item->frames;
    p->n_labels += p->labels.n;
    return BM_OK;
}

/* What is after the last sequence of a complete set was left out then, or is
 * new. */
static bm_status check_rest(void *self, const bm_item *item)
{
    packing *p = self;
    const bm_problem *problem = problem_of(p, item);

    if (problem == NULL)
        return BM_FAIL(BM_ERR_CREATE,
                       "%s is complete, but lacks '%.100s', after its last "
                       "sequence; pack again with --force",
                       p->plan->directory, item->id);
    leave_out(p, item, problem);
    return BM_OK;
}

/* A set without labels is for decoding, or a mistake. */
static void warn_of_no_labels(const packing *p)
{
    const char *why = p->importer->no_texts;

    if (p->n > 0 && p->n_labels == 0 && p->labels.unknown == 0 &&
        !p->plan->no_text)
        bm_log(BM_WARNING,
               "%s: no labels in %s, so nothing can be trained on "
               "them: %s",
               p->plan->directory,
               bm_count_noun((long long)p->n, "sequence").text,
               why != NULL ? why : "all texts are empty");
}

static void warn_of_unknown(const bm_labels *l)
{
    if (l->unknown > 0)
        bm_log(BM_WARNING,
               "%s in %s %s not in the vocabulary and %s skipped, e.g. %s",
               bm_count_noun((long long)l->unknown, "symbol").text,
               bm_count_noun((long long)l->with_unknown, "text").text,
               l->unknown == 1 ? "is" : "are", l->unknown == 1 ? "was" : "were",
               bm_labels_unknown(l).text);
}

static void warn(const packing *p)
{
    warn_of_no_labels(p);

    if (p->unnamed > 0)
        bm_log(BM_WARNING, "left out %zu more", p->unnamed);
    for (size_t i = 0; i < p->remarks.n; i++) {
        const struct counted *k = &p->remarks.of[i];

        bm_log(BM_WARNING, "%zu of %s %s %s: %s%s", k->n,
               bm_count_noun((long long)p->n, "sequence").text,
               k->n == 1 ? "is" : "are", k->kind, k->ids,
               k->n > FIRST_IDS ? ", .." : "");
    }
}

/* Fails before the first sequence if those without a text are too many. A set
 * that is resumed may be complete, and then is as it is. */
static bm_status check_texts(const packing *p)
{
    double percent = 100 * p->importer->without_text;

    if (p->plan->resume || p->plan->no_text ||
        p->importer->without_text <= p->plan->most_left_out / 100)
        return BM_OK;
    return BM_FAIL(
        BM_ERR_FORMAT,
        "%.3g %% of the sequences have no text, though others do, "
        "e.g. %s. This is more than %g %%, and nothing was packed; give them "
        "texts (empty ones if nothing is said), leave them out with "
        "--max-left-out %.0f, or, to decode them, pack all without texts: "
        "--no-text --vocab MODEL",
        percent, p->importer->first_without, p->plan->most_left_out,
        ceil(percent));
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
    if (percent > p->plan->most_left_out)
        return BM_FAIL(BM_ERR_FORMAT,
                       "left out %zu of %zu: %s. This is more than %g %%, so "
                       "nothing was packed; correct the files or the manifest, "
                       "or raise --max-left-out to %.0f",
                       p->left_out, all, reasons, p->plan->most_left_out,
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
        bm_count_noun((long long)bm_vocab_size(p->texts->vocab), "class").text,
        bm_count_noun((long long)shards, "shard").text, p->plan->directory,
        p->left_out, p->n + p->left_out, p->left_out > 0 ? ": " : "", reasons,
        bm_count_noun((long long)p->labels.unknown, "unknown symbol").text);
}

static void print_up_to_date(const packing *p)
{
    printf("%s: up to date; %s, %s, %s in %s\n", p->plan->directory,
           bm_count_noun((long long)p->n, "sequence").text,
           bm_count_noun((long long)p->frames, "frame").text,
           bm_count_noun((long long)p->n_labels, "label").text,
           bm_count_noun((long long)p->before.shards, "shard").text);
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
        json_pack("{s:o, s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:I}",
                  "path", bm_json_text(p->plan->directory), "up_to_date",
                  (int)p->before.complete, "shards", (json_int_t)shards,
                  "sequences", (json_int_t)p->n, "frames",
                  (json_int_t)p->frames, "labels", (json_int_t)p->n_labels,
                  "classes", (json_int_t)bm_vocab_size(p->texts->vocab),
                  "left_out", (json_int_t)p->left_out, "reasons",
                  json_of(&p->reasons), "remarks", json_of(&p->remarks),
                  "unknown_symbols", (json_int_t)p->labels.unknown),
        JSON_INDENT(2));
}

/* On rank 0: all until the first sequence. */
static bm_status begin(packing *p)
{
    BM_TRY(check_texts(p));
    BM_TRY(bm_labels_open(&p->labels, p->texts, p->importer));
    BM_TRY(take_directory(p));
    BM_TRY(open_writer(p));
    bm_progress_open(true);
    return BM_OK;
}

static bm_status write_vocab(const packing *p)
{
    char path[PATH_MAX];

    set_vocab_path(p, path);
    return p->before.complete && access(path, F_OK) == 0
               ? BM_OK
               : bm_vocab_write(p->texts->vocab, path);
}

/* What an incomplete set had in its last shard must still be there: no other
 * shard can be the last one. */
static bm_status check_end(const packing *p)
{
    if (!p->plan->resume || p->n > p->before.n)
        return BM_OK;
    return BM_FAIL(
        BM_ERR_FORMAT,
        "%s: sequences after the first %zu were packed before, but none can be "
        "packed now; restore the files, or pack again with --force",
        p->plan->directory, p->before.n);
}

/* On rank 0: all after the last sequence. */
static bm_status finish(packing *p)
{
    size_t shards = p->before.shards;

    bm_progress_close();
    warn(p);
    if (!p->before.complete) {
        BM_TRY(check_left_out(p));
        BM_TRY(check_end(p));
        BM_TRY(bm_labels_check(&p->labels, p->texts, p->plan->most_unknown));
        warn_of_unknown(&p->labels);
        bm_labels_warn(&p->labels, p->texts);
        BM_TRY(bm_shard_writer_finish(p->writer, &shards));
    }
    BM_TRY(write_vocab(p));
    if (p->plan->json)
        print_json(p, shards);
    else if (p->before.complete)
        print_up_to_date(p);
    else
        print_summary(p, shards);
    return BM_OK;
}

/* Collective. */
static bm_status run(packing *p)
{
    bm_comm *comm = p->importer->comm;
    bool first = comm == NULL || bm_comm_rank(comm) == 0;
    bm_status status = first ? begin(p) : BM_OK;

    BM_TRY(comm != NULL ? bm_comm_agree(comm, status) : status);
    BM_TRY(bm_importer_each(p->importer,
                            p->before.complete ? check_rest : pack_item, p));
    status = first ? finish(p) : BM_OK;
    return comm != NULL ? bm_comm_agree(comm, status) : status;
}

bm_status bm_packing_run(const bm_packing_plan *plan, bm_importer *importer,
                         bm_texts *texts)
{
    packing p = {
        .plan = plan, .importer = importer, .texts = texts, .lock = -1};
    bm_status status = run(&p);

    bm_shard_writer_close(p.writer);
    bm_packed_free(&p.before);
    bm_labels_free(&p.labels);
    bm_file_unlock(p.lock, plan->directory, lock_name);
    return status;
}

#include "io/import/import_base.h"

#include "core/log.h"
#include "core/team.h"
#include "core/text/words.h"
#include "io/import/lines/line_source.h"
#include "io/import/piece.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A vocabulary for classes 0 to `highest`: the blank, then numbers. */
static bm_status number_classes(bm_vocab **out, int32_t highest)
{
    char name[16];
    bm_vocab *v = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_vocab_new(&v, true));
    for (int32_t k = 1; status == BM_OK && k <= highest; k++) {
        snprintf(name, sizeof name, "%d", (int)k);
        status = bm_vocab_learn(v, name);
    }
    if (status == BM_OK)
        *out = v;
    else
        bm_vocab_free(v);
    return status;
}

/* Transition-ids begin at 1, and there are several for a pdf-id. HTK and Kaldi
 * make trees whose leaves have 100 frames or more: few of their classes are as
 * rare as one in FRAMES. */
static void doubt_classes(const bm_frame_classes *c, const char *path)
{
    enum { FRAMES = 20 };
    size_t n = (size_t)bm_frame_classes_highest(c) + 1;

    if (!bm_frame_classes_have_zero(c))
        bm_log(BM_WARNING,
               "%s: no frame has class 0, the first pdf-id. If these are "
               "transition-ids (ali.*.gz), give the output of ali-to-pdf "
               "final.mdl; if phones, add --vocab phones.txt",
               path);
    else if (n > bm_frame_classes_frames(c) / FRAMES)
        bm_log(
            BM_WARNING,
            "%s: %s of only %s, fewer than %d for a class; are these "
            "pdf-ids? ali-to-pdf final.mdl makes them",
            path, bm_count_noun((long long)n, "class").text,
            bm_count_noun((long long)bm_frame_classes_frames(c), "frame").text,
            FRAMES);
}

static bm_status read_classes(bm_importer *i, const bm_import_source *source)
{
    enum { MOST = 1 << 24 };
    const char *path = source->targets;
    bm_import_base *b = i->self;
    int32_t highest = 0;

    BM_TRY(bm_frame_classes_read(&b->classes, path, source->pipes));
    highest = bm_frame_classes_highest(b->classes);
    if (source->classes == 0 && (i->comm == NULL || bm_comm_rank(i->comm) == 0))
        doubt_classes(b->classes, path);
    if (highest >= MOST)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: class %d; at most %d are possible. Are these "
                       "classes of frames?",
                       path, (int)highest, MOST - 1);
    i->numbered = true;
    b->n_classes = source->classes > 0 ? source->classes : (size_t)highest + 1;
    return number_classes(&i->vocab, (int32_t)b->n_classes - 1);
}

static bm_status read_manifest(bm_manifest **out,
                               const bm_import_source *source, const char *kind)
{
    const char *image_dir = source->image_dir != NULL ? source->image_dir : "";

    if (strcmp(kind, "image") == 0 &&
        bm_line_source_is(source->path, image_dir))
        return bm_manifest_read_lines(out, source->path, image_dir,
                                      source->most_missing);
    if (strcmp(kind, "unipen") == 0)
        return bm_manifest_read_unipen(out, source->path, source->level,
                                       source->most_missing);
    return bm_manifest_read(out, source->path, kind, source->most_missing,
                            BM_MANIFEST_SPEEDS |
                                (source->pipes ? BM_MANIFEST_PIPES : 0));
}

bm_status bm_import_open(bm_importer *i, size_t self_size,
                         const bm_import_source *source,
                         const bm_import_parts *parts)
{
    bm_import_base *b = i->self = calloc(1, self_size);

    if (b == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an importer");
    b->parts = parts;
    b->subsample = 1;
    b->n_readers = source->threads > 0 ? source->threads : 1;
    b->readers = calloc(b->n_readers, sizeof *b->readers);
    if (b->readers == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu threads",
                       b->n_readers);
    BM_TRY(read_manifest(&b->manifest, source, parts->kind));
    if (source->targets != NULL)
        return read_classes(i, source);
    i->no_texts = bm_manifest_why_no_texts(b->manifest);
    i->without_text = bm_manifest_without_text(b->manifest);
    i->first_without = bm_manifest_first_without_text(b->manifest);
    return BM_OK;
}

void bm_import_close(bm_importer *i)
{
    bm_import_base *b = i->self;

    if (b == NULL)
        return;
    for (size_t k = 0; b->readers != NULL && k < b->n_readers; k++) {
        bm_import_reader *r = &b->readers[k];

        if (r->own != NULL)
            b->parts->close_own(r->own);
        bm_frames_free(&r->frames);
        bm_waveform_free(&r->recording);
        bm_chain_free(r->chain);
        bm_command_output_remove(&r->output);
    }
    free(b->readers);
    bm_manifest_free(b->manifest);
    bm_chain_free(b->chain);
    bm_frame_classes_free(b->classes);
    free(b->labels);
    free(b->described);
    free(b);
}

/* ---- reading a row ------------------------------------------------------- */

/* The file of a row, which a command may have to make. */
static bm_status find_file(const bm_import_base *b, bm_import_reader *r,
                           bm_manifest_row *row, bm_problem *problem)
{
    bm_status status = BM_OK;

    if (!bm_manifest_is_pipe(row->path))
        return BM_OK;
    status = bm_command_output_read(&r->output, row->path, problem);
    if (status == BM_ERR_MISSING)
        return BM_FAIL(status, "%s:%zu: %s", bm_manifest_path(b->manifest),
                       row->line, bm_last_message());
    BM_TRY(status);
    row->path = r->output.path;
    return BM_OK;
}

/* In a problem with the output of a command, whose file has no name, names the
 * command. */
static void name_command(const bm_command_output *o, bm_problem *problem)
{
    bm_problem given = *problem;
    size_t n = strlen(o->path);

    if (n > 0 && strncmp(given.text, o->path, n) == 0)
        bm_problem_set(problem, given.kind, "the output of '%.300s'%s",
                       o->command, given.text + n);
}

/* Reads a row to r->frames, or sets r->problem. */
static bm_status read_row(bm_importer *i, bm_import_reader *r,
                          bm_manifest_row row)
{
    const bm_import_base *b = i->self;

    r->problem.text[0] = '\0';
    r->remark = NULL;
    BM_TRY(find_file(b, r, &row, &r->problem));
    if (bm_problem_is(&r->problem))
        return BM_OK;
    BM_TRY(b->parts->read(i, r, &row));
    name_command(&r->output, &r->problem);
    return BM_OK;
}

/* Reads a row and processes its frames: *x, borrowed, if it has no problem. */
static bm_status process_row(bm_importer *i, bm_import_reader *r,
                             bm_manifest_row row, const bm_frames **x)
{
    const bm_import_base *b = i->self;
    bm_chain *chain = r == b->readers ? b->chain : r->chain;

    BM_TRY(read_row(i, r, row));
    *x = &r->frames;
    if (bm_problem_is(&r->problem) || chain == NULL)
        return BM_OK;
    return bm_chain_apply(chain, row.speaker_number, &r->frames, x);
}

bm_status bm_import_probe(bm_importer *i, bm_import_look *look,
                          const char *noun)
{
    bm_import_base *b = i->self;
    const bm_manifest *m = b->manifest;
    size_t n = bm_manifest_size(m), readable = 0;
    bool enough = false;
    bm_problem first = {0};

    for (size_t k = 0; k < n && !enough; k++) {
        bm_manifest_row row = bm_manifest_at(m, k);
        bm_problem problem = {0};

        if (bm_manifest_is_pipe(row.path) && readable > 0)
            continue; /* each would be run once more */
        BM_TRY(find_file(b, b->readers, &row, &problem));
        if (!bm_problem_is(&problem))
            BM_TRY(look(i, &row, &enough, &problem));
        name_command(&b->readers->output, &problem);
        if (!bm_problem_is(&problem))
            readable++;
        else if (!bm_problem_is(&first))
            first = problem;
    }
    if (readable == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s: none of the %zu %s can be read: %s",
                       bm_manifest_path(m), n, noun, first.text);
    return BM_OK;
}

/* ---- several threads ----------------------------------------------------- */

/* Rank r of n reads rows first + r, first + r + n, .. on its threads, and sends
 * them to rank 0, which takes all rows in order: docs/decisions/23-packing.md. */
typedef struct walk {
    bm_importer *i;
    bool learning; /* the first pass */
    size_t next;   /* row of this rank */
    bm_import_take *take;
    void *self;
} walk;

static size_t rank_of(const walk *w)
{
    return w->i->comm != NULL ? (size_t)bm_comm_rank(w->i->comm) : 0;
}

static size_t ranks_of(const walk *w)
{
    return w->i->comm != NULL ? (size_t)bm_comm_size(w->i->comm) : 1;
}

static void drop_piece(void *self, void *done)
{
    (void)self;
    bm_piece_free(done);
}

static bm_status next_piece(void *self, const atomic_bool *stop, void **out)
{
    walk *w = self;
    const bm_import_base *b = w->i->self;
    bm_piece *p = NULL;

    (void)stop;
    *out = NULL;
    if (w->next >= bm_manifest_size(b->manifest))
        return BM_OK;
    BM_TRY(bm_piece_new(&p, w->next));
    w->next += ranks_of(w);
    *out = p;
    return BM_OK;
}

static bm_status copy_frames(bm_frames *to, const bm_frames *from)
{
    BM_TRY(bm_frames_shape(to, from->n, from->dim));
    memcpy(to->x, from->x, from->n * from->dim * sizeof *to->x);
    return BM_OK;
}

static bm_status read_piece(walk *w, bm_import_reader *r, bm_piece *p)
{
    const bm_import_base *b = w->i->self;
    bm_manifest_row row = bm_manifest_at(b->manifest, p->row);
    const bm_frames *x = &r->frames;

    BM_TRY(w->learning ? read_row(w->i, r, row)
                       : process_row(w->i, r, row, &x));
    p->problem = r->problem;
    p->remark = r->remark;
    p->n_read = r->frames.n;
    if (bm_problem_is(&r->problem))
        return BM_OK;
    if (!w->learning)
        bm_waveform_move(&p->recording, &r->recording);
    return copy_frames(&p->x, x);
}

static void work_piece(void *self, size_t member, void *next)
{
    walk *w = self;
    bm_import_base *b = w->i->self;
    bm_piece *p = next;

    p->status = read_piece(w, &b->readers[member], p);
    if (p->status != BM_OK)
        snprintf(p->message, sizeof p->message, "%s", bm_last_message());
}

/* ---- items --------------------------------------------------------------- */

/* Sets the labels of an item to the classes of the frames of `id`, of which
 * there were `frames` before subsampling, or sets the problem. */
static bm_status find_classes(bm_import_base *b, const char *id, size_t frames,
                              bm_item *item)
{
    size_t n = 0, step = 1;
    const int32_t *found = bm_frame_classes_find(b->classes, id, &n);

    b->problem.text[0] = '\0';
    if (found == NULL)
        bm_problem_set(&b->problem, "without classes of frames",
                       "the targets have none for it");
    else if (n == frames)
        step = b->subsample;
    else if (n != item->frames)
        bm_problem_set(&b->problem, "another number of frames",
                       "%zu frames, but targets for %zu; make both with the "
                       "same window, shift and edges",
                       frames, n);
    if (found == NULL || bm_problem_is(&b->problem))
        return BM_OK;
    if (item->frames > b->room_labels) {
        int32_t *grown = realloc(b->labels, item->frames * sizeof *grown);

        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels",
                           item->frames);
        b->labels = grown;
        b->room_labels = item->frames;
    }
    for (size_t t = 0; t < item->frames; t++) {
        b->labels[t] = found[t * step];
        if ((size_t)b->labels[t] < b->n_classes)
            continue;
        bm_problem_set(&b->problem, "with a class outside the vocabulary",
                       "class %d of frame %zu, but the vocabulary has classes "
                       "0 to %zu; pack the training set again with --targets "
                       "that have all, or leave it out",
                       (int)b->labels[t], t, b->n_classes - 1);
        return BM_OK;
    }
    item->labels = b->labels;
    item->n_labels = item->frames;
    return BM_OK;
}

/* The item of a row: frames x, of which there were n_read before they were
 * processed, or a problem. */
static bm_status make_item(bm_importer *i, bm_manifest_row row,
                           const bm_frames *x, size_t n_read,
                           const bm_problem *problem, const char *remark,
                           bm_item *item)
{
    bm_import_base *b = i->self;
    bool good = !bm_problem_is(problem);

    *item = (bm_item){
        .id = row.id,
        .speaker = row.speaker,
        .text = row.text,
        .has_text = row.has_text,
        .problem = good ? NULL : problem,
        .remark = good ? remark : NULL,
        .x = good ? x->x : NULL,
        .frames = good ? x->n : 0,
        .features = good ? x->dim : 0,
    };
    if (good && b->classes != NULL) {
        BM_TRY(find_classes(b, row.of, n_read, item));
        item->problem = bm_problem_is(&b->problem) ? &b->problem : NULL;
    }
    return BM_OK;
}

/* The recording of a row, with the moments of its speaker. */
static bm_status give_recording(const bm_import_base *b,
                                const bm_manifest_row *row,
                                bm_waveform *recording, bm_item *item)
{
    const double *moments = NULL;
    size_t n = 0;

    if (b->sample_rate == 0)
        return BM_OK;
    item->recording = recording;
    moments = bm_chain_moments_of(b->chain, row->speaker_number, &n);
    return n > 0 ? bm_waveform_set_moments(recording, moments, n) : BM_OK;
}

bm_status bm_import_next(bm_importer *i, bm_item *item)
{
    bm_import_base *b = i->self;
    bm_import_reader *r = b->readers;
    const bm_frames *x = NULL;
    bm_manifest_row row;

    if (b->next_row == bm_manifest_size(b->manifest)) {
        b->next_row = 0;
        *item = (bm_item){0};
        return BM_OK;
    }
    row = bm_manifest_at(b->manifest, b->next_row++);
    BM_TRY(process_row(i, r, row, &x));
    BM_TRY(make_item(i, row, x, r->frames.n, &r->problem, r->remark, item));
    return give_recording(b, &row, &r->recording, item);
}

/* On rank 0. */
static bm_status use_piece(walk *w, bm_piece *p)
{
    bm_import_base *b = w->i->self;
    bm_manifest_row row = bm_manifest_at(b->manifest, p->row);
    bm_item item = {0};

    if (p->status != BM_OK)
        return BM_FAIL(p->status, "%s", p->message);
    if (w->learning)
        return bm_problem_is(&p->problem)
                   ? BM_OK
                   : bm_chain_learn(b->chain, row.speaker_number, &p->x);
    BM_TRY(
        make_item(w->i, row, &p->x, p->n_read, &p->problem, p->remark, &item));
    BM_TRY(give_recording(b, &row, &p->recording, &item));
    return w->take(w->self, &item);
}

/* The rows after `row`, up to the next one of rank 0. */
static bm_status use_others(walk *w, size_t row)
{
    const bm_import_base *b = w->i->self;
    size_t n = bm_manifest_size(b->manifest);

    for (size_t r = 1; r < ranks_of(w) && row + r < n; r++) {
        bm_piece *p = NULL;
        bm_status status = BM_OK;

        BM_TRY(bm_piece_receive(w->i->comm, (int)r, &p));
        BM_ASSERT(p->row == row + r);
        status = use_piece(w, p);
        bm_piece_free(p);
        BM_TRY(status);
    }
    return BM_OK;
}

static bm_status take_piece(void *self, void *done)
{
    walk *w = self;
    bm_piece *p = done;
    bm_status status = BM_OK;

    if (rank_of(w) > 0)
        status = bm_piece_send(w->i->comm, p, 0);
    else
        status = use_piece(w, p);
    if (status == BM_OK && rank_of(w) == 0)
        status = use_others(w, p->row);
    bm_piece_free(p);
    return status;
}

/* Collective. From row `first` on. */
static bm_status walk_rows(walk *w, size_t first)
{
    const bm_import_base *b = w->i->self;
    const bm_team_work team = {w, next_piece, work_piece, take_piece,
                               drop_piece};

    w->next = first + rank_of(w);
    return bm_team_run(&team, b->n_readers);
}

bm_status bm_import_walk(bm_importer *i)
{
    return walk_rows(&(walk){.i = i, .learning = true}, 0);
}

bm_status bm_import_each(bm_importer *i, bm_import_take *take, void *self)
{
    bm_import_base *b = i->self;

    for (size_t k = 1; k < b->n_readers && b->chain != NULL; k++)
        if (b->readers[k].chain == NULL)
            BM_TRY(bm_chain_copy(&b->readers[k].chain, b->chain));
    if (i->comm != NULL)
        BM_TRY(bm_comm_broadcast_bytes(i->comm, &b->first_row,
                                       sizeof b->first_row, 0));
    return walk_rows(&(walk){.i = i, .take = take, .self = self}, b->first_row);
}

bm_status bm_import_skip(bm_importer *i, const char *const *ids, size_t n,
                         bm_import_take *take, void *self, size_t *left_out)
{
    bm_import_base *b = i->self;
    size_t found = 0, k = 0;

    for (; k < bm_manifest_size(b->manifest) && found < n; k++) {
        bm_manifest_row row = bm_manifest_at(b->manifest, k);

        if (strcmp(row.id, ids[found]) != 0)
            continue;
        found++;
        BM_TRY(take(self, &(bm_item){.id = row.id,
                                     .speaker = row.speaker,
                                     .text = row.text,
                                     .has_text = row.has_text}));
    }
    if (found < n)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s does not have '%.100s', or not in the order of the "
                       "shards that are there; pack again with --force",
                       bm_manifest_path(b->manifest), ids[found]);
    b->first_row = k;
    *left_out = k - n;
    return BM_OK;
}

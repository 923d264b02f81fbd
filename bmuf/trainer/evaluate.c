/* evaluate.c - one epoch over the data, a row of counts for each share. */
#include "bmuf/trainer/evaluate.h"

#include "bmuf/trainer/infeasible.h"
#include "core/trace/span.h"
#include "models/decoding/best_path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bm_evaluator {
    bm_comm *comm; /* borrowed, as all of these */
    bm_model *model;
    bm_backend *be;
    bm_dataset *data;
    bm_infeasible_check *infeasible;
    bm_plan_settings plan;
    int workers, first, last;
    bm_evaluation *table; /* [workers]: a row for each share */
    float *logits;        /* [room_logits], on the host */
    size_t room_logits;
    int32_t *labels; /* [room_labels]: a best path; words: two word lists */
    int32_t *words[2];
    size_t room_labels;
    bool labels_are_words;
    int32_t space; /* its class; -1: there is none, and no word errors */
};

bm_status bm_evaluator_open(bm_evaluator **out, bm_comm *comm, bm_model *model,
                            bm_dataset *data, const bm_plan_settings *plan,
                            int workers)
{
    bm_evaluator *e = calloc(1, sizeof *e);
    bm_status status = BM_OK;

    if (e == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to evaluate");
    BM_TRY_DONE(bm_infeasible_check_new(&e->infeasible, model));
    e->table = calloc((size_t)workers, sizeof *e->table);
    if (e->table == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to evaluate %d shares", workers);
    e->comm = comm;
    e->model = model;
    e->be = bm_model_params(model)->be;
    e->data = data;
    e->plan = *plan;
    e->plan.order = BM_ORDER_SORTED;
    e->plan.active = 0;
    e->plan.actives = (bm_series){0};
    e->workers = workers;
    e->first = bm_comm_first(comm, workers, bm_comm_rank(comm));
    e->last = bm_comm_first(comm, workers, bm_comm_rank(comm) + 1);
    e->labels_are_words = bm_vocab_words(bm_dataset_vocab(data));
    e->space = bm_vocab_space(bm_dataset_vocab(data));
    *out = e;
    e = NULL;
done:
    bm_evaluator_close(e);
    return status;
}

void bm_evaluator_close(bm_evaluator *e)
{
    if (e == NULL)
        return;
    bm_infeasible_check_free(e->infeasible);
    free(e->table);
    free(e->logits);
    free(e->labels);
    free(e->words[0]);
    free(e->words[1]);
    free(e);
}

/* Room for n labels in all lists. */
static bm_status room_for_labels(bm_evaluator *e, size_t n)
{
    int32_t **all[] = {&e->labels, &e->words[0], &e->words[1]};

    if (n <= e->room_labels)
        return BM_OK;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int32_t *grown = realloc(*all[i], n * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu labels", n);
        *all[i] = grown;
    }
    e->room_labels = n;
    return BM_OK;
}

/* e->logits <- y */
static bm_status fetch(bm_evaluator *e, bm_tensor y)
{
    size_t n = bm_count(y);

    if (n > e->room_logits) {
        float *grown = realloc(e->logits, n * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu logits", n);
        e->logits = grown;
        e->room_logits = n;
    }
    bm_get(e->be, e->logits, y.data, n);
    return bm_sync(e->be);
}

/* Each word becomes a hash of its letters (FNV-1a, 31 bits). Returns the number
 * of words. */
static size_t to_words(const int32_t *labels, size_t n, int32_t space,
                       int32_t *words)
{
    size_t n_words = 0;
    bool within = false;

    for (size_t i = 0; i < n; i++) {
        if (labels[i] == space) {
            within = false;
            continue;
        }
        if (!within)
            words[n_words++] = 0x011c9dc5;
        within = true;
        words[n_words - 1] =
            (int32_t)((((uint32_t)words[n_words - 1] ^ (uint32_t)labels[i]) *
                       16777619u) &
                      0x7fffffffu);
    }
    return n_words;
}

/* A label for each frame needs no alignment. */
static bm_edits compare_frames(const int32_t *a, const int32_t *b, size_t n)
{
    bm_edits edits = {0};

    for (size_t i = 0; i < n; i++)
        edits.substitutions += a[i] != b[i];
    return edits;
}

/* The errors of a sequence with a reference. Labels of frames form no words. */
static bm_status compare(bm_evaluator *e, bm_seen *s)
{
    if (bm_model_loss(e->model)->per_frame) {
        BM_ASSERT(s->n == s->n_reference);
        s->edits = compare_frames(s->reference, s->labels, s->n);
        return BM_OK;
    }
    BM_TRY(bm_edit(s->reference, s->n_reference, s->labels, s->n, &s->edits));
    if (e->labels_are_words) {
        s->words = s->n_reference;
        s->word_edits = s->edits;
    } else if (e->space >= 0) {
        size_t n = to_words(s->labels, s->n, e->space, e->words[1]);

        s->words =
            to_words(s->reference, s->n_reference, e->space, e->words[0]);
        BM_TRY(bm_edit(e->words[0], s->words, e->words[1], n, &s->word_edits));
    }
    return BM_OK;
}

static void count(bm_evaluation *own, const bm_seen *s)
{
    own->references += 1;
    own->labels += (double)s->n_reference;
    own->substitutions += (double)s->edits.substitutions;
    own->deletions += (double)s->edits.deletions;
    own->insertions += (double)s->edits.insertions;
    own->wrong += bm_edits_total(s->edits) > 0;
    own->words += (double)s->words;
    own->word_substitutions += (double)s->word_edits.substitutions;
    own->word_deletions += (double)s->word_edits.deletions;
    own->word_insertions += (double)s->word_edits.insertions;
}

/* The model scores a sequence without a reference as if that were empty, all
 * blanks, or as infeasible if it has no frames: takes that off again. zero:
 * infeasible ones count with loss 0. */
static void unscore(bm_score *own, const float *logits, size_t frames,
                    size_t stride, size_t n_classes, bool zero)
{
    bool empty = frames == 0;
    double loss = 0;

    for (size_t t = 0; t < frames; t++) {
        const float *y = logits + t * stride;
        double most = y[0], sum = 0;

        for (size_t c = 1; c < n_classes; c++)
            most = fmax(most, y[c]);
        for (size_t c = 0; c < n_classes; c++)
            sum += exp(y[c] - most);
        loss += log(sum) + most - y[0];
    }
    if (isfinite(loss) && (!empty || zero)) {
        own->loss -= loss;
        own->sequences -= 1;
        own->zeroed -= empty;
    } else {
        own->skipped -= 1;
    }
}

/* e->labels <- labels of the best path; returns how many. */
static size_t decode(bm_evaluator *e, const float *logits, size_t frames,
                     size_t stride, size_t n_classes)
{
    if (!bm_model_loss(e->model)->per_frame)
        return bm_decode_greedy(logits, frames, stride, n_classes, e->labels,
                                NULL);
    bm_decode_frames(logits, frames, stride, n_classes, e->labels);
    return frames;
}

static bm_status see_batch(bm_evaluator *e, bm_reader *reader,
                           const bm_batch *b, bm_evaluation *own,
                           const bm_observer *observer)
{
    const int32_t *reference = b->targets.classes;
    bm_extent extent = {0};
    bm_tensor y = bm_model_output(e->model, &extent);
    size_t C = y.dim[2], stride = extent.B * C;

    BM_TRY(fetch(e, y));
    for (size_t i = 0; i < extent.B; i++) {
        size_t n = (size_t)b->targets.count[i];
        bm_seen seen = {.sequence = b->id[i],
                        .tag = bm_reader_tag(reader, b->id[i]),
                        .logits = e->logits + i * C,
                        .frames = (size_t)extent.frames[i],
                        .stride = stride};

        BM_TRY(room_for_labels(e, seen.frames + n + 1));
        seen.n = decode(e, seen.logits, seen.frames, stride, C);
        seen.labels = e->labels;
        own->sequences += 1;
        own->frames += b->extent.frames[i];
        seen.has_reference = bm_dataset_has_reference(e->data, b->id[i]);
        if (seen.has_reference) {
            seen.reference = reference;
            seen.n_reference = n;
            BM_TRY(compare(e, &seen));
            count(own, &seen);
        } else {
            unscore(&own->score, seen.logits, seen.frames, stride, C,
                    bm_model_infeasible(e->model) == BM_INFEASIBLE_ZERO);
        }
        if (observer != NULL)
            BM_TRY(observer->see(observer->self, &seen));
        reference += n;
    }
    return BM_OK;
}

static bm_status see_share(bm_evaluator *e, bm_reader *reader, int worker,
                           int64_t steps, const bm_observer *observer)
{
    bm_evaluation *own = &e->table[worker];

    for (int64_t step = 0; step < steps; step++) {
        const bm_batch *batch = NULL;
        const bool *bad = NULL;

        BM_TRY(bm_reader_batch(reader, worker, step, &batch));
        if (batch == NULL)
            break;
        BM_TRY(bm_infeasible_check_look(e->infeasible, reader, batch, &bad));
        bm_model_evaluate(e->model, batch, worker - e->first);
        BM_TRY(see_batch(e, reader, batch, own, observer));
    }
    return BM_OK;
}

/* All blocks of one epoch, for the shares of this rank. */
static bm_status see_all(bm_evaluator *e, const bm_observer *observer)
{
    bm_reader_settings set = {.plan = e->plan,
                              .workers = e->workers,
                              .first = e->first,
                              .last = e->last,
                              .once = true};
    bm_position at = {0, 0};
    bm_reader *reader = NULL;
    int64_t steps = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_reader_open(&reader, e->data, e->be, &set, at));
    for (;; at.block++) {
        BM_TRY_DONE(bm_reader_block(reader, at, &steps));
        if (steps == 0)
            break;
        for (int k = e->first; k < e->last; k++)
            BM_TRY_DONE(see_share(e, reader, k, steps, observer));
    }
    for (int k = e->first; k < e->last; k++) {
        bm_score seen = {0};

        BM_TRY_DONE(bm_model_score(e->model, k - e->first, &seen));
        bm_score_add(&e->table[k].score, &seen);
    }
done:
    bm_reader_close(reader);
    return status;
}

static void add(bm_evaluation *sum, const bm_evaluation *more)
{
    bm_score_add(&sum->score, &more->score);
    sum->sequences += more->sequences;
    sum->frames += more->frames;
    sum->references += more->references;
    sum->labels += more->labels;
    sum->substitutions += more->substitutions;
    sum->deletions += more->deletions;
    sum->insertions += more->insertions;
    sum->words += more->words;
    sum->word_substitutions += more->word_substitutions;
    sum->word_deletions += more->word_deletions;
    sum->word_insertions += more->word_insertions;
    sum->wrong += more->wrong;
}

/* Rows are doubles only; those of other ranks' shares are zero, so that a sum
 * gives all ranks all rows. */
bm_status bm_evaluate(bm_evaluator *e, const bm_observer *observer,
                      bm_evaluation *out)
{
    enum { COLUMNS = sizeof *e->table / sizeof(double) };
    size_t n = (size_t)e->workers;
    bm_span span = bm_span_begin("eval"), meeting;
    bm_evaluation sum = {0};
    bm_status status = BM_OK;

    memset(e->table, 0, n * sizeof *e->table);
    status = see_all(e, observer);
    meeting = bm_span_begin("wait");
    status = bm_comm_agree(e->comm, status);
    (void)bm_span_end(meeting);
    if (status == BM_OK)
        status = bm_comm_sum(e->comm, (double *)(void *)e->table, COLUMNS * n);
    sum.seconds = bm_span_end(span);
    BM_TRY(status);
    for (size_t k = 0; k < n; k++)
        add(&sum, &e->table[k]);
    sum.counted = bm_model_loss(e->model)->per_frame ? sum.score.frames
                                                     : sum.score.sequences;
    *out = sum;
    return BM_OK;
}

double bm_evaluation_loss(const bm_evaluation *e)
{
    return e->counted > 0 ? e->score.loss / e->counted : NAN;
}

double bm_evaluation_ler(const bm_evaluation *e)
{
    double errors = e->substitutions + e->deletions + e->insertions;

    return e->labels > 0 ? errors / e->labels : NAN;
}

double bm_evaluation_word_errors(const bm_evaluation *e)
{
    return e->word_substitutions + e->word_deletions + e->word_insertions;
}

double bm_evaluation_wer(const bm_evaluation *e)
{
    return e->words > 0 ? bm_evaluation_word_errors(e) / e->words : NAN;
}

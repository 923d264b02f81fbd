#include "bmuf/learner.h"

#include "core/log.h"

#include <stdlib.h>
#include <string.h>

enum { TOLD = 10 }; /* sequences to name in a block */

struct bm_learner {
    bm_model *model;   /* borrowed */
    bm_reader *reader; /* borrowed */
    bool refuse;       /* infeasible sequences end the training */
    bool keep;         /* they count as samples */
    bm_rng random;
    int first;
    bm_position at;
    double frames;
    int told;
    bool *bad; /* [room] */
    size_t room;
};

bm_status bm_learner_open(bm_learner **out, bm_model *model, bm_reader *reader,
                          const bm_model_settings *settings, uint64_t seed,
                          int first)
{
    bm_learner *l = calloc(1, sizeof *l);

    if (l == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a learner");
    l->model = model;
    l->reader = reader;
    l->refuse = strcmp(settings->infeasible, "error") == 0;
    l->keep = strcmp(settings->infeasible, "zero") == 0;
    l->random = bm_rng_make(seed, "dropout", 0);
    l->first = first;
    *out = l;
    return BM_OK;
}

void bm_learner_close(bm_learner *l)
{
    if (l == NULL)
        return;
    free(l->bad);
    free(l);
}

static bm_status move(void *self, bm_position at, int64_t *steps)
{
    bm_learner *l = self;

    l->at = at;
    l->told = 0;
    return bm_reader_block(l->reader, at, steps);
}

static bm_status make_room(bm_learner *l, size_t n)
{
    bool *grown = NULL;

    if (n <= l->room)
        return BM_OK;
    grown = realloc(l->bad, n * sizeof *grown);
    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu sequences", n);
    l->bad = grown;
    l->room = n;
    return BM_OK;
}

/* Labels and adjacent equal pairs of a sequence: what CTC needs frames for. */
static void needs(const bm_batch *b, size_t i, int *labels, int *repeats)
{
    const int32_t *classes = b->targets.classes;
    int n = b->targets.count[i];

    for (size_t j = 0; j < i; j++)
        classes += b->targets.count[j];
    *labels = n;
    *repeats = 0;
    for (int j = 1; j < n; j++)
        *repeats += classes[j] == classes[j - 1];
}

/* Names what cannot be learned from: the first few of a block. */
static bm_status tell(bm_learner *l, const bm_batch *b, size_t i)
{
    size_t frames = bm_model_frames(l->model, (size_t)b->extent.frames[i]);
    const char *tag = bm_reader_tag(l->reader, b->id[i]);
    int labels = 0, repeats = 0;

    needs(b, i, &labels, &repeats);
    if (l->refuse)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: %d labels with %d repeats do not fit into %zu "
                       "frames; leave it out, subsample less, or set "
                       "model.infeasible = skip",
                       tag, labels, repeats, frames);
    if (l->told++ < TOLD)
        bm_log(BM_WARNING,
               "%s: %d labels with %d repeats do not fit into %zu frames, "
               "skipped",
               tag, labels, repeats, frames);
    return BM_OK;
}

/* Sequences of a batch that count, or their frames. */
static bm_status count(bm_learner *l, const bm_batch *b, double *samples)
{
    bool per_frame = bm_model_loss(l->model)->per_frame;
    double n = 0;

    BM_TRY(make_room(l, b->extent.B));
    (void)bm_model_infeasible(l->model, b, l->bad);
    for (size_t i = 0; i < b->extent.B; i++) {
        if (l->bad[i])
            BM_TRY(tell(l, b, i));
        if (!l->bad[i] || l->keep)
            n += per_frame ? b->extent.frames[i] : 1;
        l->frames += b->extent.frames[i];
    }
    *samples = n;
    return BM_OK;
}

static bm_status gradient(void *self, bm_params *params, int worker,
                          int64_t step, double *samples)
{
    bm_learner *l = self;
    const bm_batch *batch = NULL;
    uint64_t key = bm_rng_fork(l->random.key, (uint64_t)worker);

    (void)params;
    *samples = 0;
    BM_TRY(bm_reader_batch(l->reader, worker, step, &batch));
    if (batch == NULL)
        return BM_OK;
    BM_TRY(count(l, batch, samples));
    key = bm_rng_fork(key, (uint64_t)l->at.epoch);
    key = bm_rng_fork(key, (uint64_t)l->at.block);
    key = bm_rng_fork(key, (uint64_t)step);
    bm_model_gradient(l->model, batch, key, worker - l->first);
    return BM_OK;
}

static bm_status score(void *self, int worker, bm_score *out)
{
    bm_learner *l = self;

    if (l->told > TOLD)
        bm_log(BM_WARNING, ".. and %d more sequences skipped", l->told - TOLD);
    l->told = 0;
    return bm_model_score(l->model, worker - l->first, out);
}

bm_task bm_learner_task(bm_learner *l)
{
    return (bm_task){l, move, gradient, score};
}

double bm_learner_frames(bm_learner *l)
{
    double frames = l->frames;

    l->frames = 0;
    return frames;
}

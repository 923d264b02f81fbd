/* learner.c - dropout of a mini-batch is keyed by worker, epoch, block and
 * step. */
#include "bmuf/trainer/learner.h"

#include "bmuf/trainer/infeasible.h"

#include <stdlib.h>
#include <string.h>

struct bm_learner {
    bm_model *model;   /* borrowed */
    bm_reader *reader; /* borrowed */
    bm_infeasible_check *infeasible;
    bm_rng random;
    int first, last;
    bool auditing;
    double *scored; /* [last - first]: mini-batches since the last score */
    int64_t each;   /* mini-batches of a step */
    float *sum;     /* [n] on the backend: of their gradients; NULL: each = 1 */
    bm_position at;
    bm_passed passed;
};

bm_status bm_learner_open(bm_learner **out, bm_model *model, bm_reader *reader,
                          uint64_t seed, int first, int last)
{
    bm_learner *l = calloc(1, sizeof *l);
    bm_status status = BM_OK;

    if (l == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a learner");
    l->model = model;
    l->reader = reader;
    l->random = bm_rng_make(seed, "dropout", 0);
    l->first = first;
    l->last = last;
    l->each = 1;
    l->scored = calloc((size_t)(last - first) + 1, sizeof *l->scored);
    if (l->scored == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a learner");
    BM_TRY_DONE(bm_infeasible_check_new(&l->infeasible, model));
    *out = l;
    l = NULL;
done:
    bm_learner_close(l);
    return status;
}

bm_status bm_learner_accumulate(bm_learner *l, long mini_batches)
{
    const bm_params *p = bm_model_params(l->model);

    if (mini_batches > 1 && l->sum == NULL)
        BM_TRY(bm_alloc(p->be, p->n, &l->sum));
    l->each = mini_batches > 1 ? mini_batches : 1;
    return BM_OK;
}

void bm_learner_close(bm_learner *l)
{
    if (l == NULL)
        return;
    bm_free(bm_model_params(l->model)->be, l->sum);
    bm_infeasible_check_free(l->infeasible);
    free(l->scored);
    free(l);
}

/* The number of steps that these mini-batches make. */
static int64_t steps_of(const bm_learner *l, int64_t mini_batches)
{
    return mini_batches / l->each + (mini_batches % l->each > 0);
}

static bm_status move(void *self, bm_position at, int64_t *steps)
{
    bm_learner *l = self;

    l->at = at;
    BM_TRY(bm_reader_block(l->reader, at, steps));
    if (*steps > 0)
        for (int k = l->first; k < l->last; k++)
            l->passed.left += bm_reader_frames(l->reader, k);
    *steps = steps_of(l, *steps);
    return BM_OK;
}

static void note_passed(bm_learner *l, int worker, const bm_batch *b)
{
    for (size_t i = 0; i < b->extent.B; i++) {
        l->passed.frames += b->extent.frames[i];
        l->passed.left -= b->extent.frames[i];
    }
    l->passed.padded += (double)(b->extent.T * b->extent.B);
    l->passed.batches++;
    l->scored[worker - l->first]++;
}

/* *samples <- sequences of a batch that the loss uses, or their frames. */
static bm_status count(bm_learner *l, int worker, const bm_batch *b,
                       double *samples)
{
    bool per_frame = bm_model_loss(l->model)->per_frame;
    bool keep = bm_model_infeasible(l->model) == BM_INFEASIBLE_ZERO;
    const bool *bad = NULL;
    double n = 0;

    BM_TRY(bm_infeasible_check_look(l->infeasible,
                                    l->auditing ? NULL : l->reader, b, &bad));
    for (size_t i = 0; i < b->extent.B; i++)
        if (!bad[i] || keep)
            n += per_frame ? b->extent.frames[i] : 1;
    if (!l->auditing)
        note_passed(l, worker, b);
    *samples = n;
    return BM_OK;
}

/* The model's accumulator for a worker's scores. */
static int score_of(const bm_learner *l, int worker)
{
    return l->auditing ? l->last - l->first : worker - l->first;
}

/* One mini-batch; *found: there is one. */
static bm_status add_batch(bm_learner *l, int worker, int64_t number,
                           double *samples, bool *found)
{
    const bm_batch *batch = NULL;
    uint64_t key = bm_rng_fork(l->random.key, (uint64_t)worker);

    *samples = 0;
    BM_TRY(bm_reader_batch(l->reader, worker, number, &batch));
    *found = batch != NULL;
    if (batch == NULL)
        return BM_OK;
    BM_TRY(count(l, worker, batch, samples));
    key = bm_rng_fork(key, (uint64_t)l->at.epoch);
    key = bm_rng_fork(key, (uint64_t)l->at.block);
    key = bm_rng_fork(key, (uint64_t)number);
    bm_model_gradient(l->model, batch, key, score_of(l, worker));
    return BM_OK;
}

/* params->g <- the mean over several mini-batches, whose gradients are not ready
 * before the last one is. */
static bm_status accumulate(bm_learner *l, bm_params *params, int worker,
                            int64_t step, double *samples)
{
    void (*ready)(void *self, size_t range) = params->ready;
    bm_status status = BM_OK;
    double one = 0;
    bool found = true;

    params->ready = NULL;
    for (int64_t i = step * l->each; i < (step + 1) * l->each && found; i++) {
        BM_TRY_DONE(add_batch(l, worker, i, &one, &found));
        if (one > 0)
            bm_axpby(params->be, params->n, (float)one, params->g,
                     *samples > 0 ? 1 : 0, l->sum);
        *samples += one;
    }
    if (*samples > 0)
        bm_axpby(params->be, params->n, (float)(1 / *samples), l->sum, 0,
                 params->g);
done:
    params->ready = ready;
    return status;
}

static bm_status gradient(void *self, bm_params *params, int worker,
                          int64_t step, double *samples)
{
    bm_learner *l = self;
    bool found = false;

    *samples = 0;
    if (l->each > 1)
        return accumulate(l, params, worker, step, samples);
    return add_batch(l, worker, step, samples, &found);
}

static bm_status score(void *self, int worker, bm_score *out, double *batches)
{
    bm_learner *l = self;

    *batches = 0;
    if (!l->auditing) {
        *batches = l->scored[worker - l->first];
        l->scored[worker - l->first] = 0;
    }
    return bm_model_score(l->model, score_of(l, worker), out);
}

static bool audited(void *self)
{
    const bm_learner *l = self;

    return bm_reader_audited(l->reader);
}

static void audit(void *self, bool on)
{
    bm_learner *l = self;

    l->auditing = on;
}

static int64_t steps(void *self, int worker)
{
    const bm_learner *l = self;

    return steps_of(l, bm_reader_steps(l->reader, worker));
}

static bm_epoch_size epoch(void *self, int64_t epoch)
{
    const bm_learner *l = self;

    return bm_reader_epoch(l->reader, epoch);
}

bm_task bm_learner_task(bm_learner *l)
{
    return (bm_task){l, move, gradient, score, steps, epoch, audited, audit};
}

bm_passed bm_learner_passed(bm_learner *l)
{
    bm_passed passed = l->passed;

    l->passed = (bm_passed){0};
    return passed;
}

#include "io/features/feature_chain.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What a mean is taken over. */
typedef enum over { NONE, UTTERANCE, SPEAKER, GLOBAL, SLIDING, KALDI } over;

static const char *const names[] = {"none",   "utterance", "speaker",
                                    "global", "sliding",   "kaldi"};

struct bm_chain {
    bm_chain_settings settings;
    over over;
    size_t dim, groups;
    double *moments;  /* [groups, BM_MOMENTS(dim with deltas, but of KALDI)] */
    bm_cmvn norm;     /* GLOBAL: made of the moments, or given */
    bm_frames normed; /* KALDI: what deltas are added to */
    bm_frames delta, slid, stacked;
};

bm_status bm_frames_shape(bm_frames *f, size_t n, size_t dim)
{
    if (n > SIZE_MAX / sizeof *f->x / dim)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu frames of %zu", n,
                       dim);
    if (n * dim > f->room) {
        free(f->x);
        f->room = 0;
        f->x = malloc(n * dim * sizeof *f->x);
        if (f->x == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu frames of %zu", n,
                           dim);
        f->room = n * dim;
    }
    f->n = n;
    f->dim = dim;
    return BM_OK;
}

void bm_frames_free(bm_frames *f)
{
    free(f->x);
    *f = (bm_frames){0};
}

static bm_status choose(bm_chain *c, const char *section)
{
    const char *name = c->settings.normalise;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0) {
            c->over = (over)i;
            return BM_OK;
        }
    return BM_FAIL(BM_ERR_CONFIG,
                   "%s.normalise: '%s' is invalid; take none, utterance, "
                   "speaker, global, sliding or kaldi",
                   section, name);
}

static size_t with_deltas(const bm_chain *c)
{
    return c->dim * ((size_t)c->settings.deltas + 1);
}

/* Each speaker has moments. */
static bool by_speaker(const bm_chain *c)
{
    return c->over == SPEAKER || c->over == KALDI;
}

static size_t moments_size(const bm_chain *c)
{
    return BM_MOMENTS(c->over == KALDI ? c->dim : with_deltas(c));
}

bm_status bm_chain_new(bm_chain **out, const bm_chain_settings *s,
                       const char *section, size_t dim, size_t speakers)
{
    bm_chain *c = calloc(1, sizeof *c);
    bm_status status = BM_OK;

    if (c == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for features");
    c->settings = *s;
    c->dim = dim;
    BM_TRY_DONE(choose(c, section));
    c->groups = by_speaker(c) ? speakers : 1;
    c->moments = calloc(c->groups, moments_size(c) * sizeof *c->moments);
    if (c->moments == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for the means of %zu speakers",
                     speakers);
    *out = c;
    c = NULL;
done:
    bm_chain_free(c);
    return status;
}

bm_status bm_chain_copy(bm_chain **out, const bm_chain *c)
{
    bm_chain *copy = calloc(1, sizeof *copy);
    size_t size = c->groups * moments_size(c) * sizeof *copy->moments;
    bm_status status = BM_OK;

    if (copy == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for features");
    copy->settings = c->settings;
    copy->over = c->over;
    copy->dim = c->dim;
    copy->groups = c->groups;
    copy->moments = malloc(size);
    if (copy->moments == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for the means of %zu speakers",
                     c->groups);
    memcpy(copy->moments, c->moments, size);
    if (c->norm.dim > 0)
        BM_TRY_DONE(bm_cmvn_copy(&copy->norm, &c->norm));
    *out = copy;
    copy = NULL;
done:
    bm_chain_free(copy);
    return status;
}

void bm_chain_free(bm_chain *c)
{
    if (c == NULL)
        return;
    free(c->moments);
    bm_cmvn_free(&c->norm);
    bm_frames_free(&c->normed);
    bm_frames_free(&c->delta);
    bm_frames_free(&c->slid);
    bm_frames_free(&c->stacked);
    free(c);
}

size_t bm_chain_features(const bm_chain *c)
{
    return with_deltas(c) * (size_t)c->settings.stack;
}

bool bm_chain_learns(const bm_chain *c)
{
    return c->over == SPEAKER || (c->over == GLOBAL && c->norm.dim == 0);
}

bool bm_chain_needs_speakers(const bm_chain *c)
{
    return by_speaker(c);
}

bool bm_chain_needs_statistics(const bm_chain *c)
{
    return c->over == KALDI;
}

static double *moments_of(const bm_chain *c, size_t speaker)
{
    return c->moments + (by_speaker(c) ? speaker : 0) * moments_size(c);
}

void bm_chain_take(bm_chain *c, size_t speaker, const double *moments)
{
    BM_ASSERT(by_speaker(c) && speaker < c->groups && moments[0] > 0);
    memcpy(moments_of(c, speaker), moments, moments_size(c) * sizeof *moments);
}

const double *bm_chain_moments_of(const bm_chain *c, size_t speaker, size_t *n)
{
    *n = by_speaker(c) ? moments_size(c) : 0;
    return *n > 0 ? moments_of(c, speaker) : NULL;
}

/* c->delta: x and its deltas. */
static bm_status add_deltas(bm_chain *c, const bm_frames *x)
{
    const bm_chain_settings *s = &c->settings;

    BM_ASSERT(x->dim == c->dim && x->n > 0);
    BM_TRY(bm_frames_shape(&c->delta, x->n, x->dim * ((size_t)s->deltas + 1)));
    bm_deltas(x->x, x->n, x->dim, (size_t)s->deltas, (size_t)s->delta_window,
              c->delta.x);
    return BM_OK;
}

bm_status bm_chain_learn(bm_chain *c, size_t speaker, const bm_frames *x)
{
    BM_TRY(add_deltas(c, x));
    bm_moments_add(moments_of(c, speaker), c->delta.x, x->n, c->delta.dim);
    return BM_OK;
}

double *bm_chain_moments(bm_chain *c, size_t *n)
{
    *n = c->groups * moments_size(c);
    return c->moments;
}

bm_status bm_chain_give(bm_chain *c, const char *section, const bm_cmvn *norm)
{
    if (c->over != GLOBAL || norm->dim == 0)
        return BM_OK;
    if (norm->dim != with_deltas(c))
        return BM_FAIL(BM_ERR_CONFIG,
                       "%s.normalise = global: the training set has the means "
                       "of %zu features, but here are %zu; use its %s.* "
                       "settings",
                       section, norm->dim, with_deltas(c), section);
    return bm_cmvn_copy(&c->norm, norm);
}

/* c->norm <- what GLOBAL moments give. */
static bm_status end_learning(bm_chain *c)
{
    size_t dim = with_deltas(c);

    if (c->over != GLOBAL || c->norm.dim > 0 || c->moments[0] == 0)
        return BM_OK;
    BM_TRY(bm_cmvn_make(&c->norm, dim));
    for (size_t d = 0; d < dim; d++) {
        bm_moments_norm(c->moments, dim, c->settings.variance, d,
                        &c->norm.mean[d], &c->norm.scale[d]);
        if (!isfinite(c->norm.mean[d]) || !isfinite(c->norm.scale[d]))
            return BM_FAIL(BM_ERR_FORMAT,
                           "feature %zu cannot be normalised over all "
                           "sequences: one of them has NaN or infinite values",
                           d);
    }
    return BM_OK;
}

bm_status bm_chain_norm(bm_chain *c, const bm_cmvn **out)
{
    *out = &c->norm;
    return end_learning(c);
}

/* c->normed: x, normalised by the speaker's statistics. */
static bm_status normalise_first(bm_chain *c, size_t speaker,
                                 const bm_frames *x)
{
    const double *moments = moments_of(c, speaker);

    BM_ASSERT(moments[0] > 0 && x->dim == c->dim);
    BM_TRY(bm_frames_shape(&c->normed, x->n, x->dim));
    memcpy(c->normed.x, x->x, x->n * x->dim * sizeof *x->x);
    bm_normalise(c->normed.x, x->n, x->dim, moments, c->settings.variance);
    return BM_OK;
}

/* Normalises c->delta; *y is where it is then. */
static bm_status normalise(bm_chain *c, size_t speaker, bm_frames **y)
{
    const bm_chain_settings *s = &c->settings;
    double *moments = moments_of(c, speaker);
    bm_frames *x = &c->delta;

    *y = x;
    switch (c->over) {
    case NONE:
    case KALDI:
        break;
    case UTTERANCE:
        memset(moments, 0, moments_size(c) * sizeof *moments);
        bm_moments_add(moments, x->x, x->n, x->dim);
        bm_normalise(x->x, x->n, x->dim, moments, s->variance);
        break;
    case SPEAKER:
        BM_ASSERT(moments[0] > 0);
        bm_normalise(x->x, x->n, x->dim, moments, s->variance);
        break;
    case GLOBAL:
        BM_TRY(end_learning(c));
        bm_cmvn_apply(&c->norm, x->x, x->n, x->dim);
        break;
    case SLIDING:
        BM_TRY(bm_frames_shape(&c->slid, x->n, x->dim));
        bm_normalise_sliding(x->x, x->n, x->dim, (size_t)s->sliding,
                             s->variance, moments, c->slid.x);
        *y = &c->slid;
        break;
    }
    return BM_OK;
}

bm_status bm_chain_apply(bm_chain *c, size_t speaker, const bm_frames *x,
                         const bm_frames **out)
{
    const bm_chain_settings *s = &c->settings;
    bm_frames *y = NULL;

    if (c->over == KALDI) {
        BM_TRY(normalise_first(c, speaker, x));
        x = &c->normed;
    }
    BM_TRY(add_deltas(c, x));
    BM_TRY(normalise(c, speaker, &y));
    *out = y;
    if (s->stack == 1 && s->subsample == 1)
        return BM_OK;
    BM_TRY(bm_frames_shape(&c->stacked,
                           bm_subsampled(y->n, (size_t)s->subsample),
                           y->dim * (size_t)s->stack));
    bm_stack(y->x, y->n, y->dim, (size_t)s->stack, (size_t)s->subsample,
             c->stacked.x);
    *out = &c->stacked;
    return BM_OK;
}

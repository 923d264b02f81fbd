#include "cli/report/advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bm_gains bm_gains_of(const bm_regime *s)
{
    bm_gains g = {.block = s->rate};
    double n = round(s->epoch_frames / s->block_frames);

    g.steady = s->rate / (1 - s->momentum);
    g.blocks = s->momentum > 0 ? -1 / log(s->momentum) : 0;
    g.frames = g.blocks * s->block_frames;
    g.per_epoch = n < 1 ? 1 : n;
    g.steps = s->epoch_frames / g.per_epoch / s->workers / s->batch_frames;
    return g;
}

typedef struct listener {
    void (*warn)(void *self, const char *text);
    void *self;
} listener;

static void warn(const listener *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void warn(const listener *l, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    l->warn(l->self, text);
}

/* Updates until a momentum takes full effect, 1 / (1 - momentum); slightly
 * less, so that rounding does not make 11 of 10. */
static double warm_up(double momentum)
{
    return (1 - 1e-9) / (1 - momentum);
}

/* block.frames_per_worker for this many blocks per epoch. */
static double block_for(const bm_regime *s, double per_epoch)
{
    return floor(s->epoch_frames / per_epoch / s->workers + 1e-6);
}

/* The fewest blocks per epoch that refuse() accepts. */
static double fewest(const bm_regime *s)
{
    double exchanges = s->filtered && s->workers > 1 ? 2 : 1;
    double warm = s->filtered && s->momentum > 0 ? warm_up(s->momentum) : 0;

    return fmax(exchanges, ceil(warm / (double)s->epochs));
}

/* The number of blocks per epoch nearest to `wanted` that the rules allow; 0:
 * too little data for any. One less than fits, as the size is rounded down and
 * may give one block more; a worker needs a mini-batch in each. */
static double allowed(const bm_regime *s, double wanted)
{
    double least = fewest(s);
    double most =
        floor(s->epoch_frames / s->workers / s->batch_frames - 1e-6) - 1;

    return most < least ? 0 : fmax(least, fmin(wanted, most));
}

/* What to set for about `wanted` blocks per epoch. A block has at least a unit
 * per worker. */
static const char *remedy(const bm_regime *s, double wanted, char text[200])
{
    double blocks = allowed(s, wanted), frames = 0;

    if (blocks == 0) {
        snprintf(text, 200,
                 "there is too little data for %d workers with mini-batches of "
                 "%.0f frames; use smaller ones",
                 s->workers, s->batch_frames);
        return text;
    }
    frames = block_for(s, blocks);
    if (s->units == 0 || s->units >= blocks * s->workers)
        snprintf(text, 200, "set block.frames_per_worker = %.0f", frames);
    else
        snprintf(text, 200,
                 "pack with shard.unit_frames = %.0f and set "
                 "block.frames_per_worker = %.0f",
                 fmax(floor(frames / 8), 1), frames);
    return text;
}

static void advise_on_filter(const listener *l, const bm_regime *s,
                             const bm_gains *g)
{
    const char *eta = s->renamed ? "eta" : "bmuf.momentum";
    const char *zeta = s->renamed ? "zeta" : "bmuf.rate";

    if (s->rate >= 2)
        warn(l,
             "%s = %.4g moves the model %.4g times as far as its workers "
             "did; 2 or more is rarely stable",
             zeta, s->rate, s->rate);
    if (g->steady > 1.5 * s->workers)
        warn(l,
             "%s / (1 - %s) = %.4g is large for %d workers; the model may "
             "overshoot",
             zeta, eta, g->steady, s->workers);
    if (g->steady < 0.5 * s->workers)
        warn(l,
             "%s / (1 - %s) = %.4g: a block moves the model less than %d "
             "workers one after the other would; set %s = %.4g",
             zeta, eta, g->steady, s->workers,
             s->renamed ? "train.strategy = bmuf with bmuf.momentum" : eta,
             1 - (s->renamed ? 1 : s->rate) / s->workers);
    if (g->frames > s->epoch_frames)
        warn(l,
             "the time constant of block momentum, %.3g frames, is longer than "
             "an epoch of %.3g frames, so the filter averages over the same "
             "data "
             "again; set block.frames_per_worker = %.0f for a shorter one",
             g->frames, s->epoch_frames, block_for(s, ceil(g->blocks)));
}

static void advise_on_blocks(const listener *l, const bm_regime *s,
                             const bm_gains *g)
{
    if (g->per_epoch < 2)
        warn(l,
             "an epoch is one block: workers exchange only once; set "
             "block.frames_per_worker = %.0f for four exchanges",
             block_for(s, 4));
    if (s->balance > 0 && s->balance < 0.8)
        warn(
            l,
            "workers are busy %.0f %% of the time, as units of data are large "
            "compared with a share of %.0f frames; pack with shard.unit_frames "
            "= %.0f, or set longer blocks",
            100 * s->balance, block_for(s, g->per_epoch),
            fmax(block_for(s, 8 * g->per_epoch), 1));
    if (s->reset && s->local_momentum > 0 &&
        g->steps < warm_up(s->local_momentum))
        warn(
            l,
            "sgd.%s = %.4g needs %.0f steps to take effect, but is reset every "
            "%.1f steps; set longer blocks, or sgd.local_state = average",
            s->adam ? "beta1" : "momentum", s->local_momentum,
            warm_up(s->local_momentum), g->steps);
}

/* The outer learning rate and momentum of DiLoCo are tuned for AdamW as the
 * local update, which is the default with diloco. */
static void advise_on_diloco(const listener *l, const bm_regime *s)
{
    if (s->diloco && !s->adam)
        warn(l,
             "train.strategy = diloco expects AdamW as the local update; set "
             "sgd.update = adamw and sgd.local_state = keep");
    else if (s->diloco && s->reset)
        warn(l, "train.strategy = diloco expects workers to keep their "
                "moments; set sgd.local_state = keep");
}

/* Fails if training cannot work with these settings. */
static bm_status refuse(const bm_regime *s, const bm_gains *g)
{
    double all = g->per_epoch * (double)s->epochs;
    double warm = warm_up(s->momentum);
    char text[200];

    if (s->filtered && s->momentum > 0 && all < warm)
        return BM_FAIL(
            BM_ERR_CONFIG,
            "training ends after %.0f blocks in %ld epochs, before a "
            "block momentum of %.4g takes effect, which needs %.0f "
            "blocks; %s, or train more epochs",
            all, s->epochs, s->momentum, warm,
            remedy(s, 4 * warm / (double)s->epochs, text));
    if (s->filtered && s->workers > 1 && g->per_epoch < 2)
        return BM_FAIL(BM_ERR_CONFIG,
                       "an epoch is one block: workers would exchange only "
                       "once; %s, or use fewer workers",
                       remedy(s, 4, text));
    if (g->steps < 1)
        return BM_FAIL(
            BM_ERR_CONFIG,
            "a worker's share of a block is %.2g of a mini-batch; "
            "%s, or use fewer workers or smaller mini-batches",
            g->steps,
            remedy(s, s->epoch_frames / s->workers / 4 / s->batch_frames,
                   text));
    return BM_OK;
}

bm_status bm_advise(const bm_regime *s,
                    void (*report)(void *self, const char *text), void *self)
{
    listener l = {report, self};
    bm_gains g = bm_gains_of(s);

    if (!s->blocks)
        return BM_OK;
    BM_TRY(refuse(s, &g));
    advise_on_blocks(&l, s, &g);
    advise_on_diloco(&l, s);
    if (s->filtered && s->workers > 1)
        advise_on_filter(&l, s, &g);
    return BM_OK;
}

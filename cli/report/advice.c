#include "cli/report/advice.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

bm_gains bm_gains_of(const bm_setting *s)
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
    void (*tell)(void *self, const char *text);
    void *self;
} listener;

static void say(const listener *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const listener *l, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    l->tell(l->self, text);
}

/* Updates until a momentum has had its effect; just below what rounding makes
 * of 1 / (1 - 0.9). */
static double warm_up(double momentum)
{
    return (1 - 1e-9) / (1 - momentum);
}

/* block.frames_per_worker with which an epoch has so many blocks. */
static double block_for(const bm_setting *s, double per_epoch)
{
    return floor(s->epoch_frames / per_epoch / s->workers + 1e-6);
}

/* The fewest blocks in an epoch with which a run is not in vain. */
static double fewest(const bm_setting *s)
{
    double meetings = s->filtered && s->workers > 1 ? 2 : 1;
    double warm = s->filtered && s->momentum > 0 ? warm_up(s->momentum) : 0;

    return fmax(meetings, ceil(warm / (double)s->epochs));
}

/* Blocks in an epoch, as near to `wanted` as the rules allow; 0: there is too
 * little data for any number. The size is rounded down, so one more may be
 * made of it, and a worker needs a mini-batch in each. */
static double allowed(const bm_setting *s, double wanted)
{
    double least = fewest(s);
    double most =
        floor(s->epoch_frames / s->workers / s->batch_frames - 1e-6) - 1;

    return most < least ? 0 : fmax(least, fmin(wanted, most));
}

/* What to do for about so many blocks in an epoch; a block is a unit at least.
 */
static const char *remedy(const bm_setting *s, double wanted, char text[200])
{
    double blocks = allowed(s, wanted), frames = 0;

    if (blocks == 0) {
        snprintf(text, 200,
                 "the data are too few for %d workers with mini-batches of "
                 "%.0f frames; take smaller ones",
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

static void advise_on_filter(const listener *l, const bm_setting *s,
                             const bm_gains *g)
{
    const char *eta = s->renamed ? "eta" : "bmuf.momentum";
    const char *zeta = s->renamed ? "zeta" : "bmuf.rate";

    if (s->rate >= 2)
        say(l,
            "%s = %.4g moves the model %.4g times as far as its workers "
            "went; from 2 on this is rarely stable",
            zeta, s->rate, s->rate);
    if (g->steady > 1.5 * s->workers)
        say(l,
            "%s / (1 - %s) = %.4g is more than the %d workers account for; "
            "expect overshooting",
            zeta, eta, g->steady, s->workers);
    if (g->steady < 0.5 * s->workers)
        say(l,
            "%s / (1 - %s) = %.4g: blocks move the model less than %d workers "
            "in turn would; %s = %.4g makes up for it",
            zeta, eta, g->steady, s->workers,
            s->renamed ? "train.strategy = bmuf with bmuf.momentum" : eta,
            1 - (s->renamed ? 1 : s->rate) / s->workers);
    if (g->frames > s->epoch_frames)
        say(l,
            "the time constant of block momentum, %.3g frames, is more than "
            "the %.3g frames of an epoch: what is filtered is the same data "
            "again; block.frames_per_worker = %.0f has a shorter one",
            g->frames, s->epoch_frames, block_for(s, ceil(g->blocks)));
}

static void advise_on_blocks(const listener *l, const bm_setting *s,
                             const bm_gains *g)
{
    if (g->per_epoch < 2)
        say(l,
            "an epoch is one block: workers meet only once; "
            "block.frames_per_worker = %.0f has them meet four times",
            block_for(s, 4));
    if (s->balance > 0 && s->balance < 0.8)
        say(l,
            "workers are busy %.0f %% of the time: what is read at once is "
            "large beside a share of %.0f frames; pack with shard.unit_frames "
            "= %.0f, or take longer blocks",
            100 * s->balance, block_for(s, g->per_epoch),
            fmax(block_for(s, 8 * g->per_epoch), 1));
    if (s->reset && s->local_momentum > 0 &&
        g->steps < warm_up(s->local_momentum))
        say(l,
            "sgd.%s = %.4g needs %.0f steps to warm up, but begins anew "
            "every %.1f; longer blocks, or sgd.local_state = average",
            s->adam ? "beta1" : "momentum", s->local_momentum,
            warm_up(s->local_momentum), g->steps);
}

/* The outer learning rate and momentum are made for AdamW inside, which is what
 * there is unless it was set otherwise. */
static void advise_on_diloco(const listener *l, const bm_setting *s)
{
    if (s->diloco && !s->adam)
        say(l, "train.strategy = diloco is made for AdamW inside; set "
               "sgd.update = adamw and sgd.local_state = keep");
    else if (s->diloco && s->reset)
        say(l, "train.strategy = diloco is made for workers that keep their "
               "moments; set sgd.local_state = keep");
}

/* With what is wrong a run would be in vain. */
static bm_status refuse(const bm_setting *s, const bm_gains *g)
{
    double all = g->per_epoch * (double)s->epochs;
    double warm = warm_up(s->momentum);
    char text[200];

    if (s->filtered && s->momentum > 0 && all < warm)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%.0f blocks in %ld epochs are over before a block "
                       "momentum of %.4g has had its effect, which takes %.0f; "
                       "%s, or more epochs",
                       all, s->epochs, s->momentum, warm,
                       remedy(s, 4 * warm / (double)s->epochs, text));
    if (s->filtered && s->workers > 1 && g->per_epoch < 2)
        return BM_FAIL(BM_ERR_CONFIG,
                       "an epoch is one block: workers would meet only once; "
                       "%s, or take fewer workers",
                       remedy(s, 4, text));
    if (g->steps < 1)
        return BM_FAIL(
            BM_ERR_CONFIG,
            "a worker's share of a block is %.2g of a mini-batch; "
            "%s, or take fewer workers or smaller mini-batches",
            g->steps,
            remedy(s, s->epoch_frames / s->workers / 4 / s->batch_frames,
                   text));
    return BM_OK;
}

bm_status bm_advise(const bm_setting *s,
                    void (*tell)(void *self, const char *text), void *self)
{
    listener l = {tell, self};
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

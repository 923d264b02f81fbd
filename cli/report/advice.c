#include "cli/report/advice.h"

#include "core/text/words.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* The bits of what bm_advise returns. */
typedef enum rule {
    RULE_TOGETHER, /* the proposal, or that there is none */
    RULE_RATE,
    RULE_GAIN_HIGH,
    RULE_FEW_BLOCKS,
    RULE_TIME_CONSTANT,
    RULE_ONE_BLOCK,
    RULE_SMALL_SHARE,
    RULE_LOCAL_MOMENTUM,
    RULE_BALANCE,
    RULE_DILOCO,
    RULE_WARMUP,
    RULE_UNLABELLED,
    RULE_ACCUMULATE,
    RULE_COARSE,
    RULE_STATISTICS,
    RULE_DEV,
} rule;

typedef struct listener {
    void (*warn)(void *self, const char *text);
    void *self;
    unsigned rules; /* that do not hold */
    double from;    /* epochs before the part that is judged */
    double blocks;  /* of all parts */
} listener;

static void warn(listener *l, rule r, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void warn(listener *l, rule r, const char *format, ...)
{
    char text[600] = "";
    size_t n = 0;
    va_list args;

    if (l->rules & 1U << r)
        return;
    l->rules |= 1U << r;
    if (l->from > 0)
        n = (size_t)snprintf(text, sizeof text, "after %g epoch%s: ", l->from,
                             l->from == 1 ? "" : "s");
    va_start(args, format);
    vsnprintf(text + n, sizeof text - n, format, args);
    va_end(args);
    l->warn(l->self, text);
}

/* Updates until a momentum takes full effect, 1 / (1 - momentum); slightly
 * less, so that rounding does not make 11 of 10. */
static double warm_up(double momentum)
{
    return (1 - 1e-9) / (1 - momentum);
}

/* ---- a proposal ---------------------------------------------------------- */

/* Settings with which every rule below holds. */
typedef struct proposal {
    int workers;
    double batch;     /* frames of a mini-batch */
    double per_epoch; /* blocks */
    double steps;     /* mini-batches of a worker in a block, if set so */
    bool average;     /* sgd.local_state = average */
    double sequences; /* of a worker in a block, at least */
} proposal;

static double momentum_of(const bm_regime *s, int workers, double block_frames)
{
    return s->filtered && s->momentum_with != NULL
               ? s->momentum_with(s, workers, block_frames)
               : s->momentum;
}

double bm_longest_time_constant(const bm_regime *s)
{
    return s->epoch_frames * fmax(1, (double)s->epochs / 10);
}

/* The fewest blocks per epoch: workers exchange more than once, block momentum
 * takes effect in the epochs there are, and its time constant is not too
 * long. */
static double fewest_blocks(const bm_regime *s, int workers)
{
    double eta = momentum_of(s, workers, s->block_frames);
    double least = workers > 1 ? 2 : 1;

    if (!s->filtered || eta <= 0)
        return least;
    least = fmax(least, ceil(warm_up(eta) / (double)s->epochs));
    if (workers > 1)
        least = fmax(least, ceil(-1 / log(eta) * s->epoch_frames /
                                 bm_longest_time_constant(s)));
    return least;
}

/* Mini-batches until local momentum takes effect. */
static double local_warm_up(const bm_regime *s)
{
    return warm_up(s->local_momentum) * fmax(s->accumulate, 1);
}

/* Mini-batches of a worker in a block, at least. */
static double fewest_steps(const bm_regime *s, const proposal *p)
{
    bool reset = s->reset && s->local_momentum > 0 && !p->average;
    double least = reset ? local_warm_up(s) : fmax(s->accumulate, 1);

    if (p->workers == 1)
        return least;
    return fmax(least, p->sequences * s->sequence_frames / p->batch);
}

/* Fills p->steps, a whole number. An epoch has a whole number of blocks, so that
 * a worker may have fewer in a block than are set; false: the rules allow none. */
static bool in_whole_steps(const bm_regime *s, proposal *p, double share,
                           double least)
{
    double wanted = floor(share / p->per_epoch + 1e-6);

    p->steps = 0;
    for (long n = lround(ceil(wanted / 2)); n <= lround(2 * wanted) + 1; n++) {
        double blocks = fmax(round(share / (double)n), 1);

        if (blocks >= least && share / blocks >= fewest_steps(s, p) &&
            (p->steps == 0 ||
             fabs((double)n - wanted) < fabs(p->steps - wanted)))
            p->steps = (double)n;
    }
    return p->steps > 0;
}

/* Fills the blocks of *p, as near to the present number as the rules allow;
 * false: they allow none. One less than fits, as the size of a block is rounded
 * down, which may give one more. */
static bool has_blocks(const bm_regime *s, proposal *p)
{
    double now = round(s->epoch_frames / s->block_frames);
    double least = fewest_blocks(s, p->workers);
    double share = s->epoch_frames / p->workers / p->batch;
    double most = floor(share / fewest_steps(s, p) - 1e-6) - 1;

    p->per_epoch = fmax(least, fmin(now, most));
    return most >= least && (s->block_by != BM_BLOCK_BY_STEPS ||
                             in_whole_steps(s, p, share, least));
}

/* This size of mini-batches as the setting can express it. */
static double whole_batch(const bm_regime *s, double size)
{
    if (size == s->batch_frames)
        return size;
    if (s->batch_in_sequences)
        return fmax(floor(size / s->sequence_frames), 1) * s->sequence_frames;
    return floor(size);
}

/* Does a size of mini-batches keep more than one sequence in them where that
 * counts? See advise_on_statistics. */
static bool keeps_statistics(const bm_regime *s, double size)
{
    double least = 1.5 * s->sequence_frames;

    return !s->batch_statistics || s->batch_frames < least || size >= least;
}

static int advise_on_part(listener *l, const bm_regime *s);

static void ignore(void *self, const char *text)
{
    (void)self;
    (void)text;
}

/* The rules that do not hold, with this number of blocks in training. */
static unsigned rules_of(const bm_regime *s, double blocks)
{
    listener l = {.warn = ignore, .blocks = blocks};

    (void)advise_on_part(&l, s);
    return l.rules;
}

/* Does the proposal break no rule about blocks, and no other that holds without it? eta
 * may depend on the workers and on the size of a block. */
static bool keeps_rules(const bm_regime *s, const proposal *p)
{
    unsigned about_blocks = 1U << RULE_FEW_BLOCKS | 1U << RULE_TIME_CONSTANT |
                            1U << RULE_ONE_BLOCK | 1U << RULE_SMALL_SHARE |
                            1U << RULE_LOCAL_MOMENTUM;
    double share = s->epoch_frames / p->workers / p->batch;
    double per_epoch = p->per_epoch;
    bm_regime t = *s;

    if (s->block_by == BM_BLOCK_BY_STEPS)
        per_epoch = fmax(round(share / p->steps), 1);
    t.workers = p->workers;
    t.batch_frames = p->batch;
    t.block_frames = s->epoch_frames / per_epoch;
    t.momentum = momentum_of(s, p->workers, t.block_frames);
    t.reset = s->reset && !p->average;
    t.balance = 0; /* not known */
    return (rules_of(&t, per_epoch * (double)s->epochs) &
            ~(rules_of(s, INFINITY) & ~about_blocks)) == 0;
}

/* Keeps the number of workers if it changes in training, or if any size of
 * mini-batches and blocks allows it, then the size of mini-batches. */
static bool propose_with(const bm_regime *s, proposal *p)
{
    double least =
        s->sequence_frames > 0 ? s->sequence_frames : s->batch_frames;
    bool may_average = s->reset && s->local_momentum > 0 && !s->in_parts;
    int fewest = s->workers_change ? s->workers : 1;

    for (p->workers = s->workers; p->workers >= fewest; p->workers--)
        for (int average = 0; average <= may_average; average++) {
            double size = s->batch_frames;

            do {
                p->batch = whole_batch(s, size);
                p->average = average != 0;
                if (keeps_statistics(s, p->batch) && has_blocks(s, p) &&
                    keeps_rules(s, p))
                    return true;
                size /= 2;
            } while (size >= least);
        }
    return false;
}

/* Shares of so many sequences are about equal. */
static const double even = 4;

/* False: there is too little data for any. */
static bool propose(const bm_regime *s, proposal *p)
{
    p->sequences = even;
    if (propose_with(s, p))
        return true;
    p->sequences = 0;
    return propose_with(s, p);
}

/* Options of the command line. */
typedef struct words {
    char text[400];
} words;

static void add(words *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(words *w, const char *format, ...)
{
    size_t used = strlen(w->text);
    va_list args;

    used += (size_t)snprintf(w->text + used, sizeof w->text - used, " --set ");
    va_start(args, format);
    vsnprintf(w->text + used, sizeof w->text - used, format, args);
    va_end(args);
}

/* The size of a block, in the setting that the configuration has. */
static void add_block(words *w, const bm_regime *s, const proposal *p)
{
    double frames = floor(s->epoch_frames / p->per_epoch / p->workers + 1e-6);

    if (s->block_by == BM_BLOCK_BY_TOTAL)
        add(w, "block.frames_total=%.0f", frames * p->workers);
    else if (s->block_by == BM_BLOCK_BY_STEPS)
        add(w, "block.steps=%.0f", p->steps);
    else
        add(w, "block.frames_per_worker=%.0f", frames);
}

/* One proposal for all that was warned of. */
static void advise_together(listener *l, const bm_regime *s)
{
    proposal p = {0};
    words w = {{0}};

    if (!propose(s, &p)) {
        warn(
            l, RULE_TOGETHER,
            "no block size avoids the warnings about blocks: an epoch has %.0f "
            "frames, in mini-batches of %.0f; use more data or smaller "
            "mini-batches%s",
            s->epoch_frames, s->batch_frames,
            s->workers_change ? ", or fewer workers in block.workers" : "");
        return;
    }
    if (p.workers != s->workers)
        add(&w, s->some_workers ? "block.workers=%d" : "job.workers=%d",
            p.workers);
    if (p.batch < s->batch_frames && s->batch_in_sequences)
        add(&w, "batch.sequences=%.0f", round(p.batch / s->sequence_frames));
    else if (p.batch < s->batch_frames)
        add(&w, "batch.frames=%.0f", p.batch);
    if (p.average)
        add(&w, "sgd.local_state=average");
    add_block(&w, s, &p);
    warn(l, RULE_TOGETHER, "these settings avoid the warnings about blocks:%s",
         w.text);
}

/* ---- warnings ------------------------------------------------------------ */

static void advise_on_filter(listener *l, const bm_regime *s, const bm_gains *g)
{
    const char *eta = s->renamed ? "eta" : "bmuf.momentum";
    const char *zeta = s->renamed ? "zeta" : "bmuf.rate";

    if (s->rate >= 2)
        warn(l, RULE_RATE,
             "%s = %.4g moves the model %.4g times as far as its workers "
             "did; 2 or more is rarely stable",
             zeta, s->rate, s->rate);
    if (g->steady > 1.5 * s->workers)
        warn(l, RULE_GAIN_HIGH,
             "%s / (1 - %s) = %.4g is large for %d workers; the model may "
             "overshoot",
             zeta, eta, g->steady, s->workers);
}

/* Returns how many rules about the sizes of blocks and mini-batches do not
 * hold. */
static int advise_on_momentum(listener *l, const bm_regime *s,
                              const bm_gains *g)
{
    double warm = warm_up(s->momentum);
    int n = 0;

    if (s->momentum > 0 && l->blocks < warm) {
        warn(l, RULE_FEW_BLOCKS,
             "training ends after %s in %s, before a block momentum of %.4g "
             "has had its effect, which takes %.0f",
             bm_count_noun((long long)l->blocks, "block").text,
             bm_count_noun(s->epochs, "epoch").text, s->momentum, warm);
        n++;
    }
    if (s->workers > 1 && g->frames > bm_longest_time_constant(s)) {
        warn(l, RULE_TIME_CONSTANT,
             "the time constant of block momentum, %.3g frames, is longer than "
             "%s, %.3g frames: the model follows its workers too slowly",
             g->frames, s->epochs > 10 ? "a tenth of training" : "an epoch",
             bm_longest_time_constant(s));
        n++;
    }
    return n;
}

/* Likewise. */
static int advise_on_blocks(listener *l, const bm_regime *s, const bm_gains *g)
{
    int n = 0;

    if (s->workers > 1 && g->per_epoch < 2) {
        warn(l, RULE_ONE_BLOCK,
             "an epoch is one block: workers exchange only once in it");
        n++;
    }
    if (g->steps < 1) {
        warn(l, RULE_SMALL_SHARE,
             "a worker's share of a block is %.2g of a mini-batch, so some "
             "workers learn nothing in it",
             g->steps);
        n++;
    }
    /* A worker may have some fewer steps than set: see in_whole_steps. */
    if (s->reset && s->local_momentum > 0 &&
        g->steps < 0.98 * local_warm_up(s)) {
        warn(l, RULE_LOCAL_MOMENTUM,
             "sgd.%s = %.4g needs %.0f steps to take effect, but is reset "
             "every %.1f steps",
             s->adam ? "beta1" : "momentum", s->local_momentum,
             local_warm_up(s), g->steps);
        n++;
    }
    return n;
}

static void advise_on_balance(listener *l, const bm_regime *s,
                              const bm_gains *g)
{
    if (s->balance > 0 && s->balance < 0.8)
        warn(l, RULE_BALANCE,
             "workers are busy %.0f %% of the time, as sequences are long "
             "compared with a share of %.0f frames; take longer blocks",
             100 * s->balance, s->epoch_frames / g->per_epoch / s->workers);
}

/* The outer learning rate and momentum of DiLoCo are tuned for AdamW as the
 * local update, which is the default with diloco. */
static void advise_on_diloco(listener *l, const bm_regime *s)
{
    if (s->diloco && !s->adam)
        warn(l, RULE_DILOCO,
             "train.strategy = diloco expects AdamW as the local update; set "
             "sgd.update = adamw and sgd.local_state = keep");
    else if (s->diloco && s->reset)
        warn(l, RULE_DILOCO,
             "train.strategy = diloco expects workers to keep their "
             "moments; set sgd.local_state = keep");
}

static void advise_on_schedule(listener *l, const bm_regime *s,
                               const bm_gains *g)
{
    if (s->warmup >= (double)s->epochs && s->warmup > 0)
        warn(l, RULE_WARMUP,
             "schedule.warmup = %g epochs is not shorter than training, %ld: "
             "the learning rate does not reach train.rate; it is given in "
             "epochs, not in steps",
             s->warmup, s->epochs);
    else if (s->warmup > 0 && s->warmup * g->per_epoch < 2)
        warn(l, RULE_COARSE,
             "schedule.warmup = %g epochs is %.2g of a block, and a block has "
             "one learning rate, that of its beginning; take a longer warm-up "
             "or shorter blocks",
             s->warmup, s->warmup * g->per_epoch);
}

/* An update ends with its share at the latest. */
static void advise_on_accumulation(listener *l, const bm_regime *s,
                                   const bm_gains *g)
{
    if (s->accumulate > 1 && g->steps > 0 && g->steps < s->accumulate)
        warn(l, RULE_ACCUMULATE,
             "batch.accumulate = %.0f has no more effect than %.3g, the number "
             "of mini-batches in a worker's share of a block, which ends an "
             "update; use longer blocks",
             s->accumulate, g->steps);
}

/* Lines of registers, 16 workers: experiments/scaleup. */
static void advise_on_statistics(listener *l, const bm_regime *s)
{
    if (s->batch_statistics && s->batch_frames < 1.5 * s->sequence_frames)
        warn(l, RULE_STATISTICS,
             "mini-batches have one sequence: batchnorm learns with the mean "
             "and variance of that sequence, and is evaluated with those of "
             "all, which made up to 15 %% more errors in experiments/scaleup; "
             "take instancenorm in its place, or larger mini-batches");
}

static void advise_on_labels(listener *l, const bm_regime *s)
{
    if (s->unlabelled > 0)
        warn(l, RULE_UNLABELLED,
             "%s of data.train without a text: training takes them for "
             "silence; pack the set again, which leaves them out",
             bm_count_noun((long long)s->unlabelled, "sequence").text);
}

static void advise_on_dev(listener *l, const bm_regime *s)
{
    if (s->dev_is_train)
        warn(l, RULE_DEV,
             "data.dev has the same sequences as data.train: its error says "
             "nothing about new data, and the best model is chosen by it; pack "
             "a set of other speakers or writers for data.dev "
             "(docs/data/formats.md)");
}

const bm_regime *bm_most_workers(const bm_regime *parts, size_t n)
{
    const bm_regime *most = parts;

    for (size_t i = 1; i < n; i++)
        if (parts[i].workers > most->workers)
            most = &parts[i];
    return most;
}

/* Returns how many rules are broken, of those that a proposal keeps. */
static int advise_on_part(listener *l, const bm_regime *s)
{
    bm_gains g = bm_gains_of(s);
    int n = 0;

    l->from = s->from;
    advise_on_labels(l, s);
    advise_on_dev(l, s);
    advise_on_statistics(l, s);
    advise_on_schedule(l, s, &g);
    advise_on_accumulation(l, s, &g);
    if (!s->blocks)
        return 0;
    n = advise_on_blocks(l, s, &g);
    if (s->filtered)
        n += advise_on_momentum(l, s, &g);
    advise_on_diloco(l, s);
    if (s->filtered && s->workers > 1)
        advise_on_filter(l, s, &g);
    if (n == 0)
        advise_on_balance(l, s, &g);
    return n;
}

unsigned bm_advise(const bm_regime *parts, size_t n,
                   void (*report)(void *self, const char *text), void *self)
{
    listener l = {report, self, 0, 0, 0};
    int broken = 0;

    for (size_t i = 0; i < n; i++)
        l.blocks +=
            bm_gains_of(&parts[i]).per_epoch *
            (parts[i].lasts > 0 ? parts[i].lasts : (double)parts[i].epochs);
    for (size_t i = 0; i < n; i++)
        broken += advise_on_part(&l, &parts[i]);
    l.from = 0;
    if (broken > 0 && !parts->begun)
        advise_together(&l, bm_most_workers(parts, n));
    return l.rules;
}

/*
 * variants.c - methods that are the filter under another name. Each one maps
 * the names of its source to eta, zeta and where blocks start (filter.h).
 *
 *     slowmo      Delta = -gamma u, classical      Wang et al. 2020
 *     diloco      Nesterov, AdamW in blocks        Douillard et al. 2023
 *     lookahead   eta = 0, zeta = alpha            Zhang et al. 2019
 *     cntk        zeta = N (1 - eta) rate          BlockMomentumSGD.h
 *     fairseq     zeta = block_lr                  optim/bmuf.py
 *     pika        zeta = (1 - eta^2) block_lr      trainer/bmuf.py
 *
 * What CNTK, fairseq and PIKA call Nesterov puts the model ahead in the place
 * of the model, which is classical momentum with zeta (1 + eta) (filter.h).
 * Their mean weighs all workers with data equally.
 */
#include "bmuf/strategies/filtered.h"

#include <math.h>
#include <stddef.h>

/* A momentum and a rate, under two names. */
typedef struct pair {
    bm_series momentum;
    bm_series rate;
} pair;

static void set_filter(bm_traits *traits, double momentum, double rate)
{
    traits->filtered = true;
    traits->filter = (bm_filter){.momentum = momentum, .rate = rate};
}

/* ---- slowmo -------------------------------------------------------------- */

/*
 * Momentum in units of gradients, so that Delta = -gamma u changes with the
 * learning rate gamma:
 *
 *     u     <- beta u + (start - mean w) / gamma
 *     start <- start - alpha gamma u
 */
static const bm_option slowmo_options[] = {
    {"slowmo_momentum", BM_SERIES, offsetof(pair, momentum), "0.5", 0, 0.9999,
     NULL, "slow momentum beta, which is eta"},
    {"slowmo_lr", BM_SERIES, offsetof(pair, rate), "1", 0, 10, NULL,
     "slow learning rate alpha, which is zeta"},
    {0},
};

static void resolve_slowmo(const void *of, const bm_run_point *at,
                           bm_traits *traits)
{
    const pair *set = of;

    set_filter(traits, bm_series_at(&set->momentum, at->epochs),
               bm_series_at(&set->rate, at->epochs));
    traits->filter.rescale = true;
}

const bm_strategy_ops bm_strategy_slowmo = {
    .name = "slowmo",
    .help = "SlowMo (Wang et al. 2020): momentum over blocks, in units of "
            "gradients",
    .settings = {slowmo_options, sizeof(pair), .rate = "slowmo_lr",
                 .resolve = resolve_slowmo},
    BM_FILTERED,
};

/* ---- diloco -------------------------------------------------------------- */

/* The outer optimizer is SGD with Nesterov momentum on what the workers
 * changed. The inner one is AdamW, whose moments each worker keeps; other
 * settings of [sgd] make it another method, which explain warns of. */
static const bm_option diloco_options[] = {
    {"outer_momentum", BM_SERIES, offsetof(pair, momentum), "0.9", 0, 0.9999,
     NULL, "outer momentum, eta"},
    {"outer_lr", BM_SERIES, offsetof(pair, rate), "0.7", 0, 10, NULL,
     "outer learning rate, which is zeta"},
    {0},
};

static const char *const diloco_presets[] = {"sgd.update=adamw",
                                             "sgd.local_state=keep", NULL};

static void resolve_diloco(const void *of, const bm_run_point *at,
                           bm_traits *traits)
{
    const pair *set = of;

    set_filter(traits, bm_series_at(&set->momentum, at->epochs),
               bm_series_at(&set->rate, at->epochs));
    traits->filter.nesterov = true;
}

const bm_strategy_ops bm_strategy_diloco = {
    .name = "diloco",
    .help = "DiLoCo (Douillard et al. 2023): Nesterov momentum over blocks, "
            "AdamW in them",
    .settings = {diloco_options, sizeof(pair), .presets = diloco_presets,
                 .rate = "outer_lr", .resolve = resolve_diloco},
    BM_FILTERED,
};

/* ---- lookahead ----------------------------------------------------------- */

/* Slow weights move by alpha of the way to the fast ones in each block. */
static const bm_option lookahead_options[] = {
    {"alpha", BM_SERIES, offsetof(pair, rate), "0.5", 0, 10, NULL,
     "fraction of a block's update that is made, which is zeta"},
    {0},
};

static void resolve_lookahead(const void *of, const bm_run_point *at,
                              bm_traits *traits)
{
    const pair *set = of;

    set_filter(traits, 0, bm_series_at(&set->rate, at->epochs));
}

const bm_strategy_ops bm_strategy_lookahead = {
    .name = "lookahead",
    .help = "Lookahead (Zhang et al. 2019): a fraction of each block update",
    .settings = {lookahead_options, sizeof(pair), .rate = "alpha",
                 .resolve = resolve_lookahead},
    BM_FILTERED,
};

/* ---- cntk ---------------------------------------------------------------- */

/* CNTK's sum over N workers weighs a block's change by N (1 - eta). */
typedef struct cntk {
    bm_series block_momentum;
    bm_series block_learning_rate;
    bool nesterov;
} cntk;

static const bm_option cntk_options[] = {
    {"block_momentum", BM_SERIES, offsetof(cntk, block_momentum), "auto", 0,
     0.9999, NULL, "block momentum, eta; auto: 1 - 1/N"},
    {"block_learning_rate", BM_SERIES, offsetof(cntk, block_learning_rate), "1",
     0, 10, NULL,
     "zeta is this times N (1 - eta), and (1 + eta) with nesterov"},
    {"nesterov", BM_FLAG, offsetof(cntk, nesterov), "yes", 0, 0, NULL,
     "CNTK's useNesterovMomentum"},
    {0},
};

static void resolve_cntk(const void *of, const bm_run_point *at,
                         bm_traits *traits)
{
    const cntk *set = of;
    double given = bm_series_at(&set->block_momentum, at->epochs);
    double eta = isnan(given) ? bm_filter_momentum(at->workers) : given;
    double zeta = at->workers * (1 - eta) *
                  bm_series_at(&set->block_learning_rate, at->epochs);

    set_filter(traits, eta, set->nesterov ? zeta * (1 + eta) : zeta);
    traits->equal_weights = true;
}

const bm_strategy_ops bm_strategy_cntk = {
    .name = "cntk",
    .help = "block momentum as CNTK computes it: classical, also where it says "
            "Nesterov, as in its published results",
    .settings = {cntk_options, sizeof(cntk), .rate = "block_learning_rate",
                 .resolve = resolve_cntk},
    BM_FILTERED,
};

/* ---- fairseq ------------------------------------------------------------- */

/* Workers keep the state of their local updates. */
typedef struct fairseq {
    bm_series block_momentum;
    bm_series block_lr;
    bool use_nbm;
} fairseq;

static const bm_option fairseq_options[] = {
    {"block_momentum", BM_SERIES, offsetof(fairseq, block_momentum), "0.875", 0,
     0.9999, NULL, "block momentum, eta"},
    {"block_lr", BM_SERIES, offsetof(fairseq, block_lr), "1", 0, 10, NULL,
     "zeta, times (1 + eta) with use_nbm"},
    {"use_nbm", BM_FLAG, offsetof(fairseq, use_nbm), "no", 0, 0, NULL,
     "fairseq's Nesterov block momentum, which is classical with a larger "
     "zeta"},
    {0},
};

static const char *const fairseq_presets[] = {"sgd.local_state=keep", NULL};

static void resolve_fairseq(const void *of, const bm_run_point *at,
                            bm_traits *traits)
{
    const fairseq *set = of;
    double eta = bm_series_at(&set->block_momentum, at->epochs);
    double lr = bm_series_at(&set->block_lr, at->epochs);

    set_filter(traits, eta, lr * (set->use_nbm ? 1 + eta : 1));
    traits->equal_weights = true;
}

const bm_strategy_ops bm_strategy_fairseq = {
    .name = "fairseq",
    .help = "block momentum as fairseq computes it",
    .settings = {fairseq_options, sizeof(fairseq), .presets = fairseq_presets,
                 .rate = "block_lr", .resolve = resolve_fairseq},
    BM_FILTERED,
};

/* ---- pika ---------------------------------------------------------------- */

static const bm_option pika_options[] = {
    {"block_momentum", BM_SERIES, offsetof(pair, momentum), "0.9", 0, 0.9999,
     NULL, "block momentum, eta"},
    {"block_lr", BM_SERIES, offsetof(pair, rate), "1", 0, 10, NULL,
     "zeta is this times (1 - eta) (1 + eta)"},
    {0},
};

static void resolve_pika(const void *of, const bm_run_point *at,
                         bm_traits *traits)
{
    const pair *set = of;
    double eta = bm_series_at(&set->momentum, at->epochs);
    double lr = bm_series_at(&set->rate, at->epochs);

    set_filter(traits, eta, lr * (1 - eta) * (1 + eta));
    traits->equal_weights = true;
}

const bm_strategy_ops bm_strategy_pika = {
    .name = "pika",
    .help = "block momentum as PIKA computes it",
    .settings = {pika_options, sizeof(pair), .rate = "block_lr",
                 .resolve = resolve_pika},
    BM_FILTERED,
};

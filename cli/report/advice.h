/*
 * advice.h - the effect of block size, block momentum and number of workers,
 * and warnings about doubtful choices. The rules are those of CNTK's
 * documentation, see docs/tuning.md.
 */
#ifndef BM_CLI_REPORT_ADVICE_H
#define BM_CLI_REPORT_ADVICE_H

#include <stdbool.h>
#include <stddef.h>

/* The setting of [block] that gives the size of a block. */
typedef enum bm_block_by {
    BM_BLOCK_BY_WORKER,
    BM_BLOCK_BY_TOTAL,
    BM_BLOCK_BY_STEPS,
} bm_block_by;

/* The settings of a part of training; without VALUE@EPOCH, of all of it. */
typedef struct bm_regime {
    double from, lasts; /* epochs: where it begins, how long it is; 0: all */
    int workers;        /* that take part */
    bm_block_by block_by;
    bool filtered;           /* else momentum 0, rate 1 */
    bool renamed;            /* eta and zeta are not settings of [bmuf] */
    bool blocks;             /* models are exchanged at block ends */
    bool in_parts;           /* by block.fragments or block.overlap */
    bool some_workers;       /* block.workers says how many take part */
    bool workers_change;     /* likewise, in other epochs others */
    bool begun;              /* the run has blocks, so that its settings stay */
    bool adam;               /* the local update is AdamW, else momentum SGD */
    bool diloco;             /* the strategy is diloco */
    bool reset;              /* local momentum is reset at block starts */
    bool batch_in_sequences; /* batch.sequences gives its size */
    bool batch_statistics;   /* the network has batchnorm */
    bool dev_is_train;       /* data.dev has the contents of data.train */
    double momentum;         /* eta */
    /* eta with other workers, or with blocks of so many frames; NULL: the same */
    double (*momentum_with)(const struct bm_regime *s, int workers,
                            double block_frames);
    const struct bm_settings *settings; /* for momentum_with; borrowed */
    double rate;                        /* zeta */
    double local_momentum;              /* of SGD, or beta1 */
    double accumulate;                  /* mini-batches of an update; 0: as 1 */
    double block_frames;                /* of all workers together */
    double epoch_frames;                /* likewise */
    double batch_frames;                /* of a mini-batch */
    double sequence_frames;             /* mean length; 0: unknown */
    double balance;    /* fraction of time that workers are busy, if they are
                       equally fast; 0: unknown */
    long epochs;       /* of all of training */
    double warmup;     /* epochs in which the learning rate rises */
    size_t unlabelled; /* sequences without a text where others have one */
    double passes;     /* epochs of data that each worker learns from in all */
} bm_regime;

typedef struct bm_gains {
    double block;     /* zeta: displacement by a new G in its own block */
    double steady;    /* zeta / (1 - eta): displacement by a constant G */
    double blocks;    /* -1 / ln eta: e-folding time of Delta; 0 for eta 0 */
    double frames;    /* the same in frames of all workers, TC = -B / ln eta */
    double per_epoch; /* blocks per epoch */
    double steps;     /* tau: mini-batches per worker and block */
} bm_gains;

bm_gains bm_gains_of(const bm_regime *s);

/* Of block momentum, in frames: an epoch, or a tenth of a longer training. */
double bm_longest_time_constant(const bm_regime *s);

/* The first of the parts [n] that has the most workers. */
const bm_regime *bm_most_workers(const bm_regime *parts, size_t n);

/*
 * Calls warn() for every doubtful choice in the parts of training [n], and for no
 * rule twice. If some are about the number of workers and the sizes of blocks and
 * mini-batches, and the run has not begun, the last call proposes settings with
 * which none of these is left. Returns a bit for every rule that does not hold;
 * 0: all do.
 */
unsigned bm_advise(const bm_regime *parts, size_t n,
                   void (*warn)(void *self, const char *text), void *self);

#endif

/*
 * space.h - the settings that are searched: from a point of the unit cube to
 * settings of a trial.
 *
 * The usual axes are chosen so that each has its effect whatever the others are
 * (docs/tuning.md has the letters):
 *
 *     block.steps         tau, mini-batches of a worker in a block
 *     time constant       -B / ln eta, in frames of all workers; gives
 *                         bmuf.momentum for any size of a block
 *     gain                zeta / (1 - eta) / N, the steady gain relative to
 *                         that of N workers; gives bmuf.rate
 *     block.workers       all, or a quarter of them in the first epoch
 *     train.rate, sgd.local_state (with local momentum)
 *
 * of which a strategy has those that apply to it.
 */
#ifndef BM_CLI_TUNE_SPACE_H
#define BM_CLI_TUNE_SPACE_H

#include "cli/report/advice.h"
#include "cli/settings.h"
#include "cli/tune/range.h"
#include "cli/tune/search.h"

enum { BM_SPACE_FIXED = 16, BM_SPACE_TEXT = 64 + BM_AXIS_TEXT };

/* One setting, "section.key=value". */
typedef struct bm_assignment {
    char text[BM_SPACE_TEXT];
} bm_assignment;

/* The settings of a point; those fixed for all points come first. */
typedef struct bm_assignments {
    bm_assignment row[BM_SPACE_FIXED + BM_SEARCH_AXES];
    size_t n;
} bm_assignments;

/* The value of an axis in the configuration as it was given. */
typedef struct bm_given_value {
    double u;         /* its place; of another value, the nearest place */
    bool there;       /* the axis has the value */
    const char *text; /* of the setting, borrowed; NULL: `number` has it */
    char number[BM_AXIS_TEXT];
} bm_given_value;

typedef struct bm_space {
    bm_axis axis[BM_SEARCH_AXES];
    bm_given_value given[BM_SEARCH_AXES];
    size_t n;
    bool given_apart; /* no point stands for the given configuration: it has
                         a value that is not in a list */
    bm_assignments fixed;
    double workers, batch_frames; /* for derived settings */
} bm_space;

/* The axes in the text `over`, or the usual ones if it is empty. `set`, of which
 * texts are borrowed, and `regime`: of the configuration as it was given. Fails
 * with BM_ERR_CONFIG. */
BM_CHECKED bm_status bm_space_new(bm_space *out, const char *over,
                                  const bm_settings *set,
                                  const bm_regime *regime);

/* x [n] <- the point that is nearest to the configuration as it was given. */
void bm_space_given(const bm_space *s, double *x);

void bm_space_assign(const bm_space *s, const double *x, bm_assignments *out);

#endif

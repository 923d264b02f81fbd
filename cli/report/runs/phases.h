/* phases.h - the time of a run by phase, summed over its journal. */
#ifndef BM_CLI_REPORT_RUNS_PHASES_H
#define BM_CLI_REPORT_RUNS_PHASES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* The phases: key in JSON, words in the table. */
#define BM_PHASES(X)                                                           \
    X(start, "start")                                                          \
    X(stall, "waiting for data")                                               \
    X(forward, "forward")                                                      \
    X(loss, "loss")                                                            \
    X(backward, "backward")                                                    \
    X(update, "update")                                                        \
    X(learning, "rest of training")                                            \
    X(wait, "waiting for ranks")                                               \
    X(exchange, "exchange")                                                    \
    X(eval, "evaluation")                                                      \
    X(checkpoint, "checkpoints")                                               \
    X(model, "writing the model")                                              \
    X(other, "other")

typedef enum bm_phase {
#define X(name, words) BM_PHASE_##name,
    BM_PHASES(X)
#undef X
        BM_PHASE_COUNT,
} bm_phase;

/* Initialise with {0}. */
typedef struct bm_phases {
    double seconds[BM_PHASE_COUNT];
    double known; /* seconds in phases since the last `start` */
} bm_phases;

/* Adds the next event of the journal. `other` is the time of a job that no
 * event accounts for; a job without `end` event has none. */
void bm_phases_add(bm_phases *p, const char *kind, const json_t *event);

double bm_phases_total(const bm_phases *p); /* seconds */
void bm_phases_print(const bm_phases *p, FILE *out);
json_t *bm_phases_json(const bm_phases *p); /* {"start": s, .., "total": s} */

#endif

/* phases.h - where the time of a run went, from the events of its journal. */
#ifndef BM_CLI_REPORT_PHASES_H
#define BM_CLI_REPORT_PHASES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* What parts of the time are called in JSON, and in words. */
#define BM_PHASES(X)                                                           \
    X(start, "start")                                                          \
    X(stall, "waiting for data")                                               \
    X(forward, "forward")                                                      \
    X(loss, "loss")                                                            \
    X(backward, "backward")                                                    \
    X(update, "update")                                                        \
    X(learning, "rest of learning")                                            \
    X(wait, "waiting for ranks")                                               \
    X(exchange, "exchange")                                                    \
    X(eval, "evaluation")                                                      \
    X(checkpoint, "checkpoints")                                               \
    X(model, "leaving the model")                                              \
    X(other, "other")

typedef enum bm_phase {
#define X(name, words) BM_PHASE_##name,
    BM_PHASES(X)
#undef X
        BM_PHASE_COUNT,
} bm_phase;

/* Begins with zeros. */
typedef struct bm_phases {
    double seconds[BM_PHASE_COUNT];
    double known; /* since the last start */
} bm_phases;

/* Takes in the next event of the journal. What of a job's total no event tells
 * is `other`; a job that left no `end` has none. */
void bm_phases_add(bm_phases *p, const json_t *event);

void bm_phases_print(const bm_phases *p, FILE *out);
json_t *bm_phases_json(const bm_phases *p); /* {"start": s, .., "total": s} */

#endif

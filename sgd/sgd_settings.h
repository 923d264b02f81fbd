/* sgd_settings.h - the settings of the local update; see sgd.h. */
#ifndef BM_SGD_SGD_SETTINGS_H
#define BM_SGD_SGD_SETTINGS_H

#include "compute/params.h"

#include <stdbool.h>

/* What happens to the state of a worker's update at the end of a block. */
typedef enum bm_local_policy {
    BM_LOCAL_RESET,       /* becomes zero */
    BM_LOCAL_KEEP,        /* each worker keeps its own */
    BM_LOCAL_AVERAGE,     /* all workers get the mean */
    BM_LOCAL_EXTRAPOLATE, /* the mean, extrapolated as the filter moves the
                             model; adamw only, see bmuf/local_state.h */
} bm_local_policy;

typedef struct bm_sgd_settings {
    const char *update;  /* momentum, adamw, rmsprop or muon; NULL: momentum */
    double momentum;     /* mu */
    double beta1;        /* adamw */
    double beta2;        /* adamw, rmsprop */
    double epsilon;      /* adamw, rmsprop; above 0, as the square of a small
                            gradient, such as 1e-23, is 0 in a float */
    double weight_decay; /* lambda */
    double clip;         /* largest norm of g; 0: unlimited */
    bool nesterov;       /* momentum and muon */
    const char *local_state;
} bm_sgd_settings;

typedef struct bm_sgd bm_sgd;

/* The vectors of its state at most, and with t. */
enum { BM_SGD_VECTORS = 2, BM_SGD_STATES = BM_SGD_VECTORS + 1 };

#endif

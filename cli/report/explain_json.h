/* explain_json.h - the numbers of bmuf explain, for --json. */
#ifndef BM_CLI_REPORT_EXPLAIN_JSON_H
#define BM_CLI_REPORT_EXPLAIN_JSON_H

#include "bmuf/trainer/trainer.h"
#include "cli/report/advice.h"
#include "cli/report/traffic.h"
#include "cli/settings.h"
#include "cli/train/origin.h"
#include "io/batch/plan.h"
#include "sgd/layer_rates.h"

#include <jansson.h>

/* What explain has found; all borrowed. */
typedef struct bm_explained {
    const bm_settings *settings;
    const bm_dataset *data;
    const bm_regime *regime;
    const bm_filling *filling;
    const bm_sending *sending;
    const bm_footprint *size;
    size_t weights;
    int ranks;
    const bm_layer_rates *layer_rates;
    const bm_origin *origin;
} bm_explained;

/* Adds its fields to o. */
void bm_explain_json(json_t *o, const bm_explained *e);

#endif

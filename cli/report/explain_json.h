/* explain_json.h - the numbers of bmuf explain, for --json. */
#ifndef BM_CLI_REPORT_EXPLAIN_JSON_H
#define BM_CLI_REPORT_EXPLAIN_JSON_H

#include "bmuf/trainer/trainer.h"
#include "cli/report/regime.h"
#include "cli/report/traffic.h"
#include "cli/settings.h"
#include "cli/train/origin.h"
#include "io/batch/plan.h"
#include "sgd/layer_rates.h"

#include <jansson.h>

/* What explain has found. What it points at is borrowed, but for fragments. */
typedef struct bm_explained {
    const bm_config *config;
    const bm_settings *settings;
    const bm_dataset *data;
    bm_model *model;
    int ranks;
    bm_parts parts;
    bm_regime regime; /* of the first of them */
    bm_gains gains;
    bm_filling filling;
    double blocks;  /* in all epochs */
    double numbers; /* of an epoch in memory */
    bm_layer_rates layer_rates;
    size_t *fragments; /* [block.fragments + 1]: where they begin; NULL: one */
    bm_sending sending;
    bm_footprint size;
    bm_origin origin;
} bm_explained;

/* Adds its fields to o. */
void bm_explain_json(json_t *o, const bm_explained *e);

#endif

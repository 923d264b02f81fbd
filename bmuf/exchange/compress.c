#include "bmuf/exchange/compress.h"

#include "bmuf/block_settings.h"
#include "bmuf/exchange/columns.h"
#include "bmuf/trainer.h"
#include "core/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHARE 0.1

const bm_option bm_compress_options[] = {
    {"code", BM_CHOICE, offsetof(bm_compress, code), "none", 0, 0,
     "none " BM_CODES(BM_WORD),
     "what workers' changes of a block, and of the model, travel as"},
    {"share", BM_FLOAT, offsetof(bm_compress, share), "0.1", 0.0001, 0.5, NULL,
     "of topk: how many of the weights are sent, the rest later"},
    {0},
};

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

static bm_code code_of(const bm_compress *set, const bm_strategy_ops *ops,
                       const void *settings)
{
    if (ops->code != NULL)
        return ops->code(settings);
    return ops->codes ? bm_code_find(set->code, set->share) : (bm_code){0};
}

bm_status bm_compress_code(const bm_config *config, const bm_strategy_ops *ops,
                           bm_code *out)
{
    bm_compress set = {0};
    void *settings = calloc(1, ops->settings_size + 1);
    bm_status status = BM_OK;

    if (settings == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for settings");
    BM_TRY_DONE(bm_config_fill(config, "compress", bm_compress_options, &set));
    if (ops->options != NULL)
        BM_TRY_DONE(bm_config_fill(config, ops->name, ops->options, settings));
    *out = code_of(&set, ops, settings);
done:
    free(settings);
    return status;
}

static bm_status fit(const bm_compress *set, const bm_strategy_ops *ops,
                     const void *settings, const bm_job *job)
{
    bool coded = code_of(set, ops, settings).ops != NULL;

    if (!is(set->code, "none") && !ops->codes)
        return BM_FAIL(BM_ERR_CONFIG,
                       "compress.code = %s is for changes of models, which "
                       "train.strategy = %s does not send; for gradients take "
                       "train.strategy = onebit",
                       set->code, ops->name);
    if (set->share != SHARE && !is(set->code, "topk"))
        return BM_FAIL(BM_ERR_CONFIG,
                       "compress.share = %g is for compress.code = topk alone",
                       set->share);
    if (coded && !is(job->sum, "tree"))
        return BM_FAIL(BM_ERR_CONFIG,
                       "job.sum = %s does not go with codes, which are added "
                       "in tree mode; take job.sum = tree",
                       job->sum);
    if (coded && is(job->exchange, "nccl"))
        return BM_FAIL(BM_ERR_CONFIG,
                       "job.exchange = nccl does not go with codes, which are "
                       "made on the host; take job.exchange = host");
    return BM_OK;
}

bm_status bm_compress_fit(const bm_config *config)
{
    bm_train_settings train = {0};
    bm_compress set = {0};
    bm_job job = {0};
    bm_block_settings block = {0};
    const bm_strategy_ops *ops = NULL;
    void *settings = NULL;
    bm_status status = BM_OK;

    bm_config_peek(config, "train", bm_train_options, &train);
    bm_config_peek(config, "job", bm_job_options, &job);
    bm_config_peek(config, "compress", bm_compress_options, &set);
    ops = bm_strategy_find(train.strategy);
    settings = calloc(1, ops->settings_size + 1);
    if (settings == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for settings");
    if (ops->options != NULL)
        bm_config_peek(config, ops->name, ops->options, settings);
    status = fit(&set, ops, settings, &job);
    free(settings);
    bm_config_peek(config, "block", bm_block_options, &block);
    if (status == BM_OK && strcmp(set.code, "none") != 0 &&
        bm_fragments_wanted(&block))
        return BM_FAIL(BM_ERR_CONFIG,
                       "compress.code = %s codes updates of whole models, not "
                       "those of block.fragments or block.overlap; take one of "
                       "them",
                       set.code);
    return status;
}

void bm_compress_check(const bm_config *config, bm_faults *faults)
{
    if (bm_compress_fit(config) != BM_OK)
        bm_config_fault(faults, config, "compress", "code", "%s",
                        bm_last_message());
}

bm_status bm_compress_open(bm_exchange *e, bm_comm *comm,
                           const bm_params *params, const bm_job *job,
                           bm_code code, bm_coded_way way)
{
    bm_coded_sum *coded = NULL;
    bm_code_plan plan = {0};
    bm_status status =
        bm_comm_agree(comm, bm_columns_plan(&plan, code, params));

    if (status != BM_OK) {
        bm_code_plan_free(&plan);
        return status;
    }
    BM_TRY(bm_coded_sum_open(&coded, comm, &plan, (int)job->workers,
                             job->coordinator, way));
    bm_exchange_code(e, coded);
    return BM_OK;
}

size_t bm_compress_states(const bm_exchange *e)
{
    const bm_coded_sum *c = bm_exchange_coded(e);
    int first = 0, last = 0;

    if (c == NULL)
        return 0;
    bm_coded_sum_hosted(c, &first, &last);
    return (size_t)(last - first) + 1;
}

size_t bm_compress_state(const bm_exchange *e, bm_state *out)
{
    const bm_coded_sum *c = bm_exchange_coded(e);
    bm_slice own = {0};
    int first = 0, last = 0;
    size_t n = 0;

    if (c == NULL)
        return 0;
    own = bm_coded_sum_slice(c);
    bm_coded_sum_hosted(c, &first, &last);
    for (int k = first; k < last && bm_coded_sum_residual(c, k) != NULL; k++) {
        out[n] = (bm_state){.x = bm_coded_sum_residual(c, k)};
        out[n].count = bm_coded_sum_length(c);
        snprintf(out[n++].name, sizeof out->name, "residual.%d", k);
    }
    if (bm_coded_sum_way(c) == BM_CODED_MOVES)
        out[n++] = (bm_state){
            "common",   NULL,      bm_coded_sum_common(c) + own.offset,
            own.offset, own.count, 0};
    else if (bm_coded_sum_rest(c) != NULL)
        out[n++] = (bm_state){"residual", NULL,      bm_coded_sum_rest(c),
                              own.offset, own.count, 0};
    return n;
}

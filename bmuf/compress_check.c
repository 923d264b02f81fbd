#include "bmuf/compress_check.h"

#include "bmuf/block_settings.h"
#include "bmuf/exchange/compress.h"

#include <string.h>

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

/* For codes of [compress] and of the strategy itself. */
static bm_status check_job(const bm_config *config, const bm_strategy_ops *ops)
{
    bm_job job = {0};
    bm_traits traits = {0};

    bm_config_peek(config, "job", bm_job_options, &job);
    if (bm_strategy_resolve(ops, config, (int)job.workers, &traits) != BM_OK)
        return BM_OK; /* reported by the check of that section */
    if (traits.code.ops != NULL && !is(job.sum, "tree"))
        return BM_FAIL(BM_ERR_CONFIG,
                       "job.sum = %s conflicts with codes, which are summed in "
                       "tree mode; set job.sum = tree",
                       job.sum);
    if (traits.code.ops != NULL &&
        (is(job.exchange, "nccl") || is(job.exchange, "mpi")))
        return BM_FAIL(BM_ERR_CONFIG,
                       "job.exchange = %s conflicts with codes, which are "
                       "summed on the host; set job.exchange = host",
                       job.exchange);
    return BM_OK;
}

bm_status bm_compress_check(const bm_config *config, const bm_strategy_ops *ops)
{
    bm_compress set = {0};
    bm_block_settings block = {0};

    bm_config_peek(config, "compress", bm_compress_options, &set);
    bm_config_peek(config, "block", bm_block_options, &block);
    if (!is(set.code, "none") && ops->per != BM_BLOCK)
        return BM_FAIL(BM_ERR_CONFIG,
                       "compress.code = %s is for updates of models, which "
                       "train.strategy = %s does not send; for gradients set "
                       "train.strategy = onebit",
                       set.code, ops->name);
    BM_TRY(check_job(config, ops));
    if (!is(set.code, "none") && bm_fragments_wanted(&block))
        return BM_FAIL(BM_ERR_CONFIG,
                       "compress.code = %s conflicts with block.fragments and "
                       "block.overlap: codes are for updates of whole models; "
                       "set one or the other",
                       set.code);
    return BM_OK;
}

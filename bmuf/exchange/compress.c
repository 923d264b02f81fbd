#include "bmuf/exchange/compress.h"

#include "bmuf/exchange/columns.h"
#include "core/words.h"

#include <stdio.h>

const bm_option bm_compress_options[] = {
    {"code", BM_CHOICE, offsetof(bm_compress, code), "none", 0, 0,
     "none " BM_CODES(BM_WORD),
     "what workers' changes of a block, and of the model, travel as"},
    {"share", BM_FLOAT, offsetof(bm_compress, share), "0.1", 0.0001, 0.5, NULL,
     "of topk: how many of the weights are sent, the rest later"},
    {0},
};

bm_status bm_compress_code(const bm_config *config, bm_code *out)
{
    bm_compress set = {0};

    BM_TRY(bm_config_fill(config, "compress", bm_compress_options, &set));
    *out = bm_code_find(set.code, set.share);
    return BM_OK;
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

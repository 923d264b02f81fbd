#include "bmuf/exchange/compress.h"

#include "core/text/words.h"

const bm_option bm_compress_options[] = {
    {"code", BM_CHOICE, offsetof(bm_compress, code), "none", 0, 0,
     "none " BM_CODES(BM_WORD),
     "code of the updates that workers send and receive after a block"},
    {"share", BM_FLOAT, offsetof(bm_compress, share), "0.1", 0.0001, 0.5, NULL,
     "for topk: fraction of the weights that is sent; the rest is sent later"},
    {0},
};

bm_status bm_compress_code(const bm_config *config, bm_code *out)
{
    bm_compress set = {0};

    BM_TRY(bm_config_fill(config, "compress", bm_compress_options, &set));
    *out = bm_code_find(set.code, set.share);
    return BM_OK;
}

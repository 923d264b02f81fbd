/*
 * compress.h - the settings of [compress]: the code that updates travel as
 * (exchange_coded.c). bmuf/compress_check.h says which settings conflict.
 */
#ifndef BM_BMUF_EXCHANGE_COMPRESS_H
#define BM_BMUF_EXCHANGE_COMPRESS_H

#include "comm/code/code.h"
#include "core/config/config.h"

typedef struct bm_compress {
    const char *code; /* of BM_CODES, or none */
    double share;     /* of topk */
} bm_compress;

extern const bm_option bm_compress_options[];

/* The code that [compress] selects; out->ops = NULL for "none". Fails with
 * BM_ERR_CONFIG if a setting is invalid. */
BM_CHECKED bm_status bm_compress_code(const bm_config *config, bm_code *out);

#endif

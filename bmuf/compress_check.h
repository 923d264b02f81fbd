/* compress_check.h - which settings conflict with codes ([compress]). */
#ifndef BM_BMUF_COMPRESS_CHECK_H
#define BM_BMUF_COMPRESS_CHECK_H

#include "bmuf/strategy.h"

/* BM_ERR_CONFIG if [compress], or the code of strategy `ops`, conflicts with
 * another setting. The message names both and says what to set. */
BM_CHECKED bm_status bm_compress_check(const bm_config *config,
                                       const bm_strategy_ops *ops);

#endif

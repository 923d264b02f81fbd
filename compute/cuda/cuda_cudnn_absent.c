/* cuda_cudnn_absent.c - the engines of cuDNN, in a build without its headers.
 */
#include "compute/cuda/image/cuda_conv.h"
#include "compute/cuda/lstm/cuda_lstm.h"

static const char *no_conv(bm_backend *be, const bm_conv *c, bm_extent in,
                           bm_extent out)
{
    (void)be, (void)c, (void)in, (void)out;
    return "this build has no cuDNN";
}

static const char *obstacle(bm_backend *be, const bm_recurrent *l, bm_extent e)
{
    (void)be, (void)l, (void)e;
    return "this build has no cuDNN";
}

const bm_lstm_engine bm_lstm_engine_cudnn = {.name = "cudnn",
                                             .obstacle = obstacle};
const bm_lstm_engine bm_lstm_engine_persist = {.name = "persist",
                                               .obstacle = obstacle};
const bm_conv_engine bm_conv_engine_cudnn = {.name = "cudnn",
                                             .obstacle = no_conv};

/* cuda_cudnn_absent.c - engines of cuDNN, in a build without its headers. */
#include "compute/cuda/cuda_lstm.h"

size_t bm_lstm_cudnn_version(bm_backend *be)
{
    (void)be;
    return 0;
}

static const char *obstacle(bm_backend *be, const bm_lstm *l, bm_extent e)
{
    (void)be, (void)l, (void)e;
    return "this build has no cuDNN";
}

const bm_lstm_engine bm_lstm_engine_cudnn = {.name = "cudnn",
                                             .obstacle = obstacle};
const bm_lstm_engine bm_lstm_engine_persist = {.name = "persist",
                                               .obstacle = obstacle};

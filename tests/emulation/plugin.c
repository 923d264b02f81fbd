/* plugin.c - the emulated backend needs nothing but the host. */
#include "compute/plugin.h"
#include "compute/cuda/cuda.h"

const bm_plugin bm_plugin_cuda = {
    .abi = BM_PLUGIN_ABI,
    .ops = &bm_backend_cuda,
    .watcher = &bm_cuda_nvtx,
};

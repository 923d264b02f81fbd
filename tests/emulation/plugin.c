/* plugin.c - the emulated backend needs no driver and no libraries. */
#include "compute/plugin.h"
#include "compute/cuda/cuda.h"
#include "compute/cuda/libraries/cuda_nvtx.h"

const bm_plugin bm_plugin_cuda = {
    .abi = BM_PLUGIN_ABI,
    .ops = &bm_backend_cuda,
    .watcher = &bm_cuda_nvtx,
};

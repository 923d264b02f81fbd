/* cuda_nvtx.h - spans (core/trace/span.h) as NVTX ranges. */
#ifndef BM_COMPUTE_CUDA_LIBRARIES_CUDA_NVTX_H
#define BM_COMPUTE_CUDA_LIBRARIES_CUDA_NVTX_H

#include "core/trace/span.h"

extern const bm_span_watcher bm_cuda_nvtx;

#endif

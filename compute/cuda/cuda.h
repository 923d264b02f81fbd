/* cuda.h - the cuda backend, for plugins. */
#ifndef BM_COMPUTE_CUDA_CUDA_H
#define BM_COMPUTE_CUDA_CUDA_H

#include "compute/backend_ops.h"

extern const bm_backend_ops bm_backend_cuda;

#endif

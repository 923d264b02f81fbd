/* cuda_device_code.h - what the backend implements of device_code.h. */
#ifndef BM_COMPUTE_CUDA_CUDA_DEVICE_CODE_H
#define BM_COMPUTE_CUDA_CUDA_DEVICE_CODE_H

#include "compute/device_code.h"

extern const bm_device_code_ops bm_cuda_device_code_ops;

#endif

/* cuda_operations.h - the operations (compute/operations.h) as bm_cuda_<name>,
 * each in the file of its name. */
#ifndef BM_COMPUTE_CUDA_DEVICE_CUDA_OPERATIONS_H
#define BM_COMPUTE_CUDA_DEVICE_CUDA_OPERATIONS_H

#include "compute/backend_ops.h"

#define BM_OPERATION(name, requirement, parameters, arguments)                 \
    void bm_cuda_##name parameters;
#define BM_SIZE_OPERATION(name, requirement, parameters, arguments)            \
    size_t bm_cuda_##name parameters;
#include "compute/operations.h"

#endif

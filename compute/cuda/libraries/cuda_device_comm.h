/* cuda_device_comm.h - device_comm.h by NCCL, if the machine has it. */
#ifndef BM_COMPUTE_CUDA_LIBRARIES_CUDA_DEVICE_COMM_H
#define BM_COMPUTE_CUDA_LIBRARIES_CUDA_DEVICE_COMM_H

#include "compute/device_comm.h"

extern const bm_device_comm_ops bm_cuda_device_comm_ops;

#endif

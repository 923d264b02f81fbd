/* gpu_libraries.h - what the driver and the libraries of GPUs say about
 * themselves, without the plugin: also where this build has none. */
#ifndef BM_CLI_DOCTOR_GPU_LIBRARIES_H
#define BM_CLI_DOCTOR_GPU_LIBRARIES_H

#include <jansson.h>

/*
 * A new object: "driver": the largest version of CUDA that it supports;
 * "devices": [{"name", "memory_gb"}]; "peers": pairs of devices that access each
 * other's memory; "nccl", "cudnn": versions. A library that is missing
 * has no key.
 */
json_t *bm_gpu_libraries(void);

#endif

/* cuda_times.h - what parts of a training step take on the device: an event is
 * recorded where a part begins (bm_time_as in backend.h). */
#ifndef BM_COMPUTE_CUDA_DEVICE_CUDA_TIMES_H
#define BM_COMPUTE_CUDA_DEVICE_CUDA_TIMES_H

#include "compute/cuda/device/cuda_context.h"

/* The operations of these names in backend_ops.h. */
void bm_cuda_time_as(bm_backend *be, bm_timed_part part);
double bm_cuda_timed(bm_backend *be, bm_timed_part part);

void bm_cuda_times_close(bm_backend *be);

#endif

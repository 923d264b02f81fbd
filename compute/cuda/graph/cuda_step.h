/*
 * cuda_step.h - a step of training as one CUDA graph. Between bm_step_begin and
 * bm_step_end (compute/backend.h) everything that is queued goes through here:
 *
 *     the first step of a shape     is queued as it is told
 *     the second                    is captured, noted command by command, and
 *                                   launched
 *     those after it                are compared with what was noted. Kernels
 *                                   with other arguments get these; then the
 *                                   graph is launched
 *
 * So a graph never does anything else than what was told. A step that does not
 * fit (one more conversion, another product) is queued as it was told, from
 * the notes and on from there; so is the rest of one that does something which
 * no graph has: memory, waiting, cuDNN. These call bm_step_leave first.
 *
 * Numbers of the host (bm_cuda_send) gather in a block, which is copied to its
 * place on the device before the graph is launched.
 */
#ifndef BM_COMPUTE_CUDA_GRAPH_CUDA_STEP_H
#define BM_COMPUTE_CUDA_GRAPH_CUDA_STEP_H

#include "compute/cuda/kernels/kernels.h"

/* Opens with BMUF_GRAPH=off: nothing is captured. */
BM_CHECKED bm_status bm_step_open(bm_backend *be);
void bm_step_close(bm_backend *be);

void bm_cuda_step_begin(bm_backend *be, const void *owner, bm_extent e);
void bm_cuda_step_end(bm_backend *be);

/* What comes next cannot be in a graph: what was told so far is queued, and the
 * rest of the step as it is told. */
void bm_step_leave(bm_backend *be);

/* Queues something that is not a kernel: with these `what` on this stream, now,
 * later, or instead of it a graph in which it is. `what` has no gaps. */
typedef cudaError_t bm_step_call(bm_backend *be, cudaStream_t stream,
                                 const void *what);
cudaError_t bm_step_queue(bm_backend *be, bm_step_call *call,
                          cudaStream_t stream, const void *what, size_t bytes);

/* For calls: into a graph at this moment? */
bool bm_step_captures(const bm_backend *be);

/* What operations queue beside kernels and products. */
cudaError_t bm_step_clear(bm_backend *be, cudaStream_t stream, void *x,
                          size_t bytes);
cudaError_t bm_step_copy(bm_backend *be, cudaStream_t stream, void *to,
                         const void *from, size_t bytes);
cudaError_t bm_step_record(bm_backend *be, cudaStream_t stream,
                           cudaEvent_t event);
cudaError_t bm_step_wait(bm_backend *be, cudaStream_t stream,
                         cudaEvent_t event);

/* Room for numbers of the host in the step's block, NULL if they have to go
 * another way: then nothing is captured. *device: where they will be. */
void *bm_step_room(bm_backend *be, size_t bytes, const void **device);

#endif

/* cuda_launch.h - kernels as bytes, for cuda_step.c. */
#ifndef BM_COMPUTE_CUDA_GRAPH_CUDA_LAUNCH_H
#define BM_COMPUTE_CUDA_GRAPH_CUDA_LAUNCH_H

#include "compute/cuda/kernels/kernels.h"

enum { BM_LAUNCH_BYTES = 4096 + 1024 }; /* CUDA takes 4096 of arguments */

cudaError_t bm_launch_now(const bm_launch *l);

/* To `out` [BM_LAUNCH_BYTES], at a multiple of 16 bytes; how many. All but the
 * stream: equal launches have equal bytes. */
size_t bm_launch_pack(const bm_launch *l, char *out);

/* The same kernel but for its arguments and its number of blocks, so that a
 * graph's can be changed into it? None of clusters: nothing says that a change
 * keeps them. */
bool bm_launch_is_same(const char *a, const char *b);

cudaError_t bm_launch_packed(cudaStream_t stream, char *bytes);

/* Lets a kernel of a graph be this one from its next launch on. */
cudaError_t bm_launch_change(cudaGraphExec_t replay, cudaGraphNode_t node,
                             char *bytes);

#endif

/* subnormals.h - takes numbers that are too small for float as zero. */
#ifndef BM_COMPUTE_CPU_SUBNORMALS_H
#define BM_COMPUTE_CPU_SUBNORMALS_H

/*
 * Subnormal floats, below 2^-126, become zero as operands and as results, in the
 * calling thread and in those that it starts later. Gradients of a network whose
 * gates are saturated are full of them, and processors compute with them ten
 * times as slowly (docs/performance.md). Call this first in main.
 */
void bm_subnormals_to_zero(void);

#endif

/* blas.h - makes OpenBLAS use the kernels that suit this machine. */
#ifndef BM_COMPUTE_CPU_LIBRARIES_BLAS_H
#define BM_COMPUTE_CPU_LIBRARIES_BLAS_H

#include "core/status.h"

/*
 * Call this first in main, before MPI_Init. OpenBLAS chooses its kernels by the
 * processor's model number when it is loaded. For a processor newer than itself
 * it may choose those of 2004 (Prescott, a fifth of the speed). In that case
 * this sets OPENBLAS_CORETYPE and executes the program again with the same
 * arguments. Returns if the choice is good, if the user has set
 * OPENBLAS_CORETYPE, or if the program cannot be executed again.
 */
void bm_blas_restart(char **argv);

/*
 * Call this next. OpenBLAS starts threads when it is loaded. If they find no
 * address space, the program would wait for them forever when it forks or
 * exits: fails then with BM_ERR_MEMORY, and the caller must end with _exit.
 */
BM_CHECKED bm_status bm_blas_check(void);

/*
 * Makes OpenBLAS reserve the 128 MB of address space that it maps at its first
 * product; without them it would retry forever. Fails with BM_ERR_MEMORY if
 * they are not available, as bm_blas_check does. No-op after the first success.
 */
BM_CHECKED bm_status bm_blas_reserve(void);

#endif

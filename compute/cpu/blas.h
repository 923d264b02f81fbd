/* blas.h - getting the kernels out of OpenBLAS that this machine can run. */
#ifndef BM_COMPUTE_CPU_BLAS_H
#define BM_COMPUTE_CPU_BLAS_H

#include "core/status.h"

/*
 * To be called first in main, before MPI_Init. OpenBLAS chooses its kernels by
 * model number while the program is loaded, and for a processor that is newer
 * than itself it may take those of 2004 (Prescott, a fifth of the speed). Then
 * this sets OPENBLAS_CORETYPE and starts the program again with the same
 * arguments. Returns if there is nothing to do: the choice is good, or the user
 * has set OPENBLAS_CORETYPE, or the program cannot be started again.
 */
void bm_blas_restart(char **argv);

/*
 * OpenBLAS takes 128 MB of address space at its first product, and tries for
 * ever if there is none. This asks first, and lets it take them. BM_ERR_MEMORY
 * if they are not there. Cheap after the first time.
 */
BM_CHECKED bm_status bm_blas_reserve(void);

#endif

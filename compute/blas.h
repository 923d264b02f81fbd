/* blas.h - getting the kernels out of OpenBLAS that this machine can run. */
#ifndef BM_COMPUTE_BLAS_H
#define BM_COMPUTE_BLAS_H

/*
 * To be called first in main, before MPI_Init. OpenBLAS chooses its kernels by
 * model number while the program is loaded, and for a processor that is newer
 * than itself it may take those of 2004 (Prescott, a fifth of the speed). Then
 * this sets OPENBLAS_CORETYPE and starts the program again with the same
 * arguments. Returns if there is nothing to do: the choice is good, or the user
 * has set OPENBLAS_CORETYPE, or the program cannot be started again.
 */
void bm_blas_restart(char **argv);

#endif

/* probe.h - instructions of one warp, as lanes give operands and get results.
 */
#ifndef BM_TESTS_EMULATION_PROBE_H
#define BM_TESTS_EMULATION_PROBE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* a [32, 4], b [32, 2], c [32, 4]: bm_multiply_add. */
cudaError_t bm_probe_multiply(cudaStream_t stream, const uint32_t *a,
                              const uint32_t *b, float *c);

/* The kernel of that. */
void *bm_probe_multiply_kernel(void);

/* Four matrices x [4, 8, 8] in shared memory -> what bm_matrices_get gives [32,
 * 4], bm_matrices_get_transposed [32, 4], bm_matrix_get_transposed [32]; and y
 * [2, 4, 8, 8]: what bm_matrices_put makes of the second, then bm_matrix_put of
 * the third with 1 added to each number. */
cudaError_t bm_probe_matrices(cudaStream_t stream, const uint16_t *x,
                              uint32_t *r, uint32_t *transposed, uint32_t *one,
                              uint16_t *y);

#ifdef __cplusplus
}
#endif
#endif

/*
 * sm90.h - the functions of compute/cuda/kernels/sm90.h on the host. Copies and
 * data sent to other blocks arrive at once, later, or at the last moment, in
 * any order.
 */
#ifndef BM_TESTS_EMULATION_SM90_H
#define BM_TESTS_EMULATION_SM90_H

#include "tests/emulation/device.h"

#define BM_SM90 1

void bm_multiply_add(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1);
void bm_matrices_get(uint32_t r[4], const void *row);
void bm_matrices_get_transposed(uint32_t r[4], const void *row);
uint32_t bm_matrix_get_transposed(const void *row);
void bm_matrices_put(void *row, const uint32_t r[4]);
void bm_matrix_put(void *row, uint32_t r);

/* As wrong as the device's may be. */
float bm_tanh_quick(float x);

void bm_copy_begin(void *shared, const void *global);
void bm_copies_commit();
void bm_copies_complete(unsigned but);
template <int n> void bm_copies_wait()
{
    bm_copies_complete(n);
}

uint4 bm_get16(const void *x);
void bm_put16(void *x, uint4 v);

void bm_meeting_come(int number, int threads);
void bm_meeting_wait(int number, int threads);

static inline unsigned bm_cluster_rank()
{
    return bm_now.cluster;
}
void bm_arrivals_open(uint64_t *bar, unsigned threads);
void bm_arrivals_expect(uint64_t *bar, unsigned bytes);
void bm_arrivals_wait(uint64_t *bar, unsigned phase);
void bm_send8(void *x, float2 v, uint64_t *bar, unsigned block);
void bm_send16(void *x, uint4 v, uint64_t *bar, unsigned block);

#endif

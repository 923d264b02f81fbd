/* cuda_operations.h - the operations of backend.h. Each is in the file of its
 * name. */
#ifndef BM_COMPUTE_CUDA_DEVICE_CUDA_OPERATIONS_H
#define BM_COMPUTE_CUDA_DEVICE_CUDA_OPERATIONS_H

#include "compute/backend_ops.h"

size_t bm_cuda_lstm_kept(bm_backend *be, const bm_lstm *l, bm_extent e);
void bm_cuda_lstm_forward(bm_backend *be, const bm_lstm *l, bm_extent e,
                          const float *x, float *y, float *kept);
void bm_cuda_lstm_backward(bm_backend *be, const bm_lstm *l, bm_extent e,
                           const float *x, const float *y, const float *dy,
                           float *kept, float *dx, float *dwx, float *dwh,
                           float *db);
void bm_cuda_axpby(bm_backend *be, size_t n, float a, const float *x, float b,
                   float *y);
void bm_cuda_gemm(bm_backend *be, bool trans_a, bool trans_b, float alpha,
                  bm_tensor a, bm_tensor b, float beta, bm_tensor c);
void bm_cuda_add_rows(bm_backend *be, bm_tensor y, const float *b);
void bm_cuda_sum_rows(bm_backend *be, bm_tensor y, float *b);
void bm_cuda_activate(bm_backend *be, bm_activation f, size_t n, const float *x,
                      float *y);
void bm_cuda_activate_back(bm_backend *be, bm_activation f, size_t n,
                           const float *y, const float *dy, float *dx);
void bm_cuda_dropout(bm_backend *be, size_t n, float p, uint64_t key,
                     const float *x, float *y);
void bm_cuda_clear_padding(bm_backend *be, bm_extent e, bm_tensor x);
void bm_cuda_copy_runs(bm_backend *be, const bm_runs *r, const float *x,
                       float *y);
size_t bm_cuda_conv_work(bm_backend *be, const bm_conv *c);
void bm_cuda_conv_forward(bm_backend *be, const bm_conv *c, bm_extent in,
                          bm_extent out, const float *x, float *y, float *work);
void bm_cuda_conv_backward(bm_backend *be, const bm_conv *c, bm_extent in,
                           bm_extent out, const float *x, const float *dy,
                           float *work, float *dx, float *dw, float *db);
void bm_cuda_pooling_forward(bm_backend *be, const bm_pooling *p, bm_extent in,
                             bm_extent out, const float *x, float *y);
void bm_cuda_pooling_backward(bm_backend *be, const bm_pooling *p, bm_extent in,
                              bm_extent out, const float *x, const float *y,
                              const float *dy, float *dx);
size_t bm_cuda_norm_kept(bm_backend *be, const bm_norm *n, bm_extent out);
void bm_cuda_norm_forward(bm_backend *be, const bm_norm *n, bm_extent in,
                          bm_extent out, bool training, const float *x,
                          float *y, float *kept);
void bm_cuda_norm_backward(bm_backend *be, const bm_norm *n, bm_extent in,
                           bm_extent out, const float *x, const float *y,
                           const float *dy, float *kept, float *dx,
                           float *dgamma, float *dbeta, float *mean_off,
                           float *var_off);
void bm_cuda_momentum_step(bm_backend *be, const bm_momentum *m, size_t n,
                           size_t statistics, float *g, float *v, float *w,
                           double *skipped);
void bm_cuda_adam_step(bm_backend *be, const bm_adam *a, size_t n,
                       size_t statistics, float *g, float *m, float *v,
                       float *w, float *t, double *skipped);
void bm_cuda_cross_entropy(bm_backend *be, bm_extent e, bm_targets t,
                           bm_tensor y, bm_tensor dy, bm_score *score);
size_t bm_cuda_ctc_work(bm_backend *be, bm_extent e, bm_targets t,
                        size_t n_classes);
void bm_cuda_ctc(bm_backend *be, bm_extent e, bm_targets t,
                 bm_infeasible policy, bm_tensor y, bm_tensor dy, float *work,
                 bm_score *score);

void bm_cuda_linear_forward(bm_backend *be, const bm_linear *l, size_t rows,
                            const float *x, float *y);
void bm_cuda_linear_backward(bm_backend *be, const bm_linear *l, size_t rows,
                             const float *x, const float *y, float *dy,
                             float *dx, float *dw, float *db);

void bm_cuda_difference(bm_backend *be, size_t n, const float *x,
                        const float *from, float *y, float *odd);
void bm_cuda_blend(bm_backend *be, size_t n, double a, float *y, double b,
                   const float *x);
void bm_cuda_filter(bm_backend *be, const bm_filter_step *f, size_t n,
                    const float *g, float *y, double *products);

#endif

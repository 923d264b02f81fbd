/*
 * operations.h - the arithmetic of a backend, one row for each operation:
 *
 *     BM_OPERATION(name, requirement, (parameters), (arguments))
 *
 * A row is the prototype of bm_<name>, as callers see it. The member of
 * bm_backend_ops, the body of bm_<name>, the prototypes bm_cpu_<name> and
 * bm_cuda_<name> and the entries in the backends' tables come from the same
 * row. To add an operation: a row here, a struct in operands.h if it has many
 * parameters, bm_cpu_<name> in compute/cpu, bm_cuda_<name> in compute/cuda, and
 * a row in tests/compute/operations/.
 *
 * BM_SIZE_OPERATION returns a number of floats, at once; it returns 0 if the
 * backend lacks the operation. BM_DEVICE_OPERATION is for devices alone: on the
 * host its callers use loops of their own, as the row says.
 *
 * For all operations:
 * - They are queued, in order, and return before the work is done.
 * - They cannot fail at once. A failure (BM_ERR_MEMORY, BM_ERR_DEVICE, or
 *   BM_ERR_UNSUPPORTED if the backend lacks the operation) turns all later
 *   operations into no-ops, and the next bm_sync returns it.
 * - Pointers to float, double and bm_score are borrowed memory of the backend.
 *   Structs, extents and targets are the host's and are read before the return.
 * - Outputs are overwritten, and overlap no input, unless the row says so.
 * - A requirement that does not hold is a programming error: the process
 *   aborts.
 *
 * This file has no include guard: who includes it defines what a row means.
 * Without that, rows declare bm_<name>.
 */
#ifndef BM_OPERATION
#include "compute/operands.h"
#define BM_OPERATION(name, requirement, parameters, arguments)                 \
    void bm_##name parameters;
#define BM_SIZE_OPERATION(name, requirement, parameters, arguments)            \
    size_t bm_##name parameters;
#endif
#ifndef BM_DEVICE_OPERATION
#define BM_DEVICE_OPERATION BM_OPERATION
#endif

/* clang-format off */

/* ---- vectors and matrices ------------------------------------------------ */

/* bm_axpby: y = a x + b y, over n floats. x may be y. A term whose factor is 0
 * is not read: a = 1, b = 0 copies; a = b = 0 clears y, even if it holds NaN.
 */
BM_OPERATION(axpby, true,
             (bm_backend *be, size_t n, float a, const float *x, float b,
              float *y),
             (be, n, a, x, b, y))

/* bm_gemm: C = alpha op(A) op(B) + beta C, with op(A) [m, k], op(B) [k, n] and
 * C [m, n]; op transposes if trans_a or trans_b. With beta = 0 C is not read.
 */
BM_OPERATION(gemm, multiplies(trans_a, trans_b, a, b, c),
             (bm_backend *be, bool trans_a, bool trans_b, float alpha,
              bm_tensor a, bm_tensor b, float beta, bm_tensor c),
             (be, trans_a, trans_b, alpha, a, b, beta, c))

/* bm_gemm_batch: many products of matrices of one shape, see bm_gemms. c may
 * not be a factor, and its matrices fill the memory from c on without gaps. */
BM_OPERATION(gemm_batch, true,
             (bm_backend *be, const bm_gemms *p, const float *a,
              const float *b, float *c),
             (be, p, a, b, c))

/* bm_add_rows: adds b [cols] to every row of y [rows, cols]. */
BM_OPERATION(add_rows, y.rank == 2,
             (bm_backend *be, bm_tensor y, const float *b),
             (be, y, b))

/* bm_sum_rows: b [cols] = the sum of the rows of y [rows, cols]. */
BM_OPERATION(sum_rows, y.rank == 2,
             (bm_backend *be, bm_tensor y, float *b),
             (be, y, b))

/* bm_copy_runs: copies from x to y as bm_runs describes. The rest of y is kept.
 */
BM_OPERATION(copy_runs, true,
             (bm_backend *be, const bm_runs *r, const float *x, float *y),
             (be, r, x, y))

/* bm_clear_padding: sets x [T, B, D] to zero past the end of each sequence. */
BM_OPERATION(clear_padding, fits(e, x),
             (bm_backend *be, bm_extent e, bm_tensor x),
             (be, e, x))

/* ---- layers -------------------------------------------------------------- */

/* bm_activate: y = f(x), over n floats. y may be x. */
BM_OPERATION(activate, true,
             (bm_backend *be, bm_activation f, size_t n, const float *x,
              float *y),
             (be, f, n, x, y))

/* bm_activate_back: dx = dy f'(x), from y = f(x), over n floats. dx may be dy.
 */
BM_OPERATION(activate_back, true,
             (bm_backend *be, bm_activation f, size_t n, const float *y,
              const float *dy, float *dx),
             (be, f, n, y, dy, dx))

/* bm_swish: y = x sigmoid(x), over n floats. y may be x. */
BM_OPERATION(swish, true,
             (bm_backend *be, size_t n, const float *x, float *y),
             (be, n, x, y))

/* bm_swish_back: dx = dy f'(x) of the same f, over n floats. dx may be dy. */
BM_OPERATION(swish_back, true,
             (bm_backend *be, size_t n, const float *x, const float *dy,
              float *dx),
             (be, n, x, dy, dx))

/* bm_gelu: y = x/2 erfc(-x / sqrt(2)), over n floats. y may be x. */
BM_OPERATION(gelu, true, (bm_backend *be, size_t n, const float *x, float *y),
             (be, n, x, y))

/* bm_gelu_back: dx = dy f'(x) of the same f, over n floats. dx may be dy. */
BM_OPERATION(gelu_back, true,
             (bm_backend *be, size_t n, const float *x, const float *dy,
              float *dx),
             (be, n, x, dy, dx))

/* bm_glu: x [rows, 2 n] -> y [rows, n] = a sigmoid(b), where a is the first
 * half of a row of x, b the second. */
BM_OPERATION(glu, true,
             (bm_backend *be, size_t rows, size_t n, const float *x, float *y),
             (be, rows, n, x, y))

/* bm_glu_back: dy [rows, n] -> dx [rows, 2 n]. */
BM_OPERATION(glu_back, true,
             (bm_backend *be, size_t rows, size_t n, const float *x,
              const float *dy, float *dx),
             (be, rows, n, x, dy, dx))

/* bm_dropout: y[i] = x[i] / (1 - p) where number i of the random stream `key`
 * (core/rng.h) is at least p, else 0, over n floats. It is its own backward
 * pass. The mask is the same on every backend. y may be x. */
BM_OPERATION(dropout, p >= 0 && p < 1,
             (bm_backend *be, size_t n, float p, uint64_t key, const float *x,
              float *y),
             (be, n, p, key, x, y))

/* bm_weight_dropout: as bm_dropout, of weights or of their gradient, which stay
 * floats in every precision: so the result depends on x alone, not on what was
 * computed with x before. */
BM_OPERATION(weight_dropout, p >= 0 && p < 1,
             (bm_backend *be, size_t n, float p, uint64_t key, const float *x,
              float *y),
             (be, n, p, key, x, y))

/* bm_linear_forward: x [rows, K] -> y [rows, N]. One operation, so that a
 * device can finish a product before it stores it; on the host the bits are
 * those of gemm, add_rows and activate. */
BM_OPERATION(linear_forward, true,
             (bm_backend *be, const bm_linear *l, size_t rows, const float *x,
              float *y),
             (be, l, rows, x, y))

/* bm_linear_backward: dy [rows, N] -> dx [rows, K], dw [N, K], db [N]. dx may
 * be NULL. x and y are those of the forward pass. dy is overwritten. */
BM_OPERATION(linear_backward, true,
             (bm_backend *be, const bm_linear *l, size_t rows, const float *x,
              const float *y, float *dy, float *dx, float *dw, float *db),
             (be, l, rows, x, y, dy, dx, dw, db))

/* bm_recurrent_kept: the floats that the forward pass keeps for the backward
 * pass. */
BM_SIZE_OPERATION(recurrent_kept, recurs(l),
                  (bm_backend *be, const bm_recurrent *l, bm_extent e),
                  (be, l, e))

/* bm_recurrent_forward: x [T, B, D] -> y [T, B, R Y], kept [bm_recurrent_kept].
 * Past a sequence's end x must be zero, and y becomes zero. */
BM_OPERATION(recurrent_forward, recurs(l),
             (bm_backend *be, const bm_recurrent *l, bm_extent e,
              const float *x, float *y, float *kept),
             (be, l, e, x, y, kept))

/* bm_recurrent_backward: dy [T, B, R Y] -> dx [T, B, D], dwx, dwh, db, dwr
 * (shaped as wx, wh, b, wr). dx may be NULL, and dwr without a projection. x, y,
 * kept and the extent are those of the forward pass; kept is overwritten. Past a
 * sequence's end dy is not read, and dx becomes zero. */
BM_OPERATION(recurrent_backward, projects(l, dwr),
             (bm_backend *be, const bm_recurrent *l, bm_extent e,
              const float *x, const float *y, const float *dy, float *kept,
              float *dx, float *dwx, float *dwh, float *db, float *dwr),
             (be, l, e, x, y, dy, kept, dx, dwx, dwh, db, dwr))

/* bm_conv_work: the floats of `work` for bm_conv_forward and _backward. */
BM_SIZE_OPERATION(conv_work, true,
                  (bm_backend *be, const bm_conv *c),
                  (be, c))

/* bm_conv_forward: x [T, B, H, C] -> y [T', B, H', N], where T' and the frames
 * of `out` and H' follow from bm_windows. Past a sequence's end x is not read,
 * and y becomes zero. work [bm_conv_work] is scratch. */
BM_OPERATION(conv_forward, convolves(c, in, out),
             (bm_backend *be, const bm_conv *c, bm_extent in, bm_extent out,
              const float *x, float *y, float *work),
             (be, c, in, out, x, y, work))

/* bm_conv_backward: dy [T', B, H', N] -> dx [T, B, H, C], dw and db (shaped as
 * w and b). dx may be NULL. Past a sequence's end x and dy are not read, and dx
 * becomes zero. work [bm_conv_work] is scratch. */
BM_OPERATION(conv_backward, convolves(c, in, out),
             (bm_backend *be, const bm_conv *c, bm_extent in, bm_extent out,
              const float *x, const float *dy, float *work, float *dx,
              float *dw, float *db),
             (be, c, in, out, x, dy, work, dx, dw, db))

/* bm_depthwise_forward: x [T, B, D] -> y [T', B, D], where T' and the frames of
 * `out` follow from bm_windows. Past a sequence's end x is not read, and y
 * becomes zero. */
BM_OPERATION(depthwise_forward, maps(c->time, in, out) && starts_inside(c->time),
             (bm_backend *be, const bm_depthwise *c, bm_extent in,
              bm_extent out, const float *x, float *y),
             (be, c, in, out, x, y))

/* bm_depthwise_backward: dy [T', B, D] -> dx [T, B, D], dw [K, D], db [D]. dx
 * may be NULL. Past a sequence's end x and dy are not read, and dx becomes
 * zero. */
BM_OPERATION(depthwise_backward,
             maps(c->time, in, out) && starts_inside(c->time),
             (bm_backend *be, const bm_depthwise *c, bm_extent in,
              bm_extent out, const float *x, const float *dy, float *dx,
              float *dw, float *db),
             (be, c, in, out, x, dy, dx, dw, db))

/* bm_pooling_forward: x [T, B, H, C] -> y [T', B, H', C]. Past a sequence's end
 * x is not read, and y becomes zero. */
BM_OPERATION(pooling_forward,
             maps(p->time, in, out) && covers(p->time) && covers(p->rows),
             (bm_backend *be, const bm_pooling *p, bm_extent in, bm_extent out,
              const float *x, float *y),
             (be, p, in, out, x, y))

/* bm_pooling_backward: dx [T, B, H, C] = the sum over the windows of a place of
 * dy, if it is the first that holds the maximum; of means dy divided by the
 * window's places. x and y are those of the forward pass. */
BM_OPERATION(pooling_backward,
             maps(p->time, in, out) && covers(p->time) && covers(p->rows),
             (bm_backend *be, const bm_pooling *p, bm_extent in, bm_extent out,
              const float *x, const float *y, const float *dy, float *dx),
             (be, p, in, out, x, y, dy, dx))

/* bm_norm_kept: the floats that the forward pass keeps in training. */
BM_SIZE_OPERATION(norm_kept, true,
                  (bm_backend *be, const bm_norm *n, bm_extent out),
                  (be, n, out))

/* bm_norm_forward: x [T, B, H, C] -> y [T', B, H', C], kept [bm_norm_kept].
 * Only in training the batch's mean and variance are used, and kept is written.
 */
BM_OPERATION(norm_forward,
             maps(n->time, in, out) && bm_windows_tile(n->time) &&
                 bm_windows_tile(n->rows),
             (bm_backend *be, const bm_norm *n, bm_extent in, bm_extent out,
              bool training, const float *x, float *y, float *kept),
             (be, n, in, out, training, x, y, kept))

/* bm_norm_backward: dy [T', B, H', C] -> dx [T, B, H, C], dgamma and dbeta [C],
 * after bm_norm_forward in training. dx may be NULL. kept is overwritten.
 * mean_off and var_off [C]: n->mean and n->var minus the batch's mean and
 * variance; 0 if the batch has no frames. */
BM_OPERATION(norm_backward,
             maps(n->time, in, out) && bm_windows_tile(n->time) &&
                 bm_windows_tile(n->rows),
             (bm_backend *be, const bm_norm *n, bm_extent in, bm_extent out,
              const float *x, const float *y, const float *dy, float *kept,
              float *dx, float *dgamma, float *dbeta, float *mean_off,
              float *var_off),
             (be, n, in, out, x, y, dy, kept, dx, dgamma, dbeta, mean_off,
              var_off))

/* bm_layernorm_kept: the floats that the forward pass keeps. */
BM_SIZE_OPERATION(layernorm_kept, true,
                  (bm_backend *be, const bm_layernorm *n, bm_extent e),
                  (be, n, e))

/* bm_layernorm_forward: x [T, B, D] -> y [T, B, D], kept [bm_layernorm_kept].
 * Past a sequence's end x is not read, and y becomes zero. */
BM_OPERATION(layernorm_forward, n->width > 0,
             (bm_backend *be, const bm_layernorm *n, bm_extent e,
              const float *x, float *y, float *kept),
             (be, n, e, x, y, kept))

/* bm_layernorm_backward: dy [T, B, D] -> dx [T, B, D], dgamma and dbeta [D]. dx
 * may be NULL. x and kept are those of the forward pass; kept is overwritten.
 * Past a sequence's end x and dy are not read, and dx becomes zero. */
BM_OPERATION(layernorm_backward, n->width > 0,
             (bm_backend *be, const bm_layernorm *n, bm_extent e,
              const float *x, const float *dy, float *kept, float *dx,
              float *dgamma, float *dbeta),
             (be, n, e, x, dy, kept, dx, dgamma, dbeta))

/* bm_positions: y [2 T - 1, D], T > 0: the sinusoidal encodings (Vaswani et al.
 * 2017) of the distances T - 1, .., 0, .., 1 - T. Of distance p number 2 i is
 * sin(p / 10000^(2 i / D)), the next one the cosine. */
BM_OPERATION(positions, T > 0,
             (bm_backend *be, size_t T, size_t D, float *y),
             (be, T, D, y))

/* bm_attention_weights: scores s [B, H, T, T] become the weights of
 * bm_attention, from r [H, T, B, 2 T - 1]. Where a frame is past its sequence's
 * end, s is not used and becomes zero. */
BM_OPERATION(attention_weights, a->heads > 0,
             (bm_backend *be, const bm_attention *a, bm_extent e,
              const float *r, float *s),
             (be, a, e, r, s))

/* bm_attention_back: d [B, H, T, T], the gradient of the weights s that
 * bm_attention_weights made, becomes that of its scores; dr [H, T, B, 2 T - 1]
 * that of r. Both become zero past the ends, where d is not used. */
BM_OPERATION(attention_back, a->heads > 0,
             (bm_backend *be, const bm_attention *a, bm_extent e,
              const float *s, float *d, float *dr),
             (be, a, e, s, d, dr))

/* ---- losses -------------------------------------------------------------- */

/* bm_ctc_work: the floats of `work` for bm_ctc, for n_classes with the blank.
 */
BM_SIZE_OPERATION(ctc_work, true,
                  (bm_backend *be, bm_extent e, bm_targets t, size_t n_classes),
                  (be, e, t, n_classes))

/* bm_ctc: CTC (Graves 2006) of logits y [T, B, C], with softmax inside and
 * blank 0; accurate to a float's precision for any length, and deterministic.
 * Adds the batch to *score, with the edit distance of the best path. dy [T, B,
 * C], unless its data is NULL, becomes the gradient of the mean over the
 * sequences that count of
 *
 *     (1 - smoothing) loss + smoothing (mean over the frames of KL(u || p))
 *
 * where p is the softmax and u is uniform, and zero past their ends; the score
 * has no smoothing. A sequence whose loss is not finite is skipped; one without
 * frames is infeasible. work [bm_ctc_work] is scratch. */
BM_OPERATION(ctc,
             fits(e, y) && (dy.data == NULL || same_shape(dy, y)) &&
                 smoothing >= 0 && smoothing < 1,
             (bm_backend *be, bm_extent e, bm_targets t, bm_infeasible policy,
              float smoothing, bm_tensor y, bm_tensor dy, float *work,
              bm_score *score),
             (be, e, t, policy, smoothing, y, dy, work, score))

/* bm_cross_entropy: cross entropy of logits y [T, B, C], with one class for
 * each frame (t.count = e.frames). Adds the batch to *score. dy [T, B, C],
 * unless its data is NULL, becomes the gradient of the mean over the frames
 * that count, with targets of 1 - smoothing for the class and smoothing / C more
 * for each class; the score has no smoothing. A sequence without frames, or whose
 * loss is not finite, is skipped. */
BM_OPERATION(cross_entropy,
             fits(e, y) && (dy.data == NULL || same_shape(dy, y)) &&
                 smoothing >= 0 && smoothing < 1,
             (bm_backend *be, bm_extent e, bm_targets t, float smoothing,
              bm_tensor y, bm_tensor dy, bm_score *score),
             (be, e, t, smoothing, y, dy, score))

/* ---- updates ------------------------------------------------------------- */

/* bm_momentum_step: updates w and v [n] (see bm_momentum), and the statistics
 * w[n .. n + statistics) by w <- w - g. If a number of g [n + statistics] is
 * not finite, nothing changes except *skipped, which grows by 1. g may be
 * overwritten. */
BM_OPERATION(momentum_step, true,
             (bm_backend *be, const bm_momentum *m, size_t n,
              size_t statistics, float *g, float *v, float *w,
              double *skipped),
             (be, m, n, statistics, g, v, w, skipped))

/* bm_adam_step: updates w, m, v [n] and *t (see bm_adam), and statistics as
 * bm_momentum_step does. It is skipped likewise, and if |g|, clipped, is above
 * BM_ADAM_MOST. */
BM_OPERATION(adam_step, true,
             (bm_backend *be, const bm_adam *a, size_t n, size_t statistics,
              float *g, float *m, float *v, float *w, float *t,
              double *skipped),
             (be, a, n, statistics, g, m, v, w, t, skipped))

/* bm_unit: y = x / |x|, over n floats, or 0 if |x| is 0 or not finite. y may be
 * x. */
BM_OPERATION(unit, true, (bm_backend *be, size_t n, const float *x, float *y),
             (be, n, x, y))

/* ---- exchange between workers -------------------------------------------- */

/* The bits are those of the loops on the host: comm/sum/sum_loops.c and
 * bmuf/filter_loops.c. */

/* bm_difference: y = x - from, or x if `from` is NULL, over n floats.
 * *non_finite becomes 1 if a number of y is not finite, else 0. */
BM_DEVICE_OPERATION(difference, true,
                    (bm_backend *be, size_t n, const float *x,
                     const float *from, float *y, float *non_finite),
                    (be, n, x, from, y, non_finite))

/* bm_squares: *sum = the sum of x^2 over n floats, in doubles. */
BM_DEVICE_OPERATION(squares, true,
                    (bm_backend *be, size_t n, const float *x, double *sum),
                    (be, n, x, sum))

/* bm_blend: y = a y + b x in doubles, over n floats. With a = 0 y is not read;
 * with a = 1 and b = 0 neither is, and y is kept. */
BM_DEVICE_OPERATION(blend, true,
                    (bm_backend *be, size_t n, double a, float *y, double b,
                     const float *x),
                    (be, n, a, y, b, x))

/* bm_filter_slice: a filter's step on n floats (see bm_filter_step). products
 * [chunks of BM_FILTER_CHUNK, 3] become g g, g delta and delta delta of what is
 * learned (with g for delta if model is NULL). */
BM_DEVICE_OPERATION(filter_slice, true,
                    (bm_backend *be, const bm_filter_step *f, size_t n,
                     const float *g, float *y, double *products),
                    (be, f, n, g, y, products))

/* clang-format on */

#undef BM_OPERATION
#undef BM_SIZE_OPERATION
#undef BM_DEVICE_OPERATION

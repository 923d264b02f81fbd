/*
 * cuda_lstm.h - engines of the LSTM: each computes a layer as backend.h says.
 * Which of them does is chosen by timing, see cuda_lstm_choice.c.
 *
 * To add one: a const bm_lstm_engine at the end of its file, and its line in
 * BM_LSTM_ENGINES. One that makes the recurrence alone takes its products from
 * bm_lstm_around_forward and _backward.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_CUDA_LSTM_H
#define BM_COMPUTE_CUDA_LSTM_CUDA_LSTM_H

#include "compute/cuda/cuda.h"
#include "compute/cuda/lstm/lstm_kernels.h"

typedef struct bm_lstm_engine {
    const char *name;
    /* What keeps it from such a layer and batch; NULL: nothing. NULL instead of
     * a function: nothing ever does. */
    const char *(*obstacle)(bm_backend *be, const bm_lstm *l, bm_extent e);
    /* As in backend.h; there is at least one frame. */
    size_t (*kept)(bm_backend *be, const bm_lstm *l, bm_extent e);
    void (*forward)(bm_backend *be, const bm_lstm *l, bm_extent e,
                    const float *x, float *y, float *kept);
    void (*backward)(bm_backend *be, const bm_lstm *l, bm_extent e,
                     const float *x, const float *y, const float *dy,
                     float *kept, float *dx, float *dwx, float *dwh, float *db);
    void (*close)(bm_backend *be); /* NULL: there is nothing to close */
} bm_lstm_engine;

/* Of equally fast ones the first is taken. */
#define BM_LSTM_ENGINES(X) X(steps) X(cluster) X(grid) X(cudnn) X(persist)
#define X(name)            extern const bm_lstm_engine bm_lstm_engine_##name;
BM_LSTM_ENGINES(X)
#undef X
extern const bm_lstm_engine *const bm_lstm_engines[]; /* ends with NULL */

/* The engine for such batches, the same for all calls; NULL after a failure. It
 * may wait for the device at the first batch of its kind. */
const bm_lstm_engine *bm_lstm_choose(bm_backend *be, const bm_lstm *l,
                                     bm_extent e);

/* Of a backend: what engines keep from call to call. */
struct bm_cuda_lstm {
    struct bm_lstm_steps *steps; /* cuda_lstm_steps.c */
    float *partial;              /* for sums over frames */
    size_t n_partial;
};

/* The recurrence over all frames of all directions. S: bf16 if `bf16`, else
 * floats. The rest as lstm_kernels.h says. */
typedef struct bm_lstm_sweep {
    size_t T, B, H, R;
    bool bf16;
    const int32_t *frames; /* [B], on the device */
    const void *wh;        /* S [R, 4 H, H] */
    void *gates;           /* S [T, B, R, 4, H] */
    float *cells;          /* [T, B, R, H] */
    void *y;               /* S [T, B, R, H]; backward NULL */
    const void *dy;        /* S [T, B, R, H]; forward NULL */
} bm_lstm_sweep;
typedef void (*bm_lstm_sweeper)(bm_backend *be, const bm_lstm_sweep *s);

/* For the launchers that take all frames. */
bm_lstm_cluster bm_lstm_cluster_of(const bm_lstm_sweep *s);

/* All of forward and backward but the recurrence; `kept` is gates and cells. */
size_t bm_lstm_around_kept(bm_backend *be, const bm_lstm *l, bm_extent e);
void bm_lstm_around_forward(bm_backend *be, const bm_lstm *l, bm_extent e,
                            const float *x, float *y, float *kept,
                            bm_lstm_sweeper sweep);
void bm_lstm_around_backward(bm_backend *be, const bm_lstm *l, bm_extent e,
                             const float *x, const float *y, const float *dy,
                             float *kept, float *dx, float *dwx, float *dwh,
                             float *db, bm_lstm_sweeper sweep);

/* After backward, with gradients of weights still on their way on `side`. */
void bm_lstm_lend(bm_backend *be, const bm_lstm *l, bm_extent e, const float *x,
                  const float *y, const float *kept, size_t n_kept,
                  const float *dwx, const float *dwh, const float *db);

static inline bool bm_lstm_in_bf16(const bm_backend *be)
{
    return bm_cuda_of(be)->precision == BM_BF16;
}

/* Vectors in the form S. */
static inline const void *bm_lstm_read(bm_backend *be, const float *x, size_t n)
{
    if (bm_lstm_in_bf16(be))
        return bm_cuda_read16(be, x, n);
    return bm_cuda_read(be, x, n);
}

static inline void *bm_lstm_write(bm_backend *be, float *x, size_t n)
{
    return bm_cuda_out(be, x, n).x;
}

/* Number i of an array of S. */
static inline const void *bm_lstm_at(const bm_backend *be, const void *x,
                                     size_t i)
{
    return (const char *)x +
           i * (bm_lstm_in_bf16(be) ? sizeof(bm_bf16) : sizeof(float));
}

#endif

/*
 * cuda_lstm.h - engines of the LSTM: each computes a layer as backend.h says.
 * The first one computes every layer, unless BMUF_LSTM names another; it alone
 * computes GRUs and projections.
 *
 * To add one: a const bm_lstm_engine at the end of its file, and its line in
 * BM_LSTM_ENGINES. An engine that computes only the recurrence fills in `sweep`
 * and gets the rest from cuda_lstm_around.c.
 */
#ifndef BM_COMPUTE_CUDA_LSTM_CUDA_LSTM_H
#define BM_COMPUTE_CUDA_LSTM_CUDA_LSTM_H

#include "compute/cuda/device/cuda_context.h"
#include "compute/cuda/memory/cuda_forms.h"

/* The recurrence over all frames of all directions. S is bf16 if `bf16`, else
 * float. Contents are as lstm_kernels.h says. */
typedef struct bm_lstm_sweep {
    size_t T, B, H, R;
    size_t rows; /* of wh of one direction: 4 H, of a GRU 3 H */
    bool bf16;
    const int32_t *frames; /* [B], on the device */
    const void *wh;        /* S [R, rows, H] */
    const void *b;         /* S [R, 4 H]: of a GRU; else it is in the gates */
    void *gates;           /* S [T, B, R, 4, H] */
    float *cells;          /* [T, B, R, H] */
    void *y;               /* S [T, B, R, Y]; NULL backward */
    const void *dy;        /* S [T, B, R, Y]; NULL forward */
    size_t P;              /* of a projection; 0: none, and Y = H */
    const void *wr;        /* S [R, P, H] */
    void *hidden, *down;   /* S [T, B, R, H]: h; S [T, B, R, P]: gradient of y,
                              which backward writes */
} bm_lstm_sweep;

typedef struct bm_lstm_engine {
    const char *name;
    /* Returns why the engine cannot compute such a layer and batch, or NULL if
     * it can. NULL instead of a function: it can compute all. */
    const char *(*obstacle)(bm_backend *be, const bm_recurrent *l, bm_extent e);
    /* The recurrence, queued on `stream`: forward, gates become i, f, g, o, and
     * cells and y are written; backward, gates become gradients. NULL for an
     * engine that has the three functions below. */
    void (*sweep)(bm_backend *be, const bm_lstm_sweep *s, bool backward);
    /* As in backend.h; there is at least one frame. NULL if there is a sweep.
     */
    size_t (*kept)(bm_backend *be, const bm_recurrent *l, bm_extent e);
    void (*forward)(bm_backend *be, const bm_recurrent *l, bm_extent e,
                    const float *x, float *y, float *kept);
    void (*backward)(bm_backend *be, const bm_recurrent *l, bm_extent e,
                     const float *x, const float *y, const float *dy,
                     float *kept, float *dx, float *dwx, float *dwh, float *db);
    void (*close)(bm_backend *be); /* may be NULL */
} bm_lstm_engine;

#define BM_LSTM_ENGINES(X) X(steps) X(cluster) X(cudnn) X(persist)
#define X(name)            extern const bm_lstm_engine bm_lstm_engine_##name;
BM_LSTM_ENGINES(X)
#undef X

/* Of a backend: what engines keep from call to call. */
struct bm_cuda_lstm {
    const bm_lstm_engine *engine;
    struct bm_lstm_steps *steps; /* cuda_lstm_steps.c */
    bm_cuda_room partial;        /* for sums over frames, on `side` */
};

/* BM_ERR_MEMORY; BM_ERR_CONFIG: an invalid BMUF_LSTM. */
BM_CHECKED bm_status bm_cuda_lstm_open(bm_backend *be);
void bm_cuda_lstm_close(bm_backend *be);

/* All of a layer but the recurrence, which is the engine's sweep. `kept` is
 * gates and cells. */
size_t bm_lstm_around_kept(bm_backend *be, const bm_recurrent *l, bm_extent e);
void bm_lstm_around_forward(bm_backend *be, const bm_lstm_engine *engine,
                            const bm_recurrent *l, bm_extent e, const float *x,
                            float *y, float *kept);
void bm_lstm_around_backward(bm_backend *be, const bm_lstm_engine *engine,
                             const bm_recurrent *l, bm_extent e, const float *x,
                             const float *y, const float *dy, float *kept,
                             float *dx, float *dwx, float *dwh, float *db,
                             float *dwr);

/* Lends the vectors of a backward pass to `side`, which still computes the
 * gradients of weights. */
void bm_lstm_lend(bm_backend *be, const bm_recurrent *l, bm_extent e,
                  const float *x, const float *y, const float *kept,
                  size_t n_kept, const float *dwx, const float *dwh,
                  const float *db);

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

/*
 * operands.h - the parameters of the operations in operations.h, and the
 * mathematics behind them.
 *
 * These structs lie in the host's memory; an operation has read them when it
 * returns. Pointers to float in them point at memory of the backend.
 */
#ifndef BM_COMPUTE_OPERANDS_H
#define BM_COMPUTE_OPERANDS_H

#include "compute/batch.h"
#include "compute/tensor.h"

#include <stdbool.h>

typedef struct bm_backend bm_backend;

/* Elementwise functions, f(x) for each x. */
typedef enum bm_activation {
    BM_IDENTITY,
    BM_RELU,
    BM_LEAKY_RELU, /* x < 0: BM_LEAK x */
    BM_TANH,
    BM_SIGMOID,
} bm_activation;
#define BM_LEAK 0.01f

/* Of gelu: 1 / sqrt(2), and 1 / sqrt(2 pi), the density of normal numbers at 0. */
#define BM_SQRT_HALF   0.70710678f
#define BM_NORMAL_PEAK 0.39894228f

/*
 * A linear layer over rows, followed by an activation:
 *
 *     y [rows, N] = f(x [rows, K] w' + b)
 */
typedef struct bm_linear {
    size_t n_in, n_out; /* K, N */
    const float *w;     /* [N, K] */
    const float *b;     /* [N] */
    bm_activation f;
} bm_linear;

/*
 * outer x inner runs of n floats, copied from one layout to another:
 *
 *     y[i outer_y + j inner_y + k] = x[i outer_x + j inner_x + k]
 */
typedef struct bm_runs {
    size_t outer, inner, n;
    size_t outer_x, inner_x, outer_y, inner_y; /* floats from run to run */
} bm_runs;

/*
 * `count` products of one shape:
 *
 *     C [m, n] = alpha op(A) op(B)      op(A) [m, k], op(B) [k, n]
 *
 * ld: floats from row to row of a matrix; apart: from matrix to matrix, where
 * matrices may lie within the rows of each other.
 */
typedef struct bm_gemms {
    size_t count, m, n, k;
    bool trans_a, trans_b;
    float alpha;
    size_t lda, ldb, ldc;
    size_t apart_a, apart_b, apart_c;
} bm_gemms;

/* Floats from the first of `count` matrices of rows x cols to their end. */
static inline size_t bm_gemms_reach(size_t count, size_t rows, size_t cols,
                                    size_t ld, size_t apart)
{
    return count == 0 || rows == 0 || cols == 0
               ? 0
               : (count - 1) * apart + (rows - 1) * ld + cols;
}

/*
 * A recurrent layer over whole sequences, in one direction or in two side by
 * side. h and c start at zero; the second direction runs backwards from each
 * sequence's own last frame. G matrices of each direction read x, and as many
 * read h. A cell stores four values a frame, in PyTorch's order:
 *
 *     BM_LSTM (G = 4), values i, f, g, o (Graves and Schmidhuber 2005)
 *
 *     i, f, o = sigmoid(wx x + wh h + b)      g = tanh(wx x + wh h + b)
 *     c' = f c + i g                          h' = o tanh(c')
 *
 *     With a projection (Sak et al. 2014) y = wr h', and wh reads y; else y = h'.
 *
 *     BM_GRU (G = 3), values r, z, n, q (Cho et al. 2014, with the reset gate
 *     after the product: PyTorch, cuDNN)
 *
 *     r, z = sigmoid(wx x + wh h + b)         q = wh_n h + b_q
 *     n = tanh(wx_n x + b_n + r q)            h' = (1 - z) n + z h
 */
typedef enum bm_cell { BM_LSTM, BM_GRU } bm_cell;
enum { BM_CELL_VALUES = 4 };

typedef struct bm_recurrent {
    bm_cell cell;
    size_t n_in, n_hidden; /* D, H */
    size_t directions;     /* R: 1 or 2 */
    const float *wx;       /* [R G H, D] */
    const float *wh;       /* [R, G H, Y], see bm_recurrent_width */
    const float *b;        /* [R 4 H], for each value */
    size_t n_projected;    /* P < H, of an LSTM; 0: no projection */
    const float *wr;       /* [R, P, H] */
} bm_recurrent;

/* Y: outputs of one direction. */
static inline size_t bm_recurrent_width(const bm_recurrent *l)
{
    return l->n_projected > 0 ? l->n_projected : l->n_hidden;
}

/* G H: rows of wx, and of wh, of one direction. */
static inline size_t bm_recurrent_rows(const bm_recurrent *l)
{
    return (l->cell == BM_GRU ? 3 : 4) * l->n_hidden;
}

/*
 * Windows along an axis: window i starts at place i stride - before; places
 * outside of the axis are empty. The last window ends at most `after` places
 * after the axis.
 */
typedef struct bm_window {
    size_t size, stride, before, after;
} bm_window;

/* The number of windows over n places; 0 if n is 0. */
static inline size_t bm_windows(bm_window w, size_t n)
{
    size_t all = n + w.before + w.after;
    return n == 0 || all < w.size ? 0 : (all - w.size) / w.stride + 1;
}

/* Do they lie side by side, from the first place on, until all are covered? */
static inline bool bm_windows_tile(bm_window w)
{
    return w.stride == w.size && w.before == 0 && w.after == w.size - 1;
}

/* How many places of a window are read, if each `dilation`-th of them is, from
 * the first to the last. */
static inline size_t bm_window_taps(bm_window w, size_t dilation)
{
    return (w.size - 1) / dilation + 1;
}

/*
 * Convolution over time and height. A frame is a column of pixels with
 * channels, [H, C]. Places outside of the image and past a sequence's own end
 * count as zeros (i < K, j < L: taps of the window, d: dilation):
 *
 *     y[t', h', n] = b[n] + sum over i, j, c of
 *                    w[i, j, c, n] x[t' stride + i d - before, h, c]
 *
 * and h likewise. A window spans d (K - 1) + 1 frames, which is time.size.
 */
typedef struct bm_conv {
    size_t height, channels; /* of x: H, C */
    size_t out_channels;     /* N */
    bm_window time, rows;    /* before < size */
    size_t dilation[2];      /* of time, of rows; from 1 on */
    const float *w;          /* [K, L, C, N] */
    const float *b;          /* [N] */
} bm_conv;

/* K L, the taps of a window. */
static inline size_t bm_conv_taps(const bm_conv *c)
{
    return bm_window_taps(c->time, c->dilation[0]) *
           bm_window_taps(c->rows, c->dilation[1]);
}

/*
 * Convolution over time of each feature alone. Places before the first frame
 * and past a sequence's own end count as zeros (i: place in the window):
 *
 *     y[t', d] = b[d] + sum over i of w[i, d] x[t' stride + i - before, d]
 */
typedef struct bm_depthwise {
    size_t width;   /* D */
    bm_window time; /* before < size = K */
    const float *w; /* [K, D] */
    const float *b; /* [D] */
} bm_depthwise;

/*
 * The maximum or mean of each window, per channel, over the places inside the
 * image and before the sequence's end. Every window has such a place.
 */
typedef struct bm_pooling {
    size_t height, channels; /* of x: H, C */
    bm_window time, rows;    /* before, after < size */
    bool mean;
} bm_pooling;

/* Maxima of windows that do not overlap. */
static inline bool bm_pooling_is_plain(const bm_pooling *p)
{
    return !p->mean && bm_windows_tile(p->time) && bm_windows_tile(p->rows);
}

/*
 * Batch normalisation (Ioffe and Szegedy 2015) per channel, over all rows of
 * all frames except padding, then an activation, then the maximum of each
 * window:
 *
 *     z = gamma (x - mean) / sqrt(var + BM_NORM_EPSILON) + beta
 *     y = max of f(z) over a window
 *
 * In training mean and variance (the mean of (x - mean)^2) are the batch's;
 * else they are `mean` and `var`. Windows tile the image (bm_windows_tile);
 * windows of one place leave f(z) as it is. Fused, since each pass alone is
 * bound by memory.
 */
typedef struct bm_norm {
    size_t height, channels;   /* of x: H, C */
    const float *gamma, *beta; /* [C] */
    const float *mean, *var;   /* [C]: running estimates */
    bm_activation f;
    bm_window time, rows;
} bm_norm;
#define BM_NORM_EPSILON 1e-5

/*
 * Layer normalisation (Ba, Kiros and Hinton 2016) of each frame alone, with the
 * mean and the variance (divided by D) of its D numbers:
 *
 *     y = gamma (x - mean) / sqrt(var + BM_NORM_EPSILON) + beta
 */
typedef struct bm_layernorm {
    size_t width;              /* D */
    const float *gamma, *beta; /* [D] */
} bm_layernorm;

/*
 * Weights of self-attention with relative positions (Dai et al. 2019), of frame
 * t for frame u of the same sequence, where both are before its end:
 *
 *     a[t, u] = softmax over u of scale (s[t, u] + r[t, T - 1 - t + u])
 *
 * s compares the frames, r [2 T - 1] frame t with each distance t - u.
 */
typedef struct bm_attention {
    size_t heads; /* H */
    float scale;
} bm_attention;

/* What CTC does with an infeasible sequence, one that has no frames, or fewer
 * than labels + repeats (bm_ctc_repeats). */
typedef enum bm_infeasible {
    BM_INFEASIBLE_ERROR, /* the caller rejects it before; here: as SKIP */
    BM_INFEASIBLE_SKIP,  /* left out of the mean and of its denominator */
    BM_INFEASIBLE_ZERO,  /* loss 0, gradient 0, but counted in the mean */
} bm_infeasible;

/*
 * One update of momentum SGD, see sgd/sgd.h:
 *
 *     g <- g min(1, clip / |g|) + decay w          (clip 0: no clipping)
 *     v <- momentum v - rate g
 *     w <- w + v         (nesterov: w + momentum v - rate g)
 */
typedef struct bm_momentum {
    float rate, momentum, decay, clip;
    bool nesterov;
} bm_momentum;

/*
 * One update of AdamW; t counts updates and may be a fraction:
 *
 *     g <- g min(1, clip / |g|)                    (clip 0: no clipping)
 *     t <- t + 1
 *     m <- beta1 m + (1 - beta1) g
 *     v <- beta2 v + (1 - beta2) g^2
 *     w <- w - rate (decay w + m' / (sqrt(v') + epsilon))
 *
 * where m' = m / (1 - beta1^t) and v' = v / (1 - beta2^t). Or, with `rms`, of
 * RMSProp:
 *
 *     g <- g min(1, clip / |g|) + decay w
 *     v <- beta2 v + (1 - beta2) g^2
 *     m <- beta1 m + g / (sqrt(v) + epsilon)
 *     w <- w - rate m
 */
typedef struct bm_adam {
    double rate, beta1, beta2, epsilon, decay, clip;
    bool rms;
} bm_adam;
#define BM_ADAM_MOST 1e19 /* the largest clipped |g|: g^2 fits in a float */

/*
 * One step of a filter on a slice, see bmuf/filter.h:
 *
 *     delta = eta delta + zeta g    model += delta    y = model + ahead delta
 *
 * or, with model = NULL, y += g. The first n_learned floats are learned; for
 * the statistics behind them eta = ahead = 0 and zeta = 1.
 */
typedef struct bm_filter_step {
    double eta, zeta, ahead;
    size_t n_learned;
    float *model, *delta;
} bm_filter_step;
enum { BM_FILTER_CHUNK = 1024 };

#endif

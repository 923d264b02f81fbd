/*
 * layer.h - one differentiable step of a network, y = f(x; w).
 *
 * A layer allocates nothing. plan() says how many weights and how many floats
 * per frame it needs; the model hands out views.
 *
 * Past a sequence's end x, y and dy are zero: a layer finds zeros there and
 * leaves zeros there, in y and in dx. So padding influences nothing, whatever
 * comes next, and no product over all frames needs a mask; what is left is the
 * order in which a BLAS sums in another shape, 1e-6. A layer that would
 * not (a bias, sigmoid(0) = 1/2) calls bm_clear_padding, which costs as much as
 * there is padding.
 *
 * A frame may be a column of pixels, [height, channels]: the input is one with
 * a single channel. Layers that keep columns pass their channels on; behind any
 * other a frame is flat.
 *
 * To add one: write models/<name>.c, then add its line to BM_LAYERS.
 */
#ifndef BM_MODELS_LAYERS_LAYER_H
#define BM_MODELS_LAYERS_LAYER_H

#include "compute/backend.h"
#include "core/rng.h"

#define BM_LAYERS(X)                                                           \
    X(linear)                                                                  \
    X(conv)                                                                    \
    X(pool)                                                                    \
    X(batchnorm)                                                               \
    X(relu)                                                                    \
    X(leaky_relu)                                                              \
    X(tanh)                                                                    \
    X(sigmoid)                                                                 \
    X(lstm)                                                                    \
    X(blstm)                                                                   \
    X(dropout)                                                                 \
    X(stack)                                                                   \
    X(subsample)

typedef struct bm_layer bm_layer;

/* A piece of a layer's weights, for names in checkpoints. */
typedef struct bm_weight {
    const char *name; /* "wx"; the segment is then "0.lstm.wx" */
    int rank;
    size_t dim[4];
    bool statistic; /* follows the data instead of being learned */
    float start;    /* a statistic's first value */
} bm_weight;

enum { BM_LAYER_WEIGHTS = 6 }; /* pieces at most */

/* A word of the network's description, for messages. */
typedef struct bm_word {
    const char *net;      /* the whole line; borrowed */
    size_t number;        /* from 1 */
    size_t start, length; /* characters */
} bm_word;

/* What one pass over a batch is like. */
typedef struct bm_pass {
    bm_extent in, out; /* of x and dx; of y and dy */
    bool training;     /* dropout drops */
    uint64_t key;      /* of this layer's random numbers in this pass */
} bm_pass;

/*
 * An operation on a layer's output that the layer can apply itself, while the
 * output is in cache: a function and then windows of which the largest number
 * remains. {0} is the identity.
 */
typedef struct bm_epilogue {
    bm_activation f;
    bool pools;           /* time and rows are set */
    bm_window time, rows; /* as a layer's, see below */
} bm_epilogue;

/* Floating-point operations of the products of a forward pass, 2 m n k for each
 * of [m, k] and [k, n]. Backward takes those of `input` twice, for gradients of
 * weights and of x, or once if nobody asks for the latter; of `inner` twice. */
typedef struct bm_flops {
    double input; /* products with x */
    double inner; /* with what the layer itself made before */
} bm_flops;

typedef struct bm_layer_ops {
    const char *name; /* in [model] net */
    const char *help; /* with its arguments: "linear[:SIZE]  y = W x + b" */
    /* Given n_in, n_out (0: the layer decides) and args, set the n_* and
     * weights below. Fails with BM_ERR_CONFIG, saying what is wrong. */
    bm_status (*plan)(bm_layer *l);
    /* Fill w, on the host, but for statistics. NULL: nothing to learn. */
    void (*init)(const bm_layer *l, float *w, bm_rng *rng);
    /* Floats to keep from forward to backward. NULL: none. */
    size_t (*kept)(const bm_layer *l, const bm_pass *p);
    /* NULL: no products. */
    bm_flops (*flops)(const bm_layer *l, const bm_pass *p);
    /* Called by bm_net_fuse() once the layer is planned. Adds e to l->after and
     * returns true if forward and backward can apply it behind what is there
     * already; y and dy are then those behind e. NULL: returns false. */
    bool (*fuse)(bm_layer *l, const bm_epilogue *e);
    /* x [T, B, n_in] -> y [T', B, n_out]. */
    void (*forward)(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y);
    /* Overwrites all of g, and dx unless dx.data is NULL (the first layer). dy
     * may be overwritten. In gs, how far each statistic moves at this step: the
     * local update subtracts it. */
    void (*backward)(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx);
} bm_layer_ops;

struct bm_layer {
    const bm_layer_ops *ops;
    bm_backend *be;     /* borrowed */
    char name[40];      /* "2.lstm": prefix of its segments' names */
    char args[40];      /* "32,3x3": what follows the colon in the network */
    bm_word word;       /* where that stands */
    size_t n_in, n_out; /* features per frame */
    size_t channels_in, channels; /* of a column of x, of y; 0: a flat frame */
    bm_window time; /* the frames of x under one of y, so that T' =
                       bm_windows(time, T), each sequence likewise; of one
                       frame unless plan says otherwise */
    bm_window rows; /* of conv and pool: likewise, of a column's height */
    bm_weight weights[BM_LAYER_WEIGHTS]; /* in the order they lie in w */
    int n_weights;
    float rate;        /* dropout's p */
    bm_epilogue does;  /* set by plan: the whole layer as an epilogue, or {0} */
    bm_epilogue after; /* set by fuse: what the layer applies to its output */
    size_t fused;      /* set by bm_net_fuse: the layers behind it in `after` */
    float *w, *g;      /* views into bm_params: what is learned */
    float *s, *gs;     /* statistics */
    float *kept; /* what kept() asked for, a view of the model's scratch */
};

/* For plan(): BM_ERR_CONFIG with the message, pointing at the layer's word. */
bm_status bm_layer_fail(const bm_layer *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For plan(): a text, such as the whole of args, as a number of things, at
 * least 1. `what` says of which, "units"; "" or NULL: it is missing. */
BM_CHECKED bm_status bm_layer_count(const bm_layer *l, const char *what,
                                    const char *text, size_t *out);

/* Likewise "3x5", numbers of frames and of rows, at least `least`. */
BM_CHECKED bm_status bm_layer_pair(const bm_layer *l, const char *what,
                                   const char *text, size_t least,
                                   size_t out[2]);

/* The next of arguments that are parted by commas, which is cut off; NULL:
 * there are no more. */
const char *bm_layer_argument(char **rest);

/* Of x as a column; a flat frame is one with a single channel. */
static inline size_t bm_layer_channels_in(const bm_layer *l)
{
    return l->channels_in > 0 ? l->channels_in : 1;
}

/* Whether every frame stays one. */
static inline bool bm_layer_keeps_frames(const bm_layer *l)
{
    return l->time.stride == 1 &&
           l->time.before + l->time.after + 1 == l->time.size;
}

/* For init(): n numbers, uniform within +-sqrt(6 / (fan_in + fan_out)) (Glorot
 * and Bengio 2010). */
void bm_layer_glorot(float *w, size_t n, size_t fan_in, size_t fan_out,
                     bm_rng *rng);

/* [T, B, D] as a matrix [T B, D]. */
static inline bm_tensor bm_frames(bm_tensor x)
{
    return bm_matrix(x.data, x.dim[0] * x.dim[1], x.dim[2]);
}

#define X(name) extern const bm_layer_ops bm_layer_##name;
BM_LAYERS(X)
#undef X

#endif

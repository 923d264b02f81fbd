/*
 * layer.h - one differentiable step of a network, y = f(x; w).
 *
 * A layer allocates nothing: plan() states its weights, kept() and work() its
 * scratch, and the model provides views of them.
 *
 * In padding, past the end of a sequence, x, y and dy are zero. A layer must
 * leave zeros there in y and in dx, so that padding influences no result and
 * products over all frames need no mask. (A BLAS may sum in another order in
 * another shape: about 1e-6.) A layer that does not keep zeros (bias, sigmoid(0) =
 * 1/2) calls bm_clear_padding, whose cost is proportional to the padding.
 *
 * A frame may be a column of pixels, [height, channels]; the input has a single
 * channel. Layers that keep columns set `channels`; after any other layer a
 * frame is flat.
 *
 * Layers follow each other in one array, also where the network has branches:
 * a group lies there as the layer that opens it, the layers of each branch, a
 * separator between branches, and the layer that closes it (group.c).
 *
 * To add one: write models/layers/<name>.c, then add its line to BM_LAYERS, and
 * its formula in double precision to tests/models/test_forward.c. To export it
 * to ONNX, see cli/export/onnx_flow.h.
 */
#ifndef BM_MODELS_LAYERS_LAYER_H
#define BM_MODELS_LAYERS_LAYER_H

#include "compute/params.h"
#include "core/rng.h"

#define BM_LAYERS(X)                                                           \
    X(linear)                                                                  \
    X(conv)                                                                    \
    X(depthwise)                                                               \
    X(pool)                                                                    \
    X(batchnorm)                                                               \
    X(layernorm)                                                               \
    X(instancenorm)                                                            \
    X(relu)                                                                    \
    X(leaky_relu)                                                              \
    X(tanh)                                                                    \
    X(sigmoid)                                                                 \
    X(swish)                                                                   \
    X(gelu)                                                                    \
    X(glu)                                                                     \
    X(scale)                                                                   \
    X(lstm)                                                                    \
    X(blstm)                                                                   \
    X(gru)                                                                     \
    X(bgru)                                                                    \
    X(attention)                                                               \
    X(dropout)                                                                 \
    X(stack)                                                                   \
    X(subsample)                                                               \
    X(splice)                                                                  \
    X(residual)                                                                \
    X(branches)

typedef struct bm_layer bm_layer;

/* One array of a layer's weights, for names in checkpoints. */
typedef struct bm_weight {
    const char *name;  /* "wx"; the segment is then "0.lstm.wx" */
    const char *torch; /* its name in PyTorch, where it has the same shape;
                          NULL: `name` */
    int rank;
    size_t dim[4];
    size_t stacked; /* matrices, one after the other; 0: one if rank > 1;
                       or BM_NO_MATRIX */
    bool statistic; /* estimated from the data instead of learned */
    float start;    /* initial value of a statistic */
} bm_weight;

enum {
    BM_LAYER_WEIGHTS = 6,     /* arrays at most */
    BM_LAYER_WINDOW = 1024,   /* places of a window at most, but for pool:all */
    BM_LAYER_DISTANCES = 256, /* frames of splice, at most */
    BM_LAYER_ATTENDED = 4096  /* frames of a sequence with attention, at most */
};

/* A word of the network's description, for messages. */
typedef struct bm_word {
    const char *net;      /* the whole line; borrowed */
    size_t number;        /* from 1 */
    size_t start, length; /* characters */
} bm_word;

/* One pass over a batch. */
typedef struct bm_pass {
    bm_extent in, out; /* of x and dx; of y and dy */
    bool training;     /* with dropout and the batch's own statistics */
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

/* How many frames y has for n frames of the network's input: (n + shift) /
 * stride, rounded down; 0 if n is below `least`. */
typedef struct bm_frame_rate {
    double stride, shift, least;
} bm_frame_rate;

/* Floating-point operations of the products of a forward pass, 2 m n k for each
 * product of [m, k] and [k, n]. Backward repeats those of `input` for the
 * gradient of weights, and again if dx is needed; those of `inner` twice. */
typedef struct bm_flops {
    double input; /* products with x */
    double inner; /* products with the layer's own earlier outputs */
} bm_flops;

/* What a layer does for a group of branches; y of the first two is no memory
 * of its own, but the group's input. */
typedef enum bm_role {
    BM_ALONE,     /* all layers but those of group.c */
    BM_OPENS,     /* residual( */
    BM_SEPARATES, /* |, and of residual( f ) the layer in front of ) */
    BM_CLOSES,    /* ) */
} bm_role;

typedef struct bm_layer_ops {
    const char *name;   /* in [model] net */
    const char *others; /* other programs' names, small letters and digits with
                           blanks between: "dense fc". NULL: none. */
    const char *help;   /* with its arguments: "linear[:SIZE]  y = W x + b" */
    bm_role role;
    /* Given n_in, channels_in, n_out (0: the layer decides) and args, sets the
     * other sizes, windows and weights below. Fails with bm_layer_fail. */
    bm_status (*plan)(bm_layer *l);
    /* Initialises the learned weights w, on the host. NULL: there are none. */
    void (*init)(const bm_layer *l, float *w, bm_rng *rng);
    /* Floats of l->kept, kept from forward to backward. NULL: 0. */
    size_t (*kept)(const bm_layer *l, const bm_pass *p);
    /* Floats of l->work, which a call of forward or backward may use and layers
     * share. NULL: 0. */
    size_t (*work)(const bm_layer *l, const bm_pass *p);
    /* Cost of the products. NULL: no products. */
    bm_flops (*flops)(const bm_layer *l, const bm_pass *p);
    /* Called by bm_net_fuse() once the layer is planned. Adds e to l->after and
     * returns true if forward and backward can apply it after what is there
     * already; y and dy are then those after e. NULL: returns false. */
    bool (*fuse)(bm_layer *l, const bm_epilogue *e);
    /* Queued. x [T, B, n_in] -> y [T', B, n_out]. */
    void (*forward)(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y);
    /* Queued. Overwrites all of g, and dx unless dx.data is NULL (not needed).
     * May overwrite dy. gs <- the decrement of each statistic, which the local
     * update subtracts. x, y and kept are those of forward. */
    void (*backward)(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx);
} bm_layer_ops;

struct bm_layer {
    const bm_layer_ops *ops;
    bm_backend *be;     /* borrowed */
    size_t number;      /* among the layers that are BM_ALONE */
    char name[40];      /* "2.lstm": prefix of its segments' names */
    char args[64];      /* "32,3x3": the text after the colon */
    bm_word word;       /* its place in the line */
    size_t n_in, n_out; /* features per frame */
    bool assumed;       /* n_in depends on the data, which is not known yet */
    size_t channels_in, channels; /* of a column of x, of y; 0: a flat frame */
    bm_window time; /* frames of x under a frame of y: T' = bm_windows(time, T),
                       for each sequence, too; one frame unless plan sets it */
    bm_window rows; /* likewise for a column's height; conv and pool only */
    size_t dilation[2];                  /* of conv: of time, of rows */
    bm_frame_rate rate_in, rate_out;     /* of x, of y */
    bm_weight weights[BM_LAYER_WEIGHTS]; /* in the order they lie in w */
    int n_weights;
    bool mean;       /* pool's windows have means, not maxima */
    size_t opening;  /* of a separator or a closing layer: how many layers
                          in front of it the group opens */
    size_t previous; /* likewise: of the separator in front of it, or as
                          `opening` */
    bool last;       /* a separator: in front of the last branch */
    bm_tensor end;   /* a separator: its x, the output of a branch */
    float drop;      /* p of dropout, or of weight dropout */
    float factor;    /* of scale */
    size_t heads;    /* of attention */
    size_t most;     /* frames of a sequence of x; 0: any number */
    short distances[BM_LAYER_DISTANCES]; /* of splice, rising */
    size_t n_distances;
    bm_epilogue does;  /* set by plan: the whole layer as an epilogue, or {0} */
    bm_epilogue after; /* set by fuse: what the layer applies to its output */
    size_t fused;      /* set by bm_net_fuse: the layers after it in `after` */
    float *w, *g;      /* learned weights, their gradient: views of params */
    float *s, *gs;     /* statistics, their decrements: likewise */
    float *kept, *work; /* [kept()], [work()]: views of the model's scratch */
};

/* For plan(): returns BM_ERR_CONFIG; the message marks the layer's word. */
bm_status bm_layer_fail(const bm_layer *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For plan(): *out <- the text, such as args, as a number of at least 1. `what`
 * is for messages: "cells". Fails with BM_ERR_CONFIG if the text is invalid, ""
 * or NULL. */
BM_CHECKED bm_status bm_layer_count(const bm_layer *l, const char *what,
                                    const char *text, size_t *out);

/* Likewise, a number from 1 to `most`. */
BM_CHECKED bm_status bm_layer_count_up_to(const bm_layer *l, const char *what,
                                          const char *text, size_t most,
                                          size_t *out);

/* Likewise a probability in [0, 1). */
BM_CHECKED bm_status bm_layer_probability(const bm_layer *l, const char *text,
                                          float *out);

/* Likewise "3x5", numbers of frames and of rows, each at least `least`. */
BM_CHECKED bm_status bm_layer_pair(const bm_layer *l, const char *what,
                                   const char *text, size_t least,
                                   size_t out[2]);

/* How bm_layer_windows() reads the words of a layer. */
typedef struct bm_window_words {
    const char *what; /* for messages: "kernel" */
    size_t size[2];   /* of a window: of time, of rows; without dilation */
    size_t stride[2]; /* if there is no word */
    bool averages;    /* may one be `mean`? It sets l->mean. */
    bool dilates;     /* dilation:TIMExHEIGHT? It sets l->dilation. */
} bm_window_words;

/*
 * Sets time and rows for such windows, from the words that are left of the
 * arguments: stride:TIMExHEIGHT, pad:TIMExHEIGHT and those above. Dilation d
 * makes d (size - 1) + 1 places of `size`. Without pad the padding is "same":
 * places - 1 in total, the smaller half first. Fails as bm_layer_pair does, and
 * if there are no windows over the rows of x.
 */
BM_CHECKED bm_status bm_layer_windows(bm_layer *l, const bm_window_words *words,
                                      char *rest);

/* Cuts the next of comma-separated arguments off *rest; NULL: no more. */
const char *bm_layer_argument(char **rest);

/* For plan(): fails with BM_ERR_CONFIG if *given, else sets it: each word of a
 * layer may be given once. */
BM_CHECKED bm_status bm_layer_once(const bm_layer *l, const char *word,
                                   bool *given);

/* Channels of x as a column; a flat frame has one. */
static inline size_t bm_layer_channels_in(const bm_layer *l)
{
    return l->channels_in > 0 ? l->channels_in : 1;
}

/* Does y have a frame for every frame of x? */
static inline bool bm_layer_keeps_frames(const bm_layer *l)
{
    return l->time.stride == 1 &&
           l->time.before + l->time.after + 1 == l->time.size;
}

/* The weights or statistics of this name, NULL: there are none. On a backend of
 * the host they can be read in place. */
const float *bm_layer_weight(const bm_layer *l, const char *name);

/* For init(): w [n] <- uniform within +-sqrt(6 / (fan_in + fan_out)) (Glorot
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

/* Words that are no names: | and ) of a group. */
extern const bm_layer_ops bm_layer_separator, bm_layer_closing;

#endif

/*
 * onnx_flow.h - the value between two layers in a graph of ONNX, and the
 * operators that layers are written with. Operators know no padding. So the
 * graph computes the lengths of sequences after each layer, and in front of a
 * layer that looks at several frames it replaces what is past the end of a
 * sequence by zeros.
 *
 * Values lie as the next layer needs them:
 *
 *     BM_AS_BATCH    [B, T, D]        BM_AS_TIME    [T, B, D]: LSTMs, GRUs
 *     BM_AS_COLUMNS  [B, C, T, H]: images; D = H C, in a frame channels are last
 *
 * To add a layer: a bm_onnx_writer, and its row in onnx_layers.c.
 */
#ifndef BM_CLI_EXPORT_ONNX_FLOW_H
#define BM_CLI_EXPORT_ONNX_FLOW_H

#include "cli/export/onnx_graph.h"
#include "models/layers/layer.h"

typedef enum bm_flow_layout {
    BM_AS_BATCH,
    BM_AS_TIME,
    BM_AS_COLUMNS
} bm_flow_layout;

typedef struct bm_flow {
    bm_graph *g;
    const char *x;
    bm_flow_layout lies;
    size_t size, channels; /* of a frame; of BM_AS_COLUMNS */
    bool zero;             /* past the end of each sequence */
    const char *lengths;   /* [B] */
    const char *inside; /* [B, T]: is it before the end? NULL: not computed */
    const struct bm_flow *entered; /* the flow in front of each layer so far */
    const bm_layer *layers;        /* the first */
} bm_flow;

/* Writes a layer: *f becomes the value after it. */
typedef void bm_onnx_writer(bm_flow *f, const bm_layer *l);

bm_onnx_writer bm_onnx_write_conv, bm_onnx_write_depthwise, bm_onnx_write_pool,
    bm_onnx_write_stack, bm_onnx_write_splice, bm_onnx_write_subsample;
bm_onnx_writer bm_onnx_write_batchnorm, bm_onnx_write_layernorm,
    bm_onnx_write_instancenorm;
bm_onnx_writer bm_onnx_write_attention, bm_onnx_write_recurrent;

/* ---- operators ----------------------------------------------------------- */

#define BM_NODE(...) bm_graph_node(__VA_ARGS__, NULL)
#define BM_LIST(...)                                                           \
    (const int64_t[])                                                          \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

/* Constants: x [n], and a number. */
const char *bm_onnx_vector(bm_graph *g, size_t n, const int64_t *x);
const char *bm_onnx_scalar(bm_graph *g, int64_t x);

const char *bm_onnx_transpose(bm_graph *g, const char *x, size_t rank,
                              const int64_t *order);

/* 0 in `shape` keeps a dimension; -1 follows from the others. */
const char *bm_onnx_reshape(bm_graph *g, const char *x, size_t rank,
                            const int64_t *shape);

const char *bm_onnx_unsqueeze(bm_graph *g, const char *x, size_t n,
                              const int64_t *axes);

/* x from number `from` to number `to` - 1 of an axis. */
const char *bm_onnx_slice(bm_graph *g, const char *x, int64_t axis,
                          int64_t from, int64_t to);

/* ---- layouts, lengths, weights ------------------------------------------- */

void bm_flow_to_batch(bm_flow *f);
void bm_flow_to_time(bm_flow *f);
void bm_flow_to_columns(bm_flow *f, size_t channels);

/* The number of frames T, padding included. */
const char *bm_flow_frames(const bm_flow *f);

/* f->inside, computed by the first call. */
const char *bm_flow_inside(bm_flow *f);

/* Replaces x by `other` past the end of each sequence, a constant of that name;
 * clear: by zero, unless it is zero there. */
void bm_flow_replace(bm_flow *f, float other, const char *name);
void bm_flow_clear(bm_flow *f);

/* The lengths after windows over time: see bm_windows. */
void bm_flow_count_windows(bm_flow *f, bm_window w);

/* A vector of weights; w [rows, K] as the second factor of a product. */
const char *bm_flow_weight(bm_flow *f, const bm_layer *l, const char *name,
                           size_t n);
const char *bm_flow_turned(bm_flow *f, const char *name, const float *w,
                           size_t rows, size_t K);

#endif

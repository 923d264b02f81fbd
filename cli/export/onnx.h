/*
 * onnx.h - writes a network as a graph of ONNX, for onnxruntime and other
 * programs. docs/results/export.md describes the graph.
 */
#ifndef BM_CLI_EXPORT_ONNX_H
#define BM_CLI_EXPORT_ONNX_H

#include "cli/export/onnx_graph.h"
#include "recognise/recogniser.h"

/* Writes the network of *r, whose backend must be the host, with all that is
 * known of its input and output. Fails with BM_ERR_UNSUPPORTED, naming the
 * layer, if one has no counterpart there, or as bm_graph_write. */
BM_CHECKED bm_status bm_onnx_write(const bm_recogniser *r, const char *path);

/* Adds the layers to a graph. features, lengths: names of values [batch,
 * frames, n_in] and [batch]; on return those of the output. Whether input past a
 * sequence's end is zero does not matter. Fails with BM_ERR_UNSUPPORTED, naming
 * the layer, if one has no counterpart. */
BM_CHECKED bm_status bm_onnx_layers(bm_graph *g, const bm_layer *layers,
                                    size_t n, const char **features,
                                    const char **lengths);

#endif

/*
 * onnx_graph.h - builds a graph of ONNX, the exchange format for networks, and
 * writes it to a file. A value of the graph is known by its name.
 *
 *     bm_graph *g = NULL;
 *
 *     BM_TRY(bm_graph_new(&g));
 *     bm_graph_input(g, "x", BM_GRAPH_FLOAT, "batch frames 40");
 *     bm_graph_scope(g, "0.relu");
 *     y = bm_graph_node(g, "Relu", "x", NULL); // called "0.relu/Relu"
 *     bm_graph_output(g, "y", y, BM_GRAPH_FLOAT, "batch frames 40");
 *     status = bm_graph_write(g, "net.onnx");
 *     bm_graph_free(g);
 *
 * Calls that add to a graph cannot fail at once: the first failure, for want of
 * memory, is remembered and returned by bm_graph_write. Names and texts that
 * they return belong to the graph.
 */
#ifndef BM_CLI_EXPORT_ONNX_GRAPH_H
#define BM_CLI_EXPORT_ONNX_GRAPH_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bm_graph bm_graph;

/* Types of values, as the format numbers them. */
enum { BM_GRAPH_FLOAT = 1, BM_GRAPH_INT32 = 6, BM_GRAPH_INT64 = 7 };

/* The operators are those of version 12 (May 2020). */
enum { BM_GRAPH_OPERATORS = 12, BM_GRAPH_FORMAT = 7 };

BM_CHECKED bm_status bm_graph_new(bm_graph **out);
void bm_graph_free(bm_graph *g); /* g may be NULL */

/* For a caller that has no memory: remembered as the graph's own failures. */
void bm_graph_fail(bm_graph *g);

/* The part of the network that the next names begin with. */
void bm_graph_scope(bm_graph *g, const char *name);

/* A text for the file's readers. */
void bm_graph_text(bm_graph *g, const char *key, const char *text);

/* An input, or the output `name` that has the value `x`. shape: its dimensions,
 * numbers or names of what may be any number: "batch frames 40". */
void bm_graph_input(bm_graph *g, const char *name, int type, const char *shape);
void bm_graph_output(bm_graph *g, const char *name, const char *x, int type,
                     const char *shape);

/* A constant, copied; rank 0 is a scalar. What is returned is its name: the
 * scope's, "/" and this one. */
const char *bm_graph_floats(bm_graph *g, const char *name, int rank,
                            const size_t *dim, const float *x);
const char *bm_graph_integers(bm_graph *g, int rank, size_t n,
                              const int64_t *x);

/* Applies an operator to values, the last of them NULL; "": an optional input
 * that is left out. Returns its first output. */
const char *bm_graph_node(bm_graph *g, const char *op, ...)
    __attribute__((sentinel));

/* Attributes of the last node. */
void bm_graph_set(bm_graph *g, const char *name, int64_t value);
void bm_graph_set_float(bm_graph *g, const char *name, float value);
void bm_graph_set_word(bm_graph *g, const char *name, const char *value);
void bm_graph_set_list(bm_graph *g, const char *name, size_t n,
                       const int64_t *values);

/* Writes the file. Fails with BM_ERR_MEMORY, with BM_ERR_UNSUPPORTED if it
 * would have 2 GB or more, which the format forbids, or as bm_file_write. */
BM_CHECKED bm_status bm_graph_write(bm_graph *g, const char *path);

#endif

/*
 * networks.h - networks for bmuf export, with random weights, and graphs that are
 * read back.
 */
#ifndef BM_TESTS_CLI_EXPORT_NETWORKS_H
#define BM_TESTS_CLI_EXPORT_NETWORKS_H

#include "models/model.h"

#include <onnx.pb-c.h>
#include <stddef.h>
#include <stdint.h>

/* ---- networks ------------------------------------------------------------ */

enum { FEATURES = 12 };

/* Of every model: its vocabulary; settings of features. */
extern const char vocabulary[], settings[];

/* Networks that have all layers, together. */
extern const char every_layer[], with_groups[], gru_layers[], of_a_conformer[],
    pools[];

/* Setup of a group: every.safetensors, a model of every_layer, in the folder. */
int make_every_layer(void **state);

/* A backend on the CPU, the same in all calls. */
bm_backend *host(void);

/* A network with random weights, the same in all calls; bm_model_free. */
bm_model *network(const char *net);

/* Writes a network, or a new one, to a file of the folder. */
void write_network(bm_model *m, const char *name, const char *net,
                   const char *features);
void write_model(const char *name, const char *net, const char *features);

/* ---- graphs -------------------------------------------------------------- */

/* A file of the folder; onnx__model_proto__free_unpacked. */
Onnx__ModelProto *read_graph(const char *name);

/* The numbers of a constant, which must be floats of these dimensions. */
const float *floats(const Onnx__ModelProto *m, const char *name, int rank,
                    const int64_t *dims);

/* The number of nodes of that name. */
size_t count_nodes(const Onnx__ModelProto *m, const char *name);

/* An attribute of a node, NULL: there is none. */
const Onnx__AttributeProto *attribute(const Onnx__ModelProto *m,
                                      const char *node, const char *name);

/* Every node reads inputs of the graph, constants, or earlier nodes. */
void assert_connected(const Onnx__GraphProto *g);

#endif

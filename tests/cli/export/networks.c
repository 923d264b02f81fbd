#include "tests/cli/export/networks.h"

#include "io/model/model_file.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

/* ---- networks ------------------------------------------------------------ */

const char vocabulary[] = "<blank>\na\nb\n";
const char settings[] =
    "{\"kind\": \"audio\", \"rate\": 16000, \"normalise\": \"none\"}";

const char every_layer[] =
    "conv:4,3x2,stride:1x2 batchnorm leaky_relu pool:2x3 dropout:0.2 blstm:5 "
    "linear:7 batchnorm relu tanh stack:2 sigmoid subsample:2 lstm:6 linear";

const char with_groups[] =
    "conv:4,3x3 residual( conv:4,3x3 relu conv:4,3x3 ) branches( conv:2,1x1 | "
    "tanh | ) residual( linear:5 | linear:5 ) layernorm "
    "splice:-2,1..2 linear";

const char gru_layers[] = "bgru:5,weight_dropout:0.3 gru:4 linear";
const char of_a_conformer[] =
    "linear:8 swish glu scale:0.5 depthwise:3,stride:2 attention:2 gelu linear";

const char pools[] = "instancenorm pool:3x3,stride:2x2 pool:2x2,mean "
                     "branches( pool:all | pool:all,mean ) "
                     "linear";

bm_backend *host(void)
{
    static bm_backend *be;

    if (be == NULL)
        assert_ok(bm_backend_open(&be, "cpu", 0));
    return be;
}

bm_model *network(const char *net)
{
    bm_model_settings set = {net, "ctc", "skip"};
    bm_model_shape shape = {FEATURES, 3, 1};
    bm_model *m = NULL;

    assert_ok(bm_model_new(&m, &set, &shape, host(), 7));
    return m;
}

void write_network(bm_model *m, const char *name, const char *net,
                   const char *features)
{
    const bm_text texts[] = {{"net", net},
                             {"loss", "ctc"},
                             {"infeasible", "skip"},
                             {"features", "12"},
                             {"feature_settings", features},
                             {"vocabulary", vocabulary},
                             {"units", "characters"},
                             {0}};
    const bm_params *p = bm_model_params(m);

    assert_ok(bm_model_export(in_folder(name), p, p->w, texts));
}

void write_model(const char *name, const char *net, const char *features)
{
    bm_model *m = network(net);

    write_network(m, name, net, features);
    bm_model_free(m);
}

int make_every_layer(void **state)
{
    if (folder_make(state) != 0)
        return -1;
    write_model("every.safetensors", every_layer, settings);
    return 0;
}

/* ---- graphs -------------------------------------------------------------- */

Onnx__ModelProto *read_graph(const char *name)
{
    size_t size = 0;
    char *bytes = slurp(in_folder(name), &size);
    Onnx__ModelProto *m =
        onnx__model_proto__unpack(NULL, size, (const uint8_t *)bytes);

    assert_non_null(m);
    free(bytes);
    return m;
}

static const Onnx__TensorProto *constant(const Onnx__ModelProto *m,
                                         const char *name)
{
    for (size_t i = 0; i < m->graph->n_initializer; i++)
        if (strcmp(m->graph->initializer[i]->name, name) == 0)
            return m->graph->initializer[i];
    fail_msg("there is no constant %s", name);
    return NULL;
}

const float *floats(const Onnx__ModelProto *m, const char *name, int rank,
                    const int64_t *dims)
{
    const Onnx__TensorProto *t = constant(m, name);
    size_t n = 1;

    assert_int_equal(t->data_type, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    assert_int_equal(t->n_dims, rank);
    for (int i = 0; i < rank; i++) {
        assert_int_equal(t->dims[i], dims[i]);
        n *= (size_t)dims[i];
    }
    assert_int_equal(t->raw_data.len, n * sizeof(float));
    return (const float *)(const void *)t->raw_data.data;
}

size_t count_nodes(const Onnx__ModelProto *m, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < m->graph->n_node; i++)
        n += strcmp(m->graph->node[i]->name, name) == 0;
    return n;
}

const Onnx__AttributeProto *attribute(const Onnx__ModelProto *m,
                                      const char *node, const char *name)
{
    for (size_t i = 0; i < m->graph->n_node; i++) {
        const Onnx__NodeProto *at = m->graph->node[i];

        for (size_t k = 0; k < at->n_attribute; k++)
            if (strcmp(at->name, node) == 0 &&
                strcmp(at->attribute[k]->name, name) == 0)
                return at->attribute[k];
    }
    return NULL;
}

void assert_connected(const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_input; k++) {
            const char *x = g->node[i]->input[k];
            size_t found = 0;

            for (size_t j = 0; j < g->n_input; j++)
                found += strcmp(g->input[j]->name, x) == 0;
            for (size_t j = 0; j < g->n_initializer; j++)
                found += strcmp(g->initializer[j]->name, x) == 0;
            for (size_t j = 0; j < i; j++)
                found += strcmp(g->node[j]->output[0], x) == 0;
            if (found != 1)
                fail_msg("%s reads %s, of which there are %zu",
                         g->node[i]->name, x, found);
        }
}

/*
 * bmuf export: files for other programs, read back as their formats are
 * defined. That onnxruntime computes the same is what tools/check_onnx checks.
 */
#include "cli/export/onnx.h"
#include "io/model/model_file.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <ctype.h>
#include <math.h>
#include <onnx.pb-c.h>
#include <stdlib.h>
#include <string.h>

/* ---- models -------------------------------------------------------------- */

enum { FEATURES = 12 };
static const char vocabulary[] = "<blank>\na\nb\n";
static const char settings[] =
    "{\"kind\": \"audio\", \"rate\": 16000, \"normalise\": \"none\"}";

static const char every_layer[] =
    "conv:4,3x2,stride:1x2 batchnorm leaky_relu pool:2x3 dropout:0.2 blstm:5 "
    "linear:7 batchnorm relu tanh stack:2 sigmoid subsample:2 lstm:6 linear";

static const char with_groups[] =
    "conv:4,3x3 residual( conv:4,3x3 relu conv:4,3x3 ) branches( conv:2,1x1 | "
    "tanh | ) residual( linear:5 | linear:5 ) layernorm "
    "splice:-2,1..2 linear";

static const char gru_layers[] = "bgru:5,weight_dropout:0.3 gru:4 linear";
static const char of_a_conformer[] =
    "linear:8 swish glu scale:0.5 depthwise:3,stride:2 attention:2 gelu linear";

static const char pools[] = "instancenorm pool:3x3,stride:2x2 pool:2x2,mean "
                            "branches( pool:all | pool:all,mean ) "
                            "linear";

static bm_backend *host(void)
{
    static bm_backend *be;

    if (be == NULL)
        assert_ok(bm_backend_open(&be, "cpu", 0));
    return be;
}

/* A network with random weights; free it. */
static bm_model *network(const char *net)
{
    bm_model_settings set = {net, "ctc", "skip"};
    bm_model_shape shape = {FEATURES, 3, 1};
    bm_model *m = NULL;

    assert_ok(bm_model_new(&m, &set, &shape, host(), 7));
    return m;
}

/* Writes a network to a file of the folder. */
static void write_network(bm_model *m, const char *name, const char *net,
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

static void write_model(const char *name, const char *net, const char *features)
{
    bm_model *m = network(net);

    write_network(m, name, net, features);
    bm_model_free(m);
}

static int prepare(void **state)
{
    if (folder_make(state) != 0)
        return -1;
    write_model("every.safetensors", every_layer, settings);
    return 0;
}

static const float *array(const dump *d, const char *name, int rank,
                          const size_t *dim)
{
    const dump_array *a = dump_find(d, name);

    assert_non_null(a);
    assert_int_equal(a->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(a->dim[i], dim[i]);
    return a->x;
}

/* ---- ONNX ---------------------------------------------------------------- */

static Onnx__ModelProto *read_graph(const char *name)
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

static const float *floats(const Onnx__ModelProto *m, const char *name,
                           int rank, const int64_t *dims)
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

static const char *metadata(const Onnx__ModelProto *m, const char *key)
{
    for (size_t i = 0; i < m->n_metadata_props; i++)
        if (strcmp(m->metadata_props[i]->key, key) == 0)
            return m->metadata_props[i]->value;
    return NULL;
}

static size_t count_nodes(const Onnx__ModelProto *m, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < m->graph->n_node; i++)
        n += strcmp(m->graph->node[i]->name, name) == 0;
    return n;
}

/* x -> Relu -> y, byte by byte as the encoding of protocol buffers has it. */
static void test_a_small_graph_has_known_bytes(void **_)
{
    static const char right[] =
        "\x08\x07" /* ir_version 7 */
        "\x12\x04"
        "bmuf"     /* producer_name */
        "\x3a\x6a" /* graph, 106 bytes */
        "\x0a\x19" /*   node */
        "\x0a\x01"
        "x"
        "\x12\x06"
        "l/Relu"
        "\x1a\x06"
        "l/Relu"
        "\x22\x04"
        "Relu"
        "\x0a\x18" /*   node */
        "\x0a\x06"
        "l/Relu"
        "\x12\x01"
        "y"
        "\x1a\x01"
        "y"
        "\x22\x08"
        "Identity"
        "\x12\x07"
        "network"
        "\x5a\x14" /*   input */
        "\x0a\x01"
        "x"
        "\x12\x0f\x0a\x0d\x08\x01\x12\x09"
        "\x0a\x03\x12\x01"
        "n"
        "\x0a\x02\x08\x04"
        "\x62\x14" /*   output */
        "\x0a\x01"
        "y"
        "\x12\x0f\x0a\x0d\x08\x01\x12\x09"
        "\x0a\x03\x12\x01"
        "n"
        "\x0a\x02\x08\x04"
        "\x42\x04\x0a\x00\x10\x0c"; /* operators of "", version 12 */
    bm_graph *g = NULL;
    size_t size = 0;
    char *bytes = NULL;

    (void)_;
    assert_ok(bm_graph_new(&g));
    bm_graph_input(g, "x", BM_GRAPH_FLOAT, "n 4");
    bm_graph_scope(g, "l");
    bm_graph_output(g, "y", bm_graph_node(g, "Relu", "x", NULL), BM_GRAPH_FLOAT,
                    "n 4");
    assert_ok(bm_graph_write(g, in_folder("small.onnx")));
    bm_graph_free(g);
    bytes = slurp(in_folder("small.onnx"), &size);
    assert_int_equal(size, sizeof right - 1);
    assert_memory_equal(bytes, right, size);
    free(bytes);
}

static void assert_shape(const Onnx__ValueInfoProto *v, const char *name,
                         int type, const char *last, int64_t size)
{
    const Onnx__TypeProto__Tensor *t = v->type->tensor_type;
    size_t n = t->shape->n_dim;

    assert_string_equal(v->name, name);
    assert_int_equal(t->elem_type, type);
    assert_string_equal(t->shape->dim[0]->dim_param, "batch");
    if (last == NULL) {
        assert_int_equal(n, 1);
        return;
    }
    assert_int_equal(n, 3);
    assert_string_equal(t->shape->dim[1]->dim_param, last);
    assert_int_equal(t->shape->dim[2]->dim_value, size);
}

/* Every node reads inputs of the graph, constants, or earlier nodes. */
static void assert_connected(const Onnx__GraphProto *g)
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

static void test_a_graph_has_names_shapes_and_texts(void **_)
{
    Onnx__ModelProto *m = NULL;
    static const char *const nodes[] = {"0.conv/Conv",
                                        "1.batchnorm/BatchNormalization",
                                        "3.pool/MaxPool",
                                        "5.blstm/LSTM",
                                        "6.linear/MatMul",
                                        "7.batchnorm/Mul",
                                        "8.relu/Relu",
                                        "9.tanh/Tanh",
                                        "10.stack/Pad",
                                        "11.sigmoid/Sigmoid",
                                        "12.subsample/Slice",
                                        "13.lstm/LSTM",
                                        "2.leaky_relu/LeakyRelu",
                                        "logits",
                                        "logit_lengths"};

    (void)_;
    assert_code(BMUF("export", "every.safetensors", "--onnx", "every.onnx"), 0);
    m = read_graph("every.onnx");
    assert_int_equal(m->ir_version, 7);
    assert_int_equal(m->opset_import[0]->version, 12);
    FOR_EACH (i, nodes) {
        if (count_nodes(m, nodes[i]) != 1)
            fail_msg("%zu nodes are called %s", count_nodes(m, nodes[i]),
                     nodes[i]);
    }
    assert_int_equal(m->graph->n_input, 2);
    assert_shape(m->graph->input[0], "features", BM_GRAPH_FLOAT, "frames",
                 FEATURES);
    assert_shape(m->graph->input[1], "lengths", BM_GRAPH_INT64, NULL, 0);
    assert_int_equal(m->graph->n_output, 2);
    assert_shape(m->graph->output[0], "logits", BM_GRAPH_FLOAT, "output_frames",
                 3);
    assert_shape(m->graph->output[1], "logit_lengths", BM_GRAPH_INT64, NULL, 0);
    assert_connected(m->graph);
    assert_string_equal(metadata(m, "vocabulary"), vocabulary);
    assert_string_equal(metadata(m, "net"), every_layer);
    assert_string_equal(metadata(m, "sample_rate"), "16000");
    assert_string_equal(metadata(m, "input_frames_per_output"), "8");
    assert_string_equal(metadata(m, "normalised_by_graph"), "no");
    onnx__model_proto__free_unpacked(m, NULL);
}

/* Without padding the windows of 5 and, of their outputs, of 2 frames every second
 * one need 5 + 1 frames; a sequence may be shorter than a window with padding. */
static void test_the_fewest_frames_are_told(void **_)
{
    static const char *const nets[][2] = {
        {"conv:2,5x3,pad:0x0 conv:2,2x3,stride:2x1,pad:0x0 linear", "6"},
        {"conv:2,5x3 linear", "1"},
        {"conv:2,3x3,stride:2x1,pad:0x0 conv:2,3x3,pad:0x0 linear", "7"},
    };

    (void)_;
    for (size_t k = 0; k < sizeof nets / sizeof nets[0]; k++) {
        Onnx__ModelProto *m = NULL;

        write_model("short.safetensors", nets[k][0], settings);
        assert_code(BMUF("export", "short.safetensors", "--onnx", "short.onnx"),
                    0);
        m = read_graph("short.onnx");
        assert_string_equal(metadata(m, "least_frames"), nets[k][1]);
        onnx__model_proto__free_unpacked(m, NULL);
    }
}

/* Rows of the gates i, f, g, o of a direction become i, o, f, g. */
static void test_gates_and_kernels_have_the_order_of_onnx(void **_)
{
    enum { H = 5, D = 8 }; /* the pool makes 2 rows of 4 channels */
    static const size_t gate[] = {0, 3, 1, 2};
    bm_model *net = network(every_layer);
    size_t n = 0;
    const bm_layer *l = bm_model_layers(net, &n);
    const float *wx = bm_layer_weight(&l[5], "wx"),
                *kernel = bm_layer_weight(&l[0], "w"), *found = NULL;
    Onnx__ModelProto *m = NULL;

    (void)_;
    assert_code(BMUF("export", "every.safetensors", "--onnx", "every.onnx"), 0);
    m = read_graph("every.onnx");
    found = floats(m, "5.blstm/wx", 3, (int64_t[]){2, 4 * H, D});
    for (size_t r = 0; r < 2; r++)
        for (size_t k = 0; k < 4; k++)
            assert_memory_equal(found + (r * 4 + k) * H * D,
                                wx + (r * 4 + gate[k]) * H * D,
                                H * D * sizeof *wx);
    found = floats(m, "5.blstm/b", 2, (int64_t[]){2, 8 * H});
    for (size_t i = 0; i < H; i++) {
        assert_true(found[2 * H + i] == 1); /* forget gates, as drawn */
        assert_true(found[i] == 0 && found[4 * H + i] == 0);
    }
    found = floats(m, "0.conv/w", 4, (int64_t[]){4, 1, 3, 2});
    for (size_t k = 0; k < 4; k++)
        for (size_t place = 0; place < 6; place++)
            assert_true(found[k * 6 + place] == kernel[place * 4 + k]);
    onnx__model_proto__free_unpacked(m, NULL);
    bm_model_free(net);
}

/* An attribute of a node, NULL: there is none. */
static const Onnx__AttributeProto *attribute(const Onnx__ModelProto *m,
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

static long integer(const Onnx__ModelProto *m, const char *node,
                    const char *name)
{
    const Onnx__AttributeProto *a = attribute(m, node, name);

    if (a == NULL)
        fail_msg("%s has no attribute %s", node, name);
    return a != NULL ? (long)a->i : 0;
}

static void check_list(const Onnx__ModelProto *m, const char *node,
                       const char *name, size_t n, const int64_t *expected)
{
    const Onnx__AttributeProto *a = attribute(m, node, name);

    if (a == NULL || a->n_ints != n)
        fail_msg("%s has no %zu numbers %s", node, n, name);
    else
        assert_memory_equal(a->ints, expected, n * sizeof *expected);
}

/* Kernels have their own size; padding follows from the span, 5 x 7. */
static void test_dilation_is_an_attribute_of_convolutions(void **_)
{
    Onnx__ModelProto *m = NULL;

    (void)_;
    write_model("dilated.safetensors",
                "conv:4,3x4,stride:2x1,dilation:2x2 conv:2,3x3 linear",
                settings);
    assert_code(BMUF("export", "dilated.safetensors", "--onnx", "dilated.onnx"),
                0);
    m = read_graph("dilated.onnx");
    assert_non_null(floats(m, "0.conv/w", 4, (int64_t[]){4, 1, 3, 4}));
    check_list(m, "0.conv/Conv", "kernel_shape", 2, (int64_t[]){3, 4});
    check_list(m, "0.conv/Conv", "dilations", 2, (int64_t[]){2, 2});
    check_list(m, "0.conv/Conv", "strides", 2, (int64_t[]){2, 1});
    check_list(m, "0.conv/Conv", "pads", 4, (int64_t[]){2, 3, 2, 3});
    check_list(m, "1.conv/Conv", "kernel_shape", 2, (int64_t[]){3, 3});
    assert_null(attribute(m, "1.conv/Conv", "dilations"));
    onnx__model_proto__free_unpacked(m, NULL);
}

/* r, z, n of a direction become z, r, h, with a bias of x and one of h; b[i] is
 * i. */
static void check_gru_graph(const float *wx, const float *wh, size_t H,
                            size_t D)
{
    static const size_t place[] = {1, 0, 2};
    Onnx__ModelProto *m = read_graph("gru.onnx");
    const float *x =
        floats(m, "0.bgru/wx", 3, (int64_t[]){2, (int64_t)(3 * H), (int64_t)D});
    const float *h =
        floats(m, "0.bgru/wh", 3, (int64_t[]){2, (int64_t)(3 * H), (int64_t)H});
    const float *b = floats(m, "0.bgru/b", 2, (int64_t[]){2, (int64_t)(6 * H)});

    assert_int_equal(count_nodes(m, "0.bgru/GRU"), 1);
    for (size_t i = 0; i < 6; i++) {
        size_t r = i / 3, k = i % 3, from = r * 3 + place[k];

        assert_memory_equal(x + i * H * D, wx + from * H * D,
                            H * D * sizeof *x);
        assert_memory_equal(h + i * H * H, wh + from * H * H,
                            H * H * sizeof *h);
        for (size_t j = 0; j < H; j++) {
            assert_true(b[(r * 6 + k) * H + j] ==
                        (float)((r * 4 + place[k]) * H + j));
            assert_true(b[(r * 6 + 3 + k) * H + j] ==
                        (k == 2 ? (float)((r * 4 + 3) * H + j) : 0));
        }
    }
    assert_int_equal(integer(m, "0.bgru/GRU", "linear_before_reset"), 1);
    assert_int_equal(integer(m, "0.bgru/GRU", "hidden_size"), H);
    onnx__model_proto__free_unpacked(m, NULL);
}

static void check_gru_arrays(const float *wx, size_t H, size_t D)
{
    dump d = dump_read("gru.npz");
    const float *x =
        array(&d, "0.weight_ih_l0_reverse", 2, (size_t[]){3 * H, D});

    assert_memory_equal(x, wx + 3 * H * D, 3 * H * D * sizeof *x);
    (void)array(&d, "0.weight_hh_l0", 2, (size_t[]){3 * H, H});
    x = array(&d, "0.bias_ih_l0", 1, (size_t[]){3 * H});
    for (size_t i = 0; i < 3 * H; i++)
        assert_true(x[i] == (float)i);
    x = array(&d, "0.bias_hh_l0_reverse", 1, (size_t[]){3 * H});
    for (size_t i = 0; i < 3 * H; i++)
        assert_true(x[i] == (i < 2 * H ? 0 : (float)(4 * H + H + i)));
    dump_free(&d);
}

static void test_a_gru_has_the_order_of_onnx_and_of_pytorch(void **_)
{
    enum { H = 5 };
    bm_model *net = network(gru_layers);
    size_t n = 0;
    const bm_layer *l = bm_model_layers(net, &n);
    const float *wx = bm_layer_weight(l, "wx"), *wh = bm_layer_weight(l, "wh");
    float *b = l->w + (bm_layer_weight(l, "b") - l->w);

    (void)_;
    for (size_t i = 0; i < (size_t)2 * 4 * H; i++)
        b[i] = (float)i; /* r, z, n, q of each direction */
    write_network(net, "gru.safetensors", gru_layers, settings);
    assert_code(BMUF("export", "gru.safetensors", "--onnx", "gru.onnx"), 0);
    check_gru_graph(wx, wh, H, FEATURES);
    assert_code(BMUF("export", "gru.safetensors", "--npz", "gru.npz"), 0);
    check_gru_arrays(wx, H, FEATURES);
    bm_model_free(net);
}

static void test_a_projection_goes_to_numpy_alone(void **_)
{
    enum { H = 5, P = 2, WX = 2 * 4 * H * FEATURES, WH = 2 * 4 * H * P };
    static const char net[] = "blstm:5,project:2 linear";
    bm_model *m = network(net);
    size_t n = 0;
    const float *w = bm_model_layers(m, &n)->w, *x = NULL;
    dump d = {0};

    (void)_;
    write_network(m, "projects.safetensors", net, settings);
    assert_fails(BMUF("export", "projects.safetensors", "--onnx", "no.onnx"),
                 78, "layer 0.blstm: ONNX's LSTM has no projection", "--npz");
    assert_code(BMUF("export", "projects.safetensors", "--npz", "projects.npz"),
                0);
    d = dump_read("projects.npz");
    x = array(&d, "0.weight_hh_l0_reverse", 2, (size_t[]){4 * H, P});
    assert_memory_equal(x, w + WX + 4 * H * P, 4 * H * P * sizeof *x);
    x = array(&d, "0.weight_hr_l0_reverse", 2, (size_t[]){P, H});
    assert_memory_equal(x, w + WX + WH + 2 * 4 * H + P * H, P * H * sizeof *x);
    dump_free(&d);
    bm_model_free(m);
}

static void test_normalisation_is_part_of_the_graph(void **_)
{
    static const char means[] =
        "{\"kind\": \"audio\", \"normalise\": \"global\", "
        "\"mean\": [1, 2, 3], \"scale\": [0.5, 0.25, 2]}";
    Onnx__ModelProto *m = NULL;
    const float *mean = NULL, *scale = NULL;

    (void)_;
    write_model("means.safetensors", "linear", means);
    assert_code(BMUF("export", "means.safetensors", "--onnx", "means.onnx"), 0);
    m = read_graph("means.onnx");
    mean = floats(m, "normalise/mean", 1, (int64_t[]){FEATURES});
    scale = floats(m, "normalise/scale", 1, (int64_t[]){FEATURES});
    for (size_t i = 0; i < FEATURES; i++) {
        assert_true(mean[i] == (float)(i % 3 + 1));
        assert_true(scale[i] == (i % 3 == 0 ? 0.5F : i % 3 == 1 ? 0.25F : 2));
    }
    assert_string_equal(metadata(m, "normalised_by_graph"), "yes");
    onnx__model_proto__free_unpacked(m, NULL);
}

static void test_every_layer_has_a_counterpart(void **_)
{
#define X(layer) #layer,
    static const char *const names[] = {BM_LAYERS(X)};
#undef X

    (void)_;
    FOR_EACH (i, names) {
        if (strstr(every_layer, names[i]) == NULL &&
            strstr(with_groups, names[i]) == NULL &&
            strstr(gru_layers, names[i]) == NULL &&
            strstr(of_a_conformer, names[i]) == NULL &&
            strstr(pools, names[i]) == NULL)
            fail_msg("no net of this test has %s", names[i]);
    }
}

/* Is `word` in the text up to `end`, and not a part of another word? */
static bool has_word(const char *text, const char *end, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(text, word); at != NULL && at < end;
         at = strstr(at + 1, word))
        if (!isalpha((unsigned char)at[-1]) && !isalpha((unsigned char)at[n]))
            return true;
    return false;
}

/* Is an operator in the row of a layer of the page's first table, or in the words
 * below the table, which are about all layers? */
static bool page_has(const char *page, const char *layer, const char *op)
{
    const char *row = strstr(page, "| layer | operators |"), *end = NULL;
    char name[64];

    assert_non_null(row);
    snprintf(name, sizeof name, "`%s`", layer);
    for (; *row == '|'; row = end + 1) {
        const char *cell = strchr(row + 1, '|');

        end = strchr(row, '\n');
        assert_true(cell != NULL && end != NULL && cell < end);
        if (has_word(row, cell, name) && has_word(cell, end, op))
            return true;
    }
    end = strstr(row, "tools/check_onnx");
    assert_non_null(end);
    return has_word(row, end, op);
}

/* The layer of a node "3.pool/MaxPool"; a group has the row of `residual`. */
static const char *layer_of(const char *node)
{
    static char layer[40];
    const char *from = strchr(node, '.');

    if (from == NULL)
        return "residual";
    snprintf(layer, sizeof layer, "%.*s", (int)strcspn(from + 1, "/"),
             from + 1);
    return layer;
}

static void test_the_page_has_all_operators(void **_)
{
    static const char *const nets[] = {every_layer, with_groups, gru_layers,
                                       of_a_conformer, pools};
    size_t size = 0;
    char *page = slurp(BMUF_EXPORT_PAGE, &size);

    (void)_;
    FOR_EACH (i, nets) {
        Onnx__ModelProto *m = NULL;

        write_model("net.safetensors", nets[i], settings);
        assert_code(BMUF("export", "net.safetensors", "--onnx", "net.onnx"), 0);
        m = read_graph("net.onnx");
        for (size_t k = 0; k < m->graph->n_node; k++) {
            const Onnx__NodeProto *node = m->graph->node[k];

            if (!page_has(page, layer_of(node->name), node->op_type))
                fail_msg("docs/export.md does not have %s of %s", node->op_type,
                         node->name);
        }
        onnx__model_proto__free_unpacked(m, NULL);
    }
    free(page);
}

static void test_branches_meet_in_the_graph(void **_)
{
    static const char *const nodes[] = {
        "0.conv/Conv",       "1.conv/Conv",  "2.relu/Relu",
        "group_6/Add",       "5.tanh/Tanh",  "group_12/Concat",
        "group_12/Concat_2", "group_17/Add", "8.layernorm/Div",
        "8.layernorm/Add_2", "9.splice/Pad", "9.splice/Concat_2",
        "10.linear/MatMul"};
    Onnx__ModelProto *m = NULL;
    dump d = {0};

    (void)_;
    write_model("groups.safetensors", with_groups, settings);
    assert_code(BMUF("export", "groups.safetensors", "--onnx", "groups.onnx"),
                0);
    m = read_graph("groups.onnx");
    FOR_EACH (i, nodes) {
        if (count_nodes(m, nodes[i]) != 1)
            fail_msg("%zu nodes are called %s", count_nodes(m, nodes[i]),
                     nodes[i]);
    }
    assert_connected(m->graph);
    onnx__model_proto__free_unpacked(m, NULL);
    assert_code(BMUF("export", "groups.safetensors", "--npz", "groups.npz"), 0);
    d = dump_read("groups.npz");
    assert_non_null(dump_find(&d, "4.weight")); /* the first of branches( */
    (void)array(&d, "8.weight", 1, (size_t[]){5});
    assert_non_null(dump_find(&d, "10.bias")); /* the last of all */
    dump_free(&d);
}

/* PyTorch's Conv1d has its kernels as [features, 1, frames]. */
static void test_layers_of_a_conformer_are_nodes_and_arrays(void **_)
{
    static const char *const nodes[] = {
        "1.swish/Sigmoid", "1.swish/Mul", "2.glu/Slice",      "2.glu/Slice_2",
        "2.glu/Mul",       "3.scale/Mul", "4.depthwise/Conv", "6.gelu/Erf"};
    bm_model *net = network(of_a_conformer);
    size_t n = 0;
    const bm_layer *l = bm_model_layers(net, &n);
    const float *w = bm_layer_weight(&l[4], "w"), *turned = NULL;
    Onnx__ModelProto *m = NULL;
    dump d = {0};

    (void)_;
    write_model("conformer.safetensors", of_a_conformer, settings);
    assert_code(
        BMUF("export", "conformer.safetensors", "--onnx", "conformer.onnx"), 0);
    m = read_graph("conformer.onnx");
    FOR_EACH (i, nodes)
        assert_int_equal(count_nodes(m, nodes[i]), 1);
    assert_connected(m->graph);
    onnx__model_proto__free_unpacked(m, NULL);
    assert_code(
        BMUF("export", "conformer.safetensors", "--npz", "conformer.npz"), 0);
    d = dump_read("conformer.npz");
    turned = array(&d, "4.weight", 3, (size_t[]){4, 1, 3});
    for (size_t k = 0; k < 4; k++)
        for (size_t i = 0; i < 3; i++)
            assert_true(turned[k * 3 + i] == w[i * 4 + k]);
    (void)array(&d, "4.bias", 1, (size_t[]){4});
    dump_free(&d);
    bm_model_free(net);
}

static void test_a_layer_without_counterpart_is_refused_by_name(void **_)
{
    static const bm_layer_ops odd = {.name = "wavelet"};
    bm_layer l = {.ops = &odd, .name = "3.wavelet", .n_in = 4};
    const char *x = "features", *n = "lengths";
    bm_graph *g = NULL;

    (void)_;
    assert_ok(bm_graph_new(&g));
    assert_int_equal(bm_onnx_layers(g, &l, 1, &x, &n), BM_ERR_UNSUPPORTED);
    assert_non_null(strstr(bm_last_error(), "3.wavelet"));
    assert_non_null(strstr(bm_last_error(), "--npz"));
    bm_graph_free(g);
}

/* ---- NumPy --------------------------------------------------------------- */

static void test_arrays_have_the_names_and_shapes_of_pytorch(void **_)
{
    enum { H = 5, D = 8 };
    bm_model *net = network(every_layer);
    size_t n = 0;
    const bm_layer *l = bm_model_layers(net, &n);
    const float *wx = bm_layer_weight(&l[5], "wx"),
                *kernel = bm_layer_weight(&l[0], "w");
    const float *x = NULL;
    dump d = {0};

    (void)_;
    assert_code(BMUF("export", "every.safetensors", "--npz", "every.npz"), 0);
    d = dump_read("every.npz");
    x = array(&d, "5.weight_ih_l0", 2, (size_t[]){4 * H, D});
    assert_memory_equal(x, wx, 4 * H * D * sizeof *x);
    x = array(&d, "5.weight_ih_l0_reverse", 2, (size_t[]){4 * H, D});
    assert_memory_equal(x, wx + 4 * H * D, 4 * H * D * sizeof *x);
    (void)array(&d, "5.weight_hh_l0_reverse", 2, (size_t[]){4 * H, H});
    x = array(&d, "5.bias_ih_l0", 1, (size_t[]){4 * H});
    assert_true(x[0] == 0 && x[H] == 1); /* i, f */
    x = array(&d, "5.bias_hh_l0", 1, (size_t[]){4 * H});
    assert_true(x[H] == 0);
    x = array(&d, "0.weight", 4, (size_t[]){4, 1, 3, 2});
    assert_true(x[6 + 1] == kernel[1 * 4 + 1]);
    (void)array(&d, "0.bias", 1, (size_t[]){4});
    x = array(&d, "1.running_var", 1, (size_t[]){4});
    assert_true(x[0] == 1);
    (void)array(&d, "1.running_mean", 1, (size_t[]){4});
    (void)array(&d, "7.weight", 1, (size_t[]){7});
    x = array(&d, "14.weight", 2, (size_t[]){3, 6});
    assert_memory_equal(x, bm_layer_weight(&l[14], "w"), 18 * sizeof *x);
    assert_string_equal(dump_find(&d, "vocabulary")->text, vocabulary);
    assert_string_equal(dump_find(&d, "net")->text, every_layer);
    dump_free(&d);
    bm_model_free(net);
}

/* ---- weights of fewer bits ----------------------------------------------- */

/* Writes the model with such weights, reads it back, and gives both vectors;
 * free(*x), free(*y). */
static bm_model *narrowed(const char *type, float **x, float **y)
{
    bm_model *m = network(every_layer);
    const bm_params *p = bm_model_params(m);
    bm_st_file *f = NULL;
    bool checkpoint = true;

    assert_code(BMUF("export", "every.safetensors", "--weights", type, "--out",
                     "narrow.safetensors"),
                0);
    *x = zeros(p->n, sizeof **x);
    *y = zeros(p->n, sizeof **y);
    memcpy(*x, p->w, p->n * sizeof **x);
    assert_ok(bm_model_open(&f, in_folder("narrow.safetensors"), &checkpoint));
    assert_false(checkpoint);
    assert_ok(bm_model_check_tensors(f, "narrow", false, p));
    assert_ok(bm_model_load(f, false, p, *y));
    bm_st_free(f);
    return m;
}

/* At most half a step: the largest weight of a row is 127 steps. */
static void test_bytes_are_within_half_a_step(void **_)
{
    float *x = NULL, *y = NULL;
    bm_model *m = narrowed("int8", &x, &y);
    const bm_params *p = bm_model_params(m);
    size_t different = 0;

    (void)_;
    for (size_t s = 0; s < p->n_segments; s++) {
        const bm_segment *seg = &p->segments[s];
        size_t row = seg->dim[seg->rank - 1];

        for (size_t i = 0; i < seg->count; i++) {
            const float *from = x + seg->offset + i / row * row;
            double most = 0;

            for (size_t k = 0; k < row; k++)
                most = fmax(most, fabs((double)from[k]));
            if (seg->rank == 1)
                assert_true(y[seg->offset + i] == x[seg->offset + i]);
            else
                assert_true(
                    fabs((double)y[seg->offset + i] - x[seg->offset + i]) <=
                    most / 254 * (1 + 1e-5));
            different += y[seg->offset + i] != x[seg->offset + i];
        }
    }
    assert_true(different > p->n / 2);
    free(x);
    free(y);
    bm_model_free(m);
}

/* 11 bits: a relative error of 2^-11, below 2^-14 an absolute one of 2^-25. */
static void test_halves_are_rounded_to_nearest(void **_)
{
    float *x = NULL, *y = NULL;
    bm_model *m = narrowed("fp16", &x, &y);
    const bm_params *p = bm_model_params(m);
    size_t different = 0;

    (void)_;
    for (size_t i = 0; i < p->n; i++) {
        double error = fabs((double)y[i] - x[i]);

        assert_true(error <= fmax(fabs((double)x[i]) * 0x1p-11, 0x1p-25));
        different += error > 0;
    }
    assert_true(different > p->n / 2);
    free(x);
    free(y);
    bm_model_free(m);
}

/* Bytes and the floats of their rows; a matrix alone. */
static void test_a_narrow_file_is_smaller(void **_)
{
    static const struct {
        const char *type;
        double least, most; /* of the file, in bytes per weight */
    } cases[] = {{"int8", 1, 1.3}, {"fp16", 2, 2.3}};
    const double n = 900 * 12 + 900 * 3; /* without 903 biases */

    (void)_;
    write_model("wide.safetensors", "linear:900 linear", settings);
    FOR_EACH (i, cases) {
        size_t size = 0;

        assert_code(BMUF("export", "wide.safetensors", "--weights",
                         cases[i].type, "--out", "small.safetensors"),
                    0);
        free(slurp(in_folder("small.safetensors"), &size));
        size -= 4 * 903 + 1024; /* biases; the header, about */
        if (i == 0)
            size -= 4 * 903; /* scales */
        assert_true((double)size / n > cases[i].least - 0.1);
        assert_true((double)size / n < cases[i].most);
    }
}

/* The logits of three sequences; free them. */
static float *logits_of(bm_model *m, size_t *n)
{
    enum { T = 21, B = 3 };
    static const int32_t lengths[B] = {T, 17, 5};
    bm_batch b = {.extent = {T, B, lengths}};
    float *x = zeros(T * B * FEATURES, sizeof *x), *copy = NULL;
    bm_extent e = {0};
    bm_tensor y;

    for (size_t i = 0; i < T * B * FEATURES; i++)
        x[i] = i / FEATURES / B < (size_t)lengths[i / FEATURES % B]
                   ? (float)uniform(i)
                   : 0;
    b.x = (bm_tensor){x, 3, {T, B, FEATURES, 1}};
    bm_model_forward(m, &b);
    assert_ok(bm_sync(host()));
    y = bm_model_output(m, &e);
    *n = bm_count(y);
    copy = zeros(*n, sizeof *copy);
    memcpy(copy, y.data, *n * sizeof *copy);
    free(x);
    return copy;
}

/* With bm_hold matrices are packed once: the same bits, or nearly the same
 * numbers in bytes. */
static void test_weights_that_are_held_give_the_same_logits(void **_)
{
    bm_model *m = network(every_layer);
    const bm_params *p = bm_model_params(m);
    size_t n = 0;
    float *x = logits_of(m, &n), *y = NULL;
    double most = 0, apart = 0;

    (void)_;
    bm_hold(host(), p->w, p->n, false);
    for (int turn = 0; turn < 2; turn++) { /* packed, and packed before */
        y = logits_of(m, &n);
        assert_memory_equal(x, y, n * sizeof *x);
        free(y);
    }
    bm_hold(host(), p->w, p->n, true);
    y = logits_of(m, &n);
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)x[i]));
        apart = fmax(apart, fabs((double)x[i] - y[i]));
    }
    assert_true(apart > 0 && apart < 0.06 * most);
    free(y);
    bm_hold(host(), NULL, 0, false);
    y = logits_of(m, &n);
    assert_memory_equal(x, y, n * sizeof *x);
    free(y);
    free(x);
    bm_model_free(m);
}

/* One matrix of bytes, as another program may have made it. */
static bm_status write_steps(bm_dtype scale_type, size_t rows, float step)
{
    static const int8_t q[] = {-127, 0, 127, 1, 2, 3};
    bm_st_tensor scale = {"0.linear.w.scale", scale_type, 1, {rows}, 0};
    bm_st_tensor b = {"0.linear.b", BM_F32, 1, {2}, 0};
    bm_st_tensor w = {"0.linear.w", BM_I8, 2, {2, 3}, 0};
    const float steps[] = {step, 0.25F, 0.25F}, zero[2] = {0};
    const int64_t integers[] = {1, 1};
    bm_st_writer *file = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_st_create(&file, in_folder("bytes.safetensors"), false));
    BM_TRY_DONE(bm_st_declare(file, &scale));
    BM_TRY_DONE(bm_st_declare(file, &b));
    BM_TRY_DONE(bm_st_declare(file, &w));
    if (scale_type == BM_F32)
        BM_TRY_DONE(bm_st_write(file, steps, rows * sizeof *steps));
    else
        BM_TRY_DONE(bm_st_write(file, integers, rows * sizeof *integers));
    BM_TRY_DONE(bm_st_write(file, zero, sizeof zero));
    BM_TRY_DONE(bm_st_write(file, q, sizeof q));
    BM_TRY_DONE(bm_st_commit(file, NULL));
done:
    bm_st_close(file);
    return status;
}

/* Reads such a file as the weights of "linear" with 3 features, 2 classes. */
static bm_status read_steps(float w[8])
{
    bm_model_settings set = {"linear", "ctc", "skip"};
    bm_model_shape shape = {3, 2, 1};
    bm_model *m = NULL;
    bm_st_file *f = NULL;
    bool checkpoint = false;
    bm_status status = BM_OK;

    BM_TRY(bm_model_plan(&m, &set, &shape, host()));
    BM_TRY_DONE(bm_model_open(&f, in_folder("bytes.safetensors"), &checkpoint));
    BM_TRY_DONE(bm_model_check_tensors(f, "x", false, bm_model_params(m)));
    status = bm_model_load(f, false, bm_model_params(m), w);
done:
    bm_st_free(f);
    bm_model_free(m);
    return status;
}

static void test_scales_of_a_file_are_checked(void **_)
{
    static const float right[8] = {-63.5F, 0, 63.5F, 0.25F, 0.5F, 0.75F};
    float w[8];

    (void)_;
    assert_ok(write_steps(BM_F32, 2, 0.5F));
    assert_ok(read_steps(w));
    assert_memory_equal(w, right, sizeof w);
    assert_ok(write_steps(BM_F32, 3, 0.5F)); /* too many */
    assert_int_equal(read_steps(w), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "0.linear.w.scale"));
    assert_ok(write_steps(BM_I64, 2, 0.5F)); /* not floats */
    assert_int_equal(read_steps(w), BM_ERR_FORMAT);
    assert_ok(write_steps(BM_F32, 2, 1e38F)); /* 127 of them are infinite */
    assert_int_equal(read_steps(w), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "too large"));
}

/* ---- errors -------------------------------------------------------------- */

static void test_what_cannot_be_done_has_its_exit_code(void **_)
{
    (void)_;
    assert_fails(BMUF("export", "every.safetensors"), 64, "--onnx", "--npz");
    assert_fails(BMUF("export", "every.safetensors", "--weights", "int8"), 64,
                 "--out");
    assert_fails(BMUF("export", "every.safetensors", "--out", "x"), 64,
                 "--weights");
    assert_fails(
        BMUF("export", "every.safetensors", "--weights", "int4", "--out", "x"),
        64, "fp16 int8");
    assert_fails(BMUF("export", "none.safetensors", "--onnx", "x.onnx"), 66,
                 "none.safetensors");
    assert_fails(BMUF("export", "every.safetensors", "--onnx", "no/x.onnx"), 73,
                 "no/x.onnx");
    write_text("odd.safetensors", "not a model");
    assert_fails(BMUF("export", "odd.safetensors", "--npz", "x.npz"), 65,
                 "odd.safetensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_graph_has_known_bytes),
        cmocka_unit_test(test_a_graph_has_names_shapes_and_texts),
        cmocka_unit_test(test_the_fewest_frames_are_told),
        cmocka_unit_test(test_gates_and_kernels_have_the_order_of_onnx),
        cmocka_unit_test(test_dilation_is_an_attribute_of_convolutions),
        cmocka_unit_test(test_a_gru_has_the_order_of_onnx_and_of_pytorch),
        cmocka_unit_test(test_a_projection_goes_to_numpy_alone),
        cmocka_unit_test(test_normalisation_is_part_of_the_graph),
        cmocka_unit_test(test_every_layer_has_a_counterpart),
        cmocka_unit_test(test_the_page_has_all_operators),
        cmocka_unit_test(test_branches_meet_in_the_graph),
        cmocka_unit_test(test_layers_of_a_conformer_are_nodes_and_arrays),
        cmocka_unit_test(test_a_layer_without_counterpart_is_refused_by_name),
        cmocka_unit_test(test_arrays_have_the_names_and_shapes_of_pytorch),
        cmocka_unit_test(test_bytes_are_within_half_a_step),
        cmocka_unit_test(test_halves_are_rounded_to_nearest),
        cmocka_unit_test(test_a_narrow_file_is_smaller),
        cmocka_unit_test(test_weights_that_are_held_give_the_same_logits),
        cmocka_unit_test(test_scales_of_a_file_are_checked),
        cmocka_unit_test(test_what_cannot_be_done_has_its_exit_code),
    };
    return cmocka_run_group_tests_name("export", tests, prepare, folder_remove);
}

/*
 * Graphs of bmuf export --onnx, read back as the format is defined: names, shapes,
 * operators, texts; what cannot be exported. That onnxruntime computes the same is
 * what tools/check_onnx checks.
 */
#include "cli/export/onnx.h"
#include "models/layers/layer.h"
#include "models/model.h"
#include "tests/cli/export/networks.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <ctype.h>
#include <onnx.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *metadata(const Onnx__ModelProto *m, const char *key)
{
    for (size_t i = 0; i < m->n_metadata_props; i++)
        if (strcmp(m->metadata_props[i]->key, key) == 0)
            return m->metadata_props[i]->value;
    return NULL;
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

static bool is_of_word(char c)
{
    return isalpha((unsigned char)c) || c == '_';
}

/* Is `word` in the text up to `end`, and not a part of another word? */
static bool has_word(const char *text, const char *end, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = strstr(text, word); at != NULL && at < end;
         at = strstr(at + 1, word))
        if ((at == text || !is_of_word(at[-1])) && !is_of_word(at[n]))
            return true;
    return false;
}

static void test_every_layer_has_a_counterpart(void **_)
{
#define X(layer) #layer,
    static const char *const names[] = {BM_LAYERS(X)};
#undef X

    const char *const nets[] = {every_layer, with_groups, gru_layers,
                                of_a_conformer, pools};

    (void)_;
    FOR_EACH (i, names) {
        bool found = false;

        FOR_EACH (k, nets)
            found |= has_word(nets[k], nets[k] + strlen(nets[k]), names[i]);
        if (!found)
            fail_msg("no net of tests/cli/export/networks.c has the layer "
                     "'%s'; add it to of_a_conformer, before the last layer",
                     names[i]);
    }
}

/* Is `word`, "" is everywhere, in the row of a layer of the page's table with this
 * heading? *after <- what is below the table. */
static bool row_has(const char *page, const char *heading, const char *layer,
                    const char *word, const char **after)
{
    const char *row = strstr(page, heading);
    char name[64];
    bool found = false;

    assert_non_null(row);
    snprintf(name, sizeof name, "`%s`", layer);
    for (const char *end = NULL; *row == '|'; row = end + 1) {
        const char *cell = strchr(row + 1, '|');

        end = strchr(row, '\n');
        assert_true(cell != NULL && end != NULL && cell < end);
        found |= has_word(row, cell, name) &&
                 (*word == '\0' || has_word(cell, end, word));
    }
    *after = row;
    return found;
}

/* Is an operator in the first table, or in the words below it, which are about all
 * layers? */
static bool page_has(const char *page, const char *layer, const char *op)
{
    const char *after = NULL, *end = NULL;

    if (row_has(page, "| layer | operators |", layer, op, &after))
        return true;
    end = strstr(after, "tools/check_onnx");
    assert_non_null(end);
    return has_word(after, end, op);
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
                fail_msg("docs/results/export.md does not have %s of %s",
                         node->op_type, node->name);
        }
        onnx__model_proto__free_unpacked(m, NULL);
    }
    free(page);
}

/* A layer with weights has a row, with each name that is one of PyTorch's. */
static void check_names(const char *page, const bm_layer *l)
{
    static const char heading[] = "| layer | names | shapes |";
    const char *after = NULL;

    if (l->n_weights > 0 && !row_has(page, heading, l->ops->name, "", &after))
        fail_msg("docs/results/export.md has no names of weights of %s",
                 l->ops->name);
    for (int i = 0; i < l->n_weights; i++) {
        char name[64];

        snprintf(name, sizeof name, "k.%s", l->weights[i].torch);
        if (l->weights[i].torch != NULL &&
            !row_has(page, heading, l->ops->name, name, &after))
            fail_msg("docs/results/export.md has no %s of %s", name,
                     l->ops->name);
    }
}

static void test_the_page_has_all_names_of_weights(void **_)
{
    static const char *const nets[] = {every_layer, with_groups, gru_layers,
                                       of_a_conformer, pools};
    bm_model_shape shape = {.n_features = 8, .n_classes = 5};
    bm_backend *cpu = NULL;
    size_t size = 0, n = 0;
    char *page = slurp(BMUF_EXPORT_PAGE, &size);

    (void)_;
    assert_ok(bm_backend_open(&cpu, "cpu", 0));
    FOR_EACH (i, nets) {
        bm_model_settings set = {nets[i], "ctc", "skip"};
        const bm_layer *layers = NULL;
        bm_model *m = NULL;

        assert_ok(bm_model_plan(&m, &set, &shape, cpu));
        layers = bm_model_layers(m, &n);
        for (size_t k = 0; k < n; k++)
            check_names(page, &layers[k]);
        bm_model_free(m);
    }
    bm_backend_close(cpu);
    free(page);
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
        cmocka_unit_test(test_dilation_is_an_attribute_of_convolutions),
        cmocka_unit_test(test_normalisation_is_part_of_the_graph),
        cmocka_unit_test(test_every_layer_has_a_counterpart),
        cmocka_unit_test(test_the_page_has_all_operators),
        cmocka_unit_test(test_the_page_has_all_names_of_weights),
        cmocka_unit_test(test_a_layer_without_counterpart_is_refused_by_name),
        cmocka_unit_test(test_what_cannot_be_done_has_its_exit_code),
    };

    return cmocka_run_group_tests_name("export_graphs", tests, make_every_layer,
                                       folder_remove);
}

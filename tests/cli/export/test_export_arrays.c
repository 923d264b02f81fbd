/*
 * Weights in files of bmuf export --onnx and --npz: they have the order, the names
 * and the shapes of ONNX and of PyTorch.
 */
#include "models/model.h"
#include "tests/cli/export/networks.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <onnx.pb-c.h>

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

static long integer(const Onnx__ModelProto *m, const char *node,
                    const char *name)
{
    const Onnx__AttributeProto *a = attribute(m, node, name);

    if (a == NULL)
        fail_msg("%s has no attribute %s", node, name);
    return a != NULL ? (long)a->i : 0;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gates_and_kernels_have_the_order_of_onnx),
        cmocka_unit_test(test_a_gru_has_the_order_of_onnx_and_of_pytorch),
        cmocka_unit_test(test_a_projection_goes_to_numpy_alone),
        cmocka_unit_test(test_branches_meet_in_the_graph),
        cmocka_unit_test(test_layers_of_a_conformer_are_nodes_and_arrays),
        cmocka_unit_test(test_arrays_have_the_names_and_shapes_of_pytorch),
    };

    return cmocka_run_group_tests_name("export_arrays", tests, make_every_layer,
                                       folder_remove);
}

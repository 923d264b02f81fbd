#include "cli/export/onnx_graph.h"

#include "core/file/file.h"

#include <onnx.pb-c.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "ONNX's raw data are little-endian");

/* Memory that is freed with the graph. */
typedef struct piece {
    struct piece *next;
    max_align_t bytes[];
} piece;

struct bm_graph {
    Onnx__ModelProto model;
    Onnx__GraphProto graph;
    Onnx__OperatorSetIdProto operators;
    Onnx__NodeProto *last;
    const char *scope;
    size_t constants; /* in this scope without a name of their own */
    size_t bytes;     /* of all constants */
    piece *pieces;
    bm_status status; /* the first failure */
};

/* ---- memory -------------------------------------------------------------- */

void bm_graph_fail(bm_graph *g)
{
    if (g->status == BM_OK)
        g->status = BM_FAIL(BM_ERR_MEMORY, "no memory for a graph");
}

/* NULL without memory, and then for ever: nothing is added any more. */
static void *get(bm_graph *g, size_t size)
{
    piece *p = NULL;

    if (g->status == BM_OK)
        p = calloc(1, sizeof *p + size);
    if (p == NULL) {
        bm_graph_fail(g);
        return NULL;
    }
    p->next = g->pieces;
    g->pieces = p;
    return p->bytes;
}

static char *copy(bm_graph *g, const char *text)
{
    size_t size = strlen(text) + 1;
    char *to = get(g, size);

    return to != NULL ? memcpy(to, text, size) : NULL;
}

/* Appends `item` to a list of pointers, which grows in powers of two. */
static void append(bm_graph *g, void *list, size_t *n, void *item)
{
    void **old = NULL, **items = NULL;

    memcpy(&items, list, sizeof items);
    if (item == NULL)
        return;
    if ((*n & (*n - 1)) == 0) { /* 0, 1, 2, 4, .. */
        old = items;
        items = get(g, (*n > 0 ? 2 * *n : 1) * sizeof *items);
        if (items == NULL)
            return;
        if (*n > 0)
            memcpy((void *)items, (void *)old, *n * sizeof *items);
        memcpy(list, &items, sizeof items);
    }
    items[(*n)++] = item;
}

/* *to <- a new message of `type`. */
#define NEW(g, type, to)                                                       \
    ((to) = get((g), sizeof *(to)), (to) != NULL ? (type##__init(to), 1) : 0)

bm_status bm_graph_new(bm_graph **out)
{
    bm_graph *g = calloc(1, sizeof *g);

    if (g == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a graph");
    onnx__model_proto__init(&g->model);
    onnx__graph_proto__init(&g->graph);
    onnx__operator_set_id_proto__init(&g->operators);
    g->scope = "";
    *out = g;
    return BM_OK;
}

void bm_graph_free(bm_graph *g)
{
    piece *next = NULL;

    if (g == NULL)
        return;
    for (piece *p = g->pieces; p != NULL; p = next) {
        next = p->next;
        free(p);
    }
    free(g);
}

/* ---- names and texts ----------------------------------------------------- */

void bm_graph_scope(bm_graph *g, const char *name)
{
    const char *scope = copy(g, name);

    g->scope = scope != NULL ? scope : "";
    g->constants = 0;
}

void bm_graph_text(bm_graph *g, const char *key, const char *text)
{
    Onnx__StringStringEntryProto *entry = NULL;

    if (!NEW(g, onnx__string_string_entry_proto, entry))
        return;
    entry->key = copy(g, key);
    entry->value = copy(g, text);
    append(g, &g->model.metadata_props, &g->model.n_metadata_props, entry);
}

/* "1.blstm/Transpose", or with a number, if there are `others` before it. */
static char *name_of(bm_graph *g, const char *word, size_t others)
{
    size_t room = strlen(g->scope) + strlen(word) + 32;
    char *name = get(g, room);

    if (name == NULL)
        return NULL;
    if (others == 0)
        snprintf(name, room, "%s/%s", g->scope, word);
    else
        snprintf(name, room, "%s/%s_%zu", g->scope, word, others + 1);
    return name;
}

static Onnx__TensorShapeProto__Dimension *dimension(bm_graph *g,
                                                    const char *word)
{
    Onnx__TensorShapeProto__Dimension *d = NULL;
    char *end = NULL;
    long long n = strtoll(word, &end, 10);

    if (!NEW(g, onnx__tensor_shape_proto__dimension, d))
        return NULL;
    if (*end == '\0') {
        d->has_dim_value = 1;
        d->dim_value = n;
    } else {
        d->dim_param = copy(g, word);
    }
    return d;
}

static Onnx__ValueInfoProto *value_info(bm_graph *g, const char *name, int type,
                                        const char *shape)
{
    Onnx__ValueInfoProto *v = NULL;
    Onnx__TypeProto *t = NULL;
    Onnx__TypeProto__Tensor *tensor = NULL;
    Onnx__TensorShapeProto *dims = NULL;
    char *words = copy(g, shape), *rest = NULL;

    if (words == NULL || !NEW(g, onnx__value_info_proto, v) ||
        !NEW(g, onnx__type_proto, t) ||
        !NEW(g, onnx__type_proto__tensor, tensor) ||
        !NEW(g, onnx__tensor_shape_proto, dims))
        return NULL;
    for (char *w = strtok_r(words, " ", &rest); w != NULL;
         w = strtok_r(NULL, " ", &rest))
        append(g, &dims->dim, &dims->n_dim, dimension(g, w));
    tensor->has_elem_type = 1;
    tensor->elem_type = type;
    tensor->shape = dims;
    t->tensor_type = tensor;
    v->name = copy(g, name);
    v->type = t;
    return v;
}

void bm_graph_input(bm_graph *g, const char *name, int type, const char *shape)
{
    append(g, &g->graph.input, &g->graph.n_input,
           value_info(g, name, type, shape));
}

/* ---- nodes --------------------------------------------------------------- */

/* An empty node whose output is called `name`. */
static Onnx__NodeProto *add_node(bm_graph *g, const char *op, char *name)
{
    Onnx__NodeProto *node = NULL;

    if (name == NULL || !NEW(g, onnx__node_proto, node))
        return NULL;
    node->op_type = copy(g, op);
    node->name = name;
    append(g, &node->output, &node->n_output, name);
    append(g, &g->graph.node, &g->graph.n_node, node);
    g->last = node;
    return node;
}

void bm_graph_output(bm_graph *g, const char *name, const char *x, int type,
                     const char *shape)
{
    Onnx__NodeProto *node = add_node(g, "Identity", copy(g, name));

    if (node == NULL)
        return;
    append(g, &node->input, &node->n_input, copy(g, x));
    append(g, &g->graph.output, &g->graph.n_output,
           value_info(g, name, type, shape));
}

/* The nodes of this scope with this operator. */
static size_t same(const bm_graph *g, const char *op)
{
    size_t n = 0, scope = strlen(g->scope);

    for (size_t i = g->graph.n_node; i > 0; i--) {
        const Onnx__NodeProto *node = g->graph.node[i - 1];

        n += strncmp(node->name, g->scope, scope) == 0 &&
             node->name[scope] == '/' && strcmp(node->op_type, op) == 0;
    }
    return n;
}

const char *bm_graph_node(bm_graph *g, const char *op, ...)
{
    Onnx__NodeProto *node = add_node(g, op, name_of(g, op, same(g, op)));
    const char *x = NULL;
    va_list inputs;

    if (node == NULL)
        return "";
    va_start(inputs, op);
    while ((x = va_arg(inputs, const char *)) != NULL)
        append(g, &node->input, &node->n_input, copy(g, x));
    va_end(inputs);
    return node->name;
}

static Onnx__AttributeProto *attribute(bm_graph *g, const char *name, int type)
{
    Onnx__AttributeProto *a = NULL;

    if (!NEW(g, onnx__attribute_proto, a))
        return NULL;
    a->name = copy(g, name);
    a->has_type = 1;
    a->type = type;
    append(g, &g->last->attribute, &g->last->n_attribute, a);
    return a;
}

void bm_graph_set(bm_graph *g, const char *name, int64_t value)
{
    Onnx__AttributeProto *a =
        attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    if (a == NULL)
        return;
    a->has_i = 1;
    a->i = value;
}

void bm_graph_set_float(bm_graph *g, const char *name, float value)
{
    Onnx__AttributeProto *a =
        attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

    if (a == NULL)
        return;
    a->has_f = 1;
    a->f = value;
}

void bm_graph_set_word(bm_graph *g, const char *name, const char *value)
{
    Onnx__AttributeProto *a =
        attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    char *word = copy(g, value);

    if (a == NULL || word == NULL)
        return;
    a->has_s = 1;
    a->s.data = (uint8_t *)word;
    a->s.len = strlen(word);
}

void bm_graph_set_list(bm_graph *g, const char *name, size_t n,
                       const int64_t *values)
{
    Onnx__AttributeProto *a =
        attribute(g, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    int64_t *to = get(g, n * sizeof *to);

    if (a == NULL || to == NULL)
        return;
    memcpy(to, values, n * sizeof *to);
    a->ints = to;
    a->n_ints = n;
}

/* ---- constants ----------------------------------------------------------- */

static const char *constant(bm_graph *g, char *name, int type, int rank,
                            const size_t *dim, const void *x, size_t size)
{
    Onnx__TensorProto *t = NULL;
    int64_t *dims = get(g, (size_t)rank * sizeof *dims);
    void *data = get(g, size);

    if (name == NULL || dims == NULL || data == NULL ||
        !NEW(g, onnx__tensor_proto, t))
        return "";
    for (int i = 0; i < rank; i++)
        dims[i] = (int64_t)dim[i];
    memcpy(data, x, size);
    t->dims = dims;
    t->n_dims = (size_t)rank;
    t->has_data_type = 1;
    t->data_type = type;
    t->name = name;
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){size, data};
    g->bytes += size;
    append(g, &g->graph.initializer, &g->graph.n_initializer, t);
    return name;
}

const char *bm_graph_floats(bm_graph *g, const char *name, int rank,
                            const size_t *dim, const float *x)
{
    size_t n = 1;

    for (int i = 0; i < rank; i++)
        n *= dim[i];
    return constant(g, name_of(g, name, 0), BM_GRAPH_FLOAT, rank, dim, x,
                    n * sizeof *x);
}

const char *bm_graph_integers(bm_graph *g, int rank, size_t n, const int64_t *x)
{
    return constant(g, name_of(g, "constant", g->constants++), BM_GRAPH_INT64,
                    rank, &n, x, n * sizeof *x);
}

/* ---- the file ------------------------------------------------------------ */

static bm_status write_model(const Onnx__ModelProto *m, const char *path)
{
    size_t n = onnx__model_proto__get_packed_size(m);
    uint8_t *bytes = malloc(n);
    bm_status status = BM_OK;

    if (bytes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    onnx__model_proto__pack(m, bytes);
    status = bm_file_write(path, bytes, n);
    free(bytes);
    return status;
}

bm_status bm_graph_write(bm_graph *g, const char *path)
{
    static char nothing[] = "", producer[] = "bmuf", name[] = "network";
    const size_t most =
        ((size_t)1 << 31) - (1 << 24); /* and what is not data */
    Onnx__OperatorSetIdProto *operators = &g->operators;

    BM_TRY(g->status);
    if (g->bytes > most)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "%s: the weights have %zu bytes, but a file of ONNX has "
                       "less than 2 GB; export to --npz",
                       path, g->bytes);
    operators->domain = nothing;
    operators->has_version = 1;
    operators->version = BM_GRAPH_OPERATORS;
    g->graph.name = name;
    g->model.has_ir_version = 1;
    g->model.ir_version = BM_GRAPH_FORMAT;
    g->model.producer_name = producer;
    g->model.graph = &g->graph;
    g->model.n_opset_import = 1;
    g->model.opset_import = &operators;
    return write_model(&g->model, path);
}

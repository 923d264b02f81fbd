#include "cli/export/onnx.h"

#include "cli/help/version.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* One number for each feature of a frame; `dim` of them repeat, as in frames
 * that were put side by side. */
static const char *repeated(bm_graph *g, const char *name, size_t features,
                            size_t dim, const double *from)
{
    float *x = malloc(features * sizeof *x);
    const char *value = "";

    if (x == NULL) {
        bm_graph_fail(g);
        return value;
    }
    for (size_t i = 0; i < features; i++)
        x[i] = (float)from[i % dim];
    value = bm_graph_floats(g, name, 1, &features, x);
    free(x);
    return value;
}

/* x <- (x - mean) scale */
static bm_status normalise(bm_graph *g, const bm_recogniser *r,
                           const bm_cmvn *norm, const char **x)
{
    size_t n = r->features;

    if (norm->dim == 0)
        return BM_OK;
    if (n % norm->dim != 0)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "the model normalises %zu features of a frame, but a frame has %zu",
            norm->dim, n);
    bm_graph_scope(g, "normalise");
    *x = bm_graph_node(g, "Sub", *x,
                       repeated(g, "mean", n, norm->dim, norm->mean), NULL);
    *x = bm_graph_node(g, "Mul", *x,
                       repeated(g, "scale", n, norm->dim, norm->scale), NULL);
    return BM_OK;
}

static void describe_number(bm_graph *g, const char *key, size_t n)
{
    char text[32];

    snprintf(text, sizeof text, "%zu", n);
    bm_graph_text(g, key, text);
}

/* The fewest frames that give an output: operators have no windows of fewer. */
static size_t least_frames(const bm_model *m)
{
    size_t n = 1;

    while (bm_model_frames(m, n) == 0)
        n++;
    return n;
}

/* The texts of a model file, and what follows from them. */
static bm_status describe(bm_graph *g, const bm_recogniser *r, bool normalised)
{
    char *brief = bm_features_brief(r->features_text);
    json_t *settings = json_loads(r->features_text, 0, NULL);
    json_t *rate = json_object_get(settings, "rate");
    bm_text texts[BM_RECOGNISER_TEXTS];

    if (brief == NULL) {
        json_decref(settings);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for settings of features");
    }
    bm_recogniser_texts(r, texts);
    for (const bm_text *t = texts; t->key != NULL; t++)
        bm_graph_text(g, t->key, t->text == r->features_text ? brief : t->text);
    bm_graph_text(g, "normalised_by_graph", normalised ? "yes" : "no");
    describe_number(g, "input_frames_per_output", bm_model_stride(r->model));
    describe_number(g, "least_frames", least_frames(r->model));
    if (json_is_integer(rate))
        describe_number(g, "sample_rate", (size_t)json_integer_value(rate));
    bm_graph_text(g, "bmuf", bm_version());
    json_decref(settings);
    free(brief);
    return BM_OK;
}

static bm_status build(bm_graph *g, const bm_recogniser *r, const bm_cmvn *norm)
{
    size_t n = 0;
    const bm_layer *layers = bm_model_layers(r->model, &n);
    const char *x = "features", *lengths = "lengths";
    char shape[60];

    BM_TRY(describe(g, r, norm->dim > 0));
    snprintf(shape, sizeof shape, "batch frames %zu", r->features);
    bm_graph_input(g, x, BM_GRAPH_FLOAT, shape);
    bm_graph_input(g, lengths, BM_GRAPH_INT64, "batch");
    BM_TRY(normalise(g, r, norm, &x));
    BM_TRY(bm_onnx_layers(g, layers, n, &x, &lengths));
    snprintf(shape, sizeof shape, "batch output_frames %zu",
             bm_vocab_size(r->vocab));
    bm_graph_output(g, "logits", x, BM_GRAPH_FLOAT, shape);
    bm_graph_output(g, "logit_lengths", lengths, BM_GRAPH_INT64, "batch");
    return BM_OK;
}

bm_status bm_onnx_write(const bm_recogniser *r, const char *path)
{
    bm_graph *g = NULL;
    bm_cmvn norm = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_graph_new(&g));
    BM_TRY_DONE(bm_cmvn_read(&norm, r->features_text));
    BM_TRY_DONE(build(g, r, &norm));
    status = bm_graph_write(g, path);
done:
    bm_cmvn_free(&norm);
    bm_graph_free(g);
    return status;
}

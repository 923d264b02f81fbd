/* onnx_recurrent.c - LSTM and GRU, whose matrices have another order in ONNX. */
#include "cli/export/onnx_flow.h"
#include "models/layers/recurrent.h"

#include <stdlib.h>
#include <string.h>

/* Where ONNX's matrices and biases of a direction are among ours: i, o, f, c of
 * i, f, g, o; z, r, h of r, z, n. */
static const size_t places[][4] = {
    [BM_LSTM] = {0, 3, 1, 2}, [BM_GRU] = {1, 0, 2}};

static size_t matrices(const bm_recurrent *l)
{
    return bm_recurrent_rows(l) / l->n_hidden;
}

/* wx or wh, with its matrices in ONNX's order. */
static const char *in_order(bm_flow *f, const bm_recurrent *l, const char *name,
                            const float *w, size_t columns)
{
    size_t R = l->directions, G = matrices(l), n = l->n_hidden * columns;
    float *x = malloc(R * G * n * sizeof *x);
    const char *value = "";

    if (x == NULL) {
        bm_graph_fail(f->g);
        return value;
    }
    for (size_t r = 0; r < R; r++)
        for (size_t k = 0; k < G; k++)
            memcpy(x + (r * G + k) * n, w + (r * G + places[l->cell][k]) * n,
                   n * sizeof *x);
    value = bm_graph_floats(f->g, name, 3,
                            (size_t[]){R, G * l->n_hidden, columns}, x);
    free(x);
    return value;
}

/* Of x, then of h. The second are zero but for q of a GRU. */
static const char *biases(bm_flow *f, const bm_recurrent *l)
{
    size_t R = l->directions, G = matrices(l), H = l->n_hidden;
    float *x = calloc(R * 2 * G * H, sizeof *x);
    const char *value = "";

    if (x == NULL) {
        bm_graph_fail(f->g);
        return value;
    }
    for (size_t r = 0; r < R; r++) {
        const float *b = l->b + r * BM_CELL_VALUES * H;
        float *to = x + r * 2 * G * H;

        for (size_t k = 0; k < G; k++)
            memcpy(to + k * H, b + places[l->cell][k] * H, H * sizeof *x);
        if (l->cell == BM_GRU)
            memcpy(to + (G + 2) * H, b + 3 * H, H * sizeof *x);
    }
    value = bm_graph_floats(f->g, "b", 2, (size_t[]){R, 2 * G * H}, x);
    free(x);
    return value;
}

/* With lengths the second direction begins at each sequence's own end. Y is [T,
 * directions, B, H]. */
void bm_onnx_write_recurrent(bm_flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    bm_recurrent v = bm_layer_recurrent(l);
    bool gru = v.cell == BM_GRU;
    const char *lengths = NULL, *y = NULL;

    bm_flow_to_time(f);
    lengths = BM_NODE(g, "Cast", f->lengths);
    bm_graph_set(g, "to", BM_GRAPH_INT32);
    y = BM_NODE(
        g, gru ? "GRU" : "LSTM", f->x, in_order(f, &v, "wx", v.wx, v.n_in),
        in_order(f, &v, "wh", v.wh, v.n_hidden), biases(f, &v), lengths);
    bm_graph_set_word(g, "direction",
                      v.directions == 2 ? "bidirectional" : "forward");
    bm_graph_set(g, "hidden_size", (int64_t)v.n_hidden);
    if (gru)
        bm_graph_set(g, "linear_before_reset", 1);
    y = bm_onnx_transpose(g, y, 4, BM_LIST(0, 2, 1, 3));
    f->x = bm_onnx_reshape(g, y, 3, BM_LIST(0, 0, (int64_t)l->n_out));
    f->zero = false; /* the format does not say */
}

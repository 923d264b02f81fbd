#include "cli/export/model_npz.h"

#include "cli/export/kernels.h"
#include "io/model/npz.h"
#include "models/layers/recurrent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As layer k of the network. */
static bm_status add(bm_npz *z, size_t k, const char *name, const float *x,
                     int rank, const size_t *dim)
{
    char whole[64];

    snprintf(whole, sizeof whole, "%zu.%s", k, name);
    return bm_npz_add_array(z, whole, x, rank, dim);
}

static bm_status add_kernels(bm_npz *z, size_t k, const bm_layer *l)
{
    size_t dim[4], n = bm_kernels_shape(l, dim);
    int rank = l->ops == &bm_layer_depthwise ? 3 : 4;
    float *turned = malloc(n * sizeof *turned);
    bm_status status = BM_OK;

    if (turned == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu weights", n);
    bm_kernels_turn(l, turned);
    status = add(z, k, "weight", turned, rank, dim);
    free(turned);
    return status;
}

/* Direction r. PyTorch has two biases, of which the second is zero here but for
 * b_hn of a GRU. */
static bm_status add_direction(bm_npz *z, size_t k, const bm_recurrent *l,
                               size_t r)
{
    size_t D = l->n_in, H = l->n_hidden, n = bm_recurrent_rows(l);
    size_t P = l->n_projected, Y = bm_recurrent_width(l);
    const float *b = l->b + r * BM_CELL_VALUES * H;
    float *second = calloc(n, sizeof *second);
    const struct {
        const char *name;
        const float *x;
        size_t rows, columns; /* 0 columns: a vector */
    } arrays[] = {
        {"weight_ih", l->wx + r * n * D, n, D},
        {"weight_hh", l->wh + r * n * Y, n, Y},
        {"bias_ih", b, n, 0},
        {"bias_hh", second, n, 0},
        {"weight_hr", P > 0 ? l->wr + r * P * H : NULL, P, H},
    };
    bm_status status = BM_OK;

    if (second == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu weights", n);
    if (l->cell == BM_GRU)
        memcpy(second + 2 * H, b + 3 * H, H * sizeof *second);
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        size_t dim[2] = {arrays[i].rows, arrays[i].columns};
        char name[32];

        if (arrays[i].x == NULL)
            continue;

        snprintf(name, sizeof name, "%s_l0%s", arrays[i].name,
                 r == 1 ? "_reverse" : "");
        BM_TRY_DONE(add(z, k, name, arrays[i].x, dim[1] > 0 ? 2 : 1, dim));
    }
done:
    free(second);
    return status;
}

static bm_status add_layer(bm_npz *z, size_t k, const bm_layer *l)
{
    if (bm_layer_is_recurrent(l)) {
        bm_recurrent v = bm_layer_recurrent(l);

        for (size_t r = 0; r < v.directions; r++)
            BM_TRY(add_direction(z, k, &v, r));
        return BM_OK;
    }
    for (int i = 0; i < l->n_weights; i++) {
        const bm_weight *w = &l->weights[i];

        bool kernels =
            l->ops == &bm_layer_conv || l->ops == &bm_layer_depthwise;

        if (kernels && strcmp(w->name, "w") == 0)
            BM_TRY(add_kernels(z, k, l));
        else
            BM_TRY(add(z, k, w->torch != NULL ? w->torch : w->name,
                       bm_layer_weight(l, w->name), w->rank, w->dim));
    }
    return BM_OK;
}

static bm_status add_floats(bm_npz *z, const char *name, const double *x,
                            size_t n)
{
    float *rounded = malloc((n + 1) * sizeof *rounded);
    bm_status status = BM_OK;

    if (rounded == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu numbers", n);
    for (size_t i = 0; i < n; i++)
        rounded[i] = (float)x[i];
    status = bm_npz_add_array(z, name, rounded, 1, &n);
    free(rounded);
    return status;
}

/* The numbers that normalise features, if the model has them. */
static bm_status add_normalisation(bm_npz *z, const bm_recogniser *r)
{
    bm_cmvn norm = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_cmvn_read(&norm, r->features_text));
    if (norm.dim > 0) {
        status = add_floats(z, "features_mean", norm.mean, norm.dim);
        if (status == BM_OK)
            status = add_floats(z, "features_scale", norm.scale, norm.dim);
    }
    bm_cmvn_free(&norm);
    return status;
}

bm_status bm_model_npz_write(const bm_recogniser *r, const char *path)
{
    bm_text texts[BM_RECOGNISER_TEXTS];
    bm_npz *z = NULL;
    size_t n = 0;
    const bm_layer *layers = bm_model_layers(r->model, &n);
    bm_status status = BM_OK;

    bm_recogniser_texts(r, texts);
    BM_TRY(bm_npz_create(&z, path));
    for (size_t k = 0; k < n; k++)
        BM_TRY_DONE(add_layer(z, layers[k].number, &layers[k]));
    for (const bm_text *t = texts; t->key != NULL; t++)
        BM_TRY_DONE(bm_npz_add_text(z, t->key, t->text));
    BM_TRY_DONE(add_normalisation(z, r));
    status = bm_npz_finish(z);
done:
    bm_npz_close(z);
    return status;
}

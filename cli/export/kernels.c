#include "cli/export/kernels.h"

size_t bm_kernels_shape(const bm_layer *conv, size_t dim[4])
{
    bool depthwise = conv->ops == &bm_layer_depthwise;

    dim[0] = depthwise ? conv->n_out : conv->channels;
    dim[1] = depthwise ? 1 : bm_layer_channels_in(conv);
    dim[2] = conv->weights[0].dim[0]; /* w is [K, L, C, N], or [K, D] */
    dim[3] = depthwise ? 1 : conv->weights[0].dim[1];
    return dim[0] * dim[1] * dim[2] * dim[3];
}

void bm_kernels_turn(const bm_layer *conv, float *out)
{
    size_t dim[4], n = bm_kernels_shape(conv, dim);
    size_t N = dim[0], C = dim[1], places = dim[2] * dim[3];
    const float *w = bm_layer_weight(conv, "w");

    for (size_t i = 0; i < n; i++) {
        size_t k = i % N, c = i / N % C, place = i / N / C;

        out[(k * C + c) * places + place] = w[i];
    }
}

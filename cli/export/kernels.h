/* kernels.h - the kernels of a convolution, [times, rows, channels of x,
 * channels of y], or of a depthwise one, [times, features], as other programs
 * have them. */
#ifndef BM_CLI_EXPORT_KERNELS_H
#define BM_CLI_EXPORT_KERNELS_H

#include "models/layers/layer.h"

/* dim <- their shape there: [channels of y, channels of x, times, rows]; of a
 * depthwise one [features, 1, times, 1]. Returns the product. */
size_t bm_kernels_shape(const bm_layer *conv, size_t dim[4]);

/* out <- the kernels in this order. */
void bm_kernels_turn(const bm_layer *conv, float *out);

#endif

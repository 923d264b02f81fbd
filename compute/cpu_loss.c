/* cpu_loss.c - what the losses of the cpu backend share. */
#include "compute/cpu_loss.h"

#include <string.h>

void bm_cpu_clear_sequence(bm_tensor dy, size_t b)
{
    for (size_t t = 0; dy.data != NULL && t < dy.dim[0]; t++)
        memset(bm_cpu_frame(dy, t, b), 0, dy.dim[2] * sizeof *dy.data);
}

void bm_cpu_mean_gradient(bm_extent e, bm_tensor dy, double count)
{
    float factor = count > 0 ? (float)(1 / count) : 0;

    for (size_t t = 0; dy.data != NULL && t < e.T; t++)
        for (size_t b = 0; b < e.B; b++) {
            float *row = bm_cpu_frame(dy, t, b);

            if (t >= (size_t)e.frames[b])
                memset(row, 0, dy.dim[2] * sizeof *row);
            for (size_t k = 0; t < (size_t)e.frames[b] && k < dy.dim[2]; k++)
                row[k] *= factor;
        }
}

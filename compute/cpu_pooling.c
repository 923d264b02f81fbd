/* cpu_pooling.c - max pooling over windows that lie side by side, channels
 * last.
 */
#include "compute/cpu.h"

#include <string.h>

/* The windows of a frame of y: those that are full, and one of the rows that
 * are left over, if there are any. */
typedef struct column {
    bm_blocks full, last;
    size_t x, y; /* where they begin: floats */
} column;

static column column_at(const bm_pooling *p, bm_extent in, bm_extent out,
                        size_t t, size_t b)
{
    size_t H = p->height, C = p->channels, rows = p->rows.size;
    size_t windows = bm_windows(p->rows, H), full = H / rows;
    size_t from = t * p->time.size, left = (size_t)in.frames[b] - from;
    size_t frames = left < p->time.size ? left : p->time.size;
    size_t apart = in.B * H * C;

    return (column){{full, frames, rows, C, apart},
                    {windows - full, frames, H - full * rows, C, apart},
                    bm_cpu_at(in, from, b, H * C),
                    bm_cpu_at(out, t, b, windows * C)};
}

void bm_cpu_pooling_forward(bm_backend *be, const bm_pooling *p, bm_extent in,
                            bm_extent out, const float *x, float *y)
{
    const bm_image_loops *loops = bm_cpu_isa(be)->image;
    size_t C = p->channels, n = bm_windows(p->rows, p->height) * C;

    for (size_t t = 0; t < out.T; t++)
        for (size_t b = 0; b < out.B; b++)
            if (t < (size_t)out.frames[b]) {
                column c = column_at(p, in, out, t, b);
                size_t rows = c.full.count * C;

                loops->largest(&c.full, x + c.x, y + c.y);
                loops->largest(&c.last, x + c.x + rows * c.full.rows,
                               y + c.y + rows);
            } else {
                memset(y + bm_cpu_at(out, t, b, n), 0, n * sizeof *y);
            }
}

void bm_cpu_pooling_backward(bm_backend *be, const bm_pooling *p, bm_extent in,
                             bm_extent out, const float *x, const float *y,
                             const float *dy, float *dx)
{
    const bm_image_loops *loops = bm_cpu_isa(be)->image;
    size_t C = p->channels;
    bm_tensor all = {dx, 3, {in.T, in.B, p->height * C, 1}};

    for (size_t t = 0; t < out.T; t++)
        for (size_t b = 0; b < out.B; b++)
            if (t < (size_t)out.frames[b]) {
                column c = column_at(p, in, out, t, b);
                size_t rows = c.full.count * C;

                loops->largest_back(&c.full, x + c.x, y + c.y, dy + c.y,
                                    dx + c.x);
                c.x += rows * c.full.rows;
                c.y += rows;
                loops->largest_back(&c.last, x + c.x, y + c.y, dy + c.y,
                                    dx + c.x);
            }
    bm_cpu_clear_padding(be, in, all);
}

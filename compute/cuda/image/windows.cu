/*
 * windows.cu - the maximum or mean of windows that may overlap. A thread takes
 * one number of y, or one of dx, which adds up its windows in order. It has a
 * window's dy if no place before it is as large, and none behind it larger.
 */
#include "compute/cuda/image/image_kernels.h"
#include "compute/cuda/kernels/kernel.h"

BM_INLINE float take(bm_in s, size_t i)
{
    return s.half ? bm_of_bf16(((const bm_bf16 *)s.x)[i])
                  : ((const float *)s.x)[i];
}

BM_INLINE void give(bm_out s, size_t i, float x)
{
    if (s.half)
        ((bm_bf16 *)s.x)[i] = bm_to_bf16(x);
    else
        ((float *)s.x)[i] = x;
}

/* The places from .. to of window i along n places. */
struct places {
    unsigned from, to;
};

BM_INLINE places clip(bm_axis_windows w, unsigned i, unsigned n)
{
    unsigned start = i * w.stride, end = start + w.size - w.before;
    places p = {start > w.before ? start - w.before : 0, end < n ? end : n};

    return p;
}

/* The windows from .. to, of n, that contain a place. */
BM_INLINE places around(bm_axis_windows w, unsigned place, unsigned n)
{
    unsigned at = place + w.before, last = at / w.stride + 1;
    places p = {at < w.size ? 0 : (at - w.size) / w.stride + 1,
                last < n ? last : n};

    return p;
}

/* Number i of a tensor of `rows` rows, as time, sequence, row, channel. */
struct place {
    unsigned t, b, h, c;
};

BM_INLINE place find(const bm_sliding &s, size_t i, unsigned rows)
{
    place p;

    p.c = (unsigned)(i % s.channels);
    i /= s.channels;
    p.h = (unsigned)(i % rows);
    i /= rows;
    p.b = (unsigned)(i % s.B);
    p.t = (unsigned)(i / s.B);
    return p;
}

BM_INLINE size_t number(const bm_sliding &s, unsigned t, const place &p,
                        unsigned h, unsigned rows)
{
    return ((t * s.B + p.b) * rows + h) * s.channels + p.c;
}

__global__ static void forward(bm_sliding s, size_t n, bm_in x, bm_out y)
{
    BM_EACH(i, n)
    {
        place p = find(s, i, s.out_height);
        float top = 0, sum = 0;
        bool first = true;

        if (p.t < (unsigned)s.out[p.b]) {
            places over = clip(s.time, p.t, (unsigned)s.in[p.b]);
            places down = clip(s.rows, p.h, s.height);
            unsigned all = (over.to - over.from) * (down.to - down.from);

            for (unsigned t = over.from; t < over.to; t++)
                for (unsigned h = down.from; h < down.to; h++) {
                    float v = take(x, number(s, t, p, h, s.height));

                    sum += v;
                    top = first || v > top || v != v ? v : top;
                    first = false;
                }
            if (s.mean)
                top = sum / (float)all;
        }
        give(y, i, top);
    }
}

/* Is place (at.t, at.h) the first one of a window with its maximum, v? */
BM_INLINE bool leads(const bm_sliding &s, const place &at, places over,
                     places down, bm_in x, float v)
{
    for (unsigned t = over.from; t < over.to; t++)
        for (unsigned h = down.from; h < down.to; h++) {
            float other = take(x, number(s, t, at, h, s.height));
            bool before = t < at.t || (t == at.t && h < at.h);

            if (other > v || other != other || (before && other == v))
                return false;
        }
    return true;
}

__global__ static void backward(bm_sliding s, size_t n, bm_in x, bm_in dy,
                                bm_out dx)
{
    BM_EACH(i, n)
    {
        place p = find(s, i, s.height);
        unsigned frames = (unsigned)s.in[p.b];
        float sum = 0, v = s.mean ? 0 : take(x, i);

        if (p.t < frames) {
            places ts = around(s.time, p.t, (unsigned)s.out[p.b]);
            places hs = around(s.rows, p.h, s.out_height);

            for (unsigned t = ts.from; t < ts.to; t++)
                for (unsigned h = hs.from; h < hs.to; h++) {
                    size_t k = number(s, t, p, h, s.out_height);
                    places over = clip(s.time, t, frames);
                    places down = clip(s.rows, h, s.height);

                    if (s.mean)
                        sum += take(dy, k) / (float)((over.to - over.from) *
                                                     (down.to - down.from));
                    else if (leads(s, p, over, down, x, v))
                        sum += take(dy, k);
                }
        }
        give(dx, i, sum);
    }
}

cudaError_t bm_kernel_sliding_forward(cudaStream_t stream, const bm_sliding *s,
                                      bm_in x, bm_out y)
{
    size_t n = s->out_frames * s->B * s->out_height * s->channels;

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, forward, bm_grid(n), bm_block, 0, *s, n, x, y);
}

cudaError_t bm_kernel_sliding_backward(cudaStream_t stream, const bm_sliding *s,
                                       bm_in x, bm_in dy, bm_out dx)
{
    size_t n = s->T * s->B * s->height * s->channels;

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, backward, bm_grid(n), bm_block, 0, *s, n, x, dy,
                     dx);
}

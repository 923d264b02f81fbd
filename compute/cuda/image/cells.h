/*
 * cells.h - how kernels iterate over columns of pixels: in cells, the windows
 * of a frame, or its rows without windows, V channels at once. A block takes
 * frames one after the other; a thread keeps its channels, so that their
 * factors and sums stay in registers.
 */
#ifndef BM_COMPUTE_CUDA_IMAGE_CELLS_H
#define BM_COMPUTE_CUDA_IMAGE_CELLS_H

#include "compute/cuda/image/image_kernels.h"
#include "compute/cuda/kernels/kernel.h"

/* Groups of channels side by side in a block, at most; cells of a block, at
 * least; blocks, at most. */
static const size_t SLAB = 64, CELLS = 1024, BLOCKS = 2048;

/* ---- V numbers side by side ---------------------------------------------- */

template <int V> struct some {
    float x[V];
};

BM_INLINE void take(bm_in s, size_t i, some<1> *out)
{
    out->x[0] = s.half ? bm_of_bf16(((const bm_bf16 *)s.x)[i])
                       : ((const float *)s.x)[i];
}

BM_INLINE void part(unsigned two, float *x)
{
    x[0] = __int_as_float((int)(two << 16));
    x[1] = __int_as_float((int)(two & 0xffff0000u));
}

BM_INLINE void take(bm_in s, size_t i, some<8> *out)
{
    if (s.half) {
        uint4 u = ((const uint4 *)s.x)[i / 8];
        part(u.x, out->x);
        part(u.y, out->x + 2);
        part(u.z, out->x + 4);
        part(u.w, out->x + 6);
    } else {
        float4 u = ((const float4 *)s.x)[i / 4];
        float4 v = ((const float4 *)s.x)[i / 4 + 1];
        out->x[0] = u.x, out->x[1] = u.y, out->x[2] = u.z, out->x[3] = u.w;
        out->x[4] = v.x, out->x[5] = v.y, out->x[6] = v.z, out->x[7] = v.w;
    }
}

BM_INLINE void give(bm_out t, size_t i, const some<1> &in)
{
    if (t.half)
        ((bm_bf16 *)t.x)[i] = bm_to_bf16(in.x[0]);
    else
        ((float *)t.x)[i] = in.x[0];
}

BM_INLINE unsigned join(float a, float b)
{
    return bm_to_bf16(a).bits | (unsigned)bm_to_bf16(b).bits << 16;
}

BM_INLINE void give(bm_out t, size_t i, const some<8> &in)
{
    const float *x = in.x;

    if (t.half) {
        ((uint4 *)t.x)[i / 8] = make_uint4(join(x[0], x[1]), join(x[2], x[3]),
                                           join(x[4], x[5]), join(x[6], x[7]));
    } else {
        ((float4 *)t.x)[i / 4] = make_float4(x[0], x[1], x[2], x[3]);
        ((float4 *)t.x)[i / 4 + 1] = make_float4(x[4], x[5], x[6], x[7]);
    }
}

template <int V> BM_INLINE void load(const float *x, size_t c, some<V> *out)
{
    for (int v = 0; v < V; v++)
        out->x[v] = x[c + v];
}

/* ---- cells --------------------------------------------------------------- */

/* A block: `width` threads side by side, each with V channels; frames. */
struct share {
    size_t frames, each; /* in all, of a block */
    unsigned grid, width, threads;
};

static share share_of(size_t frames, size_t rows, size_t channels, int V,
                      size_t most)
{
    size_t groups = channels / (size_t)V, cells = rows * groups;
    share s = {frames, 1, 0, 0, 0};

    if (frames == 0 || cells == 0)
        return s;
    s.each = (frames + most - 1) / most;
    if (s.each * cells < CELLS)
        s.each = (CELLS + cells - 1) / cells;
    s.grid = (unsigned)((frames + s.each - 1) / s.each);
    s.width = (unsigned)(groups < SLAB ? groups : SLAB);
    s.threads = bm_block / s.width * s.width;
    return s;
}

/* A cell, for a thread. */
struct cell {
    size_t frame; /* of windows: t' B + b */
    unsigned row, t, b;
};

/* Number i of the cells of a block that begin with frame `first`. */
BM_INLINE cell find(size_t first, unsigned i, unsigned rows, size_t B)
{
    unsigned down = i / rows;
    cell c;

    c.frame = first + down;
    c.row = i - down * rows;
    c.t = (unsigned)c.frame / (unsigned)B;
    c.b = (unsigned)c.frame - c.t * (unsigned)B;
    return c;
}

/* Loops over slabs of channels: c is this thread's, and may be past the last
 * one, as all threads take part. Loops over n cells of a block: this thread's.
 */
#define EACH_SLAB(c, V, s, channels)                                           \
    for (unsigned c = threadIdx.x % (s).width * (V), slab_ = 0;                \
         slab_ < (channels); slab_ += (s).width * (V), c += (s).width * (V))
#define EACH_CELL(i, s, n)                                                     \
    for (unsigned i = threadIdx.x / (s).width; i < (n);                        \
         i += blockDim.x / (s).width)

BM_INLINE unsigned own_frames(const share &s, size_t first)
{
    return (unsigned)(s.frames - first < s.each ? s.frames - first : s.each);
}

/* The places of a window: channel c of the first, and how many there are, with
 * and without padding. */
struct window {
    size_t at, apart; /* distance of frames, in numbers */
    unsigned frames, rows, valid;
};

BM_INLINE window look(const bm_panes &p, const cell &at, unsigned c)
{
    unsigned t = at.t * p.time, h = at.row * p.rows;
    unsigned T = (unsigned)p.T - t, left = p.height - h;
    unsigned there = (unsigned)p.in[at.b];
    window w;

    w.apart = p.B * p.height * p.channels;
    w.at = t * w.apart + ((size_t)at.b * p.height + h) * p.channels + c;
    w.frames = T < p.time ? T : p.time;
    w.rows = left < p.rows ? left : p.rows;
    w.valid = there <= t ? 0 : there - t < w.frames ? there - t : w.frames;
    return w;
}

#endif

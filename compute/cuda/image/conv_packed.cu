/*
 * conv_packed.cu - copies images and weights from one layout to another, for
 * cuDNN, which takes one sequence after the other, padded channels, and zeros
 * outside of the images.
 *
 * A thread moves 16 bytes if both layouts have whole units of channels, else
 * number by number.
 */
#include "compute/cuda/image/image_kernels.h"
#include "compute/cuda/kernels/kernel.h"

BM_INLINE float widen(float x)
{
    return x;
}
BM_INLINE float widen(bm_bf16 x)
{
    return bm_of_bf16(x);
}
BM_INLINE void give(float x, float *y)
{
    *y = x;
}
BM_INLINE void give(float x, bm_bf16 *y)
{
    *y = bm_to_bf16(x);
}

template <typename E> struct unit {
    static const unsigned n = BM_GATHER_UNIT / sizeof(E);
    union {
        uint4 all;
        E x[n];
    };
};

/* The place of x, of n, that place `at` of y copies; n if it is outside. */
BM_INLINE unsigned place_in(unsigned at, int ahead, unsigned n)
{
    long from = (long)at + ahead;
    return from >= 0 && from < (long)n ? (unsigned)from : n;
}

/* A block for each frame of y. WIDTH: numbers of a unit, or 1. */
template <typename E, unsigned WIDTH>
__global__ static void layout(bm_image_copy l, const E *x, E *y)
{
    size_t b = blockIdx.x % l.B, t = blockIdx.x / l.B;
    unsigned frames = l.x_frames != NULL ? (unsigned)l.x_frames[b] : l.x.T;
    unsigned from = place_in((unsigned)t, l.ahead, frames);
    bool there =
        from < frames && (l.y_frames == NULL || t < (unsigned)l.y_frames[b]);
    const E *in = x + from * l.x.frame + b * l.x.sequence;
    E *out = y + t * l.y.frame + b * l.y.sequence;
    unsigned units = l.y.C / WIDTH;

    for (unsigned n = threadIdx.x; n < l.y.H * units; n += blockDim.x) {
        unsigned h = n / units, c = n % units * WIDTH;
        unsigned row = place_in(h, l.below, l.x.H);
        bool here = there && row < l.x.H && c < l.x.C;
        const E *src = in + (size_t)row * l.x.C + c;
        E *dst = out + (size_t)h * l.y.C + c;

        if (WIDTH > 1) {
            unit<E> u;
            u.all = make_uint4(0, 0, 0, 0);
            if (here)
                u.all = *(const uint4 *)(const void *)src;
            if (here && l.bias != NULL)
                for (unsigned i = 0; i < unit<E>::n; i++)
                    give(widen(u.x[i]) + l.bias[c + i], &u.x[i]);
            *(uint4 *)(void *)dst = u.all;
        } else {
            float v = here ? widen(*src) : 0;
            if (here && l.bias != NULL)
                v += l.bias[c];
            give(v, dst);
        }
    }
}

template <typename E>
static cudaError_t layout_of(cudaStream_t stream, const bm_image_copy *given,
                             const void *x, void *y)
{
    const bm_image_copy l = *given;
    const E *from = (const E *)x;
    E *to = (E *)y;
    bool wide = l.x.C % unit<E>::n == 0 && l.y.C % unit<E>::n == 0 &&
                ((uintptr_t)x | (uintptr_t)y) % BM_GATHER_UNIT == 0;
    size_t units = (size_t)l.y.H * (wide ? l.y.C / unit<E>::n : l.y.C);
    unsigned threads =
        units < bm_block ? (unsigned)(units + 31) / 32 * 32 : bm_block;
    void (*kernel)(bm_image_copy, const E *, E *) =
        wide ? layout<E, unit<E>::n> : layout<E, 1>;

    if (l.B * l.y.T == 0 || units == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, kernel, (unsigned)(l.B * l.y.T), threads, 0, l,
                     from, to);
}

cudaError_t bm_kernel_layout(cudaStream_t stream, const bm_image_copy *l,
                             bm_in x, bm_out y)
{
    return x.half ? layout_of<bm_bf16>(stream, l, x.x, y.x)
                  : layout_of<float>(stream, l, x.x, y.x);
}

/* Sets where number i of `packed` is in w. False: it is a zero. */
BM_INLINE bool find(bm_filter_layout f, size_t i, size_t *at)
{
    size_t c = i % f.c, place = i / f.c % f.places, n = i / f.c / f.places;

    *at = (place * f.channels + c) * f.out_channels + n;
    return c < f.channels && n < f.out_channels;
}

template <typename E>
__global__ static void pack(bm_filter_layout f, size_t n, const float *w,
                            E *packed)
{
    BM_EACH(i, n)
    {
        size_t at = 0;
        give(find(f, i, &at) ? w[at] : 0, &packed[i]);
    }
}

template <typename E>
__global__ static void unpack(bm_filter_layout f, size_t n, const E *packed,
                              bool adds, float *w)
{
    BM_EACH(i, n)
    {
        size_t at = 0;
        if (find(f, i, &at))
            w[at] = widen(packed[i]) + (adds ? w[at] : 0);
    }
}

static size_t count(bm_filter_layout f)
{
    return (size_t)f.n * f.places * f.c;
}

cudaError_t bm_kernel_filter_pack(cudaStream_t stream,
                                  const bm_filter_layout *given, const float *w,
                                  bm_out packed)
{
    const bm_filter_layout f = *given;
    size_t n = count(f);
    bm_bf16 *half = (bm_bf16 *)packed.x;
    float *whole = (float *)packed.x;

    if (packed.half)
        return BM_LAUNCH(stream, pack<bm_bf16>, bm_grid(n), bm_block, 0, f, n,
                         w, half);
    return BM_LAUNCH(stream, pack<float>, bm_grid(n), bm_block, 0, f, n, w,
                     whole);
}

cudaError_t bm_kernel_filter_unpack(cudaStream_t stream,
                                    const bm_filter_layout *given, bm_in packed,
                                    bool adds, float *w)
{
    const bm_filter_layout f = *given;
    size_t n = count(f);
    const bm_bf16 *half = (const bm_bf16 *)packed.x;
    const float *whole = (const float *)packed.x;

    if (packed.half)
        return BM_LAUNCH(stream, unpack<bm_bf16>, bm_grid(n), bm_block, 0, f, n,
                         half, adds, w);
    return BM_LAUNCH(stream, unpack<float>, bm_grid(n), bm_block, 0, f, n,
                     whole, adds, w);
}

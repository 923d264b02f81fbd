/*
 * conv.cu - copies windows of columns of pixels side by side for a product.
 *
 * A thread moves 16 bytes of the matrix: at once if they are contiguous in x,
 * else number by number.
 */
#include "compute/cuda/image/image_kernels.h"
#include "compute/cuda/kernels/kernel.h"

template <typename E> struct unit {
    static const unsigned n = BM_GATHER_UNIT / sizeof(E);
    union {
        uint4 all;
        E x[n];
    };
};

BM_INLINE void give(float x, float *y)
{
    *y = x;
}
BM_INLINE void give(float x, bm_bf16 *y)
{
    *y = bm_to_bf16(x);
}

/* Which of n places tap i of a window is; n if it is outside. */
BM_INLINE unsigned place_of(bm_axis_windows a, unsigned window, unsigned i,
                            unsigned n)
{
    unsigned from = window * a.stride + i * a.dilation;

    if (from < a.before)
        return n;
    from -= a.before;
    if (a.apart > 1) {
        if (from % a.apart != 0)
            return n;
        from /= a.apart;
    }
    return from < n ? from : n;
}

/* What the windows of one frame of the matrix read. */
template <typename E> struct view {
    const bm_gather &g;
    const E *x;
    unsigned t, b, frames;

    /* Channel 0 of place (i, j) of window h; NULL: outside. */
    __device__ const E *at(unsigned h, unsigned i, unsigned j) const
    {
        unsigned from = place_of(g.time, t, i, frames);
        unsigned row = place_of(g.rows, h, j, g.height);

        if (from == frames || row == g.height)
            return NULL;
        return x + ((from * g.B + b) * g.height + row) * g.channels;
    }
};

/* Numbers k, k + 1, .. of window h, which begin a place. */
template <typename E>
BM_INLINE void take_wide(const view<E> &v, unsigned h, unsigned k, unit<E> *u)
{
    const bm_gather &g = v.g;
    unsigned place = k / g.channels, c = k % g.channels;
    unsigned i = place / g.rows.size, j = place % g.rows.size;

    if (i < g.time.size) {
        const E *x = v.at(h, i, j);
        if (x != NULL)
            u->all = *(const uint4 *)(const void *)(x + c);
    } else if (place == g.time.size * g.rows.size && c == 0 && g.ones) {
        give(1, &u->x[0]);
    }
}

template <typename E>
BM_INLINE void take(const view<E> &v, unsigned h, unsigned k, unit<E> *u)
{
    const bm_gather &g = v.g;
    unsigned place = k / g.channels, c = k % g.channels;
    unsigned i = place / g.rows.size, j = place % g.rows.size;

    for (unsigned n = 0; n < unit<E>::n; n++) {
        if (i < g.time.size) {
            const E *x = v.at(h, i, j);
            if (x != NULL)
                u->x[n] = x[c];
        } else if (i == g.time.size && j == 0 && c == 0 && g.ones) {
            give(1, &u->x[n]);
        }
        if (++c == g.channels) {
            c = 0;
            if (++j == g.rows.size) {
                j = 0;
                i++;
            }
        }
    }
}

/* A block for each frame. */
template <typename E, bool WIDE>
__global__ static void gather(bm_gather g, size_t first, const E *x, E *matrix)
{
    size_t frame = first + blockIdx.x;
    unsigned b = (unsigned)(frame % g.B), t = (unsigned)(frame / g.B);
    bool valid = t < (unsigned)g.out[b];
    view<E> v = {g, x, t, b, (unsigned)g.in[b]};
    unsigned units = g.width / unit<E>::n;
    uint4 *to =
        (uint4 *)(void *)matrix + (size_t)blockIdx.x * g.out_height * units;

    for (unsigned n = threadIdx.x; n < g.out_height * units; n += blockDim.x) {
        unsigned h = n / units, k = n % units * unit<E>::n;
        unit<E> u;

        u.all = make_uint4(0, 0, 0, 0);
        if (valid && WIDE)
            take_wide(v, h, k, &u);
        else if (valid)
            take(v, h, k, &u);
        to[n] = u.all;
    }
}

template <typename E>
static cudaError_t gather_of(cudaStream_t stream, const bm_gather *given,
                             size_t first, size_t n, const void *x, void *to)
{
    const bm_gather g = *given;
    const E *from = (const E *)x;
    E *matrix = (E *)to;
    size_t units = (size_t)g.out_height * (g.width / unit<E>::n);
    unsigned threads =
        units < bm_block ? (unsigned)(units + 31) / 32 * 32 : bm_block;
    bool wide =
        g.channels % unit<E>::n == 0 && (uintptr_t)x % BM_GATHER_UNIT == 0;
    void (*kernel)(bm_gather, size_t, const E *, E *) =
        wide ? gather<E, true> : gather<E, false>;

    if (n == 0 || units == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, kernel, (unsigned)n, threads, 0, g, first, from,
                     matrix);
}

cudaError_t bm_kernel_gather(cudaStream_t stream, const bm_gather *g,
                             size_t first, size_t n, bm_in x, void *matrix)
{
    return x.half ? gather_of<bm_bf16>(stream, g, first, n, x.x, matrix)
                  : gather_of<float>(stream, g, first, n, x.x, matrix);
}

/* Number (row, column) of the matrix. */
BM_INLINE float weight(const bm_kernel_of_conv &c, size_t row, size_t column)
{
    size_t places = (size_t)c.time * c.rows, C = c.channels, N = c.out_channels;
    size_t inner = c.turned ? N : C, place = row / inner, k = row % inner;

    if (place < places && c.turned)
        return c.w[((places - 1 - place) * C + column) * N + k];
    if (place < places)
        return c.w[row * N + column];
    return row == places * inner && c.b != NULL ? c.b[column] : 0;
}

template <typename E>
__global__ static void pack(bm_kernel_of_conv c, size_t n, E *out)
{
    size_t columns = c.turned ? c.channels : c.out_channels;

    BM_EACH(i, n)
    give(weight(c, i / columns, i % columns), &out[i]);
}

cudaError_t bm_kernel_pack(cudaStream_t stream, const bm_kernel_of_conv *given,
                           size_t n_rows, bm_out out)
{
    const bm_kernel_of_conv c = *given;
    size_t n = n_rows * (c.turned ? c.channels : c.out_channels);
    bm_bf16 *half = (bm_bf16 *)out.x;
    float *whole = (float *)out.x;

    if (n == 0)
        return cudaSuccess;
    if (out.half)
        return BM_LAUNCH(stream, pack<bm_bf16>, bm_grid(n), bm_block, 0, c, n,
                         half);
    return BM_LAUNCH(stream, pack<float>, bm_grid(n), bm_block, 0, c, n, whole);
}

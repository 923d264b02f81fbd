/*
 * stage.cu - unpacks stored input to floats: sequences one after the other
 * become columns side by side. A thread makes four numbers of a frame. For each
 * number, 1 to 4 bytes are read and 4 are written, or 6 with the bf16 twin.
 */
#include "compute/cuda/kernels/vec4.h"

#ifndef BM_EMULATED
#include <cuda_fp16.h>
#endif

BM_INLINE float of_half(uint16_t bits)
{
    __half_raw h;

    h.x = bits;
    return __half2float(__half(h));
}

/* Numbers d .. d + 3 of a frame [D]. */
BM_INLINE bm_vec4 load_halves(const uint16_t *x, size_t d, size_t D)
{
    bm_vec4 q = {};

    if (D % 4 == 0) {
        ushort4 h = *(const ushort4 *)(const void *)(x + d);
        return {{of_half(h.x), of_half(h.y), of_half(h.z), of_half(h.w)}};
    }
    for (int k = 0; k < 4; k++)
        if (d + k < D)
            q.x[k] = of_half(x[d + k]);
    return q;
}

BM_INLINE bm_vec4 load_bytes(const unsigned char *x, size_t d, size_t D)
{
    bm_vec4 q = {};

    if (D % 4 == 0) {
        uchar4 u = *(const uchar4 *)(const void *)(x + d);
        return {{(float)u.x, (float)u.y, (float)u.z, (float)u.w}};
    }
    for (int k = 0; k < 4; k++)
        if (d + k < D)
            q.x[k] = (float)x[d + k];
    return q;
}

/* offset + scale q for a thread's features, rounded as in io/shard/store.c. */
BM_INLINE bm_vec4 scaled(bm_vec4 q, const float *scale, size_t d, size_t D)
{
    bm_vec4 by = bm_load(scale, d, D, D % 4 == 0);
    bm_vec4 from = bm_load(scale + D, d, D, D % 4 == 0);

    for (int k = 0; k < 4; k++)
        q.x[k] = __fadd_rn(from.x[k], __fmul_rn(by.x[k], q.x[k]));
    return q;
}

/* Numbers of frame t; zeros past the end. */
BM_INLINE bm_vec4 unpacked(const unsigned char *packet,
                           const bm_packet_column &c, size_t t, size_t d,
                           size_t D)
{
    const unsigned char *x = packet + c.at + t * D * (size_t)c.bytes;

    if (t >= (size_t)c.frames)
        return bm_vec4();
    if (c.bytes == 4)
        return bm_load((const float *)(const void *)x, d, D, D % 4 == 0);
    if (c.bytes == 2)
        return load_halves((const uint16_t *)(const void *)x, d, D);
    return scaled(load_bytes(x, d, D),
                  (const float *)(const void *)(packet + c.scale_at), d, D);
}

__global__ static void unpack(size_t T, size_t B, size_t D,
                              const unsigned char *packet, float *x,
                              bm_bf16 *x16, bool wide)
{
    const bm_packet_column *columns =
        (const bm_packet_column *)(const void *)packet;
    size_t vectors = bm_vec4_count(D);

    BM_EACH(j, T * B * vectors)
    {
        size_t row = j / vectors, d = 4 * (j % vectors);
        bm_vec4 q = unpacked(packet, columns[row % B], row / B, d, D);

        bm_store(x + row * D, d, D, wide, q);
        if (x16 != NULL)
            bm_store(x16 + row * D, d, D, wide, q);
    }
}

cudaError_t bm_kernel_unpack(cudaStream_t stream, size_t T, size_t B, size_t D,
                             const void *packet, float *x, bm_bf16 *x16)
{
    size_t n = T * B * bm_vec4_count(D);
    bool wide = D % 4 == 0 && bm_is_wide(x) && bm_is_wide(x16);

    if (n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, unpack, bm_grid(n), bm_block, 0, T, B, D,
                     (const unsigned char *)packet, x, x16, wide);
}

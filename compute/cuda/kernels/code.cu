/*
 * code.cu - codes of vectors that are sent, a piece for each warp. Bytes and
 * residuals are those of comm/code/code_*.c: these count in integers, and add
 * doubles in a fixed order. In arithmetic subnormal floats are zero; they stay
 * where bits are copied. Codes begin at any byte.
 */
#include "compute/cuda/kernels/code.h"
#include "compute/cuda/kernels/flush.h"

enum { LANES = 32, GROUP = 256, MOST = 127, LEVELS = 2, SENT = 6 };

/* Elements [at, at + n) of the vector, and their code. */
struct piece {
    size_t at, n, byte, bytes;
    bool exact; /* floats: the code would not be shorter */
};

BM_INLINE unsigned lane_of()
{
    return threadIdx.x % LANES;
}

BM_INLINE size_t piece_number()
{
    return ((size_t)blockIdx.x * blockDim.x + threadIdx.x) / LANES;
}

BM_INLINE piece piece_at(const bm_pieces &p, size_t i)
{
    const uint64_t *start = (const uint64_t *)(const void *)p.edges;
    const uint64_t *byte = start + p.n + 1;
    piece q = {start[i], start[i + 1] - start[i], byte[i],
               byte[i + 1] - byte[i], false};

    q.exact = q.bytes == q.n * sizeof(float);
    return q;
}

template <typename T> BM_INLINE void write(unsigned char *to, T x)
{
    memcpy(to, &x, sizeof x);
}

template <typename T> BM_INLINE T read(const unsigned char *from)
{
    T x;

    memcpy(&x, from, sizeof x);
    return x;
}

BM_INLINE int magnitude(float x)
{
    return __float_as_int(x) & 0x7fffffff;
}

BM_INLINE bool is_non_finite(float x)
{
    return (__float_as_int(x) & 0x7f800000) == 0x7f800000;
}

BM_INLINE unsigned lanes_below()
{
    return (1u << lane_of()) - 1;
}

/* ---- fp16, bf16 ---------------------------------------------------------- */

BM_INLINE int to_fp16(int bits)
{
    const int one_half = 126 << 23, largest = 0x7bff;
    int tiny = __float_as_int(__fadd_rn(__int_as_float(bits), 0.5f)) - one_half;
    int half = ((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (127 - 15) * 1024;

    half = bits < 113 << 23 ? tiny : half;
    return half < largest ? half : largest;
}

BM_INLINE float from_fp16(int half)
{
    return half < 0x400 ? __fmul_rn((float)half, 0x1p-24f)
                        : __int_as_float((half + (127 - 15) * 1024) << 13);
}

BM_INLINE int to_bf16(int bits)
{
    const int largest = 0x7f7fffff;
    int rounded = bits + 0x7fff + (bits >> 16 & 1);

    return (rounded < largest ? rounded : largest) >> 16;
}

BM_INLINE uint16_t to_half(bm_code_kind kind, float x)
{
    int size = magnitude(x);

    size = kind == BM_CODE_FP16 ? to_fp16(size) : to_bf16(size);
    return (uint16_t)((__float_as_int(x) >> 16 & 0x8000) | size);
}

BM_INLINE float from_half(bm_code_kind kind, uint16_t half)
{
    int size = half & 0x7fff;
    float x =
        kind == BM_CODE_FP16 ? from_fp16(size) : __int_as_float(size << 16);

    return half & 0x8000 ? -x : x;
}

BM_INLINE void encode_halves(bm_code_kind kind, size_t n, const float *x,
                             unsigned char *code, float *residual)
{
    for (size_t i = lane_of(); i < n; i += LANES) {
        uint16_t half = to_half(kind, x[i]);

        write(code + i * sizeof half, half);
        residual[i] = bm_subtract(x[i], from_half(kind, half));
    }
}

/* ---- int8 ---------------------------------------------------------------- */

BM_INLINE float scale_of(size_t n, const float *x)
{
    int largest = 0;
    float scale = 0;

    for (size_t i = lane_of(); i < n; i += LANES)
        largest = max(largest, magnitude(x[i]));
    for (int step = LANES / 2; step > 0; step /= 2)
        largest = max(largest, __shfl_xor_sync(~0u, largest, step));
    scale = bm_over(__int_as_float(largest), MOST);
    if (is_non_finite(__fmul_rn(scale, (float)MOST)))
        scale = __int_as_float(__float_as_int(scale) - 1);
    return scale;
}

BM_INLINE float quantise(float x, float scale)
{
    const float whole = 0x1.8p23f; /* adding it rounds to an integer */
    const float most = MOST;
    float q = __fsub_rn(__fadd_rn(__fdiv_rn(bm_flush(x), scale), whole), whole);

    q = q < most ? q : most;
    return q > -most ? q : -most;
}

BM_INLINE void encode_int8(size_t n, const float *x, unsigned char *code,
                           float *residual)
{
    for (size_t at = 0; at < n; at += GROUP) {
        size_t m = min((size_t)GROUP, n - at);
        float scale = scale_of(m, x + at);

        if (lane_of() == 0)
            write(code, scale);
        code += sizeof scale;
        for (size_t i = lane_of(); i < m; i += LANES) {
            float y = x[at + i];
            int8_t q = (int8_t)(scale > 0 ? quantise(y, scale) : 0.0f);

            code[i] = (unsigned char)q;
            residual[at + i] = bm_subtract(y, __fmul_rn((float)q, scale));
        }
        code += m;
    }
}

BM_INLINE float decode_int8(const unsigned char *code, size_t i)
{
    const unsigned char *group =
        code + i / GROUP * (sizeof(float) + (size_t)GROUP);

    return __fmul_rn((float)(int8_t)group[sizeof(float) + i % GROUP],
                     read<float>(group));
}

/* ---- onebit -------------------------------------------------------------- */

/* What a lane adds up: rows of one remainder modulo 16. */
struct half_sums {
    double below, above;
};

BM_INLINE bool is_below(float x)
{
    return (__float_as_int(__fadd_rn(bm_flush(x), 0.0f)) & 0x80000000) != 0;
}

BM_INLINE void add_row(half_sums *s, float x)
{
    bool below = is_below(x);

    s->below = __dadd_rn(s->below, below ? bm_widen(x) : 0.0);
    s->above = __dadd_rn(s->above, below ? 0.0 : bm_widen(x));
}

BM_INLINE float mean_of(double sum, size_t count)
{
    return count > 0 ? bm_narrow(__ddiv_rn(sum, (double)count)) : 0.0f;
}

BM_INLINE void encode_onebit(size_t n, const float *x, unsigned char *code,
                             float *residual)
{
    unsigned char *words = code + LEVELS * sizeof(float);
    half_sums s = {0, 0};
    size_t count = 0; /* of rows that are not below */
    float below = 0, above = 0;

    for (size_t at = 0; at < n; at += LANES) {
        size_t i = at + lane_of();
        float y = i < n ? x[i] : 0;
        unsigned word = __ballot_sync(~0u, i < n && !is_below(y));

        count += (size_t)__popc(word);
        if (lane_of() == 0)
            write(words + at / 8, word);
        add_row(&s, y);
        add_row(&s, __shfl_down_sync(~0u, y, LANES / 2)); /* 16 rows later */
    }
    for (unsigned m = LANES / 4; m > 0; m /= 2) {
        s.below = __dadd_rn(s.below, __shfl_down_sync(~0u, s.below, m));
        s.above = __dadd_rn(s.above, __shfl_down_sync(~0u, s.above, m));
    }
    below = __shfl_sync(~0u, mean_of(s.below, n - count), 0);
    above = __shfl_sync(~0u, mean_of(s.above, count), 0);
    if (lane_of() == 0) {
        write(code, below);
        write(code + sizeof below, above);
    }
    for (size_t i = lane_of(); i < n; i += LANES)
        residual[i] = bm_subtract(x[i], is_below(x[i]) ? below : above);
}

BM_INLINE float decode_onebit(const unsigned char *code, size_t i)
{
    const unsigned char *words = code + LEVELS * sizeof(float);
    uint32_t word = read<uint32_t>(words + i / LANES * sizeof word);

    return read<float>(code + (word >> i % LANES & 1) * sizeof(float));
}

/* ---- topk ---------------------------------------------------------------- */

BM_INLINE size_t count_from(size_t n, const float *x, int least)
{
    int found = 0;

    for (size_t i = lane_of(); i < n; i += LANES)
        found += magnitude(x[i]) >= least;
    for (int step = LANES / 2; step > 0; step /= 2)
        found += __shfl_xor_sync(~0u, found, step);
    return (size_t)found;
}

/* As threshold in code_topk.c. */
BM_INLINE int threshold(size_t n, const float *x, size_t k, size_t *ties)
{
    int least = 0;
    size_t found = n;

    for (int bit = 30; bit >= 0 && found > k; bit--) {
        size_t count = count_from(n, x, least | 1 << bit);

        if (count >= k) {
            least |= 1 << bit;
            found = count;
        }
    }
    *ties = found > k ? k - count_from(n, x, least + 1) : k;
    return least;
}

BM_INLINE void encode_topk(size_t n, const float *x, size_t k,
                           unsigned char *code, float *residual)
{
    unsigned char *place = code + k * sizeof(float);
    size_t ties = 0, taken = 0;
    int least = threshold(n, x, k, &ties);

    for (size_t at = 0; at < n; at += LANES) {
        size_t i = at + lane_of();
        float y = i < n ? x[i] : 0;
        bool large = i < n && magnitude(y) >= least;
        bool tie = large && magnitude(y) == least;
        unsigned tied = __ballot_sync(~0u, tie), all = 0;
        size_t turn = taken;

        large = large && (!tie || (size_t)__popc(tied & lanes_below()) < ties);
        all = __ballot_sync(~0u, large);
        turn += (size_t)__popc(all & lanes_below());
        if (large) {
            write(code + turn * sizeof y, y);
            write(place + turn * sizeof(uint16_t), (uint16_t)i);
        }
        if (i < n)
            residual[i] = bm_subtract(y, large ? y : 0.0f);
        taken += (size_t)__popc(all);
        ties -= min(ties, (size_t)__popc(tied));
    }
}

/* Places are in order. */
BM_INLINE float decode_topk(const unsigned char *code, size_t k, size_t i)
{
    const unsigned char *place = code + k * sizeof(float);
    size_t from = 0, to = k;

    while (from < to) {
        size_t middle = (from + to) / 2;

        if (read<uint16_t>(place + middle * sizeof(uint16_t)) < i)
            from = middle + 1;
        else
            to = middle;
    }
    return from < k && read<uint16_t>(place + from * sizeof(uint16_t)) == i
               ? read<float>(code + from * sizeof(float))
               : 0.0f;
}

/* ---- all of them --------------------------------------------------------- */

__global__ static void carry(bm_pieces p, const float *residual, float *y,
                             float *non_finite)
{
    piece q = {};
    bool found = false;

    if (piece_number() >= p.n)
        return;
    q = piece_at(p, piece_number());
    for (size_t i = q.at + lane_of(); i < q.at + q.n; i += LANES) {
        if (!q.exact)
            y[i] = bm_add(y[i], residual[i]);
        found = found || is_non_finite(y[i]);
    }
    if (found)
        *non_finite = 1; /* all threads write the same value */
}

__global__ static void encode(bm_pieces p, const float *x, float *residual,
                              unsigned char *code)
{
    piece q = {};

    if (piece_number() >= p.n)
        return;
    q = piece_at(p, piece_number());
    x += q.at;
    residual += q.at;
    code += q.byte;
    if (q.exact)
        for (size_t i = lane_of(); i < q.n; i += LANES)
            write(code + i * sizeof *x, x[i]);
    else if (p.kind == BM_CODE_INT8)
        encode_int8(q.n, x, code, residual);
    else if (p.kind == BM_CODE_ONEBIT)
        encode_onebit(q.n, x, code, residual);
    else if (p.kind == BM_CODE_TOPK)
        encode_topk(q.n, x, q.bytes / SENT, code, residual);
    else
        encode_halves(p.kind, q.n, x, code, residual);
}

BM_INLINE float decoded(bm_code_kind kind, const piece &q,
                        const unsigned char *code, size_t i)
{
    if (q.exact)
        return read<float>(code + i * sizeof(float));
    if (kind == BM_CODE_INT8)
        return decode_int8(code, i);
    if (kind == BM_CODE_ONEBIT)
        return decode_onebit(code, i);
    if (kind == BM_CODE_TOPK)
        return decode_topk(code, q.bytes / SENT, i);
    return from_half(kind, read<uint16_t>(code + i * sizeof(uint16_t)));
}

__global__ static void decode(bm_pieces p, const unsigned char *code, bool adds,
                              float *y)
{
    piece q = {};

    if (piece_number() >= p.n)
        return;
    q = piece_at(p, piece_number());
    for (size_t i = lane_of(); i < q.n; i += LANES) {
        float x = decoded(p.kind, q, code + q.byte, i);
        float *to = y + q.at + i;

        *to = adds && !q.exact ? bm_add(*to, x) : x;
    }
}

static unsigned blocks_for(const bm_pieces *p)
{
    return (unsigned)((p->n * LANES + bm_block - 1) / bm_block);
}

cudaError_t bm_kernel_carry(cudaStream_t stream, const bm_pieces *p,
                            const float *residual, float *y, float *non_finite)
{
    if (p->n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, carry, blocks_for(p), bm_block, 0, *p, residual, y,
                     non_finite);
}

cudaError_t bm_kernel_encode(cudaStream_t stream, const bm_pieces *p,
                             const float *x, float *residual, float *code)
{
    if (p->n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, encode, blocks_for(p), bm_block, 0, *p, x,
                     residual, (unsigned char *)(void *)code);
}

cudaError_t bm_kernel_decode(cudaStream_t stream, const bm_pieces *p,
                             const float *code, bool adds, float *y)
{
    if (p->n == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, decode, blocks_for(p), bm_block, 0, *p,
                     (const unsigned char *)(const void *)code, adds, y);
}

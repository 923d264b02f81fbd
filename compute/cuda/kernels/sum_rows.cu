/*
 * sum_rows.cu - the sum of the rows of a matrix. A block sums some columns,
 * four for each thread, of some rows. The results are a matrix again, whose
 * rows a second kernel sums. The number of blocks depends only on the shape,
 * and so do the bits.
 *
 * A gradient that goes back through an activation is summed in the same kernel,
 * which reads it once.
 */
#include "compute/cuda/kernels/functions.h"
#include "compute/cuda/kernels/vec4.h"

enum {
    BLOCKS = 1024, /* enough for any device */
    AT_ONCE = 4    /* rows that a thread loads before it uses the first */
};

/* How the matrix is divided: threads of a block side by side, a power of two;
 * blocks side by side; rows of a block. */
struct cut {
    unsigned across, blocks, parts;
    size_t rows;
};

static cut cut_of(size_t rows, size_t cols)
{
    cut c = {1, 0, 0, 0};
    size_t least = 0;

    while (c.across < 32 && 4 * c.across < cols)
        c.across *= 2;
    c.blocks = (unsigned)((cols + 4 * c.across - 1) / (4 * c.across));
    c.parts = c.blocks < BLOCKS ? BLOCKS / c.blocks : 1;
    least = 8 * (bm_block / c.across); /* rows for each thread */
    c.rows = (rows + c.parts - 1) / c.parts;
    c.rows = c.rows > least ? c.rows : least;
    c.parts = rows > c.rows ? (unsigned)((rows + c.rows - 1) / c.rows) : 1;
    return c;
}

/* Reads the matrix. */
template <typename Y> struct plain {
    typedef bm_vec4 raw;
    const Y *y;
    bool wide;

    __device__ raw load(size_t row, size_t col, size_t cols) const
    {
        return bm_load(y + row * cols, col, cols, wide);
    }
    __device__ bm_vec4 use(raw q, size_t, size_t, size_t) const { return q; }
};

/* Computes dx = dy f'(x) from y, and writes it. */
template <typename Y, typename DY, typename DX> struct passed_back {
    struct raw {
        bm_vec4 y, dy;
    };
    bm_activation f;
    const Y *y;
    const DY *dy;
    DX *dx;
    bool wide;

    __device__ raw load(size_t row, size_t col, size_t cols) const
    {
        return {bm_load(y + row * cols, col, cols, wide),
                bm_load(dy + row * cols, col, cols, wide)};
    }
    __device__ bm_vec4 use(raw r, size_t row, size_t col, size_t cols) const
    {
        for (int k = 0; k < 4; k++)
            r.dy.x[k] = bm_pass_back(f, r.y.x[k], r.dy.x[k]);
        bm_store(dx + row * cols, col, cols, wide, r.dy);
        return r.dy;
    }
};

/* out [parts, cols] = the sum of the rows of each part of a [rows, cols]. */
template <typename M>
__global__ static void sum_rows(size_t rows, size_t cols, cut c, M matrix,
                                float *out)
{
    __shared__ bm_vec4 room[bm_block];
    unsigned down = bm_block / c.across, line = threadIdx.x / c.across;
    size_t col = 4 * ((size_t)blockIdx.x * c.across + threadIdx.x % c.across);
    size_t from = blockIdx.y * c.rows, to = min(from + c.rows, rows);
    bm_vec4 sum = {};

    for (size_t first = from + line; col < cols && first < to;
         first += AT_ONCE * down) {
        typename M::raw got[AT_ONCE] = {};

#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i * down < to)
                got[i] = matrix.load(first + i * down, col, cols);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (first + i * down < to) {
                bm_vec4 q = matrix.use(got[i], first + i * down, col, cols);
                for (int k = 0; k < 4; k++)
                    sum.x[k] += q.x[k];
            }
    }
    room[threadIdx.x] = sum;
    for (unsigned half = bm_block / 2; half >= c.across; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            for (int k = 0; k < 4; k++)
                room[threadIdx.x].x[k] += room[threadIdx.x + half].x[k];
    }
    if (line == 0 && col < cols)
        bm_store(out + blockIdx.y * cols, col, cols, false, room[threadIdx.x]);
}

template <typename M>
static cudaError_t launch(cudaStream_t stream, size_t rows, size_t cols, cut c,
                          M matrix, float *out)
{
    matrix.wide = matrix.wide && cols % 4 == 0;
    return BM_LAUNCH(stream, sum_rows<M>, dim3(c.blocks, c.parts), bm_block, 0,
                     rows, cols, c, matrix, out);
}

size_t bm_kernel_sum_rows_work(size_t rows, size_t cols)
{
    cut c = cut_of(rows, cols);
    return c.parts > 1 ? c.parts * cols : 0;
}

/* b = the sum of all rows. */
template <typename M>
static cudaError_t sum(cudaStream_t stream, size_t rows, size_t cols, M matrix,
                       float *work, float *b)
{
    cut c = cut_of(rows, cols), last = c;
    cudaError_t error = cudaSuccess;

    if (cols == 0)
        return cudaSuccess;
    error = launch(stream, rows, cols, c, matrix, c.parts > 1 ? work : b);
    if (error != cudaSuccess || c.parts == 1)
        return error;
    last.rows = c.parts;
    last.parts = 1;
    return launch(stream, c.parts, cols, last,
                  plain<float>{work, bm_is_wide(work)}, b);
}

cudaError_t bm_kernel_sum_rows(cudaStream_t stream, size_t rows, size_t cols,
                               bm_in y, float *work, float *b)
{
    const bm_bf16 *half = (const bm_bf16 *)y.x;
    const float *whole = (const float *)y.x;

    if (y.half)
        return sum(stream, rows, cols, plain<bm_bf16>{half, bm_is_wide(half)},
                   work, b);
    return sum(stream, rows, cols, plain<float>{whole, bm_is_wide(whole)}, work,
               b);
}

template <typename Y, typename DY, typename DX>
static cudaError_t sum_back(cudaStream_t stream, const bm_back *p, const Y *y,
                            const DY *dy, DX *dx)
{
    bool wide = bm_is_wide(y) && bm_is_wide(dy) && bm_is_wide(dx);

    return sum(stream, p->rows, p->cols,
               passed_back<Y, DY, DX>{p->f, y, dy, dx, wide}, p->work, p->b);
}

template <typename Y>
static cudaError_t to_half(cudaStream_t stream, const bm_back *p, const Y *y)
{
    bm_bf16 *dx = (bm_bf16 *)p->dx.x;

    return p->dy.half ? sum_back(stream, p, y, (const bm_bf16 *)p->dy.x, dx)
                      : sum_back(stream, p, y, (const float *)p->dy.x, dx);
}

cudaError_t bm_kernel_sum_back(cudaStream_t stream, const bm_back *p)
{
    if (!p->dx.half)
        return sum_back(stream, p, (const float *)p->y.x,
                        (const float *)p->dy.x, (float *)p->dx.x);
    return p->y.half ? to_half(stream, p, (const bm_bf16 *)p->y.x)
                     : to_half(stream, p, (const float *)p->y.x);
}

/*
 * sum_rows.cu - the rows of a matrix added up. A block takes some columns, four
 * to a thread, of some rows; what the blocks of one column have is a matrix
 * again, whose rows one more block adds up. How many there are depends on the
 * shape alone, and so do the bits of the sum.
 */
#include "compute/cuda/quads.h"

enum { BLOCKS = 1024 }; /* enough for any device, and no more */

/* How the columns are shared out: threads of a block side by side, a power of
 * two; blocks side by side; and rows of a block, each part of the matrix. */
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

/* out [parts, cols] = the sums of each part's rows of y [rows, cols]. */
template <typename Y>
__global__ static void sum_rows(size_t rows, size_t cols, cut c, const Y *y,
                                float *out, bool wide)
{
    __shared__ bm_quad room[bm_block];
    unsigned down = bm_block / c.across, line = threadIdx.x / c.across;
    size_t col = 4 * ((size_t)blockIdx.x * c.across + threadIdx.x % c.across);
    size_t from = blockIdx.y * c.rows, to = min(from + c.rows, rows);
    bm_quad sum = {};

#pragma unroll 4
    for (size_t row = from + line; row < to; row += down) {
        bm_quad q =
            col < cols ? bm_load(y + row * cols, col, cols, wide) : bm_quad();
        for (int k = 0; k < 4; k++)
            sum.x[k] += q.x[k];
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

template <typename Y>
static cudaError_t launch(cudaStream_t stream, size_t rows, size_t cols, cut c,
                          const Y *y, float *out)
{
    bool wide = bm_is_wide(y) && cols % 4 == 0;

    return BM_LAUNCH(stream, sum_rows<Y>, dim3(c.blocks, c.parts), bm_block, 0,
                     rows, cols, c, y, out, wide);
}

size_t bm_kernel_sum_rows_work(size_t rows, size_t cols)
{
    cut c = cut_of(rows, cols);
    return c.parts > 1 ? c.parts * cols : 0;
}

cudaError_t bm_kernel_sum_rows(cudaStream_t stream, size_t rows, size_t cols,
                               bm_in y, float *work, float *b)
{
    cut c = cut_of(rows, cols), last = c;
    float *out = c.parts > 1 ? work : b;
    cudaError_t error = cudaSuccess;

    if (cols == 0)
        return cudaSuccess;
    last.rows = c.parts;
    last.parts = 1;
    error = y.half ? launch(stream, rows, cols, c, (const bm_bf16 *)y.x, out)
                   : launch(stream, rows, cols, c, (const float *)y.x, out);
    if (error != cudaSuccess || c.parts == 1)
        return error;
    return launch(stream, c.parts, cols, last, (const float *)work, b);
}

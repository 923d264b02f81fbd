/*
 * ctc_errors.cu - the best path of each sequence, its edit distance from the
 * labels, and sums over its frames. There is a block for each sequence.
 *
 * D(i, j), the distance of the first i labels from the first j symbols of the
 * path, goes over the block in a wave: a lane holds ROWS labels, and takes
 * column j one step after the lane on its left, from which it has D of the row
 * above. A warp is two chunks of columns behind the warp on its left, and finds
 * that row in device memory; more rows than the block has are taken in strips.
 */
#include "compute/cuda/kernels/kernel.h"
#include "compute/cuda/loss/ctc_kernels.h"

enum { ROWS = 4, TILE = 32 * ROWS, MOST_WARPS = 8, COLUMNS = 32 };

/* On one warp: the sums over all frames. */
BM_INLINE void add_frames(const bm_ctc_frame *frame, int T, int lane,
                          bm_ctc_sums *sums)
{
    double logs = 0, blank = 0;

    for (int t = lane; t < T; t += 32) {
        logs += log((double)frame[t].sum);
        blank += (double)frame[t].blank;
    }
    for (int step = 16; step > 0; step /= 2) {
        logs += __shfl_xor_sync(~0u, logs, step);
        blank += __shfl_xor_sync(~0u, blank, step);
    }
    if (lane == 0) {
        sums->log_sum = logs;
        sums->blank = blank;
    }
}

/* On one warp: writes the best path without repeats and blanks, and returns its
 * length. Four loads are in flight at a time. */
BM_INLINE int find_path(const bm_ctc_frame *frame, int T, int lane,
                        int32_t *path)
{
    int n = 0, before = 0;

    for (int first = 0; first < T; first += 4 * 32) {
        int best[4];

        for (int i = 0; i < 4; i++) {
            int t = first + 32 * i + lane;
            best[i] = t < T ? frame[t].best : 0;
        }
        for (int i = 0; i < 4; i++) {
            int left = __shfl_up_sync(~0u, best[i], 1);
            bool kept = best[i] != 0 && best[i] != (lane == 0 ? before : left);
            unsigned all = __ballot_sync(~0u, kept);

            if (kept)
                path[n + __popc(all & ((1u << lane) - 1))] = best[i];
            n += __popc(all);
            before = __shfl_sync(~0u, best[i], 31);
        }
    }
    return n;
}

/* A column that a lane works on. */
struct column {
    int symbol;   /* of the path */
    int distance; /* of the row above the lane's, then of its last */
};

BM_INLINE column shuffle(column x, int lane, bool up)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits = up ? __shfl_up_sync(~0u, bits, 1) : __shfl_sync(~0u, bits, lane);
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* The rows of one strip. The last of all rows is left at *result. */
BM_INLINE void measure_strip(const int32_t *labels, int L, const int32_t *path,
                             int n, int strip, int32_t *border, double *result)
{
    int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    int warps = (int)blockDim.x / 32;
    int busy = min(warps, (L + TILE - 1) / TILE - strip * warps);
    int tile = strip * warps + warp, row = tile * TILE + lane * ROWS;
    int chunks = (n + 31 + COLUMNS - 1) / COLUMNS;
    int label[ROWS], d[ROWS], corner = row; /* D(row, j) of the last column */
    column x = {0, row + ROWS};

    for (int r = 0; r < ROWS; r++) {
        label[r] = row + r < L ? labels[row + r] : -1;
        d[r] = row + r + 1;
    }
    for (int tick = 0; tick < chunks + 2 * (busy - 1); tick++) {
        int chunk = tick - 2 * warp, own = chunk * COLUMNS + lane;
        bool active = chunk >= 0 && chunk < chunks && warp < busy;
        column entry = {0, own + 1}; /* D(0, j) = j */

        if (active && own < n) {
            entry.symbol = path[own];
            entry.distance = tile > 0 ? border[own] : entry.distance;
        }
        for (int k = 0; active && k < COLUMNS; k++) {
            int j = chunk * COLUMNS + k - lane;
            column near = shuffle(x, lane, true);
            column first = shuffle(entry, k, false);
            int above = 0, diagonal = corner;

            if (j < 0 || j >= n)
                continue;
            x = lane == 0 ? first : near;
            above = corner = x.distance;
            for (int r = 0; r < ROWS; r++) {
                int other = min(diagonal + (label[r] != x.symbol), d[r] + 1);

                diagonal = d[r];
                above = d[r] = min(other, above + 1);
            }
            x.distance = above;
            if (lane == 31)
                border[j] = above;
        }
        __syncthreads();
    }
    for (int r = 0; r < ROWS; r++)
        if (row + r + 1 == L)
            *result = d[r];
}

__global__ static void __launch_bounds__(32 * MOST_WARPS) errors(bm_ctc_job c)
{
    __shared__ int n_path;
    const bm_ctc_sequence s = c.sequence[blockIdx.x];
    const bm_ctc_frame *frame = c.frame + s.frame_at;
    bm_ctc_sums *sums = &c.sums[blockIdx.x];
    int32_t *path = c.path + s.frame_at, *border = c.border + s.frame_at;
    int rows = TILE * (int)blockDim.x / 32, lane = (int)threadIdx.x % 32;

    if (threadIdx.x < 32) {
        n_path = find_path(frame, s.frames, lane, path);
        sums->errors = n_path; /* right if there are no labels */
    } else if (threadIdx.x < 64) {
        add_frames(frame, s.frames, lane, sums);
    }
    __syncthreads();
    for (int strip = 0; strip * rows < s.labels; strip++)
        measure_strip(c.labels + s.label_at, s.labels, path, n_path, strip,
                      border, &sums->errors);
}

cudaError_t bm_kernel_ctc_errors(cudaStream_t stream, const bm_ctc_job *c)
{
    size_t warps = (c->most_labels + TILE - 1) / TILE;
    bm_ctc_job job = *c;

    warps = max(min(warps, (size_t)MOST_WARPS), (size_t)2);
    return BM_LAUNCH(stream, errors, (unsigned)c->B, (unsigned)(32 * warps), 0,
                     job);
}

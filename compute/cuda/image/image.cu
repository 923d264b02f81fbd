/*
 * image.cu - pooling and batch normalisation of columns of pixels.
 *
 * The backward pass computes the activation and the maximum of each window
 * again: it has to read x anyway.
 *
 * Bytes for each number of x, in bf16 and with windows of w places: the moments
 * read 2, forward reads 2 and writes 2 / w, slopes read 2 + 2 / w, backward
 * reads as many and writes 2.
 */
#include "compute/cuda/image/cells.h"

/* ---- values of a place -------------------------------------------------- */

template <int F> BM_INLINE float function(float z)
{
    switch (F) {
    case BM_RELU:
        return z < 0 ? 0 : z;
    case BM_LEAKY_RELU:
        return z < 0 ? BM_LEAK * z : z;
    case BM_TANH:
        return tanhf(z);
    case BM_SIGMOID:
        return 1 / (1 + expf(-z));
    default:
        return z;
    }
}

/* dy f'(z), from y = f(z). With relu zero where y is zero, even if dy is
 * NaN. */
template <int F> BM_INLINE float pass_back(float y, float dy)
{
    switch (F) {
    case BM_RELU:
        return y > 0 ? dy : 0;
    case BM_LEAKY_RELU:
        return y > 0 ? dy : BM_LEAK * dy;
    case BM_TANH:
        return dy * (1 - y * y);
    case BM_SIGMOID:
        return dy * (y * (1 - y));
    default:
        return dy;
    }
}

/* z of x, and f(z). Without normalisation: x itself. */
template <int V, int F, bool NORMAL> struct eye {
    some<V> a, center, b;

    __device__ void load_factors(const float *factors, unsigned C, unsigned c)
    {
        if (NORMAL) {
            load(factors, c, &a);
            load(factors + C, c, &center);
            load(factors + 2 * (size_t)C, c, &b);
        }
    }
    __device__ float see(float x, int v) const
    {
        return NORMAL ? function<F>(__fmaf_rn(a.x[v], x - center.x[v], b.x[v]))
                      : x;
    }
};

/* The maximum of a window, its index there, and x. NaN counts as the largest.
 */
template <int V> struct peak {
    some<V> y, x;
    unsigned place[V];
};

template <int V, int F, bool NORMAL>
BM_INLINE void climb(const eye<V, F, NORMAL> &e, bm_in x, const window &w,
                     unsigned channels, peak<V> *top)
{
    unsigned place = 0;

    for (unsigned i = 0; i < w.valid; i++)
        for (unsigned j = 0; j < w.rows; j++, place++) {
            some<V> here;
            take(x, w.at + i * w.apart + (size_t)j * channels, &here);
            for (int v = 0; v < V; v++) {
                float y = e.see(here.x[v], v);
                if (place == 0 || y > top->y.x[v] || y != y) {
                    top->y.x[v] = y;
                    top->x.x[v] = here.x[v];
                    top->place[v] = place;
                }
            }
        }
}

/* ---- kernels ------------------------------------------------------------- */

template <int V, int F, bool NORMAL>
__global__ static void forward(bm_panes p, share s, const float *factors,
                               bm_in x, bm_out y)
{
    size_t first = blockIdx.x * s.each;
    unsigned n = own_frames(s, first);

    EACH_SLAB(c, V, s, p.channels)
    {
        eye<V, F, NORMAL> e;

        if (c >= p.channels)
            continue;
        e.load_factors(factors, p.channels, c);
        EACH_CELL(i, s, n * p.out_height)
        {
            cell at = find(first, i, p.out_height, p.B);
            window w = look(p, at, c);
            peak<V> top = {};

            if (at.t < (unsigned)p.out[at.b])
                climb(e, x, w, p.channels, &top);
            give(y, (at.frame * p.out_height + at.row) * p.channels + c, top.y);
        }
    }
}

/* dx = a f' dy at the maximum, plus b (x - center) + c everywhere. Without
 * normalisation: dy, and 0. */
template <int V, int F, bool NORMAL>
__global__ static void backward(bm_panes p, share s, const float *factors,
                                bm_in x, bm_in dy, bm_out dx)
{
    size_t first = blockIdx.x * s.each;
    unsigned n = own_frames(s, first);

    EACH_SLAB(c, V, s, p.channels)
    {
        eye<V, F, NORMAL> e;
        some<V> b = {}, shift = {};

        if (c >= p.channels)
            continue;
        e.load_factors(factors, p.channels, c);
        if (NORMAL) {
            load(factors + 3 * (size_t)p.channels, c, &b);
            load(factors + 4 * (size_t)p.channels, c, &shift);
        }
        EACH_CELL(i, s, n * p.out_height)
        {
            cell at = find(first, i, p.out_height, p.B);
            window w = look(p, at, c);
            peak<V> top = {};
            some<V> g = {};
            unsigned place = 0;

            if (at.t < (unsigned)p.out[at.b]) {
                climb(e, x, w, p.channels, &top);
                take(dy, (at.frame * p.out_height + at.row) * p.channels + c,
                     &g);
            }
            for (int v = 0; NORMAL && v < V; v++)
                g.x[v] = e.a.x[v] * pass_back<F>(top.y.x[v], g.x[v]);
            for (unsigned i = 0; i < w.frames; i++)
                for (unsigned j = 0; j < w.rows; j++, place++) {
                    size_t to = w.at + i * w.apart + (size_t)j * p.channels;
                    some<V> here = {};

                    if (NORMAL && i < w.valid)
                        take(x, to, &here);
                    for (int v = 0; v < V && i < w.valid; v++) {
                        float d = top.place[v] == place ? g.x[v] : 0;
                        here.x[v] =
                            NORMAL ? d + __fmaf_rn(b.x[v],
                                                   here.x[v] - e.center.x[v],
                                                   shift.x[v])
                                   : d;
                    }
                    give(dx, to, here);
                }
        }
    }
}

/* Sums of all threads, two for each channel of a slab, to row blockIdx.x of
 * partial [.., 2, C]. */
template <int V>
BM_INLINE void fold(const double (&sums)[2][V], const share &s, unsigned c,
                    unsigned C, double *partial)
{
    __shared__ double room[2 * V][bm_block];
    unsigned me = threadIdx.x, row = me / s.width, rows = blockDim.x / s.width;

    __syncthreads(); /* other threads may still read room */
    for (int i = 0; i < 2; i++)
        for (int v = 0; v < V; v++)
            room[i * V + v][me] = sums[i][v];
    for (unsigned step = bm_block / 2; step > 0; step /= 2) {
        __syncthreads();
        if (row < step && row + step < rows)
            for (int i = 0; i < 2 * V; i++)
                room[i][me] += room[i][me + step * s.width];
    }
    if (row > 0 || c >= C)
        return;
    for (int i = 0; i < 2; i++)
        for (int v = 0; v < V; v++)
            partial[((size_t)blockIdx.x * 2 + i) * C + c + v] =
                room[i * V + v][me];
}

/* Sums of x and of x^2. A thread sums the differences from its first number,
 * for which floats suffice; the result is about zero, in doubles. */
template <int V>
__global__ static void measure(bm_panes p, share s, bm_in x, double *partial)
{
    size_t first = blockIdx.x * s.each;
    unsigned n = own_frames(s, first);

    EACH_SLAB(c, V, s, p.channels)
    {
        some<V> about = {}, sum = {}, square = {};
        double sums[2][V], count = 0;

        if (c < p.channels)
            EACH_CELL(i, s, n * p.height)
            {
                cell at = find(first, i, p.height, p.B);
                some<V> here;

                if (at.t >= (unsigned)p.in[at.b])
                    continue;
                take(x, (at.frame * p.height + at.row) * p.channels + c, &here);
                if (count == 0)
                    about = here;
                count++;
                for (int v = 0; v < V; v++) {
                    float d = here.x[v] - about.x[v];
                    sum.x[v] += d;
                    square.x[v] = __fmaf_rn(d, d, square.x[v]);
                }
            }
        for (int v = 0; v < V; v++) {
            double m = about.x[v], d = sum.x[v];
            sums[0][v] = d + count * m;
            sums[1][v] = square.x[v] + 2 * m * d + count * m * m;
        }
        fold<V>(sums, s, c, p.channels, partial);
    }
}

/* Sums of f' dy, and of f' dy (x - center). */
template <int V, int F>
__global__ static void slopes(bm_panes p, share s, const float *factors,
                              bm_in x, bm_in dy, double *partial)
{
    size_t first = blockIdx.x * s.each;
    unsigned n = own_frames(s, first);

    EACH_SLAB(c, V, s, p.channels)
    {
        some<V> sum = {}, product = {};
        double sums[2][V];
        eye<V, F, true> e;

        if (c < p.channels) {
            e.load_factors(factors, p.channels, c);
            EACH_CELL(i, s, n * p.out_height)
            {
                cell at = find(first, i, p.out_height, p.B);
                peak<V> top = {};
                some<V> g;

                if (at.t >= (unsigned)p.out[at.b])
                    continue;
                climb(e, x, look(p, at, c), p.channels, &top);
                take(dy, (at.frame * p.out_height + at.row) * p.channels + c,
                     &g);
                for (int v = 0; v < V; v++) {
                    float d = pass_back<F>(top.y.x[v], g.x[v]);
                    sum.x[v] += d;
                    product.x[v] =
                        __fmaf_rn(d, top.x.x[v] - e.center.x[v], product.x[v]);
                }
            }
        }
        for (int v = 0; v < V; v++) {
            sums[0][v] = sum.x[v];
            sums[1][v] = product.x[v];
        }
        fold<V>(sums, s, c, p.channels, partial);
    }
}

/* ---- sums of stripes, a block for each channel ---------------------------
 */

BM_INLINE double invert(double var)
{
    return 1 / sqrt(var + BM_NORM_EPSILON);
}

BM_INLINE double add_up(const double *partial, unsigned stripes, unsigned C,
                        unsigned which, double *room)
{
    double sum = 0;

    for (unsigned i = threadIdx.x; i < stripes; i += blockDim.x)
        sum += partial[((size_t)i * 2 + which) * C + blockIdx.x];
    return bm_block_sum(sum, room);
}

/* y = a (x - center) + b */
BM_INLINE void prepare(const bm_norm_pass &p, double mean, double var)
{
    unsigned c = blockIdx.x, C = p.panes.channels;
    float a = (float)(p.gamma[c] * invert(var)), center = (float)mean;

    p.factors[c] = a;
    p.factors[C + c] = center;
    p.factors[2 * (size_t)C + c] =
        (float)(p.beta[c] + (double)a * (center - mean));
}

__global__ static void finish_moments(bm_norm_pass p, unsigned stripes)
{
    __shared__ double room[32];
    unsigned c = blockIdx.x, C = p.panes.channels;
    double sum = add_up(p.partial, stripes, C, 0, room);
    double squares = add_up(p.partial, stripes, C, 1, room);
    double n = p.positions, mean = n > 0 ? sum / n : 0;
    double var = n > 0 ? squares / n - mean * mean : 0;

    if (threadIdx.x > 0)
        return;
    var = var < 0 ? 0 : var;
    p.moments[c] = mean;
    p.moments[C + c] = var;
    prepare(p, mean, var);
}

__global__ static void given(bm_norm_pass p)
{
    unsigned c = blockIdx.x;

    if (threadIdx.x == 0)
        prepare(p, p.mean[c], p.var[c] < 0 ? 0 : p.var[c]);
}

/*
 * dx = gamma r (dy - mean of dy - (x - mean) r^2 mean of dy (x - mean))
 *
 * with r = 1 / sqrt(var + epsilon).
 */
__global__ static void finish_slopes(bm_norm_pass p, unsigned stripes)
{
    __shared__ double room[32];
    unsigned c = blockIdx.x, C = p.panes.channels;
    double sum = add_up(p.partial, stripes, C, 0, room);
    double product = add_up(p.partial, stripes, C, 1, room);
    double mean = p.moments[c], var = p.moments[C + c], r = invert(var);
    double n = p.positions, off = p.factors[C + c] - mean, a = 0, b = 0;

    if (threadIdx.x > 0)
        return;
    product += sum * off; /* about the mean */
    p.dgamma[c] = (float)(product * r);
    p.dbeta[c] = (float)sum;
    p.mean_off[c] = n > 0 ? (float)(p.mean[c] - mean) : 0;
    p.var_off[c] = n > 0 ? (float)(p.var[c] - var) : 0;
    if (n > 0) {
        a = p.gamma[c] * r;
        b = -a * r * r * product / n;
    }
    p.factors[3 * (size_t)C + c] = (float)b;
    p.factors[4 * (size_t)C + c] = n > 0 ? (float)(b * off - a * sum / n) : 0;
}

/* ---- launchers ----------------------------------------------------------- */

static bool wide(unsigned channels, const void *a, const void *b, const void *c)
{
    return channels % 8 == 0 && (uintptr_t)a % 16 == 0 &&
           (uintptr_t)b % 16 == 0 && (uintptr_t)c % 16 == 0;
}

static unsigned threads_for(unsigned stripes)
{
    return stripes == 0         ? 32
           : stripes < bm_block ? (stripes + 31) / 32 * 32
                                : bm_block;
}

template <int V, int F, bool NORMAL>
static cudaError_t run_forward(cudaStream_t stream, const bm_panes *panes,
                               const float *factors, bm_in x, bm_out y)
{
    const bm_panes p = *panes;
    const share s =
        share_of(p.out_frames * p.B, p.out_height, p.channels, V, BLOCKS);
    auto kernel = forward<V, F, NORMAL>;

    if (s.grid == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, kernel, s.grid, s.threads, 0, p, s, factors, x, y);
}

template <int V, int F, bool NORMAL>
static cudaError_t run_backward(cudaStream_t stream, const bm_panes *panes,
                                const float *factors, bm_in x, bm_in dy,
                                bm_out dx)
{
    const bm_panes p = *panes;
    const share s =
        share_of(p.out_frames * p.B, p.out_height, p.channels, V, BLOCKS);
    auto kernel = backward<V, F, NORMAL>;

    if (s.grid == 0)
        return cudaSuccess;
    return BM_LAUNCH(stream, kernel, s.grid, s.threads, 0, p, s, factors, x, dy,
                     dx);
}

cudaError_t bm_kernel_pooling_forward(cudaStream_t stream, const bm_panes *p,
                                      bm_in x, bm_out y)
{
    return wide(p->channels, x.x, y.x, NULL)
               ? run_forward<8, BM_IDENTITY, false>(stream, p, NULL, x, y)
               : run_forward<1, BM_IDENTITY, false>(stream, p, NULL, x, y);
}

cudaError_t bm_kernel_pooling_backward(cudaStream_t stream, const bm_panes *p,
                                       bm_in x, bm_in dy, bm_out dx)
{
    return wide(p->channels, x.x, dy.x, dx.x)
               ? run_backward<8, BM_IDENTITY, false>(stream, p, NULL, x, dy, dx)
               : run_backward<1, BM_IDENTITY, false>(stream, p, NULL, x, dy,
                                                     dx);
}

template <int V>
static cudaError_t run_measure(cudaStream_t stream, const bm_norm_pass *pass)
{
    const bm_norm_pass p = *pass;
    const share s = share_of(p.panes.T * p.panes.B, p.panes.height,
                             p.panes.channels, V, BM_STRIPES);
    auto kernel = measure<V>;
    cudaError_t error = cudaSuccess;

    if (s.grid > 0)
        error = BM_LAUNCH(stream, kernel, s.grid, s.threads, 0, p.panes, s, p.x,
                          p.partial);
    if (error != cudaSuccess)
        return error;
    return BM_LAUNCH(stream, finish_moments, p.panes.channels,
                     threads_for(s.grid), 0, p, s.grid);
}

cudaError_t bm_kernel_norm_measure(cudaStream_t stream, const bm_norm_pass *p)
{
    return wide(p->panes.channels, p->x.x, NULL, NULL)
               ? run_measure<8>(stream, p)
               : run_measure<1>(stream, p);
}

cudaError_t bm_kernel_norm_given(cudaStream_t stream, const bm_norm_pass *pass)
{
    const bm_norm_pass p = *pass;

    return BM_LAUNCH(stream, given, p.panes.channels, 32, 0, p);
}

template <int V, int F>
static cudaError_t run_slopes(cudaStream_t stream, const bm_norm_pass *pass)
{
    const bm_norm_pass p = *pass;
    const share s = share_of(p.panes.out_frames * p.panes.B, p.panes.out_height,
                             p.panes.channels, V, BM_STRIPES);
    auto kernel = slopes<V, F>;
    cudaError_t error = cudaSuccess;

    if (s.grid > 0)
        error = BM_LAUNCH(stream, kernel, s.grid, s.threads, 0, p.panes, s,
                          p.factors, p.x, p.dy, p.partial);
    if (error != cudaSuccess)
        return error;
    return BM_LAUNCH(stream, finish_slopes, p.panes.channels,
                     threads_for(s.grid), 0, p, s.grid);
}

/* Makes `call` with F as a constant. */
#define OF_SHAPE(f, ...)                                                       \
    switch (f) {                                                               \
    case BM_RELU: {                                                            \
        enum { F = BM_RELU };                                                  \
        __VA_ARGS__;                                                           \
    }                                                                          \
    case BM_LEAKY_RELU: {                                                      \
        enum { F = BM_LEAKY_RELU };                                            \
        __VA_ARGS__;                                                           \
    }                                                                          \
    case BM_TANH: {                                                            \
        enum { F = BM_TANH };                                                  \
        __VA_ARGS__;                                                           \
    }                                                                          \
    case BM_SIGMOID: {                                                         \
        enum { F = BM_SIGMOID };                                               \
        __VA_ARGS__;                                                           \
    }                                                                          \
    default: {                                                                 \
        enum { F = BM_IDENTITY };                                              \
        __VA_ARGS__;                                                           \
    }                                                                          \
    }

cudaError_t bm_kernel_norm_forward(cudaStream_t stream, const bm_norm_pass *p)
{
    bool eight = wide(p->panes.channels, p->x.x, p->y.x, NULL);

    OF_SHAPE(p->f, return eight
                              ? run_forward<8, F, true>(stream, &p->panes,
                                                        p->factors, p->x, p->y)
                              : run_forward<1, F, true>(stream, &p->panes,
                                                        p->factors, p->x, p->y))
}

cudaError_t bm_kernel_norm_slopes(cudaStream_t stream, const bm_norm_pass *p)
{
    bool eight = wide(p->panes.channels, p->x.x, p->dy.x, NULL);

    OF_SHAPE(p->f, return eight ? run_slopes<8, F>(stream, p)
                                : run_slopes<1, F>(stream, p))
}

cudaError_t bm_kernel_norm_backward(cudaStream_t stream, const bm_norm_pass *p)
{
    bool eight = wide(p->panes.channels, p->x.x, p->dy.x, p->dx.x);

    OF_SHAPE(p->f, return eight ? run_backward<8, F, true>(stream, &p->panes,
                                                           p->factors, p->x,
                                                           p->dy, p->dx)
                                : run_backward<1, F, true>(stream, &p->panes,
                                                           p->factors, p->x,
                                                           p->dy, p->dx))
}

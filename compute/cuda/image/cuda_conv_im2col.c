/*
 * cuda_conv_im2col.c - convolution of columns of pixels as a product. The
 * windows of some frames are copied side by side (im2col), as many as stay in
 * the L2 cache, and multiplied by cublasLt.
 *
 * Each window is followed by a 1, and w by a row b, so that the product adds b,
 * but not where the windows of padding are zeros. The gradient of b is the last
 * row of that of w.
 *
 * The gradient of x is the same product over dy: spread by the strides with
 * zeros between, with the kernel reversed in time and height, and stride 1.
 */
#include "compute/cuda/image/cuda_conv.h"
#include "compute/cuda/image/image_kernels.h"
#include "compute/cuda/libraries/cuda_products.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

enum { PIECE = 16 << 20, LINE = 256 }; /* bytes: of windows; aligned to */

/* The sizes of a convolution: all but the weights. */
typedef struct sweep {
    size_t size; /* bytes of a number: the form that products take */
    size_t height, channels, out_height, out_channels;
    bm_gather windows;
    size_t k;      /* rows of the weights, numbers of a window */
    size_t frames; /* whose windows are multiplied at a time */
} sweep;

/* Rounds a row of n numbers up to whole gather units. */
static size_t padded(const sweep *s, size_t n)
{
    size_t unit = BM_GATHER_UNIT / s->size;

    return (n + unit - 1) / unit * unit;
}

static void measure(sweep *s, bool ones)
{
    bm_gather *g = &s->windows;
    size_t frame = 0;

    s->k = padded(s, (size_t)g->time.size * g->rows.size * s->channels + ones);
    g->height = (unsigned)s->height;
    g->channels = (unsigned)s->channels;
    g->out_height = (unsigned)s->out_height;
    g->width = (unsigned)s->k;
    g->ones = ones;
    frame = s->out_height * s->k * s->size;
    s->frames = frame > 0 && frame < PIECE ? PIECE / frame : 1;
}

static size_t size_of(const bm_backend *be)
{
    return bm_cuda_of(be)->precision == BM_BF16 ? sizeof(bm_bf16)
                                                : sizeof(float);
}

static bm_axis_windows axis(bm_window w, size_t dilation)
{
    return (bm_axis_windows){.size = (unsigned)bm_window_taps(w, dilation),
                             .stride = (unsigned)w.stride,
                             .before = (unsigned)w.before,
                             .apart = 1,
                             .dilation = (unsigned)dilation};
}

static sweep forward_sweep(const bm_backend *be, const bm_conv *c)
{
    sweep s = {.size = size_of(be),
               .height = c->height,
               .channels = c->channels,
               .out_height = bm_windows(c->rows, c->height),
               .out_channels = c->out_channels};

    s.windows.time = axis(c->time, c->dilation[0]);
    s.windows.rows = axis(c->rows, c->dilation[1]);
    measure(&s, true);
    return s;
}

static bm_axis_windows reversed(bm_window w, size_t dilation)
{
    return (bm_axis_windows){.size = (unsigned)bm_window_taps(w, dilation),
                             .stride = 1,
                             .before = (unsigned)(w.size - 1 - w.before),
                             .apart = (unsigned)w.stride,
                             .dilation = (unsigned)dilation};
}

static sweep backward_sweep(const bm_backend *be, const bm_conv *c)
{
    sweep s = {.size = size_of(be),
               .height = bm_windows(c->rows, c->height),
               .channels = c->out_channels,
               .out_height = c->height,
               .out_channels = c->channels};

    s.windows.time = reversed(c->time, c->dilation[0]);
    s.windows.rows = reversed(c->rows, c->dilation[1]);
    measure(&s, false);
    return s;
}

/* Gathers dy itself, where some frames of a piece are padding: windows of one
 * pixel. */
static bm_gather plain(const sweep *s)
{
    static const bm_axis_windows one = {1, 1, 0, 1, 1};
    bm_gather g = s->windows;

    g.in = g.out;
    g.height = g.out_height;
    g.channels = (unsigned)s->out_channels;
    g.width = (unsigned)padded(s, s->out_channels);
    g.time = g.rows = one;
    g.ones = false;
    return g;
}

/* Views of the operation's `work`. */
typedef struct scratch {
    void *windows; /* [frames, out_height, k] */
    void *weights; /* [k, out_channels] */
    void *slopes;  /* [frames, out_height, plain's width] */
    float *dw;     /* [k, out_channels] */
} scratch;

/* Cuts the views from `work`, or sets them to NULL. Returns their bytes. */
static size_t carve(const sweep *s, float *work, scratch *out)
{
    size_t rows = s->frames * s->out_height, n = s->k * s->out_channels;
    size_t sizes[4] = {rows * s->k * s->size, n * s->size,
                       rows * plain(s).width * s->size, n * sizeof(float)};
    char *at = NULL, *views[4] = {NULL};
    size_t used = LINE; /* to align the first */

    if (work != NULL)
        at = (char *)work + (LINE - (uintptr_t)work % LINE) % LINE;
    for (int i = 0; i < 4; i++) {
        views[i] = at;
        sizes[i] = (sizes[i] + LINE - 1) / LINE * LINE;
        used += sizes[i];
        at = at != NULL ? at + sizes[i] : NULL;
    }
    *out = (scratch){views[0], views[1], views[2], (float *)(void *)views[3]};
    return used;
}

size_t bm_conv_im2col_work(bm_backend *be, const bm_conv *c)
{
    sweep there = forward_sweep(be, c), back = backward_sweep(be, c);
    scratch views;
    size_t a = carve(&there, NULL, &views), b = carve(&back, NULL, &views);

    return (a > b ? a : b) / sizeof(float) + 1;
}

static bm_cuda_factor factor(const sweep *s, const void *x, size_t ld,
                             bool transposed)
{
    return (bm_cuda_factor){
        x, s->size == sizeof(float) ? BM_CUDA_F32 : BM_CUDA_BF16, ld,
        transposed};
}

/* x [n] in the form that products take. */
static bm_in read(bm_backend *be, const sweep *s, const float *x, size_t n)
{
    if (s->size == sizeof(float))
        return (bm_in){bm_cuda_read(be, x, n), false};
    return (bm_in){bm_cuda_read16(be, x, n), true};
}

/* Writes y of all frames, zeros past a sequence's end. */
static void convolve(bm_backend *be, const sweep *s, const bm_kernel_of_conv *w,
                     bm_extent in, bm_extent out, const float *x, float *y,
                     const scratch *r)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    size_t frames = out.T * out.B, N = s->out_channels;
    size_t n_x = in.T * in.B * s->height * s->channels;
    bm_in from = read(be, s, x, n_x);
    bm_out to = bm_cuda_out(be, y, frames * s->out_height * N);
    bm_out weights = {r->weights, s->size != sizeof(float)};

    BM_CUDA(be, bm_kernel_pack(stream, w, s->k, weights));
    for (size_t f = 0, n = 0; f < frames; f += n) {
        n = frames - f < s->frames ? frames - f : s->frames;
        BM_CUDA(be,
                bm_kernel_gather(stream, &s->windows, f, n, from, r->windows));
        bm_cuda_multiply(be, stream, n * s->out_height, N, s->k, 1,
                         factor(s, r->windows, s->k, false),
                         factor(s, r->weights, N, false), 0,
                         (char *)to.x + f * s->out_height * N * s->size,
                         to.half ? BM_CUDA_BF16 : BM_CUDA_F32, N, NULL);
    }
}

/* The weights' sizes, without the weights. */
static bm_kernel_of_conv kernel_of(const bm_conv *c, bool turned)
{
    return (bm_kernel_of_conv){
        .time = (unsigned)bm_window_taps(c->time, c->dilation[0]),
        .rows = (unsigned)bm_window_taps(c->rows, c->dilation[1]),
        .channels = (unsigned)c->channels,
        .out_channels = (unsigned)c->out_channels,
        .turned = turned};
}

static void forward(bm_backend *be, const bm_conv *c, bm_extent in,
                    bm_extent out, const float *x, float *y, float *work)
{
    sweep s = forward_sweep(be, c);
    size_t N = c->out_channels, n_w = bm_conv_taps(c) * c->channels * N;
    bm_kernel_of_conv w = kernel_of(c, false);
    scratch r;

    w.w = bm_cuda_read(be, c->w, n_w);
    w.b = bm_cuda_read(be, c->b, N);
    s.windows.B = in.B;
    s.windows.in = bm_cuda_frames(be, in);
    s.windows.out = bm_cuda_frames(be, out);
    carve(&s, work, &r);
    convolve(be, &s, &w, in, out, x, y, &r);
}

/* True if there is no padding among n frames from number f on. */
static bool no_padding(bm_extent e, size_t f, size_t n)
{
    for (size_t b = 0; b < e.B; b++) {
        size_t after = f + n; /* of the last frame t B + b before that: t + 1 */
        size_t t = after > b ? (after - b - 1) / e.B + 1 : 0;

        if (t > (size_t)e.frames[b] && (t - 1) * e.B + b >= f)
            return false;
    }
    return true;
}

/* Sums the gradients of w, and of b after it, over the windows of all frames.
 */
static void learn(bm_backend *be, const sweep *s, bm_extent in, bm_extent out,
                  const float *x, const float *dy, const scratch *r)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    size_t frames = out.T * out.B, N = s->out_channels;
    size_t frame = s->out_height * N;
    bm_in from = read(be, s, x, in.T * in.B * s->height * s->channels);
    bm_in slopes = read(be, s, dy, frames * frame);
    bm_gather copy = plain(s);

    BM_CUDA(be, cudaMemsetAsync(r->dw, 0, s->k * N * sizeof *r->dw, stream));
    for (size_t f = 0, n = 0; f < frames; f += n) {
        bm_cuda_factor b =
            factor(s, (const char *)slopes.x + f * frame * s->size, N, false);

        n = frames - f < s->frames ? frames - f : s->frames;
        BM_CUDA(be,
                bm_kernel_gather(stream, &s->windows, f, n, from, r->windows));
        if (!no_padding(out, f, n)) {
            BM_CUDA(be,
                    bm_kernel_gather(stream, &copy, f, n, slopes, r->slopes));
            b = factor(s, r->slopes, copy.width, false);
        }
        bm_cuda_multiply(be, stream, s->k, N, n * s->out_height, 1,
                         factor(s, r->windows, s->k, true), b, 1, r->dw,
                         BM_CUDA_F32, N, NULL);
    }
}

static void backward(bm_backend *be, const bm_conv *c, bm_extent in,
                     bm_extent out, const float *x, const float *dy,
                     float *work, float *dx, float *dw, float *db)
{
    sweep there = forward_sweep(be, c), back = backward_sweep(be, c);
    cudaStream_t stream = bm_cuda_of(be)->stream;
    size_t N = c->out_channels, n_w = bm_conv_taps(c) * c->channels * N;
    bm_kernel_of_conv w = kernel_of(c, true);
    scratch r;

    there.windows.B = back.windows.B = in.B;
    there.windows.in = back.windows.out = bm_cuda_frames(be, in);
    there.windows.out = back.windows.in = bm_cuda_frames(be, out);
    carve(&there, work, &r);
    learn(be, &there, in, out, x, dy, &r);
    BM_CUDA(be,
            cudaMemcpyAsync(bm_cuda_write(be, dw, n_w), r.dw, n_w * sizeof *dw,
                            cudaMemcpyDeviceToDevice, stream));
    BM_CUDA(be,
            cudaMemcpyAsync(bm_cuda_write(be, db, N), r.dw + n_w,
                            N * sizeof *db, cudaMemcpyDeviceToDevice, stream));
    if (dx == NULL)
        return;
    carve(&back, work, &r);
    w.w = bm_cuda_read(be, c->w, n_w);
    convolve(be, &back, &w, out, in, dy, dx, &r);
}

const bm_conv_engine bm_conv_engine_im2col = {
    .name = "im2col",
    .forward = forward,
    .backward = backward,
};

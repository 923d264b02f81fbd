/*
 * cuda_conv_cudnn.c - convolution by cuDNN, which takes packed images,
 * [B, T, H, C]. Some sequences at a time are copied into that order, with zeros
 * wherever a window reaches beyond the image or past the sequence's end. So
 * cuDNN pads nothing and needs no lengths, and padding on one side is possible.
 * Channels are rounded up to 16 bytes for tensor cores.
 *
 * The algorithms are fixed, with one order of summation: IMPLICIT_PRECOMP_GEMM
 * forward, ALGO_1 for dx and dw (ALGO_0, and ALGO_3 of dw, use atomics). In
 * bf16, tensor cores multiply and sum in floats. y is rounded to bf16 before b
 * is added, and dw once for each piece of a batch; im2col rounds y once and dw
 * never.
 */
#include "compute/cuda/image/cuda_conv.h"
#include "compute/cuda/image/image_kernels.h"
#include "compute/cuda/libraries/cuda_cudnn.h"
#include "compute/cuda/memory/cuda_forms.h"
#include "compute/cuda/memory/cuda_ring.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 16, PIECE = 16 << 20, WORK = 256 << 20 }; /* bytes */
#define FORWARD CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM
#define TO_X    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1
#define TO_W    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1

/* The sizes of a convolution of all sequences of a batch. */
typedef struct sweep {
    const bm_conv *c;
    bm_extent in, out;
    bm_images x, y;   /* as the caller has them */
    bm_images px, py; /* packed */
    bm_filter_layout filter;
    size_t size;      /* bytes of a number */
    size_t sequences; /* that are convolved at a time */
} sweep;

static size_t whole_lines(const sweep *s, size_t channels)
{
    size_t unit = LINE / s->size;

    return (channels + unit - 1) / unit * unit;
}

/* As callers have them, [T, B, H, C]; or packed, [B, T, H, C]. */
static bm_images images(size_t T, size_t H, size_t C, size_t B)
{
    return (bm_images){(unsigned)T, (unsigned)H, (unsigned)C, B * H * C, H * C};
}

static bm_images packed(size_t T, size_t H, size_t C)
{
    return (bm_images){(unsigned)T, (unsigned)H, (unsigned)C, H * C, T * H * C};
}

static sweep sweep_of(const bm_backend *be, const bm_conv *c, bm_extent in,
                      bm_extent out)
{
    bool half = bm_cuda_of(be)->precision == BM_BF16;
    size_t H = bm_windows(c->rows, c->height), most = 0;
    sweep s = {.c = c,
               .in = in,
               .out = out,
               .size = half ? sizeof(bm_bf16) : sizeof(float)};
    size_t C = whole_lines(&s, c->channels);
    size_t N = whole_lines(&s, c->out_channels);

    s.x = images(in.T, c->height, c->channels, in.B);
    s.y = images(out.T, H, c->out_channels, out.B);
    s.px = packed((out.T - 1) * c->time.stride + c->time.size,
                  (H - 1) * c->rows.stride + c->rows.size, C);
    s.py = packed(out.T, H, N);
    s.filter =
        (bm_filter_layout){(unsigned)bm_conv_taps(c), (unsigned)c->channels,
                           (unsigned)c->out_channels, (unsigned)C, (unsigned)N};
    most = s.px.sequence > s.py.sequence ? s.px.sequence : s.py.sequence;
    s.sequences = most > 0 ? PIECE / s.size / most : 1;
    s.sequences = s.sequences > out.B ? out.B : s.sequences;
    s.sequences = s.sequences > 0 ? s.sequences : 1;
    return s;
}

static size_t filter_count(const sweep *s)
{
    return (size_t)s->filter.n * s->filter.places * s->filter.c;
}

/* Sets the descriptors of n sequences, which the next calls read. */
static cudnnStatus_t describe(bm_backend *be, const sweep *s, size_t n)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    bm_precision precision = bm_cuda_of(be)->precision;
    cudnnDataType_t type = bm_cudnn_type(precision);
    const bm_window *time = &s->c->time, *rows = &s->c->rows;
    const size_t *apart = s->c->dilation;
    const bm_images *all[2] = {&s->px, &s->py};
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    for (int i = 0; i < 2 && status == CUDNN_STATUS_SUCCESS; i++)
        status = c->SetTensor4dDescriptor(c->images[i], CUDNN_TENSOR_NHWC, type,
                                          (int)n, (int)all[i]->C,
                                          (int)all[i]->T, (int)all[i]->H);
    if (status == CUDNN_STATUS_SUCCESS)
        status = c->SetFilter4dDescriptor(c->filter, type, CUDNN_TENSOR_NHWC,
                                          (int)s->filter.n, (int)s->filter.c,
                                          (int)bm_window_taps(*time, apart[0]),
                                          (int)bm_window_taps(*rows, apart[1]));
    if (status == CUDNN_STATUS_SUCCESS)
        status = c->SetConvolution2dDescriptor(
            c->conv, 0, 0, (int)time->stride, (int)rows->stride, (int)apart[0],
            (int)apart[1], CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    if (status == CUDNN_STATUS_SUCCESS)
        status = c->SetConvolutionMathType(c->conv, bm_cudnn_math(precision));
    return status;
}

/* The largest workspace of the calls that the descriptors describe. */
static cudnnStatus_t measure(const bm_cudnn *c, size_t *bytes)
{
    size_t n[3] = {0};
    cudnnStatus_t status = c->GetConvolutionForwardWorkspaceSize(
        c->handles[0], c->images[0], c->filter, c->conv, c->images[1], FORWARD,
        &n[0]);

    if (status == CUDNN_STATUS_SUCCESS)
        status = c->GetConvolutionBackwardDataWorkspaceSize(
            c->handles[0], c->filter, c->images[1], c->conv, c->images[0], TO_X,
            &n[1]);
    if (status == CUDNN_STATUS_SUCCESS)
        status = c->GetConvolutionBackwardFilterWorkspaceSize(
            c->handles[0], c->images[0], c->images[1], c->conv, c->filter, TO_W,
            &n[2]);
    *bytes = n[0] > n[1] ? n[0] : n[1];
    *bytes = *bytes > n[2] ? *bytes : n[2];
    return status;
}

/* The same of pieces of n sequences. Descriptors are those of such a piece
 * then, or what they were: the library is asked once, it takes its time. */
static cudnnStatus_t need_of(bm_backend *be, const sweep *s, size_t n,
                             size_t *bytes)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    const bm_window *time = &s->c->time, *rows = &s->c->rows;
    const bm_cudnn_need of = {
        {n, (size_t)bm_cuda_of(be)->precision, s->px.T, s->px.H, s->px.C,
         s->py.T, s->py.H, s->py.C, time->size, time->stride, rows->size,
         rows->stride, s->c->dilation[0], s->c->dilation[1]},
        0,
        c->needs};
    bm_cudnn_need *one = c->needs;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

    while (one != NULL && memcmp(one->kind, of.kind, sizeof of.kind) != 0)
        one = one->next;
    if (one == NULL) {
        status = describe(be, s, n);
        if (status == CUDNN_STATUS_SUCCESS)
            status = measure(c, bytes);
        one = status == CUDNN_STATUS_SUCCESS ? malloc(sizeof *one) : NULL;
        if (one == NULL)
            return status;
        *one = of;
        one->bytes = *bytes;
        c->needs = one;
    }
    *bytes = one->bytes;
    return CUDNN_STATUS_SUCCESS;
}

static const char *obstacle(bm_backend *be, const bm_conv *conv, bm_extent in,
                            bm_extent out)
{
    const char *why = NULL;
    bm_cudnn *c = bm_cudnn_of(be, &why);
    sweep s = sweep_of(be, conv, in, out);
    size_t bytes = 0;

    if (c == NULL)
        return why;
    if (s.px.sequence > INT_MAX || s.py.sequence > INT_MAX)
        return "a sequence has more than 2^31 numbers";
    if (!bm_cudnn_well(c, need_of(be, &s, s.sequences, &bytes),
                       "GetConvolution..WorkspaceSize", c->why_conv,
                       sizeof c->why_conv))
        return c->why_conv;
    if (bytes <= WORK)
        return NULL;
    snprintf(c->why_conv, sizeof c->why_conv,
             "it needs %zu MiB of workspace, more than %d", bytes >> 20,
             WORK >> 20);
    return c->why_conv;
}

/* The rooms of a pass. */
typedef struct rooms {
    void *x, *y, *w, *dw, *work;
    float *sums; /* partial sums over rows of dy */
    float *db;   /* [N rounded up] */
    size_t work_bytes;
    bool half;
} rooms;

static rooms take(bm_backend *be, const sweep *s)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    size_t n = filter_count(s) * s->size, N = s->filter.n;
    size_t sums = 0;
    rooms r = {.half = s->size == sizeof(bm_bf16)};
    size_t pieces[2] = {s->sequences, s->out.B % s->sequences};

    /* The last piece may need more than the others, though it is smaller. */
    for (int i = 0; i < 2 && pieces[i] > 0; i++) {
        size_t bytes = 0, parts = 0;

        bm_cudnn_note(be, need_of(be, s, pieces[i], &bytes),
                      "GetConvolution..WorkspaceSize");
        r.work_bytes = bytes > r.work_bytes ? bytes : r.work_bytes;
        parts = bm_kernel_sum_rows_work(pieces[i] * s->py.T * s->py.H, N);
        sums = parts > sums ? parts : sums;
    }
    r.x = bm_cuda_room_for(be, &c->image[0],
                           s->sequences * s->px.sequence * s->size);
    r.y = bm_cuda_room_for(be, &c->image[1],
                           s->sequences * s->py.sequence * s->size);
    r.w = bm_cuda_room_for(be, &c->kernel, 2 * bm_cudnn_lines(n));
    r.dw = r.w != NULL ? (char *)r.w + bm_cudnn_lines(n) : NULL;
    r.work = bm_cuda_room_for(be, &c->work[0], r.work_bytes);
    r.db = bm_cuda_room_for(be, &c->sums, (N + sums) * sizeof *r.db);
    r.sums = r.db != NULL ? r.db + N : NULL;
    return r;
}

static bm_in read(bm_backend *be, const sweep *s, const float *x, size_t n)
{
    if (s->size == sizeof(float))
        return (bm_in){bm_cuda_read(be, x, n), false};
    return (bm_in){bm_cuda_read16(be, x, n), true};
}

static size_t count(const bm_images *i, size_t B)
{
    return B * i->T * i->H * i->C;
}

/* Copies n sequences of the caller's images, from number b on, to `to`, and
 * zeros around them. */
static void place(bm_backend *be, const sweep *s, size_t b, size_t n,
                  bm_in from, const bm_images *images, const bm_images *packed,
                  const int32_t *frames, bool windows, void *to)
{
    bm_image_copy l = {
        .B = n, .x = *images, .y = *packed, .x_frames = frames + b};
    const char *x = (const char *)from.x + b * images->sequence * s->size;

    if (windows) {
        l.ahead = -(int)s->c->time.before;
        l.below = -(int)s->c->rows.before;
    }
    BM_CUDA(be,
            bm_kernel_layout(bm_cuda_of(be)->stream, &l, (bm_in){x, from.half},
                             (bm_out){to, from.half}));
}

static void bring_back(bm_backend *be, const sweep *s, size_t b, size_t n,
                       const void *from, const bm_images *packed,
                       const bm_images *images, const int32_t *frames,
                       bm_image_copy extra, bm_out to)
{
    bm_image_copy l = extra;
    char *y = (char *)to.x + b * images->sequence * s->size;

    l.B = n;
    l.x = *packed;
    l.y = *images;
    l.y_frames = frames + b;
    BM_CUDA(be, bm_kernel_layout(bm_cuda_of(be)->stream, &l,
                                 (bm_in){from, to.half}, (bm_out){y, to.half}));
}

static const float one = 1, zero = 0;

static size_t piece(const sweep *s, size_t b)
{
    return s->out.B - b < s->sequences ? s->out.B - b : s->sequences;
}

static void pack(bm_backend *be, const sweep *s, const rooms *r)
{
    const float *w = bm_cuda_read(be, s->c->w,
                                  (size_t)s->filter.places * s->c->channels *
                                      s->c->out_channels);

    BM_CUDA(be, bm_kernel_filter_pack(bm_cuda_of(be)->stream, &s->filter, w,
                                      (bm_out){r->w, r->half}));
}

static void forward(bm_backend *be, const bm_conv *conv, bm_extent in,
                    bm_extent out, const float *x, float *y, float *work)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    sweep s = sweep_of(be, conv, in, out);
    rooms r = take(be, &s);
    bm_in from = read(be, &s, x, count(&s.x, in.B));
    bm_out to = bm_cuda_out(be, y, count(&s.y, out.B));
    const int32_t *in_frames = bm_cuda_frames(be, in);
    const int32_t *out_frames = bm_cuda_frames(be, out);
    bm_image_copy with = {.bias =
                              bm_cuda_read(be, conv->b, conv->out_channels)};

    (void)work;
    pack(be, &s, &r);
    for (size_t b = 0, n = 0; b < out.B && be->failed == BM_OK; b += n) {
        n = piece(&s, b);
        bm_cudnn_note(be, describe(be, &s, n), "SetConvolution..Descriptor");
        place(be, &s, b, n, from, &s.x, &s.px, in_frames, true, r.x);
        BM_CUDNN(be,
                 ConvolutionForward(c->handles[0], &one, c->images[0], r.x,
                                    c->filter, r.w, c->conv, FORWARD, r.work,
                                    r.work_bytes, &zero, c->images[1], r.y));
        bring_back(be, &s, b, n, r.y, &s.py, &s.y, out_frames, with, to);
    }
}

/* Adds the gradients of a piece, whose x and dy are in place. */
static void learn(bm_backend *be, const sweep *s, const rooms *r, size_t n,
                  bool first, float *dw, float *db)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    cudaStream_t stream = bm_cuda_of(be)->stream;

    BM_CUDNN(be, ConvolutionBackwardFilter(c->handles[0], &one, c->images[0],
                                           r->x, c->images[1], r->y, c->conv,
                                           TO_W, r->work, r->work_bytes, &zero,
                                           c->filter, r->dw));
    BM_CUDA(be, bm_kernel_filter_unpack(stream, &s->filter,
                                        (bm_in){r->dw, r->half}, !first, dw));
    BM_CUDA(be, bm_kernel_sum_rows(stream, n * s->py.T * s->py.H, s->filter.n,
                                   (bm_in){r->y, r->half}, r->sums, r->db));
    BM_CUDA(be, bm_kernel_axpby(stream, s->filter.out_channels, 1, r->db,
                                first ? 0 : 1, db));
}

static void backward(bm_backend *be, const bm_conv *conv, bm_extent in,
                     bm_extent out, const float *x, const float *dy,
                     float *work, float *dx, float *dw, float *db)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    sweep s = sweep_of(be, conv, in, out);
    rooms r = take(be, &s);
    bm_in from = read(be, &s, x, count(&s.x, in.B));
    bm_in down = read(be, &s, dy, count(&s.y, out.B));
    const int32_t *in_frames = bm_cuda_frames(be, in);
    const int32_t *out_frames = bm_cuda_frames(be, out);
    float *to_w = bm_cuda_write(
        be, dw, (size_t)s.filter.places * conv->channels * conv->out_channels);
    float *to_b = bm_cuda_write(be, db, conv->out_channels);
    bm_image_copy shift = {.ahead = (int)conv->time.before,
                           .below = (int)conv->rows.before};
    bm_out to = {0};

    (void)work;
    if (dx != NULL) {
        pack(be, &s, &r);
        to = bm_cuda_out(be, dx, count(&s.x, in.B));
    }
    for (size_t b = 0, n = 0; b < out.B && be->failed == BM_OK; b += n) {
        n = piece(&s, b);
        bm_cudnn_note(be, describe(be, &s, n), "SetConvolution..Descriptor");
        place(be, &s, b, n, from, &s.x, &s.px, in_frames, true, r.x);
        place(be, &s, b, n, down, &s.y, &s.py, out_frames, false, r.y);
        learn(be, &s, &r, n, b == 0, to_w, to_b);
        if (dx == NULL)
            continue;
        BM_CUDNN(be, ConvolutionBackwardData(c->handles[0], &one, c->filter,
                                             r.w, c->images[1], r.y, c->conv,
                                             TO_X, r.work, r.work_bytes, &zero,
                                             c->images[0], r.x));
        bring_back(be, &s, b, n, r.x, &s.px, &s.x, in_frames, shift, to);
    }
}

const bm_conv_engine bm_conv_engine_cudnn = {
    .name = "cudnn",
    .obstacle = obstacle,
    .forward = forward,
    .backward = backward,
};

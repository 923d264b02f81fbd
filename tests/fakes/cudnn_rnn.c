/*
 * cudnn_rnn.c - LSTM layers of the emulated cuDNN. Weights have an order of
 * their own, with gaps. The reserve holds, for each frame and direction,
 *
 *     i, f, g, o and c of every cell; backward, the gradients before the gates
 *
 * and starts with a mark by which the order of passes is checked. In padding, y
 * is what `fills` selects and dx is NaN, which the manual leaves open; x, y and
 * dy are not read there.
 */
#include "tests/fakes/cudnn_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GAP = 24, PARTS = 5, WORK = 500 }; /* numbers; of a cell; bytes */
enum { FORWARD_DONE = 0x4c53, DATA_DONE = 0x544d };

cudnnStatus_t cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algo, cudnnRNNMode_t cell,
    cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
    cudnnRNNInputMode_t input, cudnnDataType_t type, cudnnDataType_t precision,
    cudnnMathType_t math, int32_t D, int32_t H, int32_t projection,
    int32_t layers, cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    bool persist = algo == CUDNN_RNN_ALGO_PERSIST_STATIC;

    (void)dropout, (void)math;
    NEED_PARAM(D > 0 && H > 0 && projection == H && layers == 1);
    NEED(cell == CUDNN_LSTM && bias == CUDNN_RNN_DOUBLE_BIAS &&
             input == CUDNN_LINEAR_INPUT,
         CUDNN_STATUS_NOT_SUPPORTED); /* unused by the backend */
    NEED(persist || algo == CUDNN_RNN_ALGO_STANDARD,
         CUDNN_STATUS_NOT_SUPPORTED);
    NEED(type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16,
         CUDNN_STATUS_NOT_SUPPORTED);
    NEED(precision == CUDNN_DATA_FLOAT, CUDNN_STATUS_NOT_SUPPORTED);
    NEED(!persist || direction == CUDNN_UNIDIRECTIONAL,
         CUDNN_STATUS_NOT_SUPPORTED);
    *rnn = (struct cudnnRNNStruct){algo,
                                   type,
                                   D,
                                   H,
                                   direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                                   flags & CUDNN_RNN_PADDED_IO_ENABLED};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t d,
                                        cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int T,
                                        int B, int size, const int lengths[],
                                        void *fill)
{
    uint32_t bits = 0;

    NEED(layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
         CUDNN_STATUS_NOT_SUPPORTED); /* others are unused */
    NEED_PARAM(T > 0 && B > 0 && size > 0 && B <= MOST_SEQUENCES);
    *d = (struct cudnnRNNDataStruct){
        .type = type, .T = T, .B = B, .size = size, .fills = fill != NULL};
    for (int b = 0; b < B; b++) {
        NEED_PARAM(lengths[b] >= 0 && lengths[b] <= T);
        d->lengths[b] = lengths[b];
    }
    if (fill != NULL) {
        memcpy(&bits, fill, size_of(type));
        NEED(bits == 0, CUDNN_STATUS_NOT_SUPPORTED); /* unused, too */
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Offset of matrix i of direction r, for x (i < 4) or for h, and that of its
 * bias. */
static size_t matrix(const struct cudnnRNNStruct *l, int r, int i)
{
    size_t D = (size_t)l->D, H = (size_t)l->H, input = H * D + GAP;
    size_t direction = 4 * (input + H * H + GAP);
    size_t before =
        (size_t)(l->R - 1 - r) * direction; /* the last direction first */

    return i < 4 ? before + (size_t)(3 - i) * input
                 : before + 4 * input + (size_t)(i - 4) * (H * H + GAP);
}

static size_t bias(const struct cudnnRNNStruct *l, int r, int i)
{
    struct cudnnRNNStruct more = *l;

    more.R++; /* the offset behind the last direction */
    return matrix(&more, 0, 0) - 3 * ((size_t)l->H * (size_t)l->D + GAP) +
           (size_t)(r * 8 + i) * ((size_t)l->H + GAP);
}

static size_t weights(const struct cudnnRNNStruct *l)
{
    return (bias(l, l->R - 1, 7) + (size_t)l->H + GAP) * size_of(l->type);
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle,
                                         cudnnRNNDescriptor_t l, size_t *bytes)
{
    (void)handle;
    *bytes = weights(l);
    return CUDNN_STATUS_SUCCESS;
}

static void describe(cudnnTensorDescriptor_t d, cudnnDataType_t type, int rows,
                     int columns)
{
    *d = (struct cudnnTensorStruct){.type = type,
                                    .n = 3,
                                    .dim = {1, rows, columns},
                                    .stride = {rows * columns, columns, 1}};
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle,
                                      cudnnRNNDescriptor_t l, int32_t layer,
                                      size_t bytes, const void *space,
                                      int32_t i, cudnnTensorDescriptor_t of_m,
                                      void **m, cudnnTensorDescriptor_t of_b,
                                      void **b)
{
    char *at = NULL;

    (void)handle;
    NEED_PARAM(layer >= 0 && layer < l->R && i >= 0 && i < 8);
    NEED_PARAM(bytes == weights(l));
    memcpy(&at, &space, sizeof at); /* cuDNN's signature drops const */
    *m = at + matrix(l, layer, i) * size_of(l->type);
    describe(of_m, l->type, l->H, i < 4 ? l->D : l->H);
    *b = at + bias(l, layer, i) * size_of(l->type);
    describe(of_b, l->type, l->H, 1);
    return CUDNN_STATUS_SUCCESS;
}

/* Size of the reserve in bytes. */
static size_t reserve_of(const struct cudnnRNNStruct *l,
                         const struct cudnnRNNDataStruct *x)
{
    return (1 +
            (size_t)x->T * (size_t)x->B * (size_t)l->R * (size_t)l->H * PARTS) *
           sizeof(float);
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle,
                                        cudnnRNNDescriptor_t l,
                                        cudnnForwardMode_t mode,
                                        cudnnRNNDataDescriptor_t x,
                                        size_t *work, size_t *reserve)
{
    (void)handle;
    NEED_PARAM(mode == CUDNN_FWD_MODE_TRAINING);
    *work = WORK;
    *reserve = reserve_of(l, x);
    return CUDNN_STATUS_SUCCESS;
}

typedef struct job {
    struct cudnnRNNStruct l;
    struct cudnnRNNDataStruct data; /* x's */
    const int32_t *lengths;         /* on the device */
    const void *x, *y, *dy, *w;
    void *to_y, *to_x, *to_w;
    void *work;
    float *reserve;
} job;

/* A sequence in one direction: steps s = 0, 1, .. */
typedef struct walk {
    const job *j;
    int r, b, n;
} walk;

static size_t frame(const walk *w, int s)
{
    int t = w->r == 0 ? s : w->n - 1 - s;
    return (size_t)t * (size_t)w->j->data.B + (size_t)w->b;
}

/* i, f, g, o, c of cell h at step s. */
static float *kept(const walk *w, int s, int h)
{
    const struct cudnnRNNStruct *l = &w->j->l;
    size_t at = (frame(w, s) * (size_t)l->R + (size_t)w->r) * (size_t)l->H;

    return w->j->reserve + 1 + (at + (size_t)h) * PARTS;
}

static size_t in(const walk *w, int s, int d)
{
    return frame(w, s) * (size_t)w->j->l.D + (size_t)d;
}

static size_t out(const walk *w, int s, int h)
{
    const struct cudnnRNNStruct *l = &w->j->l;
    return (frame(w, s) * (size_t)l->R + (size_t)w->r) * (size_t)l->H +
           (size_t)h;
}

static double weight(const walk *w, size_t at)
{
    return load(w->j->l.type, w->j->w, at);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* The argument of gate i of cell h. */
static double activation(const walk *w, int s, int i, int h)
{
    const struct cudnnRNNStruct *l = &w->j->l;
    double sum = weight(w, bias(l, w->r, i) + (size_t)h) +
                 weight(w, bias(l, w->r, 4 + i) + (size_t)h);
    size_t wx = matrix(l, w->r, i) + (size_t)h * (size_t)l->D;
    size_t wh = matrix(l, w->r, 4 + i) + (size_t)h * (size_t)l->H;

    for (int d = 0; d < l->D; d++)
        sum += weight(w, wx + (size_t)d) * load(l->type, w->j->x, in(w, s, d));
    for (int k = 0; s > 0 && k < l->H; k++)
        sum += weight(w, wh + (size_t)k) *
               load(l->type, w->j->to_y, out(w, s - 1, k));
    return sum;
}

static void step_forward(const walk *w, int s)
{
    const struct cudnnRNNStruct *l = &w->j->l;

    for (int h = 0; h < l->H; h++) {
        double before = s > 0 ? kept(w, s - 1, h)[4] : 0;
        float *g = kept(w, s, h);

        for (int i = 0; i < 4; i++) {
            double a = activation(w, s, i, h);
            g[i] = (float)(i == 2 ? tanh(a) : sigmoid(a));
        }
        g[4] = (float)(g[1] * before + g[0] * g[2]);
        store(l->type, w->j->to_y, out(w, s, h), g[3] * tanh((double)g[4]));
    }
}

/* One step back: updates dc [H]; gates become gradients. */
static void step_back(const walk *w, int s, double *dc)
{
    const struct cudnnRNNStruct *l = &w->j->l;

    for (int h = 0; h < l->H; h++) {
        double dh = load(l->type, w->j->dy, out(w, s, h));
        double before = s > 0 ? kept(w, s - 1, h)[4] : 0;
        float *g = kept(w, s, h);
        double i = g[0], f = g[1], c = g[2], o = g[3], u = tanh((double)g[4]);

        for (int q = 0; s + 1 < w->n && q < 4; q++)
            for (int k = 0; k < l->H; k++)
                dh += kept(w, s + 1, k)[q] *
                      weight(w, matrix(l, w->r, 4 + q) +
                                    (size_t)k * (size_t)l->H + (size_t)h);
        dc[h] += dh * o * (1 - u * u);
        g[0] = (float)(dc[h] * c * i * (1 - i));
        g[1] = (float)(dc[h] * before * f * (1 - f));
        g[2] = (float)(dc[h] * i * (1 - c * c));
        g[3] = (float)(dh * u * o * (1 - o));
        dc[h] *= f;
    }
}

/* All sequences in all directions. */
static void for_each(const job *j, void (*f)(const walk *w))
{
    for (int b = 0; b < j->data.B; b++)
        for (int r = 0; r < j->l.R; r++) {
            walk w = {j, r, b, j->data.lengths[b]};

            if (j->lengths != NULL && j->lengths[b] != j->data.lengths[b])
                device_fails("lengths on the device are others");
            f(&w);
        }
}

static void expect(const job *j, float mark)
{
    if (j->reserve[0] != mark)
        device_fails("passes of an RNN in a wrong order");
    scribble(j->work, WORK);
}

static void walk_forward(const walk *w)
{
    const struct cudnnRNNStruct *l = &w->j->l;

    for (int s = 0; s < w->n; s++)
        step_forward(w, s);
    for (int t = w->n; w->j->data.fills && t < w->j->data.T; t++)
        for (int h = 0; h < l->H; h++) {
            size_t at = (size_t)t * (size_t)w->j->data.B + (size_t)w->b;
            store(l->type, w->j->to_y,
                  (at * (size_t)l->R + (size_t)w->r) * (size_t)l->H + (size_t)h,
                  0);
        }
}

static void run_forward(void *self)
{
    const job *j = self;

    scribble(j->work, WORK);
    for_each(j, walk_forward);
    j->reserve[0] = FORWARD_DONE;
}

static void walk_back(const walk *w)
{
    double *dc = calloc((size_t)w->j->l.H, sizeof *dc);

    if (dc == NULL)
        device_fails("no memory");
    for (int s = w->n - 1; s >= 0; s--)
        step_back(w, s, dc);
    free(dc);
}

/* dx of sequence b, summed over directions. */
static void descend(const job *j, int b)
{
    const struct cudnnRNNStruct *l = &j->l;

    for (int t = 0; t < j->data.T; t++)
        for (int d = 0; d < l->D; d++) {
            double sum = t < j->data.lengths[b] ? 0 : NAN;
            walk w = {j, 0, b, j->data.lengths[b]};

            for (; w.r < l->R && t < w.n; w.r++)
                for (int k = 0; k < 4 * l->H; k++) {
                    int s = w.r == 0 ? t : w.n - 1 - t;
                    sum += kept(&w, s, k / 4)[k % 4] *
                           weight(&w, matrix(l, w.r, k % 4) +
                                          (size_t)(k / 4) * (size_t)l->D +
                                          (size_t)d);
                }
            store(l->type, j->to_x,
                  ((size_t)t * (size_t)j->data.B + (size_t)b) * (size_t)l->D +
                      (size_t)d,
                  sum);
        }
}

static void run_back(void *self)
{
    const job *j = self;

    expect(j, FORWARD_DONE);
    for_each(j, walk_back);
    for (int b = 0; b < j->data.B; b++)
        descend(j, b);
    j->reserve[0] = DATA_DONE;
}

/* Adds to element `at` of the gradients the sum over all frames of the gradient
 * of gate i of cell h times input d, the previous h of cell d, or 1. */
static void gather(const job *j, int r, int i, int h, int d, size_t at)
{
    double sum = load(j->l.type, j->to_w, at);

    for (int b = 0; b < j->data.B; b++) {
        walk w = {j, r, b, j->data.lengths[b]};

        for (int s = 0; s < w.n; s++) {
            double times = 1;

            if (d >= 0 && i < 4)
                times = load(j->l.type, j->x, in(&w, s, d));
            else if (d >= 0)
                times = s > 0 ? load(j->l.type, j->y, out(&w, s - 1, d)) : 0;
            sum += kept(&w, s, h)[i % 4] * times;
        }
    }
    store(j->l.type, j->to_w, at, sum);
}

static void run_gradient(void *self)
{
    const job *j = self;
    const struct cudnnRNNStruct *l = &j->l;

    expect(j, DATA_DONE);
    for (int r = 0; r < l->R; r++)
        for (int i = 0; i < 8; i++)
            for (int h = 0; h < l->H; h++) {
                int n = i < 4 ? l->D : l->H;

                for (int d = 0; d < n; d++)
                    gather(j, r, i, h, d,
                           matrix(l, r, i) + (size_t)(h * n + d));
                gather(j, r, i, h, -1, bias(l, r, i) + (size_t)h);
            }
}

static cudnnStatus_t check(const struct cudnnRNNStruct *l,
                           const struct cudnnRNNDataStruct *x,
                           const struct cudnnRNNDataStruct *y, size_t n_weights,
                           size_t n_work, const void *work, size_t n_reserve,
                           const void *reserve)
{
    NEED_PARAM(x->type == l->type && y->type == l->type);
    NEED_PARAM(x->size == l->D && y->size == l->R * l->H);
    NEED_PARAM(x->T == y->T && x->B == y->B);
    NEED(l->padded, CUDNN_STATUS_NOT_SUPPORTED); /* with this layout */
    for (int b = 0; b < x->B; b++) {
        NEED_PARAM(x->lengths[b] == y->lengths[b]);
        NEED(x->lengths[b] == x->T || l->algorithm == CUDNN_RNN_ALGO_STANDARD,
             CUDNN_STATUS_NOT_SUPPORTED);
    }
    NEED_PARAM(n_weights == weights(l));
    NEED_PARAM(n_work >= WORK && work != NULL);
    NEED_PARAM(n_reserve >= reserve_of(l, x) && reserve != NULL);
    return CUDNN_STATUS_SUCCESS;
}

/* States [R, B, H] start with zeros; final states are unused. */
static cudnnStatus_t check_states(const struct cudnnRNNStruct *l,
                                  const struct cudnnRNNDataStruct *x,
                                  const struct cudnnTensorStruct *h,
                                  const void *given)
{
    NEED_PARAM(h->n == 3 && h->type == l->type);
    NEED_PARAM(h->dim[0] == l->R && h->dim[1] == x->B && h->dim[2] == l->H);
    NEED_PARAM(h->stride[0] == x->B * l->H && h->stride[1] == l->H &&
               h->stride[2] == 1);
    NEED(given == NULL, CUDNN_STATUS_NOT_SUPPORTED);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t l,
                              cudnnForwardMode_t mode, const int32_t lengths[],
                              cudnnRNNDataDescriptor_t xd, const void *x,
                              cudnnRNNDataDescriptor_t yd, void *y,
                              cudnnTensorDescriptor_t hd, const void *hx,
                              void *hy, cudnnTensorDescriptor_t cd,
                              const void *cx, void *cy, size_t n_weights,
                              const void *w, size_t n_work, void *work,
                              size_t n_reserve, void *reserve)
{
    job j = {.l = *l,
             .data = *xd,
             .lengths = lengths,
             .x = x,
             .w = w,
             .to_y = y,
             .work = work,
             .reserve = reserve};
    cudnnStatus_t status =
        check(l, xd, yd, n_weights, n_work, work, n_reserve, reserve);

    NEED_PARAM(mode == CUDNN_FWD_MODE_TRAINING && hy == NULL && cy == NULL);
    NEED_PARAM(x != NULL && y != NULL && w != NULL);
    j.data.fills = yd->fills;
    if (status == CUDNN_STATUS_SUCCESS)
        status = check_states(l, xd, hd, hx);
    if (status == CUDNN_STATUS_SUCCESS)
        status = check_states(l, xd, cd, cx);
    return status == CUDNN_STATUS_SUCCESS
               ? queue(handle, run_forward, &j, sizeof j)
               : status;
}

cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t l, const int32_t lengths[],
    cudnnRNNDataDescriptor_t yd, const void *y, const void *dy,
    cudnnRNNDataDescriptor_t xd, void *dx, cudnnTensorDescriptor_t hd,
    const void *hx, const void *dhy, void *dhx, cudnnTensorDescriptor_t cd,
    const void *cx, const void *dcy, void *dcx, size_t n_weights, const void *w,
    size_t n_work, void *work, size_t n_reserve, void *reserve)
{
    job j = {.l = *l,
             .data = *xd,
             .lengths = lengths,
             .y = y,
             .dy = dy,
             .w = w,
             .to_x = dx,
             .work = work,
             .reserve = reserve};
    cudnnStatus_t status =
        check(l, xd, yd, n_weights, n_work, work, n_reserve, reserve);

    NEED_PARAM(dhy == NULL && dhx == NULL && dcy == NULL && dcx == NULL);
    NEED_PARAM(y != NULL && dy != NULL && dx != NULL && w != NULL);
    if (status == CUDNN_STATUS_SUCCESS)
        status = check_states(l, xd, hd, hx);
    if (status == CUDNN_STATUS_SUCCESS)
        status = check_states(l, xd, cd, cx);
    return status == CUDNN_STATUS_SUCCESS
               ? queue(handle, run_back, &j, sizeof j)
               : status;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t l, cudnnWgradMode_t mode,
    const int32_t lengths[], cudnnRNNDataDescriptor_t xd, const void *x,
    cudnnTensorDescriptor_t hd, const void *hx, cudnnRNNDataDescriptor_t yd,
    const void *y, size_t n_weights, void *dw, size_t n_work, void *work,
    size_t n_reserve, void *reserve)
{
    job j = {.l = *l,
             .data = *xd,
             .lengths = lengths,
             .x = x,
             .y = y,
             .to_w = dw,
             .work = work,
             .reserve = reserve};
    cudnnStatus_t status =
        check(l, xd, yd, n_weights, n_work, work, n_reserve, reserve);

    NEED(mode == CUDNN_WGRAD_MODE_ADD, CUDNN_STATUS_NOT_SUPPORTED);
    NEED_PARAM(x != NULL && y != NULL && dw != NULL);
    if (status == CUDNN_STATUS_SUCCESS)
        status = check_states(l, xd, hd, hx);
    return status == CUDNN_STATUS_SUCCESS
               ? queue(handle, run_gradient, &j, sizeof j)
               : status;
}

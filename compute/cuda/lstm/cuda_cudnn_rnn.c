/* cuda_cudnn_rnn.c - see cuda_cudnn_rnn.h. */
#include "compute/cuda/lstm/cuda_cudnn_rnn.h"
#include "compute/cuda/lstm/lstm_step_kernels.h"

#include <stdio.h>
#include <stdlib.h>

/* Sets *n to how many numbers the tensor of a descriptor has. */
static bool count(bm_cudnn *c, cudnnTensorDescriptor_t of, char *why,
                  size_t room, size_t *n)
{
    cudnnDataType_t type;
    int dims = 0, dim[3] = {0}, stride[3] = {0};

    if (!bm_cudnn_well(
            c, c->GetTensorNdDescriptor(of, 3, &type, &dims, dim, stride),
            "GetTensorNdDescriptor", why, room))
        return false;
    *n = dims > 0 ? 1 : 0;
    for (int i = 0; i < dims; i++)
        *n *= (size_t)dim[i];
    return true;
}

/* Finds where weights number i of direction r begin. Fails unless they are as
 * many as ours, without gaps. */
static bool find_weights(bm_cudnn *c, bm_cudnn_layer *l, char *space, size_t r,
                         size_t i)
{
    size_t expected = i < 4 ? l->H * l->D : l->H * l->H, n = 0, n_bias = 0;
    void *matrix = NULL, *bias = NULL;

    if (!BM_CUDNN_WELL(c, l->why,
                       GetRNNWeightParams(
                           c->handles[0], l->rnn, (int32_t)r, l->weights, space,
                           (int32_t)i, c->matrix, &matrix, c->bias, &bias)) ||
        !count(c, c->matrix, l->why, sizeof l->why, &n))
        return false;
    if (i < 4 && !count(c, c->bias, l->why, sizeof l->why, &n_bias))
        return false;
    if (n != expected || matrix == NULL ||
        (i < 4 && (n_bias != l->H || bias == NULL))) {
        snprintf(l->why, sizeof l->why,
                 "cuDNN has %zu weights in a matrix, not %zu", n, expected);
        return false;
    }
    l->begins[r][i] = (size_t)((char *)matrix - space);
    if (i < 4)
        l->begins[r][8 + i] = (size_t)((char *)bias - space);
    return true;
}

/* Sets l->why if cuDNN cannot compute such a layer. Both algorithms get
 * CUDNN_RNN_PADDED_IO_ENABLED, which layouts with padding need, and a second
 * bias, which stays zero. */
static void make_layer(bm_backend *be, bm_cudnn *c, bm_cudnn_layer *l)
{
    char *space = NULL;

    if (!BM_CUDNN_WELL(c, l->why, CreateRNNDescriptor(&l->rnn)) ||
        !BM_CUDNN_WELL(
            c, l->why,
            SetRNNDescriptor_v8(
                l->rnn, l->algorithm, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                l->R > 1 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                CUDNN_LINEAR_INPUT, bm_cudnn_type(l->precision),
                CUDNN_DATA_FLOAT, bm_cudnn_math(l->precision), (int32_t)l->D,
                (int32_t)l->H, (int32_t)l->H, 1, c->no_dropout,
                CUDNN_RNN_PADDED_IO_ENABLED)) ||
        !BM_CUDNN_WELL(
            c, l->why,
            GetRNNWeightSpaceSize(c->handles[0], l->rnn, &l->weights)))
        return;
    space = bm_cuda_room_for(be, &c->dweights, l->weights);
    if (space == NULL) {
        snprintf(l->why, sizeof l->why, "%s", bm_last_error());
        return;
    }
    for (size_t r = 0; r < l->R; r++)
        for (size_t i = 0; i < 8; i++)
            if (!find_weights(c, l, space, r, i))
                return;
}

const bm_cudnn_layer *bm_cudnn_layer_of(bm_backend *be, cudnnRNNAlgo_t algo,
                                        size_t D, size_t H, size_t R,
                                        const char **why)
{
    bm_precision precision = bm_cuda_of(be)->precision;
    bm_cudnn *c = bm_cudnn_of(be, why);
    bm_cudnn_layer *l = c != NULL ? c->layers : NULL;

    if (c == NULL)
        return NULL;
    while (l != NULL && (l->algorithm != algo || l->precision != precision ||
                         l->D != D || l->H != H || l->R != R))
        l = l->next;
    if (l == NULL) {
        l = calloc(1, sizeof *l);
        if (l == NULL) {
            *why = "no memory for cuDNN";
            return NULL;
        }
        *l = (bm_cudnn_layer){.algorithm = algo,
                              .precision = precision,
                              .D = D,
                              .H = H,
                              .R = R,
                              .next = c->layers};
        c->layers = l;
        make_layer(be, c, l);
    }
    *why = l->why;
    return l->why[0] == '\0' ? l : NULL;
}

/* Sets the descriptors that the next call reads. */
static void describe(bm_backend *be, const bm_cudnn_pass *p)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    const bm_cudnn_layer *l = p->layer;
    cudnnDataType_t type = bm_cudnn_type(l->precision);
    int T = (int)p->T, B = (int)p->B, H = (int)l->H, R = (int)l->R;
    int dim[3] = {R, B, H}, stride[3] = {B * H, H, 1};
    uint32_t zero = 0; /* of any type */

    BM_CUDNN(be, SetRNNDataDescriptor(c->x, type,
                                      CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
                                      T, B, (int)l->D, p->frames, &zero));
    BM_CUDNN(be, SetRNNDataDescriptor(c->y, type,
                                      CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
                                      T, B, R * H, p->frames, &zero));
    BM_CUDNN(be, SetTensorNdDescriptor(c->state, type, 3, dim, stride));
}

typedef struct spaces {
    size_t work, reserve; /* bytes */
} spaces;

static spaces spaces_of(bm_backend *be, const bm_cudnn_pass *p)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    spaces s = {0};

    describe(be, p);
    BM_CUDNN(be, GetRNNTempSpaceSizes(c->handles[0], p->layer->rnn,
                                      CUDNN_FWD_MODE_TRAINING, c->x, &s.work,
                                      &s.reserve));
    return s;
}

size_t bm_cudnn_reserve(bm_backend *be, const bm_cudnn_pass *p)
{
    return bm_cudnn_lines(spaces_of(be, p).reserve);
}

/* Weights number i of a direction, as in bm_cudnn_layer: where ours are in wx,
 * wh or b, and how many. */
typedef struct part {
    int of; /* 0: wx, 1: wh, 2: b */
    size_t begin, n;
} part;

static part part_of(const bm_cudnn_layer *l, size_t r, size_t i)
{
    size_t gate = r * 4 + i % 4;

    if (i < 4)
        return (part){0, gate * l->H * l->D, l->H * l->D};
    if (i < 8)
        return (part){1, gate * l->H * l->H, l->H * l->H};
    return (part){2, gate * l->H, l->H};
}

void bm_cudnn_pack(bm_backend *be, const bm_cudnn_pass *p, size_t first,
                   const void *wx, const void *wh, const void *b)
{
    const bm_cudnn_layer *l = p->layer;
    const void *ours[3] = {wx, wh, b};
    bm_lstm_pieces pieces = {0};

    for (size_t r = 0; r < l->R; r++)
        for (size_t i = 0; i < 12; i++) {
            part own = part_of(l, first + r, i);
            pieces.of[pieces.count].from =
                bm_lstm_at(be, ours[own.of], own.begin);
            pieces.of[pieces.count].to = (char *)p->weights + l->begins[r][i];
            pieces.of[pieces.count++].n = own.n;
        }
    /* cuDNN leaves gaps between them */
    BM_CUDA(be,
            cudaMemsetAsync(p->weights, 0, l->weights, bm_cuda_of(be)->stream));
    BM_CUDA(be, bm_kernel_lstm_copy(bm_cuda_of(be)->stream, &pieces,
                                    bm_lstm_in_bf16(be), false));
}

void bm_cudnn_unpack(bm_backend *be, const bm_cudnn_pass *p, size_t first,
                     float *dwx, float *dwh, float *db)
{
    const bm_cudnn_layer *l = p->layer;
    const char *space = bm_cuda_of(be)->cudnn->dweights.x;
    float *ours[3] = {dwx, dwh, db};
    bm_lstm_pieces pieces = {0};

    for (size_t r = 0; r < l->R; r++)
        for (size_t i = 0; i < 12; i++) {
            part own = part_of(l, first + r, i);
            pieces.of[pieces.count].from = space + l->begins[r][i];
            pieces.of[pieces.count].to = ours[own.of] + own.begin;
            pieces.of[pieces.count++].n = own.n;
        }
    BM_CUDA(be, bm_kernel_lstm_copy(bm_cuda_of(be)->side, &pieces,
                                    bm_lstm_in_bf16(be), true));
}

void bm_cudnn_forward(bm_backend *be, const bm_cudnn_pass *p, const void *x,
                      void *y)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    spaces s = spaces_of(be, p);
    void *work = bm_cuda_room_for(be, &c->work[0], s.work);

    BM_CUDNN(be,
             RNNForward(c->handles[0], p->layer->rnn, CUDNN_FWD_MODE_TRAINING,
                        p->lengths, c->x, x, c->y, y, c->state, NULL, NULL,
                        c->state, NULL, NULL, p->layer->weights, p->weights,
                        s.work, work, s.reserve, p->reserve));
}

void bm_cudnn_backward(bm_backend *be, const bm_cudnn_pass *p, const void *y,
                       const void *dy, void *dx)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    spaces s = spaces_of(be, p);
    void *work = bm_cuda_room_for(be, &c->work[0], s.work);

    BM_CUDNN(be, RNNBackwardData_v8(c->handles[0], p->layer->rnn, p->lengths,
                                    c->y, y, dy, c->x, dx, c->state, NULL, NULL,
                                    NULL, c->state, NULL, NULL, NULL,
                                    p->layer->weights, p->weights, s.work, work,
                                    s.reserve, p->reserve));
}

void bm_cudnn_gradient(bm_backend *be, const bm_cudnn_pass *p, const void *x,
                       const void *y)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;
    spaces s = spaces_of(be, p);
    void *work = bm_cuda_room_for(be, &c->work[1], s.work);
    void *space = bm_cuda_room_for(be, &c->dweights, p->layer->weights);

    BM_CUDA(be,
            cudaMemsetAsync(space, 0, p->layer->weights, bm_cuda_of(be)->side));
    BM_CUDNN(be,
             RNNBackwardWeights_v8(c->handles[1], p->layer->rnn,
                                   CUDNN_WGRAD_MODE_ADD, p->lengths, c->x, x,
                                   c->state, NULL, c->y, y, p->layer->weights,
                                   space, s.work, work, s.reserve, p->reserve));
}

/* cuda_cudnn.c - see cuda_cudnn.h. */
#include "compute/cuda/cuda_cudnn.h"
#include "compute/cuda/lstm/lstm_step_kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct bm_cudnn bm_cudnn;

bool bm_cudnn_well(const bm_cudnn *c, cudnnStatus_t status, const char *what,
                   char *why, size_t room)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return true;
    snprintf(why, room, "cudnn%.*s: %s", (int)strcspn(what, "("), what,
             c->GetErrorString(status));
    return false;
}
#define WELL(c, why, call)                                                     \
    bm_cudnn_well((c), (c)->call, #call, (why), sizeof(why))

static bool find_functions(bm_cudnn *c)
{
    c->library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (c->library == NULL) {
        snprintf(c->why, sizeof c->why, "no cuDNN: %s", dlerror());
        return false;
    }
#define X(name)                                                                \
    *(void **)&c->name = dlsym(c->library, "cudnn" #name);                     \
    if (c->name == NULL) {                                                     \
        snprintf(c->why, sizeof c->why, "cuDNN without cudnn%s", #name);       \
        return false;                                                          \
    }
    BM_CUDNN_FUNCTIONS(X)
#undef X
    return true;
}

static bool start(bm_cudnn *c, const bm_cuda *cuda)
{
    return find_functions(c) && WELL(c, c->why, Create(&c->handles[0])) &&
           WELL(c, c->why, Create(&c->handles[1])) &&
           WELL(c, c->why, SetStream(c->handles[0], cuda->stream)) &&
           WELL(c, c->why, SetStream(c->handles[1], cuda->side)) &&
           WELL(c, c->why, CreateTensorDescriptor(&c->state)) &&
           WELL(c, c->why, CreateTensorDescriptor(&c->matrix)) &&
           WELL(c, c->why, CreateTensorDescriptor(&c->bias)) &&
           WELL(c, c->why, CreateRNNDataDescriptor(&c->x)) &&
           WELL(c, c->why, CreateRNNDataDescriptor(&c->y)) &&
           WELL(c, c->why, CreateTensorDescriptor(&c->images[0])) &&
           WELL(c, c->why, CreateTensorDescriptor(&c->images[1])) &&
           WELL(c, c->why, CreateFilterDescriptor(&c->filter)) &&
           WELL(c, c->why, CreateConvolutionDescriptor(&c->conv)) &&
           WELL(c, c->why, CreateDropoutDescriptor(&c->no_dropout)) &&
           WELL(c, c->why,
                SetDropoutDescriptor(c->no_dropout, c->handles[0], 0, NULL, 0,
                                     0));
}

static void free_layers(bm_cudnn *c)
{
    for (bm_cudnn_layer *next, *l = c->layers; l != NULL; l = next) {
        next = l->next;
        if (l->rnn != NULL)
            c->DestroyRNNDescriptor(l->rnn);
        free(l);
    }
}

static void free_needs(bm_cudnn *c)
{
    for (bm_cudnn_need *next, *n = c->needs; n != NULL; n = next) {
        next = n->next;
        free(n);
    }
}

static void free_rooms(bm_cudnn *c)
{
    for (size_t i = 0; i < 2; i++) {
        cudaFree(c->work[i].x);
        cudaFree(c->dx[i].x);
        cudaFree(c->dy[i].x);
    }
    cudaFree(c->dweights.x);
    cudaFree(c->image[0].x);
    cudaFree(c->image[1].x);
    cudaFree(c->kernel.x);
    cudaFree(c->sums.x);
}

void bm_cudnn_close(bm_backend *be)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;

    if (c == NULL)
        return;
    free_layers(c);
    free_needs(c);
    free_rooms(c);
    for (size_t i = 0; i < 2; i++)
        if (c->images[i] != NULL)
            c->DestroyTensorDescriptor(c->images[i]);
    if (c->filter != NULL)
        c->DestroyFilterDescriptor(c->filter);
    if (c->conv != NULL)
        c->DestroyConvolutionDescriptor(c->conv);
    if (c->no_dropout != NULL)
        c->DestroyDropoutDescriptor(c->no_dropout);
    if (c->y != NULL)
        c->DestroyRNNDataDescriptor(c->y);
    if (c->x != NULL)
        c->DestroyRNNDataDescriptor(c->x);
    if (c->bias != NULL)
        c->DestroyTensorDescriptor(c->bias);
    if (c->matrix != NULL)
        c->DestroyTensorDescriptor(c->matrix);
    if (c->state != NULL)
        c->DestroyTensorDescriptor(c->state);
    for (size_t i = 0; i < 2; i++)
        if (c->handles[i] != NULL)
            c->Destroy(c->handles[i]);
    free(c->full);
    free(c); /* the library stays: its threads may */
    bm_cuda_of(be)->cudnn = NULL;
}

bm_cudnn *bm_cudnn_of(bm_backend *be, const char **why)
{
    bm_cuda *cuda = bm_cuda_of(be);

    if (cuda->cudnn == NULL) {
        cuda->cudnn = calloc(1, sizeof *cuda->cudnn);
        if (cuda->cudnn == NULL) {
            *why = "no memory for cuDNN";
            return NULL;
        }
        (void)start(cuda->cudnn, cuda);
    }
    *why = cuda->cudnn->why;
    return cuda->cudnn->why[0] == '\0' ? cuda->cudnn : NULL;
}

size_t bm_cudnn_version(bm_backend *be)
{
    const char *why = NULL;
    bm_cudnn *c = bm_cudnn_of(be, &why);

    return c != NULL ? c->GetVersion() : 0;
}

void bm_cudnn_note(bm_backend *be, cudnnStatus_t status, const char *what)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;

    if (status != CUDNN_STATUS_SUCCESS)
        bm_remember(be, BM_FAIL(BM_ERR_DEVICE, "cudnn%.*s: %s",
                                (int)strcspn(what, "("), what,
                                c->GetErrorString(status)));
}

void *bm_cudnn_room_for(bm_backend *be, bm_cudnn_room *r, size_t bytes)
{
    if (bytes > r->bytes) {
        bm_step_leave(be);
        cudaFree(r->x); /* waits for who uses it */
        r->x = NULL;
        r->bytes = 0;
        BM_CUDA(be, cudaMalloc(&r->x, bytes));
        if (be->failed == BM_OK)
            r->bytes = bytes;
    }
    return be->failed == BM_OK ? r->x : NULL;
}

cudnnDataType_t bm_cudnn_type(bm_precision precision)
{
    return precision == BM_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

cudnnMathType_t bm_cudnn_math(bm_precision precision)
{
    return precision == BM_BF16   ? CUDNN_TENSOR_OP_MATH
           : precision == BM_FP32 ? CUDNN_FMA_MATH
                                  : CUDNN_DEFAULT_MATH; /* TF32 */
}

/* How many numbers the tensor that a descriptor describes has. */
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

/* Where weights number i of direction r begin: they must be as many as ours,
 * without gaps. */
static bool find_weights(bm_cudnn *c, bm_cudnn_layer *l, char *space, size_t r,
                         size_t i)
{
    size_t expected = i < 4 ? l->H * l->D : l->H * l->H, n = 0, n_bias = 0;
    void *matrix = NULL, *bias = NULL;

    if (!WELL(c, l->why,
              GetRNNWeightParams(c->handles[0], l->rnn, (int32_t)r, l->weights,
                                 space, (int32_t)i, c->matrix, &matrix, c->bias,
                                 &bias)) ||
        !count(c, c->matrix, l->why, sizeof l->why, &n))
        return false;
    if (i < 4 && !count(c, c->bias, l->why, sizeof l->why, &n_bias))
        return false;
    if (n != expected || matrix == NULL ||
        (i < 4 && (n_bias != l->H || bias == NULL))) {
        snprintf(l->why, sizeof l->why, "cuDNN has other weights: %zu, not %zu",
                 n, expected);
        return false;
    }
    l->begins[r][i] = (size_t)((char *)matrix - space);
    if (i < 4)
        l->begins[r][8 + i] = (size_t)((char *)bias - space);
    return true;
}

/* Leaves in l->why what keeps it from working. Both algorithms get what others
 * ask of them: layouts with padding are for padded frames alone, also where
 * there is no padding, and a second bias, which stays zero. */
static void make_layer(bm_backend *be, bm_cudnn *c, bm_cudnn_layer *l)
{
    char *space = NULL;

    if (!WELL(c, l->why, CreateRNNDescriptor(&l->rnn)) ||
        !WELL(c, l->why,
              SetRNNDescriptor_v8(
                  l->rnn, l->algorithm, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                  l->R > 1 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                  CUDNN_LINEAR_INPUT, bm_cudnn_type(l->precision),
                  CUDNN_DATA_FLOAT, bm_cudnn_math(l->precision), (int32_t)l->D,
                  (int32_t)l->H, (int32_t)l->H, 1, c->no_dropout,
                  CUDNN_RNN_PADDED_IO_ENABLED)) ||
        !WELL(c, l->why,
              GetRNNWeightSpaceSize(c->handles[0], l->rnn, &l->weights)))
        return;
    space = bm_cudnn_room_for(be, &c->dweights, l->weights);
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

/* Descriptors of a pass; they are read by the call that comes next. */
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

/* Number i of a direction's weights, as in bm_cudnn_layer: where ours are in
 * wx, wh or b, and how many. */
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
    BM_CUDA(be, bm_step_clear(be, bm_cuda_of(be)->stream, p->weights,
                              l->weights)); /* gaps */
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
    void *work = bm_cudnn_room_for(be, &c->work[0], s.work);

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
    void *work = bm_cudnn_room_for(be, &c->work[0], s.work);

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
    void *work = bm_cudnn_room_for(be, &c->work[1], s.work);
    void *space = bm_cudnn_room_for(be, &c->dweights, p->layer->weights);

    BM_CUDA(be,
            bm_step_clear(be, bm_cuda_of(be)->side, space, p->layer->weights));
    BM_CUDNN(be,
             RNNBackwardWeights_v8(c->handles[1], p->layer->rnn,
                                   CUDNN_WGRAD_MODE_ADD, p->lengths, c->x, x,
                                   c->state, NULL, c->y, y, p->layer->weights,
                                   space, s.work, work, s.reserve, p->reserve));
}

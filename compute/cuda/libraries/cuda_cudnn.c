/* cuda_cudnn.c - see cuda_cudnn.h. */
#include "compute/cuda/libraries/cuda_cudnn.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bm_cudnn_well(const bm_cudnn *c, cudnnStatus_t status, const char *what,
                   char *why, size_t room)
{
    if (status == CUDNN_STATUS_SUCCESS)
        return true;
    snprintf(why, room, "cudnn%.*s: %s", (int)strcspn(what, "("), what,
             c->GetErrorString(status));
    return false;
}

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
        snprintf(c->why, sizeof c->why, "cuDNN has no function cudnn%s",       \
                 #name);                                                       \
        return false;                                                          \
    }
    BM_CUDNN_FUNCTIONS(X)
#undef X
    return true;
}

static bool start(bm_cudnn *c, const bm_cuda *cuda)
{
    return find_functions(c) &&
           BM_CUDNN_WELL(c, c->why, Create(&c->handles[0])) &&
           BM_CUDNN_WELL(c, c->why, Create(&c->handles[1])) &&
           BM_CUDNN_WELL(c, c->why, SetStream(c->handles[0], cuda->stream)) &&
           BM_CUDNN_WELL(c, c->why, SetStream(c->handles[1], cuda->side)) &&
           BM_CUDNN_WELL(c, c->why, CreateTensorDescriptor(&c->state)) &&
           BM_CUDNN_WELL(c, c->why, CreateTensorDescriptor(&c->matrix)) &&
           BM_CUDNN_WELL(c, c->why, CreateTensorDescriptor(&c->bias)) &&
           BM_CUDNN_WELL(c, c->why, CreateRNNDataDescriptor(&c->x)) &&
           BM_CUDNN_WELL(c, c->why, CreateRNNDataDescriptor(&c->y)) &&
           BM_CUDNN_WELL(c, c->why, CreateTensorDescriptor(&c->images[0])) &&
           BM_CUDNN_WELL(c, c->why, CreateTensorDescriptor(&c->images[1])) &&
           BM_CUDNN_WELL(c, c->why, CreateFilterDescriptor(&c->filter)) &&
           BM_CUDNN_WELL(c, c->why, CreateConvolutionDescriptor(&c->conv)) &&
           BM_CUDNN_WELL(c, c->why, CreateDropoutDescriptor(&c->no_dropout)) &&
           BM_CUDNN_WELL(c, c->why,
                         SetDropoutDescriptor(c->no_dropout, c->handles[0], 0,
                                              NULL, 0, 0));
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

static void close_cudnn(bm_backend *be)
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
    free(c); /* the library stays loaded: its threads may still run */
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
        cuda->close_cudnn = close_cudnn;
        (void)start(cuda->cudnn, cuda);
    }
    *why = cuda->cudnn->why;
    return cuda->cudnn->why[0] == '\0' ? cuda->cudnn : NULL;
}

/* CUDNN_STATUS_NOT_SUPPORTED and its kinds, such as _ARCH_MISMATCH: an older
 * version or device may accept a descriptor and refuse the call. */
static bool lacks(cudnnStatus_t status)
{
    return status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000;
}

void bm_cudnn_note(bm_backend *be, cudnnStatus_t status, const char *what)
{
    bm_cudnn *c = bm_cuda_of(be)->cudnn;

    if (status != CUDNN_STATUS_SUCCESS)
        bm_remember(be,
                    BM_FAIL(lacks(status) ? BM_ERR_UNSUPPORTED : BM_ERR_DEVICE,
                            "cudnn%.*s: %s", (int)strcspn(what, "("), what,
                            c->GetErrorString(status)));
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

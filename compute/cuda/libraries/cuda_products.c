/*
 * cuda_products.c - see cuda_products.h. How to multiply a shape is the first
 * answer of cublasLt's heuristic, which is the same on every device of a kind.
 * It is asked for once.
 */
#include "compute/cuda/libraries/cuda_products.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"

#include <cublasLt.h>

#include <stdlib.h>
#include <string.h>

enum { WORKSPACE = 32 << 20, STREAMS = 3, BUCKETS = 256 };

/* All that the answer depends on. It has no padding, as memcmp compares it. */
typedef struct shape {
    size_t m, n, k, lda, ldb, ldc;
    size_t count, apart_a, apart_b, apart_c; /* of a batch; count 1: none */
    uint32_t align_a, align_b, align_c;      /* bytes */
    int trans_a, trans_b, type, c_type, epilogue, precision, accumulates;
} shape;

typedef struct plan {
    shape of;
    cublasLtMatmulDesc_t operation;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    struct plan *next;
} plan;

struct bm_cuda_products {
    cublasLtHandle_t lt;
    void *workspace[STREAMS];   /* of `stream`, of `side`, of any other */
    bm_cuda_room bias[STREAMS]; /* aligned copies */
    plan *plans[BUCKETS];
};
typedef struct bm_cuda_products bm_cuda_products;

static bm_status blas_status(cublasStatus_t s, const char *what)
{
    if (s == CUBLAS_STATUS_SUCCESS)
        return BM_OK;
    return BM_FAIL(BM_ERR_DEVICE, "%s: %s", what, cublasLtGetStatusString(s));
}

bm_status bm_cuda_products_open(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_products *p = cuda->products = calloc(1, sizeof *p);

    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    for (int i = 0; i < STREAMS; i++)
        BM_TRY(bm_cuda_status(cudaMalloc(&p->workspace[i], WORKSPACE),
                              "cudaMalloc"));
    return blas_status(cublasLtCreate(&p->lt), "cannot open cublasLt");
}

static void free_plan(plan *p)
{
    if (p->c != NULL)
        cublasLtMatrixLayoutDestroy(p->c);
    if (p->b != NULL)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->a != NULL)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->operation != NULL)
        cublasLtMatmulDescDestroy(p->operation);
    free(p);
}

void bm_cuda_products_close(bm_backend *be)
{
    bm_cuda_products *p = bm_cuda_of(be)->products;

    if (p == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        for (plan *next, *one = p->plans[i]; one != NULL; one = next) {
            next = one->next;
            free_plan(one);
        }
    if (p->lt != NULL)
        cublasLtDestroy(p->lt);
    for (int i = 0; i < STREAMS; i++) {
        cudaFree(p->workspace[i]);
        cudaFree(p->bias[i].x);
    }
    free(p);
}

static cudaDataType type_of(int type)
{
    return type == BM_CUDA_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

#define SET(p, what, value)                                                    \
    blas_status(cublasLtMatmulDescSetAttribute((p)->operation,                 \
                                               CUBLASLT_MATMUL_DESC_##what,    \
                                               &(value), sizeof(value)),       \
                #what)

/* Makes it the layout of `count` matrices. */
static bm_status repeat(cublasLtMatrixLayout_t layout, size_t count,
                        size_t apart)
{
    int32_t n = (int32_t)count;
    int64_t offset = (int64_t)apart;

    BM_TRY(blas_status(
        cublasLtMatrixLayoutSetAttribute(
            layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof n),
        "batch count"));
    return blas_status(cublasLtMatrixLayoutSetAttribute(
                           layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                           &offset, sizeof offset),
                       "batch offset");
}

/* cuBLAS is column-major: it makes C' = op(B)' op(A)', so its A is our B. The
 * heuristic reads the address of the bias, not the bias. */
static bm_status describe(plan *p, const void *bias)
{
    const shape *s = &p->of;
    bool tf32 = s->type == BM_CUDA_F32 && s->precision != BM_FP32;
    cublasOperation_t a = s->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t b = s->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cudaDataType bias_type = type_of(s->c_type);

    BM_TRY(
        blas_status(cublasLtMatmulDescCreate(&p->operation,
                                             tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F,
                                             CUDA_R_32F),
                    "matmul descriptor"));
    BM_TRY(SET(p, TRANSA, a));
    BM_TRY(SET(p, TRANSB, b));
    BM_TRY(SET(p, EPILOGUE, s->epilogue));
    if ((s->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0)
        BM_TRY(SET(p, BIAS_DATA_TYPE, bias_type));
    if (bias != NULL)
        BM_TRY(SET(p, BIAS_POINTER, bias));
    BM_TRY(blas_status(cublasLtMatrixLayoutCreate(
                           &p->a, type_of(s->type), s->trans_b ? s->k : s->n,
                           s->trans_b ? s->n : s->k, (int64_t)s->ldb),
                       "layout"));
    BM_TRY(blas_status(cublasLtMatrixLayoutCreate(
                           &p->b, type_of(s->type), s->trans_a ? s->m : s->k,
                           s->trans_a ? s->k : s->m, (int64_t)s->lda),
                       "layout"));
    BM_TRY(blas_status(cublasLtMatrixLayoutCreate(&p->c, type_of(s->c_type),
                                                  s->n, s->m, (int64_t)s->ldc),
                       "layout"));
    if (s->count == 1)
        return BM_OK;
    BM_TRY(repeat(p->a, s->count, s->apart_b));
    BM_TRY(repeat(p->b, s->count, s->apart_a));
    return repeat(p->c, s->count, s->apart_c);
}

#define PREFER(preference, what, value)                                        \
    blas_status(                                                               \
        cublasLtMatmulPreferenceSetAttribute(                                  \
            preference, CUBLASLT_MATMUL_PREF_##what, &(value), sizeof(value)), \
        #what)

/* Where a sum is split, its parts are floats and are added as floats, also if C
 * is bf16: not in the type of C, which the default allows. */
static bm_status choose(bm_cuda_products *products, plan *p)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t best;
    size_t room = WORKSPACE;
    uint32_t splits = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    int n = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(
        blas_status(cublasLtMatmulPreferenceCreate(&preference), "preference"));
    BM_TRY_DONE(PREFER(preference, MAX_WORKSPACE_BYTES, room));
    BM_TRY_DONE(PREFER(preference, REDUCTION_SCHEME_MASK, splits));
    BM_TRY_DONE(PREFER(preference, MIN_ALIGNMENT_A_BYTES, p->of.align_b));
    BM_TRY_DONE(PREFER(preference, MIN_ALIGNMENT_B_BYTES, p->of.align_a));
    BM_TRY_DONE(PREFER(preference, MIN_ALIGNMENT_C_BYTES, p->of.align_c));
    BM_TRY_DONE(PREFER(preference, MIN_ALIGNMENT_D_BYTES, p->of.align_c));
    BM_TRY_DONE(blas_status(
        cublasLtMatmulAlgoGetHeuristic(products->lt, p->operation, p->a, p->b,
                                       p->c, p->c, preference, 1, &best, &n),
        "cublasLt cannot multiply these matrices"));
    if (n == 0)
        BM_FAIL_DONE(BM_ERR_DEVICE,
                     "cublasLt cannot multiply %zu x %zu by %zu x %zu", p->of.m,
                     p->of.k, p->of.k, p->of.n);
    p->algorithm = best.algo;
done:
    if (preference != NULL)
        cublasLtMatmulPreferenceDestroy(preference);
    return status;
}

static bm_status find(bm_cuda_products *products, const shape *of,
                      const void *bias, plan **out)
{
    size_t bucket = (of->m * 31 + of->n * 17 + of->k) % BUCKETS;
    plan *p = products->plans[bucket];
    bm_status status = BM_OK;

    while (p != NULL && memcmp(&p->of, of, sizeof *of) != 0)
        p = p->next;
    *out = p;
    if (p != NULL)
        return BM_OK;
    p = calloc(1, sizeof *p);
    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to plan a product");
    p->of = *of;
    BM_TRY_DONE(describe(p, bias));
    BM_TRY_DONE(choose(products, p));
    p->next = products->plans[bucket];
    products->plans[bucket] = p;
    *out = p;
    p = NULL;
done:
    if (p != NULL)
        free_plan(p);
    return status;
}

static int epilogue_of(const bm_cuda_finish *f)
{
    bool bias = f != NULL && f->bias != NULL, relu = f != NULL && f->relu;

    if (relu)
        return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/* The heuristic assumes 256 unless it is set. */
static uint32_t alignment_of_place(uintptr_t at)
{
    at |= 256;
    return (uint32_t)(at & (~at + 1));
}

static uint32_t alignment(const void *x)
{
    return alignment_of_place((uintptr_t)x);
}

static int number_of(const bm_cuda *cuda, cudaStream_t stream)
{
    return stream == cuda->stream ? 0 : stream == cuda->side ? 1 : 2;
}

/* Kernels read 16 bytes of a bias at a time without checking: returns the bias
 * itself if it is aligned, else a copy. */
static const void *aligned(bm_backend *be, cudaStream_t stream,
                           const void *bias, size_t bytes)
{
    bm_cuda_products *p = bm_cuda_of(be)->products;
    int i = number_of(bm_cuda_of(be), stream);
    void *copy = NULL;

    if (bias == NULL || (uintptr_t)bias % 16 == 0)
        return bias;
    copy = bm_cuda_room_for(be, &p->bias[i], bytes);
    BM_CUDA(be, cudaMemcpyAsync(copy, bias, bytes, cudaMemcpyDeviceToDevice,
                                stream));
    return copy;
}

/* The product of a shape; `bias` is that of its epilogue, or NULL. */
static void multiply(bm_backend *be, cudaStream_t stream, const shape *s,
                     float alpha, const void *a, const void *b, float beta,
                     void *c, const void *bias)
{
    bm_cuda *cuda = bm_cuda_of(be);
    plan *p = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(find(cuda->products, s, bias, &p));
    if (bias != NULL)
        BM_TRY_DONE(SET(p, BIAS_POINTER, bias));
    status = blas_status(
        cublasLtMatmul(cuda->products->lt, p->operation, &alpha, b, p->a, a,
                       p->b, &beta, c, p->c, c, p->c, &p->algorithm,
                       cuda->products->workspace[number_of(cuda, stream)],
                       WORKSPACE, stream),
        "product");
done:
    if (status != BM_OK)
        bm_remember(be, status);
}

void bm_cuda_multiply(bm_backend *be, cudaStream_t stream, size_t m, size_t n,
                      size_t k, float alpha, bm_cuda_factor a, bm_cuda_factor b,
                      float beta, void *c, bm_cuda_type c_type, size_t ldc,
                      const bm_cuda_finish *finish)
{
    bm_cuda *cuda = bm_cuda_of(be);
    size_t each = c_type == BM_CUDA_BF16 ? sizeof(bm_bf16) : sizeof(float);
    const void *bias = NULL;
    shape s = {0};

    if (m == 0 || n == 0 || be->failed != BM_OK)
        return;
    BM_ASSERT(k > 0 && a.type == b.type && cuda->products != NULL);
    s.m = m, s.n = n, s.k = k, s.lda = a.ld, s.ldb = b.ld, s.ldc = ldc;
    s.count = 1;
    s.align_a = alignment(a.x), s.align_b = alignment(b.x);
    s.align_c = alignment(c);
    s.trans_a = a.transposed, s.trans_b = b.transposed;
    s.type = a.type, s.c_type = c_type, s.accumulates = beta != 0;
    s.epilogue = epilogue_of(finish);
    s.precision = cuda->precision;
    if (finish != NULL)
        bias = aligned(be, stream, finish->bias, n * each);
    if (be->failed == BM_OK)
        multiply(be, stream, &s, alpha, a.x, b.x, beta, c, bias);
}

/* That of each matrix of a batch. */
static uint32_t alignment_of_all(const void *x, size_t apart, size_t each)
{
    uint32_t first = alignment(x);
    uint32_t later = alignment_of_place(apart * each);

    return first < later ? first : later;
}

void bm_cuda_multiply_batch(bm_backend *be, cudaStream_t stream,
                            const bm_gemms *p, bm_cuda_factor a,
                            bm_cuda_factor b, float *c)
{
    bm_cuda *cuda = bm_cuda_of(be);
    size_t each = a.type == BM_CUDA_BF16 ? sizeof(bm_bf16) : sizeof(float);
    shape s = {0};

    if (p->count == 0 || p->m == 0 || p->n == 0 || be->failed != BM_OK)
        return;
    BM_ASSERT(p->k > 0 && a.type == b.type && cuda->products != NULL);
    s.m = p->m, s.n = p->n, s.k = p->k;
    s.lda = a.ld, s.ldb = b.ld, s.ldc = p->ldc;
    s.count = p->count;
    s.apart_a = p->apart_a, s.apart_b = p->apart_b, s.apart_c = p->apart_c;
    s.align_a = alignment_of_all(a.x, p->apart_a, each);
    s.align_b = alignment_of_all(b.x, p->apart_b, each);
    s.align_c = alignment_of_all(c, p->apart_c, sizeof *c);
    s.trans_a = a.transposed, s.trans_b = b.transposed;
    s.type = a.type, s.c_type = BM_CUDA_F32;
    s.epilogue = epilogue_of(NULL);
    s.precision = cuda->precision;
    multiply(be, stream, &s, p->alpha, a.x, b.x, 0, c, NULL);
}

bm_cuda_factor bm_cuda_factor_of(bm_backend *be, const float *x, size_t n,
                                 size_t ld, bool transposed)
{
    if (bm_cuda_of(be)->precision == BM_BF16)
        return (bm_cuda_factor){bm_cuda_read16(be, x, n), BM_CUDA_BF16, ld,
                                transposed};
    return (bm_cuda_factor){bm_cuda_read(be, x, n), BM_CUDA_F32, ld,
                            transposed};
}

/* blas.cpp - products of cublasLt, in double, one number after the other. */
#include "tests/emulation/runtime.h"

#include <cublasLt.h>
#include <vector>

namespace
{
/* Column-major, as cuBLAS has it. */
struct layout {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld;
    int32_t batches;
    int64_t stride;
};

struct operation {
    int32_t trans_a, trans_b;
    cublasLtEpilogue_t epilogue;
    cublasComputeType_t compute;
    void *bias;
    cudaDataType bias_type;
};

/* What a preference says: alignments in bytes, and how the parts of a sum that
 * is split may be added. An algorithm is the preference that it was found for. */
struct wishes {
    uint32_t a = 256, b = 256, c = 256, d = 256;
    uint32_t splits = CUBLASLT_REDUCTION_SCHEME_MASK;
};
static_assert(sizeof(wishes) <= sizeof(cublasLtMatmulPreferenceOpaque_t), "");
static_assert(sizeof(wishes) <= sizeof(cublasLtMatmulAlgo_t), "");
static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "");
static_assert(sizeof(operation) <= sizeof(cublasLtMatmulDescOpaque_t), "");

layout &of(cublasLtMatrixLayout_t l)
{
    return *(layout *)(void *)l;
}
operation &of(cublasLtMatmulDesc_t d)
{
    return *(operation *)(void *)d;
}

double get(const void *x, cudaDataType type, size_t i)
{
    return type == CUDA_R_16BF  ? __bfloat162float(((__nv_bfloat16 *)x)[i])
           : type == CUDA_R_16F ? __half2float(((__half *)x)[i])
                                : ((const float *)x)[i];
}

void set(void *x, cudaDataType type, size_t i, double value)
{
    if (type == CUDA_R_16BF)
        ((__nv_bfloat16 *)x)[i] = __float2bfloat16((float)value);
    else if (type == CUDA_R_16F)
        ((__half *)x)[i] = __float2half((float)value);
    else
        ((float *)x)[i] = (float)value;
}

bool aligned(const void *x, uint32_t bytes)
{
    return (uintptr_t)x % bytes == 0;
}

/* Is a matrix where the device finds it? */
bool is_there(const void *x, const layout &l)
{
    size_t each = l.type == CUDA_R_32F ? sizeof(float) : sizeof(__half);
    size_t n = (l.cols - 1) * (size_t)l.ld + l.rows +
               (size_t)(l.batches - 1) * (size_t)l.stride;

    return bm_emulate_on_device(x, n * each);
}

/* A bias takes part in no preference, and kernels read 16 bytes of it at a
 * time: from other places a device faults. */
bool bias_is_well(const operation &o, const layout &out)
{
    size_t each = o.bias_type == CUDA_R_32F ? sizeof(float) : sizeof(__half);

    return (o.epilogue & CUBLASLT_EPILOGUE_BIAS) == 0 ||
           (aligned(o.bias, 16) &&
            bm_emulate_on_device(o.bias, out.rows * each));
}

/* What TF32 multiplies: 10 bits behind the point. */
double rounded(double x, cublasComputeType_t compute)
{
    uint32_t bits;
    float f = (float)x;

    if (compute != CUBLAS_COMPUTE_32F_FAST_TF32)
        return x;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fffu;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* A number as it is when it has been stored in this type. */
double stored(double x, cudaDataType type)
{
    return type == CUDA_R_16BF  ? __bfloat162float(__float2bfloat16((float)x))
           : type == CUDA_R_16F ? __half2float(__float2half((float)x))
                                : x;
}

/* Sums are split in two where that may show: if their parts may have the type
 * of the result. */
void multiply(const operation &o, const layout &la, const layout &lb,
              const layout &lc, const layout &ld, float alpha, float beta,
              const void *a, const void *b, const void *c, void *d,
              size_t batch, uint32_t splits)
{
    const uint32_t in_type_of_result = CUBLASLT_REDUCTION_SCHEME_INPLACE |
                                       CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
    bool coarse = (splits & in_type_of_result) != 0;
    size_t k = o.trans_a ? la.rows : la.cols;
    size_t at_a = batch * (size_t)la.stride, at_b = batch * (size_t)lb.stride;
    size_t at_c = batch * (size_t)lc.stride, at_d = batch * (size_t)ld.stride;
    bool biased = (o.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
    bool relu = (o.epilogue & CUBLASLT_EPILOGUE_RELU) != 0;

    for (size_t j = 0; j < ld.cols; j++)
        for (size_t i = 0; i < ld.rows; i++) {
            double sum = 0, before = 0;
            for (size_t l = 0; l < k; l++) {
                if (coarse && l == k / 2) {
                    before = stored(sum, ld.type);
                    sum = 0;
                }
                size_t ia =
                    o.trans_a ? l + i * (size_t)la.ld : i + l * (size_t)la.ld;
                size_t ib =
                    o.trans_b ? j + l * (size_t)lb.ld : l + j * (size_t)lb.ld;
                sum += rounded(get(a, la.type, at_a + ia), o.compute) *
                       rounded(get(b, lb.type, at_b + ib), o.compute);
            }
            if (coarse)
                sum = before + stored(sum, ld.type);
            sum *= alpha;
            if (beta != 0)
                sum += beta * get(c, lc.type, at_c + i + j * (size_t)lc.ld);
            if (biased)
                sum += get(o.bias, o.bias_type, i);
            if (relu && !(sum > 0)) /* what is no number may become one */
                sum = 0;
            set(d, ld.type, at_d + i + j * (size_t)ld.ld, sum);
        }
}
} // namespace

extern "C" {

const char *cublasGetStatusString(cublasStatus_t s)
{
    return s == CUBLAS_STATUS_SUCCESS ? "success" : "an emulated failure";
}

const char *cublasLtGetStatusString(cublasStatus_t s)
{
    return cublasGetStatusString(s);
}

size_t cublasLtGetVersion()
{
    return 130000;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    static char handle;
    *out = (cublasLtHandle_t)(void *)&handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t l,
                                                 size_t, cudaDataType type,
                                                 uint64_t rows, uint64_t cols,
                                                 int64_t ld)
{
    of(l) = {type, rows, cols, ld, 1, 0};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t cols, int64_t ld)
{
    *out = new cublasLtMatrixLayoutOpaque_t();
    return cublasLtMatrixLayoutInit_internal(*out, 0, type, rows, cols, ld);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    delete l;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *value, size_t)
{
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        of(l).batches = *(const int32_t *)value;
    else if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        of(l).stride = *(const int64_t *)value;
    else
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t d, size_t,
                                               cublasComputeType_t compute,
                                               cudaDataType_t)
{
    of(d) = {0, 0, CUBLASLT_EPILOGUE_DEFAULT, compute, nullptr, CUDA_R_32F};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    *out = new cublasLtMatmulDescOpaque_t();
    return cublasLtMatmulDescInit_internal(*out, 0, compute, scale);
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    delete d;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                               cublasLtMatmulDescAttributes_t attribute,
                               const void *value, size_t)
{
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA)
        of(d).trans_a = *(const int32_t *)value != CUBLAS_OP_N;
    else if (attribute == CUBLASLT_MATMUL_DESC_TRANSB)
        of(d).trans_b = *(const int32_t *)value != CUBLAS_OP_N;
    else if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE)
        of(d).epilogue = *(const cublasLtEpilogue_t *)value;
    else if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER)
        of(d).bias = *(void *const *)value;
    else if (attribute == CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE)
        of(d).bias_type = *(const cudaDataType_t *)value;
    else
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = new cublasLtMatmulPreferenceOpaque_t();
    new (*out) wishes;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                     cublasLtMatmulPreferenceAttributes_t what,
                                     const void *value, size_t)
{
    wishes &says = *(wishes *)(void *)p;

    if (what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
        says.a = *(const uint32_t *)value;
    else if (what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)
        says.b = *(const uint32_t *)value;
    else if (what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)
        says.c = *(const uint32_t *)value;
    else if (what == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
        says.d = *(const uint32_t *)value;
    else if (what == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        says.splits = *(const uint32_t *)value;
    return CUBLAS_STATUS_SUCCESS;
}

/* As the library refuses: shapes that do not fit, leading dimensions too short,
 * a bias of another type than the outcome, or that nobody says the place of. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t c,
    cublasLtMatmulPreference_t preference, int,
    cublasLtMatmulHeuristicResult_t out[], int *n)
{
    const operation &o = of(d);
    uint64_t m = o.trans_a ? of(a).cols : of(a).rows;
    uint64_t k = o.trans_a ? of(a).rows : of(a).cols;
    uint64_t k_b = o.trans_b ? of(b).cols : of(b).rows;
    uint64_t n_b = o.trans_b ? of(b).rows : of(b).cols;

    *n = 0;
    if (m != of(c).rows || n_b != of(c).cols || k != k_b || k == 0 ||
        of(a).ld < (int64_t)of(a).rows || of(b).ld < (int64_t)of(b).rows ||
        of(c).ld < (int64_t)of(c).rows || of(a).type != of(b).type ||
        ((o.epilogue & CUBLASLT_EPILOGUE_BIAS) != 0 &&
         (o.bias_type != of(c).type || o.bias == nullptr)))
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(out, 0, sizeof *out);
    memcpy(&out->algo, preference, sizeof(wishes));
    out->state = CUBLAS_STATUS_SUCCESS;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc,
                              const void *alpha, const void *a,
                              cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta,
                              const void *c, cublasLtMatrixLayout_t lc, void *d,
                              cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *algo, void *work,
                              size_t work_bytes, cudaStream_t stream)
{
    const wishes needs = *(const wishes *)(const void *)algo;
    float f = *(const float *)alpha, g = *(const float *)beta;
    operation o = of(desc);
    layout a_of = of(la), b_of = of(lb), c_of = of(lc), d_of = of(ld);
    cudaError_t error = cudaSuccess;

    if (!aligned(a, needs.a) || !aligned(b, needs.b) || !aligned(c, needs.c) ||
        !aligned(d, needs.d) || !is_there(a, a_of) || !is_there(b, b_of) ||
        !is_there(c, c_of) || !is_there(d, d_of) || !bias_is_well(o, d_of) ||
        !bm_emulate_own_room(work, work_bytes, stream))
        return CUBLAS_STATUS_INVALID_VALUE;
    error = bm_emulate_queue(stream, [=]() {
        for (int32_t i = 0; i < d_of.batches; i++)
            multiply(o, a_of, b_of, c_of, d_of, f, g, a, b, c, d, (size_t)i,
                     needs.splits);
    });
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                                : CUBLAS_STATUS_EXECUTION_FAILED;
}
}

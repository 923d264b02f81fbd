/* dnn_absent.c - dnn.h in a build without oneDNN, where all it says is that. */
#include "compute/dnn.h"

bool bm_dnn_has(void)
{
    return false;
}

const char *bm_dnn_version(void)
{
    return NULL;
}

void bm_dnn_start(void) {}

bm_dnn_units bm_dnn_bf16(void)
{
    return BM_DNN_NONE;
}

static bm_status absent(void)
{
    return BM_FAIL(BM_ERR_UNSUPPORTED, "this build has no oneDNN");
}

void bm_dnn_sgemm(bool trans_a, bool trans_b, size_t m, size_t n, size_t k,
                  float alpha, const float *a, size_t lda, const float *b,
                  size_t ldb, float beta, float *c, size_t ldc)
{
    (void)trans_a, (void)trans_b, (void)m, (void)n, (void)k, (void)alpha;
    (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
    BM_ASSERT(bm_dnn_has());
}

bm_status bm_dnn_open(bm_dnn **out)
{
    (void)out;
    return absent();
}

void bm_dnn_close(bm_dnn *d)
{
    (void)d;
}

bm_status bm_dnn_multiply(bm_dnn *d, const bm_dnn_product *p, const uint16_t *a,
                          const void *b, float *c)
{
    (void)d, (void)p, (void)a, (void)b, (void)c;
    return absent();
}

bm_status bm_dnn_packed(bm_dnn *d, size_t k, size_t n, size_t *bytes)
{
    (void)d, (void)k, (void)n, (void)bytes;
    return absent();
}

bm_status bm_dnn_pack(bm_dnn *d, bool transposed, size_t k, size_t n,
                      const uint16_t *b, void *packed)
{
    (void)d, (void)transposed, (void)k, (void)n, (void)b, (void)packed;
    return absent();
}

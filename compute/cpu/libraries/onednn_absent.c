/* onednn_absent.c - onednn.h in a build without oneDNN. */
#include "compute/cpu/libraries/onednn.h"

bool bm_onednn_has(void)
{
    return false;
}

const char *bm_onednn_version(void)
{
    return NULL;
}

bm_onednn_units bm_onednn_bf16(void)
{
    return BM_DNN_NONE;
}

static bm_status absent(void)
{
    return BM_FAIL(BM_ERR_UNSUPPORTED, "this build has no oneDNN");
}

bm_status bm_onednn_sgemm(bool trans_a, bool trans_b, size_t m, size_t n,
                          size_t k, float alpha, const float *a, size_t lda,
                          const float *b, size_t ldb, float beta, float *c,
                          size_t ldc)
{
    (void)trans_a, (void)trans_b, (void)m, (void)n, (void)k, (void)alpha;
    (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c, (void)ldc;
    return absent();
}

bm_status bm_onednn_open(bm_onednn **out)
{
    (void)out;
    return absent();
}

void bm_onednn_close(bm_onednn *d)
{
    (void)d;
}

bm_status bm_onednn_multiply(bm_onednn *d, const bm_onednn_product *p,
                             const uint16_t *a, const void *b, float *c)
{
    (void)d, (void)p, (void)a, (void)b, (void)c;
    return absent();
}

bm_status bm_onednn_packed(bm_onednn *d, size_t k, size_t n, size_t *bytes)
{
    (void)d, (void)k, (void)n, (void)bytes;
    return absent();
}

bm_status bm_onednn_pack(bm_onednn *d, bool transposed, size_t k, size_t n,
                         const uint16_t *b, void *packed)
{
    (void)d, (void)transposed, (void)k, (void)n, (void)b, (void)packed;
    return absent();
}

/* device_code.c - calls the backend's own, unless something has failed. */
#include "compute/device_code.h"

#include "compute/backend_ops.h"

#include <stdlib.h>
#include <string.h>

enum { A_NUMBER = sizeof(uint64_t) / sizeof(float) };

bool bm_device_code_find(const bm_backend *be, const char *name,
                         bm_code_kind *out)
{
    static const char *const names[] = {
        [BM_CODE_FP32] = "fp32", [BM_CODE_FP16] = "fp16",
        [BM_CODE_BF16] = "bf16", [BM_CODE_INT8] = "int8",
        [BM_CODE_TOPK] = "topk", [BM_CODE_ONEBIT] = "onebit"};

    if (be->ops->device_code == NULL)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) {
            *out = (bm_code_kind)i;
            return true;
        }
    return false;
}

bm_status bm_device_code_cut(bm_backend *be, bm_code_kind kind, size_t n,
                             const size_t *start, const size_t *byte,
                             bm_pieces *p)
{
    size_t floats = 2 * (n + 1) * A_NUMBER;
    uint64_t *host = calloc(2 * (n + 1), sizeof *host);
    bm_pieces pieces = {kind, n, start[n], byte[n], NULL};
    bm_status status = BM_OK;

    if (host == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu pieces", n);
    for (size_t i = 0; i <= n; i++) {
        host[i] = start[i];
        host[n + 1 + i] = byte[i];
    }
    BM_TRY_DONE(bm_alloc(be, floats, &pieces.edges));
    bm_put(be, pieces.edges, (const float *)(const void *)host, floats);
    status = bm_sync(be);
    if (status == BM_OK)
        *p = pieces;
    else
        bm_free(be, pieces.edges);
done:
    free(host);
    return status;
}

void bm_device_code_carry(bm_backend *be, const bm_pieces *p,
                          const float *residual, float *y, float *non_finite)
{
    be->turn++;
    if (be->failed == BM_OK)
        be->ops->device_code->carry(be, p, residual, y, non_finite);
}

void bm_device_code_encode(bm_backend *be, const bm_pieces *p, const float *x,
                           float *residual, float *code)
{
    be->turn++;
    if (be->failed == BM_OK)
        be->ops->device_code->encode(be, p, x, residual, code);
}

void bm_device_code_decode(bm_backend *be, const bm_pieces *p,
                           const float *code, bool adds, float *y)
{
    be->turn++;
    if (be->failed == BM_OK)
        be->ops->device_code->decode(be, p, code, adds, y);
}

/* code_fp32.c - floats, unchanged: for pieces that must be exact, and to compare
 * with. */
#include "comm/code/code.h"

#include <string.h>

static size_t bytes(const bm_code *c, size_t n)
{
    (void)c;
    return n * sizeof(float);
}

static void encode(const bm_code *c, size_t n, const float *x, void *code)
{
    memcpy(code, x, bytes(c, n));
}

static void decode(const bm_code *c, size_t n, const void *code, float *x)
{
    memcpy(x, code, bytes(c, n));
}

const bm_code_ops BM_OF_ISA(bm_code_fp32, BM_ISA) = {
    .name = "fp32",
    .help = "floats as they are, to compare with",
    .exact = true,
    .bytes = bytes,
    .encode = encode,
    .decode = decode,
};

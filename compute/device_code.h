/*
 * device_code.h - the codes of comm/code on a device: bytes, residuals and
 * decoded numbers are those of the host, bit for bit. A piece is encoded by
 * itself. All functions are queued, like operations (operations.h); vectors are
 * the backend's.
 */
#ifndef BM_COMPUTE_DEVICE_CODE_H
#define BM_COMPUTE_DEVICE_CODE_H

#include "compute/backend.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum bm_code_kind {
    BM_CODE_FP32,
    BM_CODE_FP16,
    BM_CODE_BF16,
    BM_CODE_INT8,
    BM_CODE_ONEBIT,
    BM_CODE_TOPK
} bm_code_kind;

/* How a vector is cut. A piece with as many bytes as floats have is sent as
 * floats: it is exact. */
typedef struct bm_pieces {
    bm_code_kind kind;
    size_t n;        /* pieces */
    size_t elements; /* of the vector */
    size_t bytes;    /* of the whole code */
    float *edges;    /* room for 2 (n + 1) numbers of 64 bits: where pieces
                        begin and end, then where their codes do */
} bm_pieces;

/* What a backend implements; each is the function of the same name below. */
typedef struct bm_device_code_ops {
    void (*carry)(bm_backend *be, const bm_pieces *p, const float *residual,
                  float *y, float *non_finite);
    void (*encode)(bm_backend *be, const bm_pieces *p, const float *x,
                   float *residual, float *code);
    void (*decode)(bm_backend *be, const bm_pieces *p, const float *code,
                   bool adds, float *y);
} bm_device_code_ops;

/* Whether the backend can encode this code of comm/code; the functions below are
 * for those. */
bool bm_device_code_find(const bm_backend *be, const char *name,
                         bm_code_kind *out);

/* Fills p: start and byte as bm_code_plan has them. Free p->edges with bm_free.
 * Fails with BM_ERR_MEMORY, or as bm_sync. */
BM_CHECKED bm_status bm_device_code_cut(bm_backend *be, bm_code_kind kind,
                                        size_t n, const size_t *start,
                                        const size_t *byte, bm_pieces *p);

/* Floats of memory that hold the code. */
static inline size_t bm_device_code_floats(const bm_pieces *p)
{
    return (p->bytes + sizeof(float) - 1) / sizeof(float);
}

/* y += residual, except in exact pieces. *non_finite becomes 1 if a number of y
 * is not finite, else 0. */
void bm_device_code_carry(bm_backend *be, const bm_pieces *p,
                          const float *residual, float *y, float *non_finite);

/* code = that of x; residual = x less what is decoded from it, except in exact
 * pieces. */
void bm_device_code_encode(bm_backend *be, const bm_pieces *p, const float *x,
                           float *residual, float *code);

/* y = what is decoded; or, with `adds` and except in exact pieces, y += it. */
void bm_device_code_decode(bm_backend *be, const bm_pieces *p,
                           const float *code, bool adds, float *y);

#endif

/*
 * code.h - shorter representations of floats, for vectors that are sent.
 *
 *     fp32      floats, unchanged
 *     fp16      IEEE half precision: 11 bits, from 2^-24 to 65504
 *     bf16      8 bits, with the range of floats
 *     int8      integers up to 127, times one float for each 256 of them
 *     onebit    one bit, for one of two levels of each column of a matrix
 *     topk      the largest of each 1024, with their indices
 *
 * A vector is cut into pieces, and each is encoded separately (code_plan.h).
 * The number of bytes depends on the length of the piece alone. Input must be
 * finite; decoded numbers are finite, too. Bytes are in this machine's order.
 *
 * To add a code: write comm/code/code_<name>.c, then add its line to BM_CODES.
 */
#ifndef BM_COMM_CODE_CODE_H
#define BM_COMM_CODE_CODE_H

#include "core/isa.h"

#include <stdbool.h>
#include <stddef.h>

#define BM_CODES(X) X(fp32) X(fp16) X(bf16) X(int8) X(onebit) X(topk)

typedef struct bm_code bm_code;

typedef struct bm_code_ops {
    const char *name; /* [compress] code = <name> */
    const char *help; /* one line */
    bool exact;       /* decoding gives the floats that were encoded */
    bool columns;     /* a piece is a column of any length; else a chunk */
    size_t (*bytes)(const bm_code *c, size_t n); /* of n encoded floats */
    void (*encode)(const bm_code *c, size_t n, const float *x, void *code);
    void (*decode)(const bm_code *c, size_t n, const void *code, float *x);
} bm_code_ops;

struct bm_code {
    const bm_code_ops *ops; /* NULL: vectors are not coded */
    double share;           /* topk: fraction of the elements that is sent */
};

/* The code `name`, for this machine's instruction set; ops = NULL if there is
 * no such code. */
bm_code bm_code_find(const char *name, double share);

/* All codes, ending with NULL, as compiled for each instruction set
 * (core/isa.h), all with the same bits; and each code of the baseline set. */
#define X(isa) extern const bm_code_ops *const bm_codes_##isa[];
BM_ISAS(X)
#undef X
#define X(name) extern const bm_code_ops bm_code_##name##_baseline;
BM_CODES(X)
#undef X

#endif

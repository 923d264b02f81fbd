/*
 * code.h - shorter ways to write floats down, for vectors that travel.
 *
 *     fp32      as they are
 *     fp16      halves: 11 bits, from 2^-24 to 65504
 *     bf16      8 bits, as far as floats go
 *     int8      whole numbers up to 127, times one float for 256 of them
 *     onebit    one bit, of two levels for each column of a matrix
 *     topk      the largest of each 1024, with their places
 *
 * A vector is cut into pieces, and each is coded by itself (code_plan.h). How
 * many bytes that takes depends on the length of the piece alone. All numbers
 * are finite; what a code makes of them is finite, too. Bytes are in this
 * machine's order.
 *
 * To add a code: write comm/code_<name>.c, then add its line to BM_CODES.
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
    bool exact;       /* what is decoded is what was encoded */
    bool columns;     /* a piece is a column, however long; else a chunk */
    size_t (*bytes)(const bm_code *c, size_t n);
    void (*encode)(const bm_code *c, size_t n, const float *x, void *code);
    void (*decode)(const bm_code *c, size_t n, const void *code, float *x);
} bm_code_ops;

struct bm_code {
    const bm_code_ops *ops; /* NULL: vectors are not coded */
    double share;           /* topk: of the elements, that are sent */
};

/* The code called `name`; ops = NULL: there is none. */
bm_code bm_code_find(const char *name, double share);

/* All of them, and NULL, as compiled for each instruction set (core/isa.h),
 * with the same bits for all; and those of the plainest by their names. */
#define X(isa) extern const bm_code_ops *const bm_codes_##isa[];
BM_ISAS(X)
#undef X
#define X(name) extern const bm_code_ops bm_code_##name##_baseline;
BM_CODES(X)
#undef X

#endif

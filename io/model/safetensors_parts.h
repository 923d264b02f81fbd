/*
 * safetensors_parts.h - the file, for both reader and writer:
 *
 *     u64   length H of the header, little-endian
 *     H     JSON, padded with spaces to where 8 + H is a multiple of 64
 *     ...   tensors, little-endian, row-major, without holes
 *
 * and the seal, a last tensor of 32 bytes: "BMUFSUM1", u32 1 (XXH3-128 with
 * seed 0), u32 0, the sum of every byte before the seal in canonical order.
 */
#ifndef BM_IO_MODEL_SAFETENSORS_PARTS_H
#define BM_IO_MODEL_SAFETENSORS_PARTS_H

#include "io/model/safetensors.h"

#include <xxhash.h>

#define BM_ST_SEAL_NAME "__bmuf_integrity__"
#define BM_ST_META_NAME "__metadata__"

enum { BM_ST_SEAL_SIZE = 32, BM_ST_HEADER_MOST = 16 << 20 };

/* "F32" */
const char *bm_dtype_name(bm_dtype t);

/* False for an unknown type. */
bool bm_dtype_parse(const char *name, bm_dtype *out);

/* *out = a b; false if the product overflows. */
bool bm_st_multiply(uint64_t a, uint64_t b, uint64_t *out);

/* The index of the first of n elements that is not finite; n if all are, and
 * for integer types. x is aligned. */
size_t bm_st_first_not_finite(bm_dtype t, const void *x, size_t n);

/* Writes the contents of the seal for this checksum. */
void bm_st_seal(XXH128_hash_t sum, unsigned char seal[BM_ST_SEAL_SIZE]);

#endif

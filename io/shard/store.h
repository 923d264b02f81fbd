/*
 * store.h - how features are stored in a shard, and conversion from and to
 * floats. Files are little-endian; other machines are not supported.
 */
#ifndef BM_IO_SHARD_STORE_H
#define BM_IO_SHARD_STORE_H

#include "compute/batch.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "shards are copied between file and memory: needs little-endian"
#endif

/* How features are stored in a shard. In memory they are floats, except on
 * their way to a device. */
typedef enum bm_store { BM_STORE_F32, BM_STORE_F16, BM_STORE_U8 } bm_store;

size_t bm_store_size(bm_store store);      /* bytes of a value */
const char *bm_store_name(bm_store store); /* "f32" */
/* Fails with BM_ERR_CONFIG for another name than f32, f16 and u8. */
BM_CHECKED bm_status bm_store_find(const char *name, bm_store *out);

/* Stored values `from` [rows, D] -> x. For u8, x = offset[d] + scale[d] stored;
 * otherwise scale and offset may be NULL. */
void bm_store_unpack(bm_store store, const void *from, float *x, size_t rows,
                     size_t features, const float *scale, const float *offset);

/* True if all values of [rows, D] are finite. */
bool bm_stored_finite(const bm_stored *p, size_t rows, size_t features);

/* x [n] -> stored values `to`; f16 is rounded to nearest, ties to even. Returns
 * n, or the index of the first value that cannot be stored: a finite one that
 * becomes infinite as f16, or one outside [0, 255] as u8. The values after it
 * are not written. */
size_t bm_store_pack(bm_store store, const float *x, size_t n, double scale,
                     double offset, void *to);

#endif

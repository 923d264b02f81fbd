/*
 * store.h - features in a file and as floats. Files are little-endian, and so
 * are the machines this runs on.
 */
#ifndef BM_IO_SHARD_STORE_H
#define BM_IO_SHARD_STORE_H

#include "compute/batch.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "shards are read and written as they lie in memory: little-endian"
#endif

/* How features are stored in a shard. In memory they are floats, except on
 * their way to a device. */
typedef enum bm_store { BM_STORE_F32, BM_STORE_F16, BM_STORE_U8 } bm_store;

size_t bm_store_size(bm_store store); /* bytes of a value */
const char *bm_store_name(bm_store store);
/* By its name; BM_ERR_CONFIG if there is none. */
BM_CHECKED bm_status bm_store_find(const char *name, bm_store *out);

float bm_half_to_float(uint16_t h);
/* To nearest, ties to even; too large a value becomes infinite. */
uint16_t bm_half_from_float(float x);

/* [rows, D] from the file; u8: value = offset[d] + scale[d] * stored. */
void bm_store_unpack(bm_store store, const void *from, float *x, size_t rows,
                     size_t features, const float *scale, const float *offset);

/* Is every number of [rows, D] finite? */
bool bm_stored_finite(const bm_stored *p, size_t rows, size_t features);

/* n values for the file; returns how many fit: n, or the place of the first
 * finite one that becomes infinite, or, for u8, leaves [0, 255]. */
size_t bm_store_pack(bm_store store, const float *x, size_t n, double scale,
                     double offset, void *to);

#endif

/*
 * place.h - where an array is: a file; a byte of an archive of Kaldi's,
 * "raw.ark:1234"; a part of it, "raw.ark:1234[0:99]" or "[0:99,2:3]"; or an array
 * of a NumPy archive, "x.npz:name".
 */
#ifndef BM_IO_PLACE_H
#define BM_IO_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows or columns from `first` to `last`, both included; last = SIZE_MAX: up to
 * the end. */
typedef struct bm_index_range {
    size_t first, last;
} bm_index_range;

typedef struct bm_place {
    char file[PATH_MAX];
    uint64_t offset;  /* bytes */
    char member[256]; /* of an .npz; "": none is named */
    bool cut;         /* there are ranges */
    bm_index_range rows, columns;
} bm_place;

/* False if ranges are invalid or the path is too long. */
bool bm_place_parse(bm_place *p, const char *text);

#endif

/*
 * frame_classes.h - a class for each frame of each sequence, as Kaldi has
 * alignments: an archive of vectors of integers, binary or text, plain or
 * compressed with gzip, or a list (.scp) of places in archives.
 */
#ifndef BM_IO_IMPORT_FRAME_CLASSES_H
#define BM_IO_IMPORT_FRAME_CLASSES_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bm_frame_classes bm_frame_classes;

/*
 * Reads the whole file at `path`, which may begin with "ark:" or "scp:", into
 * memory: 4 bytes a frame. With `pipes` it may be a command, "ark:gunzip -c a.gz |".
 * Fails with BM_ERR_MISSING, with BM_ERR_ARG for a command without `pipes`, with
 * BM_ERR_FORMAT for damaged data, a command that fails, a class below 0 or an id
 * that occurs twice, with BM_ERR_IO, BM_ERR_CREATE or BM_ERR_MEMORY. Free with bm_frame_classes_free; NULL is a no-op.
 */
BM_CHECKED bm_status bm_frame_classes_read(bm_frame_classes **out,
                                           const char *path, bool pipes);
void bm_frame_classes_free(bm_frame_classes *c);

/* The highest class; whether 0 is the class of a frame; the number of frames. */
int32_t bm_frame_classes_highest(const bm_frame_classes *c);
bool bm_frame_classes_have_zero(const bm_frame_classes *c);
size_t bm_frame_classes_frames(const bm_frame_classes *c);

/* The classes of a sequence, borrowed; NULL: there are none. */
const int32_t *bm_frame_classes_find(const bm_frame_classes *c, const char *id,
                                     size_t *n);

#endif

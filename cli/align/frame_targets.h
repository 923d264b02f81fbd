/*
 * frame_targets.h - writes shards with a class for every stored frame, from
 * alignments: what training with loss = cross_entropy reads.
 */
#ifndef BM_CLI_ALIGN_FRAME_TARGETS_H
#define BM_CLI_ALIGN_FRAME_TARGETS_H

#include "cli/align/aligned.h"
#include "io/shard/dataset.h"

typedef struct bm_frame_targets bm_frame_targets;

/* Features, how they are stored, and vocabulary are those of `data`, borrowed.
 * nearest: a blank frame gets the class of the nearest label, of two the one
 * before; else blank is a class, number 0. Fails with BM_ERR_CREATE if the
 * directory has shards or cannot be written. Close with bm_frame_targets_close,
 * which removes shards unless they are finished; NULL is a no-op. */
BM_CHECKED bm_status bm_frame_targets_open(bm_frame_targets **out,
                                           const char *directory,
                                           const bm_dataset *data,
                                           bool nearest);
void bm_frame_targets_close(bm_frame_targets *f);

/* Adds a sequence: x [map->frames, features] as the data set has it. Fails as
 * bm_shard_writer_add. */
BM_CHECKED bm_status bm_frame_targets_add(bm_frame_targets *f, const char *id,
                                          const bm_frame_map *map,
                                          const float *x, const int32_t *labels,
                                          const bm_label_span *spans, size_t n);

/* Writes the last shard, and vocab.txt. */
BM_CHECKED bm_status bm_frame_targets_finish(bm_frame_targets *f);

#endif

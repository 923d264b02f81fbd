/*
 * shard_maker.h - makes one shard of a corpus: texts, voices, rooms, noise,
 * features. All depends on the seed, the set and the number of the shard, if
 * the process has not used espeak-ng before.
 */
#ifndef BM_TOOLS_SPEECH_SHARD_MAKER_H
#define BM_TOOLS_SPEECH_SHARD_MAKER_H

#include "io/shard/shard.h"
#include "tools/speech/corpus.h"

typedef struct bm_shard_maker bm_shard_maker;

/* Called now and then with the seconds of speech made since. A failure ends the
 * work. */
typedef bm_status bm_shard_progress(void *self, double seconds);

/* Makes all recordings of the shard in memory. Fails as bm_synthesis_open and
 * _speak, `progress`, or with BM_ERR_MEMORY. Free with bm_shard_maker_free; NULL is a
 * no-op. */
BM_CHECKED bm_status bm_shard_make(bm_shard_maker **out, const bm_corpus *c,
                                   bm_speech_set set, size_t shard,
                                   bm_shard_progress *progress, void *self);
void bm_shard_maker_free(bm_shard_maker *m);

/* Writes its manifest, then the shard, at its place; *place: becomes that of the
 * next shard. Fails as bm_shard_part_finish does. */
BM_CHECKED bm_status bm_shard_maker_write(bm_shard_maker *m,
                                          bm_shard_place *place);

#endif

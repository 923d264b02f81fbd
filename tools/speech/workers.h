/*
 * workers.h - makes the missing shards of a corpus, each in a process of its own
 * (espeak-ng has one state for a process), several at a time.
 *
 * A shard names the shards before it. So a process makes its shard in memory and
 * waits for its place, which is known once the shard before it is written:
 * shards are written in order, and a run that is killed leaves the first ones.
 */
#ifndef BM_TOOLS_SPEECH_WORKERS_H
#define BM_TOOLS_SPEECH_WORKERS_H

#include "tools/speech/corpus.h"

/* places: of the first missing shard of each set; becomes that after the last.
 * Fails as the first process that fails. Call it while this process has no other
 * thread. */
BM_CHECKED bm_status bm_workers_run(const bm_corpus *c,
                                    bm_shard_place places[BM_SPEECH_N_SETS]);

#endif

/*
 * corpus.h - what a corpus of bmuf_speech is: its settings, its sets, their
 * shards, and the file DIR/speech.json that tells one corpus from another.
 */
#ifndef BM_TOOLS_SPEECH_CORPUS_H
#define BM_TOOLS_SPEECH_CORPUS_H

#include "core/config/config.h"
#include "io/features/recording_features.h"
#include "io/shard/shard.h"
#include "io/vocab.h"
#include "tools/speech/speakers.h"

/* From the options table: the settings as given. */
typedef struct bm_corpus_settings {
    const char *out;
    double hours, dev_hours, test_hours; /* the last two: NAN for auto */
    long seed;
    const char *language, *units, *snr, *reverb, *store;
    double shard_minutes;
    long unit_frames, listen, jobs;
} bm_corpus_settings;

extern const bm_option bm_corpus_options[];

typedef struct bm_speech_range {
    double from, to;
} bm_speech_range;

typedef struct bm_corpus {
    bm_corpus_settings s;
    bm_recording_settings features;
    double hours[BM_SPEECH_N_SETS];
    size_t shards[BM_SPEECH_N_SETS], speakers[BM_SPEECH_N_SETS];
    bm_speech_range snr, reverb; /* dB; seconds */
    char *features_text;         /* owned */
    bm_vocab *vocab;             /* owned */
    char *description;           /* owned: the contents of speech.json */
} bm_corpus;

/* A corpus from the sections "speech" and "features" of a checked
 * configuration, which lends its texts. Fails with BM_ERR_CONFIG for settings
 * that do not go together, or with BM_ERR_MEMORY. Free with bm_corpus_free. */
BM_CHECKED bm_status bm_corpus_open(bm_corpus *c, const bm_config *config);
void bm_corpus_free(bm_corpus *c);

/* DIR/SET. Fails with BM_ERR_CREATE if it is too long. */
BM_CHECKED bm_status bm_corpus_path(const bm_corpus *c, bm_speech_set set,
                                    char path[PATH_MAX]);

/* Makes the directories, vocabularies and speech.json, or compares them with
 * those that are there. Fails with BM_ERR_CREATE if another corpus is there, or
 * with BM_ERR_IO. */
BM_CHECKED bm_status bm_corpus_prepare(const bm_corpus *c);

/* *place <- of the first shard of a set that is missing. Removes the temporary
 * files of a run that was killed. Fails with BM_ERR_FORMAT if a shard is damaged
 * or of another corpus, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_corpus_find(const bm_corpus *c, bm_speech_set set,
                                    bm_shard_place *place);

#endif

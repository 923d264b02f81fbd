/*
 * corpus.h - a small data set whose every value is a function of its place, for
 * tests of shards. Sequence i has (i % 7) * 3 + 2 frames, the labels of "word"
 * i, and speaker i % 3 (none for 2).
 */
#ifndef BM_TESTS_SUPPORT_CORPUS_H
#define BM_TESTS_SUPPORT_CORPUS_H

#include "io/shard/dataset.h"

enum { CORPUS_D = 5, CORPUS_FRAMES = 20, CORPUS_LABELS = 3 };

/* A new directory under /tmp; removed with all its files by corpus_remove. */
char *corpus_directory(void);
void corpus_remove(char *directory);
/* directory/name, until the next call. */
const char *corpus_path(const char *directory, const char *name);

size_t corpus_frames(size_t i);
size_t corpus_labels(size_t i, int32_t labels[CORPUS_LABELS]);
/* A multiple of 1/8 from 0 to 31.875: exact in all of f32, f16, u8. */
float corpus_value(size_t i, size_t t, size_t d);
/* "<blank> <space> a b c d", d if there are so many. */
bm_vocab *corpus_vocab(size_t classes);

/* Settings and meta data to change before corpus_write. */
typedef struct corpus {
    const char *directory, *name;
    size_t n;
    bm_shard_settings settings;
    bm_shard_meta meta;
} corpus;

/* n sequences into shards `name` of a directory; free with bm_vocab_free the
 * meta.vocab. */
corpus corpus_make(const char *directory, const char *name, size_t n);
/* Returns how many shards there are. */
size_t corpus_write(const corpus *c);

/* Whether a data set holds sequences 0 .. n-1, bit for bit, and nothing else.
 * *failed: it could not be read, and what was read till then is right. */
bool corpus_is(bm_dataset *d, const char *name, size_t n, bool *failed);

#endif

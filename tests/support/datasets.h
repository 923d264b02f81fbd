/*
 * datasets.h - data sets for tests of shards and plans: a small corpus on disk,
 * data sets that consist of lengths only, and forged shards.
 */
#ifndef BM_TESTS_SUPPORT_DATASETS_H
#define BM_TESTS_SUPPORT_DATASETS_H

#include "core/rng.h"
#include "io/batch/plan.h"
#include "io/shard/dataset.h"

#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>

/* ---- a corpus of shards -------------------------------------------------- */

enum { CORPUS_D = 5, CORPUS_FRAMES = 20, CORPUS_LABELS = 3 };

/* A new directory under /tmp; corpus_remove removes it with all its files. */
char *corpus_directory(void);
void corpus_remove(char *directory);
/* directory/name, valid until the next call. */
const char *corpus_path(const char *directory, const char *name);

size_t corpus_frames(size_t i);
size_t corpus_labels(size_t i, int32_t labels[CORPUS_LABELS]);
/* A multiple of 1/8 from 0 to 31.875: exact in all of f32, f16, u8. */
float corpus_value(size_t i, size_t t, size_t d);
/* The first `classes` of "<blank> <space> a b c d". */
bm_vocab *corpus_vocab(size_t classes);

/* What corpus_write writes; tests may change settings and meta data before. */
typedef struct corpus {
    const char *directory, *name;
    size_t n;
    bm_shard_settings settings;
    bm_shard_meta meta;
} corpus;

/* n sequences for shards `name` of a directory; free meta.vocab with
 * bm_vocab_free. */
corpus corpus_make(const char *directory, const char *name, size_t n);
/* Returns the number of shards. */
size_t corpus_write(const corpus *c);
/* Writes sequences [from, to) as the shard at *place, and moves the place on. */
void corpus_write_part(const corpus *c, size_t from, size_t to, bool last,
                       bm_shard_place *place);

/* Does the data set hold sequences 0 .. n - 1, bit for bit, and nothing else?
 * *failed: a read failed, and all that was read before is right. */
bool corpus_is(bm_dataset *d, const char *name, size_t n, bool *failed);

/* ---- lengths only -------------------------------------------------------- */

/* A data set of n_units units; unit u has counts[u] sequences. */
bm_dataset lengths_make(size_t n_units, const int32_t *counts,
                        int32_t (*length)(void *, int64_t), void *context);
/* Up to `most` sequences per unit: many short ones, few long ones, some
 * empty. */
bm_dataset lengths_random(bm_rng *rng, size_t n_units, int32_t most);
void lengths_drop(bm_dataset *d);

/* For lengths_make: all sequences have length *context. */
int32_t lengths_same(void *context, int64_t i);

bm_plan *plan_of(const bm_dataset *d, const bm_plan_settings *s, int workers,
                 uint64_t seed, int64_t epoch);

/* Frames of a share and of a block, summed over their units. */
int64_t share_frames(const bm_plan *p, const bm_dataset *d, int64_t block,
                     int worker);
int64_t block_frames(const bm_plan *p, const bm_dataset *d, int64_t block,
                     int workers);

/* ---- forged shards ------------------------------------------------------- */

/* Replaces an attribute of /bmuf. */
void forge_attribute(hid_t file, const char *name, hid_t type,
                     const void *value);

/* Recomputes the digest of the tables. */
void forge_seal(hid_t file);

/* Changes element `at` of a table of 32-bit numbers, and recomputes the
 * digest. */
void forge_number(hid_t file, const char *name, hid_t type, size_t at,
                  uint32_t value);

/* Changes label `at` of unit 0 of the shard, and that unit's checksum. */
void forge_label(const char *path, size_t at, int32_t value);

#endif

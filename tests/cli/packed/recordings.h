/*
 * recordings.h - recordings and line images for bmuf pack, and lists of them.
 */
#ifndef BM_TESTS_CLI_PACKED_RECORDINGS_H
#define BM_TESTS_CLI_PACKED_RECORDINGS_H

#include <stdbool.h>
#include <stddef.h>

/* ---- recordings ---------------------------------------------------------- */

/* Setup of a group: the folder with 1.wav and 2.wav, their manifest texts.jsonl,
 * "a b" and "b a", and shards of them, w/ of words and c/ of characters. The
 * words have one letter, so only the shards tell them from characters. */
int make_shards(void **state);

/* A line of a manifest; its text is "a". */
typedef struct entry {
    const char *id, *path;
} entry;

/* Writes a manifest; `key` is that of the paths, such as "audio". */
void list(const char *name, const char *key, size_t n, const entry rows[]);

/* n recordings, at most 128, of which the first `bad` are shorter than a window:
 * short.wav, which is the test's. */
void list_recordings(const char *name, size_t n, size_t bad);

/* Whether a data set has its first shard. */
bool has_shards(const char *directory);

/* ---- line images --------------------------------------------------------- */

enum { HIGH = 4, WIDEST = 8 }; /* pixels */

/* A line image of this width: white where there is no ink. */
void draw(const char *name, unsigned width);

/* 0 is the ground; a stroke is dark, what is around it less so. Multiples of 4:
 * the mean of four of them is a whole number. */
int ink(size_t row, size_t column);

#endif

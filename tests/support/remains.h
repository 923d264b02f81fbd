/*
 * remains.h - what runs of program.h leave in the folder: journals,
 * checkpoints, models. Runs are named by their directory in it.
 */
#ifndef BM_TESTS_SUPPORT_REMAINS_H
#define BM_TESTS_SUPPORT_REMAINS_H

#include "tests/support/printed.h"
#include "tests/support/program.h"

/* An array of all events; json_decref. Fails if a line is none. */
json_t *journal(const char *run);

/* How many whole events of a kind there are so far. */
int events(const char *run, const char *kind);
/* Waits for the n-th one while the program runs; whether it came. */
bool event_comes(program *p, const char *run, const char *kind, int n);
/* The last one, json_decref. Fails if there is none. */
json_t *last_event(const char *run, const char *kind);

/* Both have finished, with the same digest and equal model files. */
void assert_same_model(const char *run, const char *other);

/* "run/checkpoints/block-00000012.safetensors", whole; until the next call. */
const char *checkpoint_of(const char *run, int blocks);
/* How many there are, and the number of the newest. */
int checkpoints(const char *run, int *newest);

void copy_run(const char *from, const char *to);
void remove_run(const char *run);
/* Of a file: from a share of its length on, so many bytes become others. */
void damage(const char *path, double share, size_t bytes);
void cut_off(const char *path, double share);

#endif

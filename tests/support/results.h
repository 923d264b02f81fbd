/*
 * results.h - what programs print and write: JSON, numbers in text, the files
 * of runs, traces, .npz files. All functions fail the test unless they find
 * what they look for.
 */
#ifndef BM_TESTS_SUPPORT_RESULTS_H
#define BM_TESTS_SUPPORT_RESULTS_H

#include "tests/support/program.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- JSON and numbers in text -------------------------------------------- */

/* Parses one JSON value; json_decref. */
json_t *parse_json(const char *json);

/* Fields of an object. */
double number(const json_t *object, const char *key);
const char *text(const json_t *object, const char *key);

/* The number that follows the first occurrence of the words. */
double number_after(const char *printed, const char *words);

/* Compares that number with x to so many digits. */
#define assert_after(printed, words, x, digits)                                \
    assert_true(                                                               \
        near(number_after(printed, words) / (x), 1, 6 * pow(10, -(digits))))

/* ---- runs ---------------------------------------------------------------- */

/* All events of a run's journal, an array; json_decref. */
json_t *journal(const char *run);

/* The number of complete events of a kind so far. */
int events(const char *run, const char *kind);
/* Waits for the n-th event; false if the program ends before. */
bool event_comes(program *p, const char *run, const char *kind, int n);
/* The last event of a kind; json_decref. */
json_t *last_event(const char *run, const char *kind);

/* Fails unless both runs ended with the same digest and equal model files, the
 * best ones on data.dev and averages among them. */
void assert_same_model(const char *run, const char *other);

/* The path of run/checkpoints/block-00000012.safetensors; until the next
 * call. */
const char *checkpoint_of(const char *run, int blocks);
/* The number of checkpoints; *newest: blocks of the newest. */
int checkpoints(const char *run, int *newest);

/* Removes their events from the journal, as if the run had been killed before
 * its first checkpoint; the files are removed by the test. */
void forget_checkpoints(const char *run);

void copy_run(const char *from, const char *to);
void remove_run(const char *run);
/* Changes `bytes` bytes of a file from a fraction of its size on; truncates it
 * there. */
void damage(const char *path, double share, size_t bytes);
void cut_off(const char *path, double share);

/* ---- traces -------------------------------------------------------------- */

/* Parses a file of the folder; json_decref. */
json_t *load_json(const char *name);

/*
 * Fails unless the file follows Chrome's trace event format: an object with
 * traceEvents, each a complete event ("X": name, cat, pid, tid, ts and dur, not
 * negative) or metadata ("M") that names a process or a thread. Each process
 * and thread with a span must have one name.
 */
void assert_chrome_trace(const json_t *file);

/* Loops over the spans of a file. */
#define FOR_EACH_SPAN(e, file)                                                 \
    for (size_t e##_i = 0; (e = next_span((file), &e##_i)) != NULL;)
const json_t *next_span(const json_t *file, size_t *i);

bool is_named(const json_t *span, const char *name);
size_t count_spans(const json_t *file, const char *name);
const json_t *find_span(const json_t *file, const char *name);

/* In nanoseconds; the fields are in microseconds. */
long long begin_of(const json_t *span);
long long length_of(const json_t *span);
long long end_of(const json_t *span);

long long block_of(const json_t *span); /* -1: no block */
bool on_one_thread(const json_t *a, const json_t *b);
const char *thread_of(const json_t *file, const json_t *span);

/* ---- .npz files ---------------------------------------------------------- */

typedef struct dump_array {
    char name[64]; /* without .npy */
    int rank;
    size_t dim[4];
    size_t rows, columns; /* dim[0] and the product of the others */
    float *x;   /* [rows, columns], owned by the dump; NULL: it is a text */
    char *text; /* likewise; NULL: it is floats */
} dump_array;

typedef struct dump {
    size_t n;
    dump_array *arrays;
    char *bytes;
} dump;

/* Reads an .npz file of the folder: stored entries, version 1 headers,
 * little-endian floats or a text, as zip and NumPy define them. */
dump dump_read(const char *name);
void dump_free(dump *d);

/* The array of that name. */
const dump_array *dump_find(const dump *d, const char *name);

#endif

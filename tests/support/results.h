/*
 * results.h - what programs print and write: JSON, numbers in text, the files of
 * runs, traces, .npz files. All functions fail the test unless they find what
 * they look for.
 */
#ifndef BM_TESTS_SUPPORT_RESULTS_H
#define BM_TESTS_SUPPORT_RESULTS_H

#include "tests/support/program.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- JSON and numbers in text ---------------------------------------------- */

/* The one value of a text; json_decref. Fails if it is none. */
json_t *parse_json(const char *json);

/* Fields of an object. Fail if there is no such number or text. */
double number(const json_t *object, const char *key);
const char *text(const json_t *object, const char *key);

/* The number behind the words, at their first place. Fails if there is none. */
double number_after(const char *printed, const char *words);

/* As printed: with so many digits. */
#define assert_after(printed, words, x, digits)                                \
    assert_true(                                                               \
        near(number_after(printed, words) / (x), 1, 6 * pow(10, -(digits))))

/* ---- runs ------------------------------------------------------------------ */

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

/* ---- traces ---------------------------------------------------------------- */

/* A file of the folder, which has to be JSON; json_decref. */
json_t *load_json(const char *name);

/*
 * The file is what Chrome's trace event format asks for, as far as we use it:
 * an object with traceEvents, each of them a complete event ("X": name, cat,
 * pid, tid, ts and dur, neither negative) or metadata ("M") that names a
 * process or a thread. Each of both that has a span has one name.
 */
void assert_chrome_trace(const json_t *file);

/* Goes through the spans of a file. */
#define FOR_EACH_SPAN(e, file)                                                 \
    for (size_t e##_i = 0; (e = next_span((file), &e##_i)) != NULL;)
const json_t *next_span(const json_t *file, size_t *i);

bool is_named(const json_t *span, const char *name);
size_t count_spans(const json_t *file, const char *name);
const json_t *find_span(const json_t *file, const char *name);

/* Nanoseconds, of fields in microseconds. */
long long begin_of(const json_t *span);
long long length_of(const json_t *span);
long long end_of(const json_t *span);

long long block_of(const json_t *span); /* -1: of none */
bool on_one_thread(const json_t *a, const json_t *b);
const char *thread_of(const json_t *file, const json_t *span);

/* ---- .npz files ------------------------------------------------------------ */

typedef struct dump_array {
    char name[64]; /* without .npy */
    size_t rows, columns;
    const float *x; /* [rows, columns], owned by the dump */
} dump_array;

typedef struct dump {
    size_t n;
    dump_array *arrays;
    char *bytes;
} dump;

/* A file of the folder; fails if anything about it is odd. */
dump dump_read(const char *name);
void dump_free(dump *d);

/* The one of that name; fails if there is none. */
const dump_array *dump_find(const dump *d, const char *name);

#endif

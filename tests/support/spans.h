/*
 * spans.h - what stands in files of traces: spans, their times, their threads.
 * Functions fail where there is none.
 */
#ifndef BM_TESTS_SUPPORT_SPANS_H
#define BM_TESTS_SUPPORT_SPANS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

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

#endif

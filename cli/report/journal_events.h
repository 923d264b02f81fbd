/* journal_events.h - reads the events of a run's journal (docs/jobs/journal.md). */
#ifndef BM_CLI_REPORT_JOURNAL_EVENTS_H
#define BM_CLI_REPORT_JOURNAL_EVENTS_H

#include "core/status.h"

#include <jansson.h>

/*
 * Calls take() for every event in DIRECTORY/journal.jsonl, in order; `kind` is
 * its field "event", both are borrowed. Skips lines that are no JSON object
 * with such a field, such as the last one of a killed job. Fails with
 * BM_ERR_MISSING or BM_ERR_IO if the file cannot be read.
 */
BM_CHECKED bm_status bm_journal_events(
    const char *directory,
    void (*take)(void *self, const char *kind, json_t *event), void *self);

/* A number of an event; 0, or `otherwise`, if it is missing or null. */
double bm_event_number(const json_t *event, const char *key);
double bm_event_number_or(const json_t *event, const char *key,
                          double otherwise);

/* The same as a count; 0 also if it is negative or above 2^53. */
size_t bm_event_count(const json_t *event, const char *key);

#endif

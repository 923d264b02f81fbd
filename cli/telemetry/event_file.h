/*
 * event_file.h - an event file of TensorBoard: records, each with two checksums,
 * of protocol buffers (event.proto). Files of one directory are one run; their
 * names sort by time, which is the order in which they are read.
 *
 * Nothing here fails because the file cannot be written: what does not fit is
 * left out as a whole, and the first time a warning is logged. `now` is in
 * seconds since 1970.
 */
#ifndef BM_CLI_TELEMETRY_EVENT_FILE_H
#define BM_CLI_TELEMETRY_EVENT_FILE_H

#include "cli/telemetry/histogram.h"
#include "core/status.h"

#include <stdint.h>

typedef struct bm_event_file bm_event_file;

/*
 * Creates directory/events.out.tfevents.TIME.ATTEMPT.HOST. `first`: the first
 * step that will be in it; what files of earlier attempts have from there on
 * does not count any more. Fails with BM_ERR_CREATE or BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_event_file_open(bm_event_file **out,
                                        const char *directory, int attempt,
                                        int64_t first, double now);
/* f may be NULL. */
void bm_event_file_close(bm_event_file *f);

typedef struct bm_scalar {
    char tag[64]; /* "train/loss": the part before the slash is a group */
    double value;
} bm_scalar;

void bm_event_file_scalars(bm_event_file *f, double now, int64_t step,
                           bm_scalar *values, size_t n);
void bm_event_file_histogram(bm_event_file *f, double now, int64_t step,
                             const char *tag, const bm_histogram *h);
/* `text`: UTF-8, in Markdown. */
void bm_event_file_text(bm_event_file *f, double now, int64_t step,
                        const char *tag, const char *text);

#endif

/*
 * metrics.h - [job] metrics: the numbers of a running job in a file that
 * Prometheus' node_exporter collects (docs/jobs/telemetry.md).
 *
 *     bm_metrics_open(&m, "/var/lib/node_exporter/bmuf.prom", "run-1")
 *     bm_metrics_take(m, "block", fields, now) // for each event of the journal
 */
#ifndef BM_CLI_TELEMETRY_METRICS_H
#define BM_CLI_TELEMETRY_METRICS_H

#include "core/log.h"

#include <stdio.h>

typedef struct bm_metrics bm_metrics;

/* `run` is the label of all metrics; both texts are copied. Free with
 * bm_metrics_free, which accepts NULL. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_metrics_open(bm_metrics **out, const char *path,
                                     const char *run);
void bm_metrics_free(bm_metrics *m);

/* Is the file one of metrics, or empty, or not there? */
bool bm_metrics_may_replace(const char *path);

/*
 * Adds what an event of the journal says; `now`: seconds since 1970. Then
 * replaces the file, atomically and at most once a second for each kind of
 * event. If that fails a warning is logged, once, and later events try again.
 * An event of no concern changes nothing, so that any thread may pass it on.
 */
void bm_metrics_take(bm_metrics *m, const char *event, const bm_field *fields,
                     double now);

/* The text of the file, in Prometheus' text format 0.0.4. */
void bm_metrics_print(const bm_metrics *m, FILE *out);

#endif

/* report.h - what the checks found on all ranks: merging, printing. */
#ifndef BM_CLI_DOCTOR_REPORT_H
#define BM_CLI_DOCTOR_REPORT_H

#include "cli/doctor/check.h"

#include <stdio.h>

/*
 * The report of one rank: {"host": name, "checks": {NAME: {"facts", "findings"}}}.
 * That of the job is an array of them, by rank.
 */
json_t *bm_report_new(const char *host);
/* Adds facts and findings of a check, and empties *e. */
void bm_report_add(json_t *report, const char *check, bm_check_context *e);

/* A new array of {"host", "facts"} of a check, of all ranks. */
json_t *bm_report_facts(const json_t *job, const char *check);

/*
 * A new array of all findings, in the order of the checks: {"check", "severity",
 * "hosts": [..], "text", "remedy"}. Equal findings of several hosts are one;
 * `mine` has those of the comparisons, {NAME: [..]}.
 */
json_t *bm_report_findings(const json_t *job, const json_t *mine);

/* How many findings keep a job from starting. */
int bm_report_fatal(const json_t *findings);

/* One line a finding. `hosts`: how many there are. */
void bm_report_print(const json_t *findings, size_t hosts, FILE *out);

/* The number of different hosts. */
size_t bm_report_hosts(const json_t *job);

#endif

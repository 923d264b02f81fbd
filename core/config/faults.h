/*
 * faults.h - collects the faults of a file that a user wrote, one per line, for
 * one message: "\n  run.ini:7: bmuf.momentun is unknown".
 */
#ifndef BM_CORE_CONFIG_FAULTS_H
#define BM_CORE_CONFIG_FAULTS_H

#include <stdarg.h>
#include <stddef.h>

/* {0}: no fault yet. */
typedef struct bm_faults {
    size_t n, listed; /* listed: those in text */
    size_t length;    /* of text */
    char text[3400];  /* fits into a message of BM_FAIL */
} bm_faults;

/* Counts a fault, and lists it while there is room and fewer than 20 are.
 * `where` may be NULL. Cannot fail. */
void bm_fault_add(bm_faults *f, const char *where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void bm_fault_add_list(bm_faults *f, const char *where, const char *format,
                       va_list args);

/* For the end of the message: "and 3 more" if some faults are not listed, else
 * "". */
typedef struct bm_faults_end {
    char text[40];
} bm_faults_end;
bm_faults_end bm_faults_more(const bm_faults *f);

#endif

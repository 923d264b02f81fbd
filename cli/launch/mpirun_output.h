/*
 * mpirun_output.h - filters the output of mpirun and its ranks.
 *
 * mpirun prints its own notices between two lines of dashes. The filter reads
 * from them which rank a signal killed, drops those that repeat a rank's own
 * error, and passes all other text on unchanged. A progress line ends with a
 * carriage return, after which a notice may begin.
 */
#ifndef BM_CLI_LAUNCH_MPIRUN_OUTPUT_H
#define BM_CLI_LAUNCH_MPIRUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct bm_mpirun_output {
    /* The rank that a signal killed; signal 0: none. */
    int signal;
    long rank;
    char host[128];

    enum {
        BM_MPIRUN_OUTPUT_START, /* at the start of a line */
        BM_MPIRUN_OUTPUT_LINE,  /* in a line that passes */
        BM_MPIRUN_OUTPUT_NOTICE /* between two lines of dashes */
    } in;
    char held[4096]; /* a line that may be dashes, or a notice */
    size_t n_held;
    size_t line; /* where the last line in `held` begins */
} bm_mpirun_output;

/* Filters n more characters and writes to `to` what passes. Initialise *r with
 * {0}. Cannot fail; a notice longer than `held` passes. */
void bm_mpirun_output_pass(bm_mpirun_output *r, const char *text, size_t n,
                           FILE *to);

/* Writes what is still held. Call it at the end of the output. */
void bm_mpirun_output_end(bm_mpirun_output *r, FILE *to);

#endif

/*
 * mpirun_output.h - what mpirun says, on its way to the user.
 *
 * mpirun puts remarks of its own between two lines of dashes. Which rank was
 * ended by a signal is read from them. Those that repeat what a rank has told
 * are left out; everything else passes as it comes.
 */
#ifndef BM_CLI_LAUNCH_MPIRUN_OUTPUT_H
#define BM_CLI_LAUNCH_MPIRUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

typedef struct bm_mpirun_output {
    /* The rank that a signal ended; signal 0: none. */
    int signal;
    long rank;
    char host[128];

    enum {
        BM_MPIRUN_OUTPUT_START,
        BM_MPIRUN_OUTPUT_LINE,
        BM_MPIRUN_OUTPUT_REMARK
    } in;
    char held[4096]; /* a line that may be dashes, or a remark */
    size_t n_held;
    size_t line; /* where the last line of it begins */
} bm_mpirun_output;

/* Begin with {0}. */
void bm_mpirun_output_pass(bm_mpirun_output *r, const char *words, size_t n,
                           FILE *to);

/* Lets go of what is held back. */
void bm_mpirun_output_end(bm_mpirun_output *r, FILE *to);

#endif

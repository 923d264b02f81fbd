/*
 * bench.h - the benchmarks of `bmuf bench`. A benchmark measures rows of
 * numbers; bench.c selects the rows and prints them, as a table or as JSON.
 *
 * To add a benchmark: write cli/bench/bench_<name>.c, then add its line to
 * BM_BENCHES.
 */
#ifndef BM_CLI_BENCH_BENCH_H
#define BM_CLI_BENCH_BENCH_H

#include "cli/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define BM_BENCHES(X) X(train) X(exchange) X(link) X(codes) X(read)

enum { BM_BENCH_ROUNDS = 9, BM_BENCH_COLUMNS = 12 }; /* at most */

/* A number of every row. Lists end with an all-zero column. */
typedef struct bm_bench_column {
    const char *key;   /* in JSON */
    const char *title; /* in the table; NULL: JSON only */
    int digits;        /* after the decimal point, in the table */
    bool percent;      /* the table shows 1 as 100 % */
} bm_bench_column;

/* Training steps of a network, or of the loss alone. All sequences of a
 * mini-batch have T frames. */
typedef struct bm_bench_work {
    const char *net;          /* "": the loss alone */
    const char *loss;         /* ctc or cross_entropy */
    size_t features, classes; /* D, V */
    size_t B, T, labels;      /* labels per sequence; T for cross_entropy */
} bm_bench_work;

/* How to measure. */
typedef struct bm_bench {
    size_t rounds;           /* at most BM_BENCH_ROUNDS */
    const bm_device *device; /* of training steps */
    bm_bench_work own;       /* from --net, replaces all rows; net NULL: none */
} bm_bench;

typedef struct bm_benchmark {
    const char *name;
    /* Names of the rows, ended by NULL. */
    const char *const *rows;
    const bm_bench_column *columns;
    /* Text above the table; NULL: print_head writes it. */
    const char *head;
    void (*print_head)(const bm_bench *how, FILE *out);
    /* Measures one row: a number per column, NAN where the row has none. */
    bm_status (*measure)(const bm_bench *how, size_t row, double *out);
    /* Collective; the same with two ranks or more. The numbers of rank 0
     * count. A benchmark has either measure or measure_ranks. */
    bm_status (*measure_ranks)(const bm_bench *how, bm_comm *comm, size_t row,
                               double *out);
    /* How to measure another program; NULL: there is none. */
    void (*print_peer)(FILE *out);
} bm_benchmark;

/* The median of x [n]; sorts x. */
double bm_bench_median(size_t n, double *x);

/* Calls once() `rounds` times, which writes n numbers to x, and writes the
 * median of each to out [n]. Fails if once() fails. */
BM_CHECKED bm_status bm_bench_medians(size_t rounds, size_t n,
                                      bm_status (*once)(void *self, double *x),
                                      void *self, double *out);

/* Processor time of this process, in seconds. */
double bm_bench_clock(void);

#define X(name) extern const bm_benchmark bm_bench_##name;
BM_BENCHES(X)
#undef X

#endif

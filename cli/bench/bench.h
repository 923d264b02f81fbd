/*
 * bench.h - the parts of `bmuf bench`. A part measures rows of numbers; the
 * frame in bench.c chooses the rows and prints them, as a table or as JSON.
 *
 * To add a part: write cli/bench_<name>.c, then add its line to BM_BENCHES.
 */
#ifndef BM_CLI_BENCH_BENCH_H
#define BM_CLI_BENCH_BENCH_H

#include "cli/device.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define BM_BENCHES(X) X(train) X(exchange) X(link) X(codes) X(read)

enum { BM_BENCH_ROUNDS = 9, BM_BENCH_COLUMNS = 12 }; /* at most */

/* A number that every row has. Lists end with an all-zero column. */
typedef struct bm_bench_column {
    const char *key;   /* in JSON */
    const char *title; /* in the table; NULL: not there */
    int digits;        /* behind the point, in the table */
    bool share;        /* 1 is 100 % there */
} bm_bench_column;

/* Training steps: a network, or the loss alone, and mini-batches whose
 * sequences are all of full length. */
typedef struct bm_bench_work {
    const char *name;
    const char *net;          /* "": the loss alone */
    const char *loss;         /* ctc or cross_entropy */
    size_t features, classes; /* D, V */
    size_t B, T, labels;      /* labels a sequence */
} bm_bench_work;

/* How to measure. */
typedef struct bm_bench {
    size_t rounds;           /* at most BM_BENCH_ROUNDS */
    const bm_device *device; /* of training steps */
    bm_bench_work own;       /* instead of all rows; net NULL: not given */
} bm_bench;

typedef struct bm_bench_part {
    const char *name;
    /* What is measured; NULL: no more rows. */
    const char *(*row)(const bm_bench *how, size_t i);
    const bm_bench_column *columns;
    /* What holds for all rows. */
    void (*head)(const bm_bench *how, FILE *out);
    /* One row: a number for every column, NAN if the row has none. */
    bm_status (*measure)(const bm_bench *how, size_t row, double *out);
    /* The same for a part that measures two ranks or more: collective, the
     * numbers are rank 0's. A part has this one or the other. */
    bm_status (*measure_ranks)(const bm_bench *how, bm_comm *comm, size_t row,
                               double *out);
    const char *peer; /* how to measure another program; NULL: unknown */
} bm_bench_part;

/* The median of n numbers; sorts them. */
double bm_bench_median(size_t n, double *x);

/* Processor time that this process has spent, in seconds. */
double bm_bench_clock(void);

#define X(name) extern const bm_bench_part bm_bench_##name;
BM_BENCHES(X)
#undef X

#endif

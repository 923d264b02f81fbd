/*
 * equations.h - linear least squares as a task of the trainer, small enough to
 * be computed again in double precision: samples are equations, and those of
 * each worker are a function of the position.
 */
#ifndef BM_TESTS_SUPPORT_REFERENCE_EQUATIONS_H
#define BM_TESTS_SUPPORT_REFERENCE_EQUATIONS_H

#include "bmuf/trainer/trainer.h"

enum { N = 2500, WORKERS = 5, BLOCKS = 3, EPOCHS = 2, BATCH = 4 };

/* A sample is an equation a w = y with four of the unknowns in it. */
typedef struct sample {
    size_t index[4];
    double a[4], y;
} sample;

/* The data of so many workers, and what goes wrong with one of them. */
typedef struct problem {
    int workers;
    int poisoned;  /* worker k + 1 goes wrong in block 2 of epoch 0; 0: none */
    double poison; /* added to an element of its gradient then */
    double excess; /* added to its loss then, in each mini-batch */
    double untrained; /* added to the loss of a worker's first mini-batch */
    double growth;    /* of what is added, from step to step of the run's first
                      block; 0: to the first alone */
    double longer;    /* all losses of block 2 of epoch 0, and those of chance,
                      are this many times as large; 0: once */
    bool unscored;    /* or it scores nothing */
    bool absent;      /* or it has no data */
    bool ragged;      /* shares of unequal length, some of them empty */
    bool alike;       /* all have the data of one worker */
    bool cooling;     /* the learning rate falls */
    bool layered;     /* the weights are those of problem_layers */
    int64_t batch;    /* samples in a full mini-batch */
    int64_t steps;    /* in a share that is not ragged; 0: 6 */
    size_t unknowns;  /* weights in use, spread over the vector; 0: all */
    bm_position at;   /* set by the trainer */
    bm_score score[WORKERS];
    double batches[WORKERS]; /* that were scored */
} problem;

double truth(size_t i); /* the i-th unknown */

/* Three matrices and a bias. */
enum { PROBLEM_LAYERS = 4 };
extern const bm_segment problem_layers[PROBLEM_LAYERS];

/* How many samples a worker's share of a block has, and a mini-batch of it. */
int64_t share(const problem *p, bm_position at, int worker);
int64_t batch_size(const problem *p, bm_position at, int worker, int64_t step);

/* Sample i of a mini-batch. One worker with k times the batch sees the samples
 * that k workers see together, in each step. */
sample sample_of(const problem *p, bm_position at, int worker, int64_t step,
                 int64_t i);

/* The members of its task; self is the problem. */
bm_status move(void *self, bm_position at, int64_t *steps);
bm_status gradient(void *self, bm_params *params, int worker, int64_t step,
                   double *samples);
bm_status read_score(void *self, int worker, bm_score *out, double *batches);
int64_t count_steps(void *self, int worker);
bm_epoch_size epoch_size(void *self, int64_t epoch); /* blocks of 600 frames */
bool is_audited(void *self); /* with [job] audit: every second block is */

/* States of one of these jobs, at most. */
enum { STATES = BM_STRATEGY_STATES + WORKERS * (BM_SGD_STATES + 2) + 2 };

typedef struct job {
    bm_comm *comm;
    bm_config *config;
    bm_params params;
    problem problem;
    bm_trainer *trainer;
} job;

/* `settings` are assignments, ending with NULL. start_job opens the trainer,
 * or the test does. */
job open_job(bm_comm *comm, problem p, const char *const *settings);
void start_job(job *j);
void close_job(job *j);

/* The result of a run: the global model, its average with [train] ema, and each
 * block's score. */
typedef struct result {
    float model[N], ema[N];
    bm_score score[EPOCHS * BLOCKS];
    bm_update update[EPOCHS * BLOCKS];
    int left_out;
    double bad_steps;
} result;

/* The learning rate of the block that comes t-th. */
double rate_of(const problem *p, int t);

/* Blocks from .. to, of all epochs; or the whole of a job. */
void run_blocks(job *j, int from, int to, result *out);
void run_job(bm_comm *comm, problem p, const char *const *settings,
             result *out);

extern const problem even, ragged;

/* Jobs whose bits must not depend on the number of ranks. */
enum { KINDS = 23 };
extern const char *const kinds[KINDS][6];

/* For comparisons: no worker is left out. */
#define STEADY "train.diverged=0"

#endif

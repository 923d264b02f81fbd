/*
 * forecast.h - forecasts the speed, in frames per second, of each parallel
 * method on N workers, from the measured load of one worker and the measured
 * network. It says nothing about the accuracy of the model.
 *
 * A step of one worker takes t (forward f, backward b, update u, one after the
 * other), with standard deviation cv t. The slowest of N workers takes cv t e_N
 * longer, where e_N is the expected largest of N standard normal numbers; over
 * s steps it takes sqrt(s) cv t e_N longer.
 *
 *     exchange every step       t + cv t e_N + exchange
 *     exchange every s steps    s t + sqrt(s) cv t e_N + exchange
 *
 * A step never takes less than reading its data. To add a method, add a row in
 * forecast.c.
 */
#ifndef BM_CLI_REPORT_SCALE_FORECAST_H
#define BM_CLI_REPORT_SCALE_FORECAST_H

#include "cli/report/scale/fabric.h"

#include <stdbool.h>

/* The load of one worker. */
typedef struct bm_load {
    double weights;     /* floats that are exchanged */
    double step_s;      /* t: of one update, which is one mini-batch or more */
    double backward_s;  /* b: backward pass of its last mini-batch */
    double variation;   /* cv: standard deviation of a step / t */
    double block_steps; /* s: updates per worker between exchanges */
    double read_s;      /* reading their data, in a thread of its own */
    double layers;      /* with weights, assumed equal in size */
    double quantise_rate; /* floats per second, to one bit and back */
} bm_load;

/* What is exchanged by which sum, on which network. */
typedef struct bm_exchange_cost {
    const bm_sum_cost *sum;
    bm_fabric fabric;
} bm_exchange_cost;

typedef struct bm_forecast_method {
    const char *name, *help;
    double (*step)(const bm_load *load, const bm_exchange_cost *x, int n);
    bool sums; /* by x->sum; the others have parameter servers */
} bm_forecast_method;

/* All methods; the last row has name NULL. */
extern const bm_forecast_method bm_forecast_methods[];

/* Seconds per step of each of n workers, with reading, exchange and waiting. */
double bm_forecast_step(const bm_forecast_method *m, const bm_load *load,
                        const bm_exchange_cost *x, int n);

#endif

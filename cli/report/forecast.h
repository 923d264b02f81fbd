/*
 * forecast.h - how fast each way to train in parallel would be on N workers,
 * from what one worker was measured to do and what a network was measured to
 * carry. Speed, that is: frames a second. What the frames are worth to the
 * model differs from method to method, and is not told here.
 *
 * A step of one worker takes t (forward f, backward b, update u, in turns);
 * with steps that vary by cv t the slowest of N takes cv t e_N longer, e_N the
 * expected largest of N normal numbers, and sqrt(s) as much over s steps.
 *
 *     every step       t + cv t e_N + exchange
 *     every s steps    s t + sqrt(s) cv t e_N + exchange
 *
 * and no less than reading takes. To add a method: a row in forecast.c.
 */
#ifndef BM_CLI_REPORT_FORECAST_H
#define BM_CLI_REPORT_FORECAST_H

#include "bmuf/exchange/cost.h"

/* What one worker does by itself. */
typedef struct bm_load {
    double weights;       /* floats that are exchanged */
    double step_s;        /* t: of one mini-batch */
    double backward_s;    /* b: of it, backward */
    double variation;     /* cv: standard deviation of a step, of t */
    double block_steps;   /* s: mini-batches a worker between exchanges */
    double read_s;        /* to read a mini-batch, on a thread of its own */
    double layers;        /* with weights, all alike */
    double quantise_rate; /* floats a second, to one bit and back */
} bm_load;

typedef struct bm_forecast_method {
    const char *name, *help;
    double (*step)(const bm_load *load, const bm_link *link, int n);
} bm_forecast_method;

/* All of them; the last one has no name. */
extern const bm_forecast_method bm_forecast_methods[];

/* Seconds of a step of every one of n workers, reading, exchange and waiting
 * for each other included. */
double bm_forecast_step(const bm_forecast_method *m, const bm_load *load,
                        const bm_link *link, int n);

/* How many times one worker's frames a second. */
double bm_forecast_speedup(const bm_forecast_method *m, const bm_load *load,
                           const bm_link *link, int n);

#endif

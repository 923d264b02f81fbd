#include "cli/report/scale/forecast.h"

#include <math.h>

static double bytes_of(const bm_load *l)
{
    return 4 * l->weights;
}

static double exchange(double bytes, int n, const bm_exchange_cost *x)
{
    return x->sum->seconds(bytes, n, &x->fabric);
}

/* The extra seconds of the slowest of n workers over this many steps. */
static double waiting(const bm_load *l, int n, double steps)
{
    return sqrt(steps) * l->variation * l->step_s * bm_cost_slowest(n);
}

static double block(const bm_load *l, const bm_exchange_cost *x, int n)
{
    double s = fmax(l->block_steps, 1);

    return l->step_s + (waiting(l, n, s) + exchange(bytes_of(l), n, x)) / s;
}

/* The exchange of a block runs during the next one. */
static double late_block(const bm_load *l, const bm_exchange_cost *x, int n)
{
    double s = fmax(l->block_steps, 1);

    return fmax(s * l->step_s + waiting(l, n, s), exchange(bytes_of(l), n, x)) /
           s;
}

static double synchronous(const bm_load *l, const bm_exchange_cost *x, int n)
{
    return l->step_s + waiting(l, n, 1) + exchange(bytes_of(l), n, x);
}

typedef struct team {
    const bm_exchange_cost *x;
    int n;
} team;

static double bucket(void *self, double bytes)
{
    const team *t = self;
    return exchange(bytes, t->n, t->x);
}

enum { MOST_LAYERS = 1024 };

/* One bucket per layer. */
static double bucketed(const bm_load *l, const bm_exchange_cost *x, int n)
{
    double backward[MOST_LAYERS], bytes[MOST_LAYERS];
    size_t layers = (size_t)fmin(fmax(l->layers, 1), MOST_LAYERS);
    team t = {x, n};

    for (size_t k = 0; k < layers; k++) {
        backward[k] = l->backward_s / (double)layers;
        bytes[k] = bytes_of(l) / (double)layers;
    }
    return l->step_s - l->backward_s + waiting(l, n, 1) +
           bm_cost_bucketed(layers, backward, bytes, bucket, &t);
}

static double one_bit(const bm_load *l, const bm_exchange_cost *x, int n)
{
    return l->step_s + waiting(l, n, 1) +
           exchange(bm_cost_onebit_bytes(l->weights, 2048), n, x) +
           (n > 1 ? 2 * l->weights / l->quantise_rate : 0);
}

static double one_server(const bm_load *l, const bm_exchange_cost *x, int n)
{
    return l->step_s + waiting(l, n, 1) +
           2 * bm_fabric_server(bytes_of(l), n, &x->fabric);
}

/* One server, on the host of a worker, serves the pushes and pulls of all others
 * one after the other: it has no time left, or workers do not notice each
 * other. */
static double one_asynchronous(const bm_load *l, const bm_exchange_cost *x,
                               int n)
{
    double own = 2 * bm_fabric_server(bytes_of(l), n < 2 ? n : 2, &x->fabric);

    return fmax(l->step_s + own,
                2 * bm_fabric_server(bytes_of(l), n, &x->fabric));
}

/* Workers wait only for the servers. Each worker's host has one, whose link
 * carries all pushes to it and pulls from it. */
static double asynchronous(const bm_load *l, const bm_exchange_cost *x, int n)
{
    return l->step_s + bm_fabric_servers(bytes_of(l), n, &x->fabric);
}

/* In four groups, each of which waits for its slowest worker. */
static double in_groups(const bm_load *l, const bm_exchange_cost *x, int n)
{
    int group = n >= 4 ? n / 4 : 1;

    return waiting(l, group, 1) + asynchronous(l, x, n);
}

/* Push and pull every four steps. */
static double elastic(const bm_load *l, const bm_exchange_cost *x, int n)
{
    return l->step_s + bm_fabric_servers(bytes_of(l), n, &x->fabric) / 4;
}

const bm_forecast_method bm_forecast_methods[] = {
    {"bmuf", "block momentum or averaging, one exchange per block", block,
     true},
    {"late", "bmuf with the exchange during the next block (block.overlap)",
     late_block, true},
    {"ssgd", "synchronous SGD, one exchange per step", synchronous, true},
    {"overlap",
     "ssgd with layers exchanged during the backward pass (ssgd.overlap)",
     bucketed, true},
    {"onebit", "ssgd with gradients quantised to one bit", one_bit, true},
    {"ps", "synchronous SGD with one parameter server", one_server, false},
    {"asgd1", "asynchronous SGD with one server (clock.shards = 1)",
     one_asynchronous, false},
    {"asgd", "asynchronous SGD, a shard of the server on each host",
     asynchronous, false},
    {"softsync", "asgd in four groups, which wait for their slowest worker",
     in_groups, false},
    {"easgd", "elastic averaging every four steps, servers as for asgd",
     elastic, false},
    {0},
};

double bm_forecast_step(const bm_forecast_method *m, const bm_load *load,
                        const bm_exchange_cost *x, int n)
{
    return fmax(m->step(load, x, n), load->read_s);
}

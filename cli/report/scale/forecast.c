#include "cli/report/scale/forecast.h"

#include <math.h>

static double bytes_of(const bm_load *l)
{
    return 4 * l->weights;
}

/* The extra seconds of the slowest of n workers over this many steps. */
static double waiting(const bm_load *l, int n, double steps)
{
    return sqrt(steps) * l->variation * l->step_s * bm_cost_slowest(n);
}

static double block(const bm_load *l, const bm_link *link, int n)
{
    double s = fmax(l->block_steps, 1);

    return l->step_s +
           (waiting(l, n, s) + bm_cost_ring(bytes_of(l), n, link)) / s;
}

/* The exchange of a block runs during the next one. */
static double late_block(const bm_load *l, const bm_link *link, int n)
{
    double s = fmax(l->block_steps, 1);

    return fmax(s * l->step_s + waiting(l, n, s),
                bm_cost_ring(bytes_of(l), n, link)) /
           s;
}

static double synchronous(const bm_load *l, const bm_link *link, int n)
{
    return l->step_s + waiting(l, n, 1) + bm_cost_ring(bytes_of(l), n, link);
}

typedef struct ring {
    const bm_link *link;
    int n;
} ring;

static double by_ring(void *self, double bytes)
{
    const ring *r = self;
    return bm_cost_ring(bytes, r->n, r->link);
}

enum { MOST_LAYERS = 1024 };

/* One bucket per layer. */
static double bucketed(const bm_load *l, const bm_link *link, int n)
{
    double backward[MOST_LAYERS], bytes[MOST_LAYERS];
    size_t layers = (size_t)fmin(fmax(l->layers, 1), MOST_LAYERS);
    ring r = {link, n};

    for (size_t k = 0; k < layers; k++) {
        backward[k] = l->backward_s / (double)layers;
        bytes[k] = bytes_of(l) / (double)layers;
    }
    return l->step_s - l->backward_s + waiting(l, n, 1) +
           bm_cost_bucketed(layers, backward, bytes, by_ring, &r);
}

static double one_bit(const bm_load *l, const bm_link *link, int n)
{
    return l->step_s + waiting(l, n, 1) +
           bm_cost_ring(bm_cost_onebit_bytes(l->weights, 2048), n, link) +
           (n > 1 ? 2 * l->weights / l->quantise_rate : 0);
}

static double one_server(const bm_load *l, const bm_link *link, int n)
{
    return l->step_s + waiting(l, n, 1) +
           2 * bm_cost_server(bytes_of(l), n, link);
}

/* Workers wait only for the servers. Each worker's host has one, whose link
 * carries all pushes to it and pulls from it. */
static double asynchronous(const bm_load *l, const bm_link *link, int n)
{
    return l->step_s + bm_cost_servers(bytes_of(l), n, n, link);
}

/* In four groups, each of which waits for its slowest worker. */
static double in_groups(const bm_load *l, const bm_link *link, int n)
{
    int group = n >= 4 ? n / 4 : 1;

    return waiting(l, group, 1) + asynchronous(l, link, n);
}

/* Push and pull every four steps. */
static double elastic(const bm_load *l, const bm_link *link, int n)
{
    return l->step_s + bm_cost_servers(bytes_of(l), n, n, link) / 4;
}

const bm_forecast_method bm_forecast_methods[] = {
    {"bmuf", "block momentum or averaging, one exchange per block", block},
    {"late", "bmuf with the exchange during the next block (block.overlap)",
     late_block},
    {"ssgd", "synchronous SGD on a ring, one exchange per step", synchronous},
    {"overlap",
     "ssgd with layers exchanged during the backward pass (ssgd.overlap)",
     bucketed},
    {"onebit", "ssgd with gradients quantised to one bit", one_bit},
    {"ps", "synchronous SGD with one parameter server", one_server},
    {"asgd", "asynchronous SGD, the server sliced over all hosts",
     asynchronous},
    {"softsync", "asgd in four groups, which wait for their slowest worker",
     in_groups},
    {"easgd", "elastic averaging every four steps, servers as for asgd",
     elastic},
    {0},
};

double bm_forecast_step(const bm_forecast_method *m, const bm_load *load,
                        const bm_link *link, int n)
{
    return fmax(m->step(load, link, n), load->read_s);
}

double bm_forecast_speedup(const bm_forecast_method *m, const bm_load *load,
                           const bm_link *link, int n)
{
    double alone = fmax(load->step_s, load->read_s);

    return n * alone / bm_forecast_step(m, load, link, n);
}

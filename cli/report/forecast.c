#include "cli/report/forecast.h"

#include <math.h>

static double bytes_of(const bm_load *l)
{
    return 4 * l->weights;
}

/* What the slowest of n takes longer over so many steps. */
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

/* An exchange has the time of the next block. */
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

typedef struct travel {
    const bm_link *link;
    int n;
} travel;

static double by_ring(void *self, double bytes)
{
    const travel *t = self;
    return bm_cost_ring(bytes, t->n, t->link);
}

enum { MOST_LAYERS = 1024 };

static double overlapped(const bm_load *l, const bm_link *link, int n)
{
    double backward[MOST_LAYERS], bytes[MOST_LAYERS];
    size_t layers = (size_t)fmin(fmax(l->layers, 1), MOST_LAYERS);
    travel t = {link, n};

    for (size_t k = 0; k < layers; k++) {
        backward[k] = l->backward_s / (double)layers;
        bytes[k] = bytes_of(l) / (double)layers;
    }
    return l->step_s - l->backward_s + waiting(l, n, 1) +
           bm_cost_bucketed(layers, backward, bytes, by_ring, &t);
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

/* Nobody waits for anybody but for a server, one on each worker's host, whose
 * link carries what all push to it and pull from it. */
static double asynchronous(const bm_load *l, const bm_link *link, int n)
{
    return l->step_s + bm_cost_servers(bytes_of(l), n, n, link);
}

/* In four groups that wait for the slowest of theirs. */
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
    {"bmuf", "block momentum or averaging: an exchange a block", block},
    {"late", "bmuf, exchanged during the next block (block.overlap)",
     late_block},
    {"ssgd", "synchronous SGD round a ring, an exchange a step", synchronous},
    {"overlap", "the same, layers sent during the backward pass", overlapped},
    {"onebit", "the same, gradients quantised to one bit", one_bit},
    {"ps", "synchronous SGD through one parameter server", one_server},
    {"asgd", "asynchronous SGD, the server in slices on all hosts",
     asynchronous},
    {"softsync", "the same, in groups of a quarter that wait for each other",
     in_groups},
    {"easgd", "elastic averaging every four steps, servers likewise", elastic},
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

#include "bmuf/exchange/cost.h"

#include "core/status.h"

#include <math.h>
#include <stdbool.h>

double bm_cost_ring(double bytes, int n, const bm_link *l)
{
    double part = n > 1 ? (n - 1.0) / n * bytes : 0;

    return n < 2 ? 0
                 : 2 * (n - 1) * l->latency + 2 * part / l->bandwidth +
                       part * l->adding;
}

double bm_cost_grid(double bytes, size_t dimensions, const int *size,
                    const bm_link *link)
{
    double t = 0;

    for (size_t k = 0; k < dimensions; bytes /= size[k++])
        t += bm_cost_ring(bytes, size[k], &link[k]);
    return t;
}

double bm_cost_server(double bytes, int n, const bm_link *l)
{
    return (n - 1) * (l->latency + bytes / l->bandwidth);
}

double bm_cost_onebit_bytes(double weights, double rows)
{
    return weights / rows * (8 + 4 * ceil(rows / 32));
}

double bm_cost_bucketed(size_t layers, const double *backward,
                        const double *bytes, bm_transfer_time *transfer,
                        void *self)
{
    double ready = 0, sent = 0;

    for (size_t k = 0; k < layers; k++) {
        ready += backward[k];
        sent = fmax(sent, ready) + transfer(self, bytes[k]);
    }
    return fmax(ready, sent);
}

enum { MOST_LAYERS = 1024 };

/* start[k] = when layer k's transfer starts; returns the end of the last one. */
static double schedule(size_t layers, const double *ready, const double *takes,
                       double *start)
{
    double at = 0;

    for (size_t k = 0; k < layers; k++) {
        at = fmax(at, ready[k]);
        start[k] = at;
        at += takes[k];
    }
    return at;
}

double bm_cost_merge(size_t layers, const double *backward, const double *bytes,
                     double a, double b, int *bucket)
{
    double ready[MOST_LAYERS], takes[MOST_LAYERS], start[MOST_LAYERS];
    double load[MOST_LAYERS], end = 0;
    bool joins[MOST_LAYERS] = {false}; /* the next layer's bucket */

    BM_ASSERT(layers > 0 && layers <= MOST_LAYERS);
    for (size_t k = 0; k < layers; k++) {
        ready[k] = backward[k] + (k > 0 ? ready[k - 1] : 0);
        load[k] = bytes[k];
        takes[k] = a + b * load[k];
    }
    end = schedule(layers, ready, takes, start);
    for (size_t k = 0; k + 1 < layers; k++) {
        double next = ready[k + 1];

        joins[k] = next < start[k] + takes[k] &&
                   (start[k] > next || next - start[k] < a);
        if (!joins[k])
            continue;
        load[k + 1] += load[k];
        takes[k] = 0;
        takes[k + 1] = a + b * load[k + 1];
        end = schedule(layers, ready, takes, start);
    }
    bucket[0] = 0;
    for (size_t k = 1; k < layers; k++)
        bucket[k] = bucket[k - 1] + !joins[k - 1];
    return end;
}

static double below(double x) /* the normal distribution */
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* E max = integral of x d(F(x)^n). By parts: the integral of 1 - F^n over x > 0
 * minus that of F^n over x < 0. */
double bm_cost_slowest(int n)
{
    const double step = 1e-3;
    double sum = 0;

    for (int k = 0; k < 10000; k++) {
        double x = (k + 0.5) * step;
        sum += step * (1 - pow(below(x), n) - pow(below(-x), n));
    }
    return n > 1 ? sum : 0;
}

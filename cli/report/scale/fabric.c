#include "cli/report/scale/fabric.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

bm_fabric bm_fabric_flat(bm_link link)
{
    return (bm_fabric){.between = link, .inside = link, .host = 1};
}

/* ---- links --------------------------------------------------------------- */

/* Workers of a host, if there are n in all. */
static int of_host(int n, const bm_fabric *f)
{
    return n < f->host ? n : f->host;
}

static int hosts(int n, const bm_fabric *f)
{
    return (n + f->host - 1) / f->host;
}

/* The link of each worker while `crossing` workers of its host send to other
 * hosts. */
static bm_link shared(const bm_fabric *f, int crossing)
{
    bm_link l = f->between;

    l.bandwidth /= crossing;
    return l;
}

/* The link of all workers while those that are `stride` apart exchange in
 * groups of `size`: the slower one, if some groups are inside a host. */
static bm_link along(int n, const bm_fabric *f, int stride, int size)
{
    int p = of_host(n, f);
    bm_link l = f->inside, out;

    if (p > 1 && (int64_t)stride * size <= p && p % (stride * size) == 0)
        return l;
    if (n <= p)
        return l;
    out = shared(f, stride < p ? stride : p);
    if (stride >= p)
        return out;
    return (bm_link){fmax(out.latency, l.latency),
                     fmin(out.bandwidth, l.bandwidth),
                     fmax(out.adding, l.adding)};
}

/* ---- grids --------------------------------------------------------------- */

bm_status bm_fabric_topology(bm_fabric *f, const char *text)
{
    bm_grid g;
    int members = 1;

    /* The number of workers is what the sizes multiply to. */
    for (const char *at = text; *at != '\0';
         at += strcspn(at, "x"), at += *at == 'x') {
        int size = 0;

        for (const char *c = at; *c >= '0' && *c <= '9' && size < 1 << 20; c++)
            size = 10 * size + (*c - '0');
        members = size > 0 && members <= (1 << 20) / size ? members * size : 0;
        if (members == 0)
            return BM_FAIL(BM_ERR_ARG,
                           "--topology %s: expected sizes such as 4x8x8, of at "
                           "most %d workers",
                           text, 1 << 20);
    }
    if (bm_grid_read(text, members, &g) != BM_OK)
        return BM_FAIL(BM_ERR_ARG, "--topology: %s", bm_last_message());
    f->dimensions = g.dimensions;
    memcpy(f->size, g.size, sizeof f->size);
    return BM_OK;
}

bm_grid bm_fabric_grid(const bm_fabric *f, int n)
{
    bm_grid g = {.members = n};
    int rest = n;

    if (f->dimensions == 0) {
        int p = of_host(n, f);

        if (p == 1 || n % p != 0 || p == n)
            return bm_grid_ring(n);
        g.dimensions = 2;
        g.size[0] = p;
        g.size[1] = n / p;
        return g;
    }
    for (int k = 0; k < f->dimensions; k++) {
        bool last = k + 1 == f->dimensions;
        int size = last || f->size[k] > rest ? rest : f->size[k];

        if (rest % size != 0)
            return bm_grid_ring(n);
        g.size[g.dimensions++] = size;
        rest /= size;
    }
    return g;
}

/* Rings along one dimension of the grid after the other. */
static double along_grid(double bytes, const bm_grid *g, const bm_fabric *f)
{
    bm_link link[BM_GRID_DIMENSIONS];
    int stride = 1;

    for (int k = 0; k < g->dimensions; stride *= g->size[k++])
        link[k] = along(g->members, f, stride, g->size[k]);
    return bm_cost_grid(bytes, (size_t)g->dimensions, g->size, link);
}

/* The same with lanes: rings inside hosts run while others use the hosts'
 * links. A pipeline of lanes takes what the first one takes, and for each of the
 * others what its slower part takes. */
static double in_lanes(double bytes, const bm_grid *g, const bm_fabric *f,
                       int lanes)
{
    double inside = 0, all = along_grid(bytes / lanes, g, f);
    int p = of_host(g->members, f), stride = 1;
    bm_grid part = {.members = g->members};

    for (int k = 0; k < g->dimensions; stride *= g->size[k++])
        if (stride * g->size[k] <= p && p % (stride * g->size[k]) == 0)
            part.size[part.dimensions++] = g->size[k];
    inside = along_grid(bytes / lanes, &part, f);
    return all + (lanes - 1) * fmax(inside, all - inside);
}

static double ring(double bytes, int n, const bm_fabric *f)
{
    bm_grid g = bm_grid_ring(n);

    return n > 1 ? along_grid(bytes, &g, f) : 0;
}

static double halving(double bytes, int n, const bm_fabric *f)
{
    bm_grid g = bm_grid_halving(n);
    bm_link next = along(n, f, 1, 2);
    double fold =
        2 * (next.latency + bytes / next.bandwidth) + bytes * next.adding;

    g.members = bm_grid_slices(&g);
    return along_grid(bytes, &g, f) + (g.folded > 0 ? fold : 0);
}

static double hier(double bytes, int n, const bm_fabric *f)
{
    bm_grid g = bm_fabric_grid(f, n);
    double floats = fmin(bytes / 4, (double)(1LL << 52));

    return n > 1 ? in_lanes(bytes, &g, f, bm_grid_lanes(&g, (size_t)floats))
                 : 0;
}

/* ---- owners of slices ---------------------------------------------------- */

/* Every worker sends a slice to each of the others, who own them. */
static double to_owners(double bytes, int n, const bm_fabric *f)
{
    int p = of_host(n, f);
    bm_link own = f->inside, other = shared(f, p);
    double slice = bytes / n;

    return (p - 1) * (own.latency + slice / own.bandwidth) +
           (n - p) * (other.latency + slice / other.bandwidth);
}

static double adding(double bytes, int n, const bm_fabric *f)
{
    return (n - 1.0) / n * bytes *
           (n > of_host(n, f) ? f->between.adding : f->inside.adding);
}

/* Owners send their slices once to every other host, whose workers share the
 * vector. */
static double from_owners(double bytes, int n, const bm_fabric *f)
{
    int p = of_host(n, f);
    bm_link other = shared(f, p);

    return (hosts(n, f) - 1) * (other.latency + bytes / n / other.bandwidth) +
           (p > 1 ? f->inside.latency : 0);
}

static double tree(double bytes, int n, const bm_fabric *f)
{
    return n < 2 ? 0
                 : to_owners(bytes, n, f) + adding(bytes, n, f) +
                       from_owners(bytes, n, f);
}

/* 16 bytes are sent for a float. */
static double exact(double bytes, int n, const bm_fabric *f)
{
    return n < 2 ? 0
                 : to_owners(4 * bytes, n, f) + adding(4 * bytes, n, f) +
                       from_owners(bytes, n, f);
}

static double mpi(double bytes, int n, const bm_fabric *f)
{
    return n < 2 ? 0 : ring(bytes, n, f) + from_owners(bytes, n, f);
}

double bm_fabric_servers(double bytes, int n, const bm_fabric *f)
{
    return n < 2 ? 0 : 2 * to_owners(bytes, n, f) + adding(bytes, n, f);
}

double bm_fabric_server(double bytes, int n, const bm_fabric *f)
{
    int p = of_host(n, f);

    return bm_cost_server(bytes, p, &f->inside) +
           bm_cost_server(bytes, n - p + 1, &f->between);
}

const bm_sum_cost bm_sum_costs[] = {
    {"tree", "job.sum = tree: slices to their owners and back", tree},
    {"exact", "job.sum = exact: the same with 16 bytes a number", exact},
    {"mpi", "job.sum = mpi, if the library uses a ring", mpi},
    {"ring", "job.sum = ring: reduce-scatter and gather round a ring", ring},
    {"halving", "job.sum = halving: recursive halving and doubling", halving},
    {"hier", "job.sum = hier: rings along a grid (--topology)", hier},
    {0},
};

const bm_sum_cost *bm_sum_cost_find(const char *name)
{
    const bm_sum_cost *c = bm_sum_costs;

    while (c->name != NULL && strcmp(c->name, name) != 0)
        c++;
    return c->name != NULL ? c : NULL;
}

#include "cli/placement/placement.h"

#include "core/log.h"

#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bm_topology {
    hwloc_topology_t all;
    hwloc_bitmap_t whole; /* the CPUs of the host that this job may use */
    hwloc_bitmap_t own;   /* of these, those that this process is bound to */
};

bm_status bm_topology_open(bm_topology **out)
{
    bm_topology *t = calloc(1, sizeof *t);
    bm_status status = BM_OK;

    if (t == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a topology");
    if (hwloc_topology_init(&t->all) != 0) {
        free(t);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a topology");
    }
    t->whole = hwloc_bitmap_alloc();
    t->own = hwloc_bitmap_alloc();
    if (t->whole == NULL || t->own == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a topology");
    if (hwloc_topology_load(t->all) != 0)
        BM_FAIL_DONE(BM_ERR_UNSUPPORTED, "hwloc finds no cores");
    hwloc_bitmap_copy(t->whole, hwloc_topology_get_allowed_cpuset(t->all));
    if (hwloc_get_cpubind(t->all, t->own, HWLOC_CPUBIND_PROCESS) != 0)
        hwloc_bitmap_copy(t->own, t->whole);
    hwloc_bitmap_and(t->own, t->own, t->whole);
    if (hwloc_bitmap_iszero(t->own))
        hwloc_bitmap_copy(t->own, t->whole);
    *out = t;
    t = NULL;
done:
    bm_topology_close(t);
    return status;
}

void bm_topology_close(bm_topology *t)
{
    if (t == NULL)
        return;
    hwloc_bitmap_free(t->own);
    hwloc_bitmap_free(t->whole);
    hwloc_topology_destroy(t->all);
    free(t);
}

bool bm_topology_is_bound(const bm_topology *t)
{
    return !hwloc_bitmap_isequal(t->own, t->whole);
}

/* Cores with a hardware thread in the set; hardware threads where hwloc knows no
 * cores. */
static long count_cores(const bm_topology *t, hwloc_const_bitmap_t set)
{
    hwloc_obj_t core = NULL;
    long n = 0;

    while ((core = hwloc_get_next_obj_by_type(t->all, HWLOC_OBJ_CORE, core)) !=
           NULL)
        n += hwloc_bitmap_intersects(core->cpuset, set) != 0;
    if (n == 0)
        n = hwloc_bitmap_weight(set);
    return n > 1 ? n : 1;
}

long bm_topology_cores(const bm_topology *t)
{
    return count_cores(t, t->own);
}

/* ---- division ----------------------------------------------------------- */

/* The CPUs from which rank `index` gets its cores: those near its GPU. */
static void find_site(hwloc_bitmap_t out, const bm_topology *t,
                      const bm_gpu_sites *gpus, long index)
{
    hwloc_bitmap_copy(out, t->own);
    if (gpus->n == 0)
        return;
    if (hwloc_bitmap_list_sscanf(out, gpus->cpus[(size_t)index % gpus->n]) == 0)
        hwloc_bitmap_and(out, out, t->own);
    if (hwloc_bitmap_iszero(out))
        hwloc_bitmap_copy(out, t->own);
}

/* The ranks with the same site, and which of them rank `index` is. */
static void count_peers(const bm_topology *t, const bm_gpu_sites *gpus,
                        long ranks, long index, long *peers, long *which)
{
    hwloc_bitmap_t own = hwloc_bitmap_alloc(), other = hwloc_bitmap_alloc();

    *peers = 1;
    *which = 0;
    if (own != NULL && other != NULL) {
        *peers = 0;
        find_site(own, t, gpus, index);
        for (long r = 0; r < ranks; r++) {
            find_site(other, t, gpus, r);
            if (!hwloc_bitmap_isequal(own, other))
                continue;
            *which += r < index;
            ++*peers;
        }
    }
    hwloc_bitmap_free(own);
    hwloc_bitmap_free(other);
}

/* Core number k of those with a hardware thread in the set. */
static hwloc_obj_t core_of(const bm_topology *t, hwloc_const_bitmap_t set,
                           long k)
{
    hwloc_obj_t core = NULL;

    while ((core = hwloc_get_next_obj_by_type(t->all, HWLOC_OBJ_CORE, core)) !=
           NULL)
        if (hwloc_bitmap_intersects(core->cpuset, set) && k-- == 0)
            return core;
    return NULL;
}

/* share <- part `which` of `parts` parts of the cores in the set, which are as
 * equal as they can be; cores of a NUMA node are neighbours. */
static void cut(hwloc_bitmap_t share, const bm_topology *t,
                hwloc_const_bitmap_t set, long parts, long which)
{
    long n = count_cores(t, set);
    long from = n * which / parts, to = n * (which + 1) / parts;

    hwloc_bitmap_zero(share);
    for (long k = from; k < to; k++) {
        hwloc_obj_t core = core_of(t, set, k);

        if (core != NULL)
            hwloc_bitmap_or(share, share, core->cpuset);
    }
    hwloc_bitmap_and(share, share, set);
}

/* NUMA nodes with CPUs in the set; out [most] <- the first of them. */
static long find_nodes(const bm_topology *t, hwloc_const_bitmap_t set,
                       hwloc_obj_t *out, long most)
{
    hwloc_obj_t node = NULL;
    long n = 0;

    while ((node = hwloc_get_next_obj_by_type(t->all, HWLOC_OBJ_NUMANODE,
                                              node)) != NULL)
        if (hwloc_bitmap_intersects(node->cpuset, set) && n < most)
            out[n++] = node;
    return n;
}

/* Divides the CPUs of a site among `peers` ranks: first the NUMA nodes, where
 * there are at least as many ranks, then the cores of a node. */
static void divide(hwloc_bitmap_t share, const bm_topology *t,
                   hwloc_const_bitmap_t site, long peers, long which)
{
    enum { NODES = 64 };
    hwloc_obj_t nodes[NODES];
    long n = find_nodes(t, site, nodes, NODES), node = 0, first = 0;
    hwloc_bitmap_t of_node = hwloc_bitmap_alloc();

    hwloc_bitmap_copy(share, site);
    if (of_node == NULL)
        return;
    if (n < 2 || peers < n) {
        cut(share, t, site, peers, which);
        hwloc_bitmap_free(of_node);
        return;
    }
    node = ((which + 1) * n - 1) / peers; /* ranks node * peers / n and on */
    first = node * peers / n;
    hwloc_bitmap_and(of_node, nodes[node]->cpuset, site);
    cut(share, t, of_node, (node + 1) * peers / n - first, which - first);
    hwloc_bitmap_free(of_node);
}

static int node_of(const bm_topology *t, hwloc_const_bitmap_t set)
{
    hwloc_obj_t nodes[2];

    return find_nodes(t, set, nodes, 2) == 1 ? (int)nodes[0]->os_index : -1;
}

static void describe(bm_placement *out, const bm_topology *t,
                     hwloc_const_bitmap_t set)
{
    if (hwloc_bitmap_list_snprintf(out->cpus, sizeof out->cpus, set) >=
        (int)sizeof out->cpus)
        snprintf(out->cpus + sizeof out->cpus - 4, 4, "..");
    out->numa = node_of(t, set);
}

void bm_placement_find(bm_placement *out, const bm_topology *t,
                       const bm_gpu_sites *gpus, long ranks, long index)
{
    hwloc_bitmap_t site = hwloc_bitmap_alloc(), share = hwloc_bitmap_alloc();
    long all = bm_topology_cores(t), peers = 1, which = 0;

    *out =
        (bm_placement){.cores = all / ranks > 1 ? all / ranks : 1, .numa = -1};
    out->gpu = gpus->n > 0 ? (int)((size_t)index % gpus->n) : -1;
    describe(out, t, t->own);
    if (site == NULL || share == NULL || ranks > all)
        goto done;
    find_site(site, t, gpus, index);
    count_peers(t, gpus, ranks, index, &peers, &which);
    if (peers > count_cores(t, site))
        hwloc_bitmap_copy(share, site);
    else
        divide(share, t, site, peers, which);
    if (hwloc_bitmap_iszero(share))
        goto done;
    describe(out, t, share);
    out->bound = !hwloc_bitmap_isequal(share, t->own);
    out->cores =
        count_cores(t, share) / (peers > count_cores(t, site) ? peers : 1);
    if (out->cores < 1)
        out->cores = 1;
done:
    hwloc_bitmap_free(site);
    hwloc_bitmap_free(share);
}

void bm_placement_bind(const bm_topology *t, const bm_placement *place)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    if (place->bound && set != NULL &&
        hwloc_bitmap_list_sscanf(set, place->cpus) == 0 &&
        hwloc_set_cpubind(t->all, set, HWLOC_CPUBIND_PROCESS) != 0)
        bm_log(BM_WARNING, "this rank cannot be bound to CPUs %s", place->cpus);
    hwloc_bitmap_free(set);
}

#define _GNU_SOURCE /* gethostname */
#include "cli/placement/own_place.h"

#include "cli/launch/mpirun_command.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Has an external launcher started this rank? */
static bool is_of_others(const bm_comm *comm)
{
    return comm != NULL && bm_comm_size(comm) > 1 &&
           getenv(BM_LAUNCH_COMMAND) == NULL;
}

/* BM_PLACE_SHARE; 0 of 1 without it. */
static void find_share(long *share, long *of)
{
    const char *text = getenv(BM_PLACE_SHARE);

    if (text == NULL || sscanf(text, "%ld/%ld", share, of) != 2 || *of < 1 ||
        *share < 0 || *share >= *of) {
        *share = 0;
        *of = 1;
    }
}

static void find(bm_placement *out, const bm_topology *t, const bm_comm *comm,
                 bool gpus)
{
    int rank = comm != NULL ? bm_comm_rank(comm) : 0;
    int size = comm != NULL ? bm_comm_size(comm) : 1;
    long here = comm == NULL, before = 0, share = 0, of = 1;
    bm_gpu_sites sites = {0};

    for (int r = 0; comm != NULL && r < size; r++)
        if (bm_comm_host(comm, r) == bm_comm_host(comm, rank)) {
            here++;
            before += r < rank;
        }
    if (gpus)
        bm_gpu_sites_find(&sites);
    if (is_of_others(comm) && bm_topology_is_bound(t)) {
        bm_placement_find(out, t, &(bm_gpu_sites){0}, 1, 0);
        out->bound = true;
        out->gpu = sites.n > 0 ? (int)((size_t)before % sites.n) : -1;
        return;
    }
    find_share(&share, &of);
    bm_placement_find(out, t, &sites, of * here, share * here + before);
    /* a single rank without a GPU may move to any idle core */
    if (here == 1 && sites.n == 0)
        out->bound = false;
}

void bm_own_place_take(bm_placement *out, const bm_comm *comm, bool gpus,
                       bool bind)
{
    bm_topology *t = NULL;

    *out = (bm_placement){.cpus = "all", .cores = 1, .numa = -1, .gpu = -1};
    if (bm_topology_open(&t) != BM_OK) {
        bm_log(BM_WARNING, "%s; ranks are not bound to cores",
               bm_last_message());
        return;
    }
    find(out, t, comm, gpus);
    if (bind)
        bm_placement_bind(t, out);
    else
        out->bound = false;
    bm_topology_close(t);
}

/* ---- all places --------------------------------------------------------- */

enum { LINE = 160 };

static void number(char *out, size_t room, int x)
{
    if (x >= 0)
        snprintf(out, room, "%d", x);
    else
        snprintf(out, room, "-");
}

static void describe(char out[LINE], const bm_placement *place)
{
    char host[64] = "", numa[16], gpu[16];

    (void)gethostname(host, sizeof host - 1);
    number(numa, sizeof numa, place->numa);
    number(gpu, sizeof gpu, place->gpu);
    snprintf(out, LINE, "%s %.60s %s %s", host,
             place->bound ? place->cpus : "all", numa, gpu);
}

bm_status bm_own_place_gather(char **out, const bm_placement *own,
                              bm_comm *comm)
{
    int size = bm_comm_size(comm), rank = bm_comm_rank(comm);
    char *text = NULL;
    size_t length = 0;
    FILE *memory = rank == 0 ? open_memstream(&text, &length) : NULL;
    bm_status status = BM_OK;

    if (rank == 0 && memory == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for places of ranks");
    BM_TRY(bm_comm_agree(comm, status));
    for (int r = 0; r < size && status == BM_OK; r++) {
        char line[LINE] = "";

        if (r == rank)
            describe(line, own);
        status = bm_comm_broadcast_bytes(comm, line, sizeof line, r);
        if (memory != NULL && status == BM_OK)
            fprintf(memory, "%s%d %s", r > 0 ? "; " : "", r, line);
    }
    if (memory != NULL && fclose(memory) != 0 && status == BM_OK)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for places of ranks");
    status = bm_comm_agree(comm, status);
    if (status != BM_OK) {
        free(text);
        text = NULL;
    }
    *out = text;
    return status;
}

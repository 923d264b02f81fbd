#include "cli/hosts/allocation.h"

#include "cli/hosts/reach.h"
#include "cli/hosts/remote.h"
#include "cli/hosts/slurm.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

/* Whether the verb has the options of BM_ALLOCATION_FLAGS. */
static bool takes_hosts(const bm_verb *verb)
{
    for (const bm_flag *f = verb->flags; f->name != NULL; f++)
        if (strcmp(f->name, "hosts") == 0)
            return true;
    return false;
}

static bm_status read_hosts(bm_allocation *x, const bm_arguments *a,
                            const char *folder)
{
    const char *hosts = bm_argument(a, "hosts");
    const char *file = bm_argument(a, "hostfile");

    x->by = BM_BY_HOSTS;
    if (hosts != NULL && file != NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "%s: --hosts and --hostfile both name hosts; drop one",
                       a->verb->name);
    BM_TRY(hosts != NULL ? bm_hosts_parse(&x->hosts, hosts)
                         : bm_hosts_read(&x->hosts, file));
    return bm_reach_check(&x->hosts, folder);
}

/* A GPU that no task uses is likely to be a mistake in the batch script. */
static void warn_of_gpus(const bm_hosts *h)
{
    const char *text = getenv("SLURM_GPUS_ON_NODE");
    long gpus = text != NULL ? strtol(text, NULL, 10) : 0;

    if (h->n > 0 && gpus > h->list[0].slots)
        bm_log(BM_WARNING,
               "Slurm has given this host %ld GPUs, but %ld of its tasks: a "
               "rank uses one GPU; give sbatch --ntasks-per-node=%ld",
               gpus, h->list[0].slots, gpus);
}

static bm_status read_slurm(bm_allocation *x)
{
    x->by = BM_BY_SLURM;
    BM_TRY(bm_slurm_hosts(&x->hosts, &x->ranks));
    warn_of_gpus(&x->hosts);
    return BM_OK;
}

static bm_status deal(bm_allocation *x)
{
    BM_TRY(bm_hosts_deal(&x->hosts, x->ranks));
    if (x->hosts.n == 1 && bm_remote_is_here(x->hosts.list[0].name))
        bm_hosts_free(&x->hosts); /* this host alone */
    return BM_OK;
}

static bm_status read(bm_allocation *out, const bm_arguments *a,
                      const char *folder)
{
    bool named =
        bm_argument(a, "hosts") != NULL || bm_argument(a, "hostfile") != NULL;
    long given = 0;

    *out =
        (bm_allocation){.ranks = 1, .interface = bm_argument(a, "interface")};
    BM_TRY(bm_argument_number(a, "ranks", 0, 1, BM_MOST_SLOTS, &given));
    if (named)
        BM_TRY(read_hosts(out, a, folder));
    else if (takes_hosts(a->verb) && bm_slurm_allocation())
        BM_TRY(read_slurm(out));
    else {
        out->ranks = given > 0 ? given : 1;
        return BM_OK;
    }
    if (given > 0 || named)
        out->ranks = given > 0 ? given : bm_hosts_slots(&out->hosts);
    if (named)
        BM_TRY(bm_hosts_copy(&out->given, &out->hosts));
    return deal(out);
}

bm_status bm_allocation_read(bm_allocation *out, const bm_arguments *a,
                             const char *folder)
{
    BM_TRY(read(out, a, folder));
    if (out->interface != NULL && out->hosts.n == 0)
        bm_log(BM_WARNING,
               "--interface %s has no effect: all ranks are on this host",
               out->interface);
    return BM_OK;
}

bm_status bm_allocation_again(bm_allocation *out, const bm_allocation *whole,
                              const char *folder)
{
    long most = 0;

    *out = (bm_allocation){
        .ranks = whole->ranks, .by = whole->by, .interface = whole->interface};
    BM_TRY(bm_hosts_copy(&out->given, &whole->given));
    BM_TRY(bm_hosts_copy(&out->hosts, &whole->given));
    BM_TRY(bm_reach_keep(&out->hosts, &out->lost, folder));
    most = bm_hosts_most(&out->hosts);
    if (bm_hosts_slots(&out->hosts) >= out->ranks)
        bm_hosts_free(&out->lost); /* they are not needed */
    out->ranks = most < out->ranks ? most : out->ranks;
    return deal(out);
}

void bm_allocation_free(bm_allocation *allocation)
{
    bm_hosts_free(&allocation->hosts);
    bm_hosts_free(&allocation->given);
    bm_hosts_free(&allocation->lost);
}

bool bm_allocation_is_parallel(const bm_allocation *allocation)
{
    return allocation->ranks > 1 || allocation->hosts.n > 0;
}

#include "cli/tune/places.h"

#include "cli/hosts/reach.h"
#include "cli/hosts/remote.h"
#include "cli/hosts/slurm.h"
#include "cli/placement/placement.h"
#include "core/text/words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* On this host: GPUs, if trials may compute on them, or else cores. */
static long most_here(const bm_tuning *t)
{
    const bm_settings *s = &t->given;
    bm_gpu_sites gpus = {0};
    long n = sysconf(_SC_NPROCESSORS_ONLN) / t->ranks;

    if (strcmp(s->job.device, "cpu") != 0)
        bm_gpu_sites_find(&gpus);
    if (gpus.n > 0)
        n = (long)gpus.n / t->ranks;
    else if (s->job.threads > 1)
        n /= s->job.threads;
    return n > 0 ? n : 1;
}

/* Slurm's other hosts are not used by themselves: ssh to them may be forbidden. */
static void warn_of_slurm(void)
{
    bm_hosts h = {0};
    long ranks = 0;
    char *text = NULL;

    if (bm_slurm_allocation() && bm_slurm_hosts(&h, &ranks) == BM_OK && h.n > 1)
        text = bm_hosts_text(&h);
    if (text != NULL)
        bm_log(BM_WARNING,
               "Slurm has given %zu hosts, but trials run on this one alone; "
               "with ssh between them add --hosts %s",
               h.n, text);
    free(text);
    bm_hosts_free(&h);
}

static bm_status add_place(bm_tuning *t, const char *host, long share)
{
    bm_trial_place *grown =
        realloc(t->places, (t->n_places + 1) * sizeof *grown);

    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for places of trials");
    t->places = grown;
    t->places[t->n_places++] = (bm_trial_place){.host = host, .share = share};
    return BM_OK;
}

/* Each host's places know how many they are. */
static void count_shares(bm_tuning *t)
{
    for (size_t i = 0; i < t->n_places; i++) {
        t->places[i].of = 0;
        for (size_t k = 0; k < t->n_places; k++)
            t->places[i].of += t->places[k].host == t->places[i].host;
    }
}

static bm_status find_on_hosts(bm_tuning *t, long most)
{
    const bm_hosts *h = &t->hosts;
    size_t before = SIZE_MAX;

    for (size_t i = 0; i < h->n; i++)
        if (h->list[i].slots < t->ranks)
            return BM_FAIL(BM_ERR_ARG,
                           "tune: host %s has %s, but a trial has %ld ranks, "
                           "which run on one host; give it %s:%ld or more, or "
                           "a smaller -n",
                           h->list[i].name,
                           bm_count_noun(h->list[i].slots, "slot").text,
                           t->ranks, h->list[i].name, t->ranks);
    for (long share = 0; t->n_places != before; share++) {
        before = t->n_places;
        for (size_t i = 0; i < h->n && (long)t->n_places < most; i++)
            if ((share + 1) * t->ranks <= h->list[i].slots)
                BM_TRY(add_place(t, h->list[i].name, share));
    }
    return BM_OK;
}

static bm_status read_hosts(bm_tuning *t, const char *hosts, const char *file)
{
    if (hosts != NULL && file != NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "tune: --hosts and --hostfile both name hosts; drop "
                       "one");
    BM_TRY(hosts != NULL ? bm_hosts_parse(&t->hosts, hosts)
                         : bm_hosts_read(&t->hosts, file));
    return bm_reach_check(&t->hosts, t->directory);
}

bm_status bm_places_find(bm_tuning *t)
{
    const bm_arguments *a = t->arguments;
    const char *hosts = bm_argument(a, "hosts");
    const char *file = bm_argument(a, "hostfile");
    bool named = hosts != NULL || file != NULL;
    long most = named ? BM_CHILDREN : most_here(t);

    most = most < BM_CHILDREN ? most : BM_CHILDREN;
    BM_TRY(bm_argument_number(a, "jobs", most, 1, BM_CHILDREN, &most));
    if (named) {
        BM_TRY(read_hosts(t, hosts, file));
        BM_TRY(find_on_hosts(t, most));
    } else {
        warn_of_slurm();
        for (long share = 0; share < most; share++)
            BM_TRY(add_place(t, NULL, share));
    }
    count_shares(t);
    for (size_t i = 0; i < t->n_places; i++)
        if (t->places[i].host != NULL && bm_remote_is_here(t->places[i].host))
            t->places[i].here = true;
    return BM_OK;
}

void bm_places_free(bm_tuning *t)
{
    free(t->places);
    bm_hosts_free(&t->hosts);
}

/* Warns if it does not. */
static bool answers(const bm_tuning *t, const char *name)
{
    bm_hosts one = {0}, lost = {0};
    bool yes =
        bm_hosts_add(&one, name, strlen(name), t->ranks, t->ranks) != BM_OK ||
        bm_reach_keep(&one, &lost, t->directory) == BM_OK;

    bm_hosts_free(&one);
    bm_hosts_free(&lost);
    return yes;
}

bool bm_places_lost(bm_tuning *t, size_t place, int code, bool *left)
{
    const bm_trial_place *p = &t->places[place];
    const char *host = p->host;

    if (code != bm_status_exit(BM_ERR_COMM) || host == NULL || p->here ||
        (!p->lost && answers(t, host)))
        return false;
    *left = false;
    for (size_t i = 0; i < t->n_places; i++) {
        if (t->places[i].host == host)
            t->places[i].lost = true;
        *left = *left || !t->places[i].lost;
    }
    return true;
}

const char *bm_places_text(const bm_tuning *t)
{
    static char text[100];
    const char *on = t->hosts.n > 1 ? " on " : "";

    snprintf(text, sizeof text, "%zu at a time%s%s", t->n_places, on,
             t->hosts.n > 1 ? bm_count_noun((long long)t->hosts.n, "host").text
                            : "");
    return text;
}

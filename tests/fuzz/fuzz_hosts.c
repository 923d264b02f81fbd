/* fuzz_hosts.c - hosts: the input is read as a hostfile, as the value of --hosts,
 * and as lists of nodes and tasks of Slurm. */
#include "cli/hosts/slurm.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

/* Names are words that ssh and mpirun take for names, and sums are bounded. */
static void check(bm_hosts *h)
{
    long most = 0;

    for (size_t i = 0; i < h->n; i++) {
        const bm_host *host = &h->list[i];

        FUZZ_RULE(strlen(host->name) > 0 && host->name[0] != '-');
        FUZZ_RULE(strpbrk(host->name, " \t\r\n,:[]=#'\"$;&|") == NULL);
        FUZZ_RULE(host->slots >= 0 && host->slots <= host->most);
        most += host->most;
    }
    FUZZ_RULE(h->n <= BM_MOST_HOSTS && most <= BM_MOST_SLOTS);
    if (bm_hosts_slots(h) > 0 && bm_hosts_deal(h, most) == BM_OK)
        FUZZ_RULE(bm_hosts_slots(h) == most);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    bm_hosts file = {0}, option = {0}, nodes = {0};

    if (bm_hosts_read(&file, path) == BM_OK)
        check(&file);
    if (bm_hosts_parse(&option, text) == BM_OK)
        check(&option);
    if (bm_slurm_nodes(&nodes, text) == BM_OK &&
        bm_slurm_counts(&nodes, text, text) == BM_OK)
        check(&nodes);
    bm_hosts_free(&file);
    bm_hosts_free(&option);
    bm_hosts_free(&nodes);
    free(text);
}

const fuzz_target fuzz_hosts = {"hosts", "hosts", run, NULL};

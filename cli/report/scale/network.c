#include "cli/report/scale/network.h"

#include "core/config.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* [link] of a file, in common units. */
typedef struct link_settings {
    double latency_us, gigabytes, adding_gigabytes;
    long cores;
} link_settings;

static const bm_option link_options[] = {
    {"latency_us", BM_FLOAT, offsetof(link_settings, latency_us), NULL, 0, 1e9,
     "microseconds", "time of an empty message"},
    {"bandwidth", BM_FLOAT, offsetof(link_settings, gigabytes), NULL, 1e-6, 1e6,
     "GB/s", "of a worker, in each direction while both are in use"},
    {"adding", BM_FLOAT, offsetof(link_settings, adding_gigabytes), "0", 0, 1e6,
     "GB/s", "rate of adding received vectors; 0: it takes no time"},
    {"cores", BM_INT, offsetof(link_settings, cores), "0", 0, 1e6, NULL,
     "number of cores for all workers; 0: each worker has its own"},
    {0},
};

static const struct network {
    const char *name, *help;
    link_settings link;
} networks[] = {
    {"1gbe", "gigabit Ethernet, TCP", {50, 0.117, 0, 0}},
    {"10gbe", "10 gigabit Ethernet, TCP", {30, 1.17, 0, 0}},
    {"fdr", "FDR InfiniBand, 56 Gb/s", {3, 5.8, 0, 0}},
    {"ib100", "EDR InfiniBand, 100 Gb/s", {3, 11, 0, 0}},
    {"nvlink", "NVLink of one host of H100, NCCL", {4, 370, 0, 0}},
};

static bm_status read_settings(const char *name, link_settings *out)
{
    static const bm_section sections[] = {{"link", link_options, NULL}, {0}};
    bm_config *config = NULL;
    bm_status status = BM_OK;

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if (strcmp(networks[i].name, name) == 0) {
            *out = networks[i].link;
            return BM_OK;
        }
    if (strchr(name, '.') == NULL && strchr(name, '/') == NULL) {
        char names[256] = "";

        for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
            size_t length = strlen(names);
            snprintf(names + length, sizeof names - length, "%s, ",
                     networks[i].name);
        }
        return BM_FAIL(BM_ERR_ARG,
                       "network %s is unknown; use %sor a file such as "
                       "net.ini",
                       name, names);
    }
    BM_TRY(bm_config_new(&config));
    BM_TRY_DONE(bm_config_read(config, name));
    BM_TRY_DONE(bm_config_check(config, sections));
    status = bm_config_fill(config, "link", link_options, out);
done:
    bm_config_free(config);
    return status;
}

bm_status bm_network_read(const char *name, bm_network *out)
{
    link_settings s = {0};

    BM_TRY(read_settings(name, &s));
    *out = (bm_network){
        .link = {1e-6 * s.latency_us, 1e9 * s.gigabytes,
                 s.adding_gigabytes > 0 ? 1e-9 / s.adding_gigabytes : 0},
        .cores = s.cores};
    return BM_OK;
}

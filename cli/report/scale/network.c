#include "cli/report/scale/network.h"

#include "core/config/config.h"
#include "core/file/file.h"
#include "core/text/words.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORKERS = 1 << 20, MOST_BYTES = 1 << 26 };

/* [link] of a file, in common units. */
typedef struct link_settings {
    double latency_us, gigabytes, adding_gigabytes;
    long cores;
} link_settings;

static const bm_option link_options[] = {
    {"latency_us", BM_FLOAT, offsetof(link_settings, latency_us), NULL, 0, 1e9,
     "microseconds", "time of an empty message"},
    {"bandwidth", BM_FLOAT, offsetof(link_settings, gigabytes), NULL, 1e-6, 1e6,
     "GB/s", "of a host, in each direction while both are in use"},
    {"adding", BM_FLOAT, offsetof(link_settings, adding_gigabytes), "0", 0, 1e6,
     "GB/s", "rate of adding received vectors; 0: it takes no time"},
    {"cores", BM_INT, offsetof(link_settings, cores), "0", 0, 1e6, NULL,
     "number of cores for all workers; 0: each worker has its own"},
    {0},
};

/* [inside]: between the workers of a host. */
typedef struct inside_settings {
    double latency_us, gigabytes, adding_gigabytes;
    long workers;
} inside_settings;

static const bm_option inside_options[] = {
    {"latency_us", BM_FLOAT, offsetof(inside_settings, latency_us), "0", 0, 1e9,
     "microseconds", "time of an empty message"},
    {"bandwidth", BM_FLOAT, offsetof(inside_settings, gigabytes), "0", 0, 1e6,
     "GB/s", "of a worker, in each direction while both are in use"},
    {"adding", BM_FLOAT, offsetof(inside_settings, adding_gigabytes), "0", 0,
     1e6, "GB/s", "rate of adding received vectors; 0: it takes no time"},
    {"workers", BM_INT, offsetof(inside_settings, workers), "1", 1,
     MOST_WORKERS, NULL, "number of workers of a host; 1: one level"},
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

static bm_link link_of(double latency_us, double gigabytes, double adding)
{
    return (bm_link){1e-6 * latency_us, 1e9 * gigabytes,
                     adding > 0 ? 1e-9 / adding : 0};
}

static bm_status unknown(const char *name)
{
    char names[256] = "";

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, "%s, ",
                 networks[i].name);
    }
    return BM_FAIL(BM_ERR_ARG,
                   "network %s is unknown; use %sor a file such as net.ini",
                   name, names);
}

/* ---- what bmuf doctor has measured --------------------------------------- */

static bool is_measured(const json_t *o)
{
    double gigabytes = json_number_value(json_object_get(o, "bandwidth"));
    double latency = json_number_value(json_object_get(o, "latency_us"));

    return gigabytes >= 1e-6 && gigabytes <= 1e6 && latency >= 0 &&
           latency <= 1e9;
}

static bm_link measured(const json_t *o)
{
    return link_of(json_number_value(json_object_get(o, "latency_us")),
                   json_number_value(json_object_get(o, "bandwidth")), 0);
}

/* {"network": {"link": {..}, "inside": {..}}}, one of the two, or both. */
static bm_status from_json(const char *path, const json_t *all, bm_network *out)
{
    const json_t *network = json_object_get(all, "network");
    const json_t *between = json_object_get(network, "link");
    const json_t *inside = json_object_get(network, "inside");
    json_int_t workers = json_integer_value(json_object_get(inside, "workers"));
    bool has_inside =
        is_measured(inside) && workers >= 1 && workers <= MOST_WORKERS;

    if (!is_measured(between) && !has_inside)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has no measured network; write it with bmuf doctor "
                       "--hosts a,b --json, or bmuf doctor -n 2 --json",
                       path);
    *out = (bm_network){.fabric = bm_fabric_flat(
                            measured(is_measured(between) ? between : inside))};
    if (has_inside) {
        out->fabric.inside = measured(inside);
        out->fabric.host = (int)workers;
    }
    return BM_OK;
}

static bm_status read_json(const char *path, bm_network *out)
{
    char *text = NULL;
    size_t size = 0;
    json_error_t error;
    json_t *all = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_file_read(path, MOST_BYTES, &text, &size));
    all = json_loadb(text, size, 0, &error);
    free(text);
    if (all == NULL)
        return BM_FAIL(BM_ERR_FORMAT, "%s:%d: %s", path, error.line,
                       error.text);
    status = from_json(path, all, out);
    json_decref(all);
    return status;
}

/* ---- configurations ------------------------------------------------------ */

static bm_status read_config(const char *path, bm_network *out)
{
    static const bm_section sections[] = {
        {"link", link_options, NULL, NULL},
        {"inside", inside_options, NULL, NULL},
        {0}};
    bm_config *config = NULL;
    link_settings s = {0};
    inside_settings in = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_config_new(&config));
    BM_TRY_DONE(bm_config_read(config, path));
    BM_TRY_DONE(bm_config_check(config, sections));
    BM_TRY_DONE(bm_config_fill(config, "link", link_options, &s));
    BM_TRY_DONE(bm_config_fill(config, "inside", inside_options, &in));
    if (in.workers > 1 && in.gigabytes < 1e-6)
        BM_FAIL_DONE(BM_ERR_CONFIG, "%s: inside.workers needs inside.bandwidth",
                     path);
    *out = (bm_network){.fabric = bm_fabric_flat(link_of(
                            s.latency_us, s.gigabytes, s.adding_gigabytes)),
                        .cores = s.cores};
    if (in.workers > 1) {
        out->fabric.inside =
            link_of(in.latency_us, in.gigabytes, in.adding_gigabytes);
        out->fabric.host = (int)in.workers;
    }
done:
    bm_config_free(config);
    return status;
}

bm_status bm_network_read(const char *name, bm_network *out)
{
    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++)
        if (strcmp(networks[i].name, name) == 0) {
            const link_settings *l = &networks[i].link;

            *out = (bm_network){
                .fabric = bm_fabric_flat(
                    link_of(l->latency_us, l->gigabytes, l->adding_gigabytes)),
                .cores = l->cores};
            return BM_OK;
        }
    if (strchr(name, '.') == NULL && strchr(name, '/') == NULL)
        return unknown(name);
    if (bm_ends_with(name, ".json"))
        return read_json(name, out);
    return read_config(name, out);
}

bm_status bm_network_inside(bm_network *n, const char *name, int workers)
{
    bm_network inside;

    BM_TRY(bm_network_read(name, &inside));
    n->fabric.inside = inside.fabric.between;
    n->fabric.host = workers;
    return BM_OK;
}

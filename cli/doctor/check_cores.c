/* check_cores.c - cores, load, memory, NUMA nodes, and the governor of the clock
 * rate. */
#define _DEFAULT_SOURCE /* getloadavg */
#include "cli/device.h"
#include "cli/doctor/check.h"
#include "core/file/system_text.h"
#include "core/memory.h"
#include "core/text/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int numa_nodes(void)
{
    char path[80];
    int n = 0;

    for (; n < 1024; n++) {
        snprintf(path, sizeof path, "/sys/devices/system/node/node%d", n);
        if (access(path, F_OK) != 0)
            break;
    }
    return n > 0 ? n : 1;
}

/* Cores that a container may use; 0: no limit. */
static double quota(void)
{
    char text[100];
    char *rest = NULL;
    double time = 0, period = 0;

    if (!bm_system_text("/sys/fs/cgroup/cpu.max", text, sizeof text))
        return 0;
    time = strtod(text, &rest);
    period = strtod(rest, NULL);
    return time > 0 && period > 0 ? time / period : 0;
}

static void check_clock_rate(bm_check_context *e)
{
    char governor[100];

    if (!bm_system_text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                        governor, sizeof governor))
        return;
    json_object_set_new(e->facts, "governor", json_string(governor));
    if (strcmp(governor, "powersave") == 0)
        bm_find(e, BM_DOUBTFUL,
                "cpupower frequency-set -g performance, as root",
                "the clock rate is governed by powersave, which may keep it "
                "low");
}

/* Runnable processes of others, by the mean of the last minute. */
static void check_load(bm_check_context *e, long cores)
{
    double load = 0;

    if (getloadavg(&load, 1) != 1)
        return;
    json_object_set_new(e->facts, "load", json_real(load));
    if (load > (double)cores / 2)
        bm_find(e, BM_DOUBTFUL,
                "end other programs, or wait until they have ended",
                "the load is %.1f on %s: training is slower, and so are the "
                "measurements below",
                load, bm_count_noun(cores, "core").text);
}

static void host(bm_check_context *e)
{
    long cores = bm_cores(), all = sysconf(_SC_NPROCESSORS_ONLN);
    bm_memory memory = bm_memory_read();
    double total = memory.total / 1e9, free_gb = memory.available / 1e9;
    double limit = quota(), container = memory.limit / 1e9;

    json_object_set_new(e->facts, "cores", json_integer(cores));
    json_object_set_new(e->facts, "memory_gb", json_real(total));
    json_object_set_new(e->facts, "available_gb", json_real(free_gb));
    json_object_set_new(e->facts, "numa_nodes", json_integer(numa_nodes()));
    bm_find(e, BM_FINE, "", "%s, %.1f GB of memory, %s",
            bm_count_noun(cores, "core").text, total,
            bm_count_noun(numa_nodes(), "NUMA node").text);
    if (cores < all)
        bm_find(e, BM_FINE, "",
                "%ld of %ld cores: this process is bound to them", cores, all);
    if (limit > 0 && limit < (double)cores)
        bm_find(e, BM_DOUBTFUL,
                "start the container with more, or use fewer ranks and threads",
                "the container may use the time of %.3g of %ld cores", limit,
                cores);
    if (container > 0 && container < total)
        bm_find(e, BM_FINE, "", "the container may use %.1f GB of memory",
                container);
    if (total > 0 && free_gb < total / 10)
        bm_find(e, BM_DOUBTFUL, "end other programs",
                "less than a tenth of the memory is free: it may be short");
    check_load(e, all);
    check_clock_rate(e);
}

/* The slowest host decides the speed of a block. */
static void compare(bm_check_context *e, const json_t *ranks)
{
    json_int_t least = 0, most = 0;

    for (size_t r = 0; r < json_array_size(ranks); r++) {
        json_int_t n = json_integer_value(json_object_get(
            json_object_get(json_array_get(ranks, r), "facts"), "cores"));

        least = r == 0 || n < least ? n : least;
        most = n > most ? n : most;
    }
    if (least < most)
        bm_find(e, BM_DOUBTFUL,
                "give the smaller hosts fewer ranks: --hosts small:2,large:4",
                "hosts have %lld to %lld cores; all wait for the slowest rank",
                (long long)least, (long long)most);
}

const bm_check bm_check_cores = {
    .name = "cores",
    .help =
        "cores, load, memory, NUMA nodes, limits of a container, clock rate",
    .seconds = 10,
    .host = host,
    .compare = compare,
};

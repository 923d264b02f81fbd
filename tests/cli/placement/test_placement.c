/*
 * Which cores ranks get, on hosts that hwloc makes from a description; the
 * expected sets are counted by hand.
 */
#include "cli/placement/own_place.h"
#include "cli/placement/placement.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static const bm_gpu_sites no_gpus;

/* A host as `lstopo -i` describes it. */
static bm_topology *host(const char *description)
{
    bm_topology *t = NULL;

    setenv("HWLOC_SYNTHETIC", description, 1);
    assert_ok(bm_topology_open(&t));
    return t;
}

/* The CPUs of all ranks, "0-3 4-7". */
static void assert_places(const char *description, const bm_gpu_sites *gpus,
                          long ranks, const char *expected)
{
    bm_topology *t = host(description);
    char text[4096] = "";
    size_t n = 0;

    for (long r = 0; r < ranks; r++) {
        bm_placement place;

        bm_placement_find(&place, t, gpus, ranks, r);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s",
                              r > 0 ? " " : "",
                              place.bound ? place.cpus : "all");
    }
    assert_string_equal(text, expected);
    bm_topology_close(t);
}

static void test_ranks_divide_the_cores(void **_)
{
    const char *one = "node:1 core:8 pu:1", *two = "node:2 core:4 pu:1";

    (void)_;
    assert_places(one, &no_gpus, 1, "all");
    assert_places(one, &no_gpus, 2, "0-3 4-7");
    assert_places(one, &no_gpus, 3, "0-1 2-4 5-7");
    assert_places(one, &no_gpus, 8, "0 1 2 3 4 5 6 7");
    assert_places(two, &no_gpus, 2, "0-3 4-7");
    /* never on both nodes, where there are as many ranks as nodes */
    assert_places(two, &no_gpus, 3, "0-3 4-5 6-7");
    assert_places(two, &no_gpus, 5, "0-1 2-3 4 5 6-7");
    assert_places("node:4 core:2 pu:1", &no_gpus, 2, "0-3 4-7");
}

/* Hardware threads of a core stay together. */
static void test_no_core_is_divided(void **_)
{
    (void)_;
    assert_places("node:2 core:2 pu:2", &no_gpus, 2, "0-3 4-7");
    assert_places("node:2 core:2 pu:2", &no_gpus, 4, "0-1 2-3 4-5 6-7");
}

static void test_more_ranks_than_cores_are_not_bound(void **_)
{
    bm_topology *t = host("node:1 core:2 pu:2");
    bm_placement place;

    (void)_;
    bm_placement_find(&place, t, &no_gpus, 3, 1);
    assert_true(!place.bound && place.cores == 1 && place.gpu == -1);
    assert_string_equal(place.cpus, "0-3");
    bm_topology_close(t);
}

static void test_threads_and_nodes_of_a_place(void **_)
{
    bm_topology *t = host("node:2 core:4 pu:2");
    bm_placement place;

    (void)_;
    assert_int_equal(bm_topology_cores(t), 8);
    bm_placement_find(&place, t, &no_gpus, 1, 0);
    assert_true(place.cores == 8 && place.numa == -1 && !place.bound);
    bm_placement_find(&place, t, &no_gpus, 3, 2);
    assert_true(place.cores == 2 && place.numa == 1 && place.bound);
    bm_topology_close(t);
}

/* GPUs 0 and 1 at node 1, GPUs 2 and 3 at node 0. */
static void test_ranks_are_near_their_gpus(void **_)
{
    const char *two = "node:2 core:4 pu:1";
    bm_gpu_sites four = {4, {"4-7", "4-7", "0-3", "0-3"}};
    bm_gpu_sites one = {1, {"4-7"}};
    bm_gpu_sites unknown = {2, {"", "nonsense"}};
    bm_topology *t = host(two);
    bm_placement place;

    (void)_;
    assert_places(two, &four, 4, "4-5 6-7 0-1 2-3");
    assert_places(two, &four, 2, "4-5 6-7");
    assert_places(two, &one, 1, "4-7");
    assert_places(two, &one, 3, "4 5 6-7");
    assert_places(two, &unknown, 2, "0-3 4-7");
    bm_placement_find(&place, t, &four, 8, 6); /* GPUs in turn */
    assert_true(place.gpu == 2 && place.numa == 0 && place.cores == 1);
    bm_placement_find(&place, t, &one, 6, 0); /* more ranks than cores there */
    assert_string_equal(place.cpus, "4-7");
    assert_true(place.cores == 1);
    bm_topology_close(t);
}

/* On this host: the CPUs of a process that is bound are all it divides. */
static void test_a_real_host_is_found(void **_)
{
    bm_topology *t = NULL;
    bm_placement place;

    (void)_;
    unsetenv("HWLOC_SYNTHETIC");
    assert_ok(bm_topology_open(&t));
    assert_true(bm_topology_cores(t) >= 1);
    bm_placement_find(&place, t, &no_gpus, 1, 0);
    assert_true(place.cores == bm_topology_cores(t) && !place.bound);
    bm_topology_close(t);
}

/* Of the fake driver: two GPUs at a device of this host, if it has one with an
 * address, and one that cannot be found. */
static void test_gpus_of_the_driver(void **_)
{
    DIR *devices = opendir("/sys/bus/pci/devices");
    const struct dirent *entry = NULL;
    bm_gpu_sites sites;
    char expected[BM_CPU_LIST] = "", path[400];
    FILE *file = NULL;

    (void)_;
    while (devices != NULL && (entry = readdir(devices)) != NULL)
        if (entry->d_name[0] != '.')
            break;
    setenv("BMUF_TEST_BUS", entry != NULL ? entry->d_name : "0000:FF:1F.7", 1);
    if (entry != NULL) {
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/local_cpulist",
                 entry->d_name);
        file = fopen(path, "r");
        assert_true(file == NULL ||
                    fscanf(file, "%1023s", expected) != 2); /* may be empty */
    }
    if (file != NULL)
        fclose(file);
    if (devices != NULL)
        closedir(devices);
    bm_gpu_sites_find(&sites);
    assert_int_equal(sites.n, 3);
    assert_string_equal(sites.cpus[0], expected);
    assert_string_equal(sites.cpus[1], expected);
    assert_string_equal(sites.cpus[2], "");
    setenv("BMUF_TEST_CUDA", "100", 1); /* a driver without a device */
    bm_gpu_sites_find(&sites);
    assert_int_equal(sites.n, 0);
    unsetenv("BMUF_TEST_CUDA");
}

/* As of four jobs side by side, on eight cores and the three GPUs. */
static void test_jobs_side_by_side_have_shares_of_a_host(void **_)
{
    static const struct {
        const char *share;
        long cores;
        int gpu;
    } cases[] = {
        {"0/4", 2, 0}, {"1/4", 2, 1},  {"3/4", 2, 0}, {"2/3", 3, 2},
        {"4/4", 8, 0}, {"-1/4", 8, 0}, {"2", 8, 0},   {"", 8, 0},
    };
    bm_placement place;

    (void)_;
    setenv("BMUF_TEST_BUS", "0000:FF:1F.7", 1);
    bm_topology_close(host("node:1 core:8 pu:1"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv(BM_PLACE_SHARE, cases[i].share, 1);
        bm_own_place_take(&place, NULL, true, false);
        assert_int_equal(place.cores, cases[i].cores);
        assert_int_equal(place.gpu, cases[i].gpu);
        bm_own_place_take(&place, NULL, false, false);
        assert_int_equal(place.cores, cases[i].cores);
        assert_int_equal(place.gpu, -1);
    }
    unsetenv(BM_PLACE_SHARE);
    unsetenv("HWLOC_SYNTHETIC");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_divide_the_cores),
        cmocka_unit_test(test_no_core_is_divided),
        cmocka_unit_test(test_more_ranks_than_cores_are_not_bound),
        cmocka_unit_test(test_threads_and_nodes_of_a_place),
        cmocka_unit_test(test_ranks_are_near_their_gpus),
        cmocka_unit_test(test_a_real_host_is_found),
        cmocka_unit_test(test_gpus_of_the_driver),
        cmocka_unit_test(test_jobs_side_by_side_have_shares_of_a_host),
    };

    return RUN_GROUP("placement", tests);
}

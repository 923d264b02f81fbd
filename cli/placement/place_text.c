#include "cli/placement/place_text.h"

#include <stdlib.h>

bm_status bm_placement_of_host(bm_placement **out, long ranks, bool gpus)
{
    bm_placement *places = calloc((size_t)ranks, sizeof *places);
    bm_gpu_sites sites = {0};
    bm_topology *t = NULL;
    bm_status status = BM_OK;

    if (places == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %ld ranks", ranks);
    BM_TRY_DONE(bm_topology_open(&t));
    if (gpus)
        bm_gpu_sites_find(&sites);
    for (long r = 0; r < ranks; r++)
        bm_placement_find(&places[r], t, &sites, ranks, r);
    *out = places;
    places = NULL;
done:
    bm_topology_close(t);
    free(places);
    return status;
}

/* A number that may be unknown. */
static const char *number(int x, char *room, size_t size)
{
    if (x < 0)
        return "-";
    snprintf(room, size, "%d", x);
    return room;
}

void bm_placement_print(const bm_placement *place, long rank, FILE *out)
{
    char numa[16], gpu[16];

    fprintf(out, "%-5ld CPUs %-12s NUMA node %-3s GPU %-3s %ld %s%s\n", rank,
            place->cpus, number(place->numa, numa, sizeof numa),
            number(place->gpu, gpu, sizeof gpu), place->cores,
            place->cores == 1 ? "core" : "cores",
            place->bound ? "" : ", not bound");
}

json_t *bm_placement_json(const bm_placement *place)
{
    json_t *o = json_pack("{s:s, s:i, s:b}", "cpus", place->cpus, "cores",
                          (int)place->cores, "bound", place->bound);

    json_object_set_new(
        o, "numa", place->numa < 0 ? json_null() : json_integer(place->numa));
    json_object_set_new(
        o, "gpu", place->gpu < 0 ? json_null() : json_integer(place->gpu));
    return o;
}

void bm_placement_read(bm_placement *out, const json_t *o)
{
    const char *cpus = json_string_value(json_object_get(o, "cpus"));
    const json_t *numa = json_object_get(o, "numa");
    const json_t *gpu = json_object_get(o, "gpu");

    if (cpus == NULL)
        return;
    snprintf(out->cpus, sizeof out->cpus, "%s", cpus);
    out->cores = (long)json_integer_value(json_object_get(o, "cores"));
    out->numa = json_is_integer(numa) ? (int)json_integer_value(numa) : -1;
    out->gpu = json_is_integer(gpu) ? (int)json_integer_value(gpu) : -1;
    out->bound = json_is_true(json_object_get(o, "bound"));
}

#include "cli/help/version.h"

#include "cli/json_output.h"
#include "cli/placement/place_text.h"
#include "cli/verbs.h"
#include "compute/cpu/libraries/onednn.h"
#include "compute/cpu/loops/cpu_isa.h"

#include <cblas.h>
#include <hdf5.h>
#include <jansson.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#ifndef BMUF_REVISION
#define BMUF_REVISION "unknown revision"
#endif

const char *bm_version(void)
{
    return BMUF_VERSION " (" BMUF_REVISION ")";
}

enum { FACTS = 8 };

/* A library, or what else decides the bits of a result. */
typedef struct fact {
    const char *key, *title;
    char value[256];
} fact;

static void collect(fact all[FACTS])
{
    static const char *const names[FACTS][2] = {
        {"version", "bmuf"},  {"mpi", "MPI"},    {"blas", "BLAS"},
        {"onednn", "oneDNN"}, {"hdf5", "HDF5"},  {"jansson", "jansson"},
        {"xxhash", "xxHash"}, {"loops", "loops"}};
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    unsigned major = 0, minor = 0, release = 0;
    const bm_isa *isa = NULL;
    int length = 0;
    size_t room = sizeof all[0].value;

    for (size_t i = 0; i < FACTS; i++)
        all[i] = (fact){.key = names[i][0], .title = names[i][1]};
    MPI_Get_library_version(mpi, &length);
    H5get_libversion(&major, &minor, &release);
    snprintf(all[0].value, room, "%s", bm_version());
    snprintf(all[1].value, room, "%.*s", (int)strcspn(mpi, ","), mpi);
    snprintf(all[2].value, room, "%s", openblas_get_config());
    snprintf(all[3].value, room, "%s",
             bm_onednn_version() != NULL ? bm_onednn_version() : "none");
    snprintf(all[4].value, room, "%u.%u.%u", major, minor, release);
    snprintf(all[5].value, room, "%s", jansson_version_str());
    snprintf(all[6].value, room, "%u", XXH_versionNumber());
    snprintf(all[7].value, room, "%s",
             bm_isa_find(&isa) == BM_OK ? isa->name : "invalid BMUF_ISA");
}

/* The cores of this host that this process may use. */
static long cores(void)
{
    bm_topology *t = NULL;
    long n = 1;

    if (bm_topology_open(&t) == BM_OK)
        n = bm_topology_cores(t);
    bm_topology_close(t);
    return n;
}

json_t *bm_version_json(void)
{
    fact all[FACTS];
    json_t *o = json_object();

    collect(all);
    for (size_t i = 0; i < FACTS; i++)
        json_object_set_new(o, all[i].key, json_string(all[i].value));
    json_object_set_new(o, "cores", json_integer(cores()));
    return o;
}

/* --placement RANKS: where this host would put RANKS ranks. */
static bm_status print_placement(const bm_arguments *a, json_t *o)
{
    bm_placement *places = NULL;
    json_t *list = json_array();
    long ranks = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(
        bm_argument_number(a, "placement", 0, 1, BM_MOST_PLACES, &ranks));
    BM_TRY_DONE(bm_placement_of_host(&places, ranks, true));
    for (long r = 0; r < ranks; r++) {
        if (o == NULL)
            bm_placement_print(&places[r], r, stdout);
        json_array_append_new(list, bm_placement_json(&places[r]));
    }
    if (o != NULL)
        json_object_set(o, "placement", list);
done:
    json_decref(list);
    free(places);
    return status;
}

static bm_status version(const bm_arguments *a)
{
    bool json = bm_argument(a, "json") != NULL;
    fact all[FACTS];
    json_t *o = json ? bm_version_json() : NULL;
    bm_status status = BM_OK;

    collect(all);
    if (!json)
        printf("bmuf %s\n", all[0].value);
    for (size_t i = 1; i < FACTS && !json; i++)
        printf("%-9s %s\n", all[i].title, all[i].value);
    if (bm_argument(a, "placement") != NULL)
        status = print_placement(a, o);
    if (json && status == BM_OK)
        bm_json_print(o, JSON_INDENT(1));
    else
        json_decref(o);
    return status;
}

static const bm_flag flags[] = {
    {"placement", "RANKS",
     "print, too, which cores, NUMA node and GPU "
     "each of RANKS ranks gets on this host",
     0, false},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_version = {
    .name = "version",
    .nouns = "",
    .help = "print the version, the libraries and the instruction set",
    .text = "  bmuf version\n  bmuf --version\n  bmuf version --placement 4\n",
    .flags = flags,
    .least = 0,
    .most = 0,
    .run = version,
};

#include "cli/help/version.h"

#include "cli/json_output.h"
#include "cli/verbs.h"
#include "compute/cpu/loops/cpu_isa.h"
#include "compute/cpu/onednn.h"

#include <cblas.h>
#include <hdf5.h>
#include <jansson.h>
#include <mpi.h>
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

static bm_status version(const bm_arguments *a)
{
    fact all[FACTS];
    json_t *o = NULL;

    collect(all);
    if (bm_argument(a, "json") == NULL) {
        printf("bmuf %s\n", all[0].value);
        for (size_t i = 1; i < FACTS; i++)
            printf("%-9s %s\n", all[i].title, all[i].value);
        return BM_OK;
    }
    o = json_object();
    for (size_t i = 0; i < FACTS; i++)
        json_object_set_new(o, all[i].key, json_string(all[i].value));
    bm_json_print(o, JSON_INDENT(1));
    return BM_OK;
}

static const bm_flag flags[] = {BM_JSON_FLAG, {0}};

const bm_verb bm_verb_version = {
    .name = "version",
    .nouns = "",
    .help = "print the version, the libraries and the instruction set",
    .text = "  bmuf version\n  bmuf --version\n",
    .flags = flags,
    .least = 0,
    .most = 0,
    .run = version,
};

/* check_program.c - the program and its libraries, and whether all hosts have
 * the same. */
#include "cli/doctor/check.h"
#include "cli/help/version.h"
#include "compute/cpu/loops/cpu_isa.h"

#include <stdio.h>
#include <string.h>

static void host(bm_check_context *e)
{
    json_t *facts = bm_version_json();
    const bm_isa *isa = NULL;

    if (bm_isa_find(&isa) != BM_OK)
        bm_find(e, BM_FATAL, "", "%s", bm_last_message());
    json_object_update(e->facts, facts);
    json_decref(facts);
}

/* What differs between hosts, and what follows from it. */
static const struct part {
    const char *key, *name;
    bm_severity severity;
    const char *remedy;
} parts[] = {
    {"version", "bmuf", BM_FATAL, "install the same version on all hosts"},
    {"mpi", "MPI", BM_FATAL, "install the same Open MPI on all hosts"},
    {"hdf5", "HDF5", BM_DOUBTFUL, "install the same HDF5 on all hosts"},
    {"blas", "BLAS", BM_DOUBTFUL,
     "products round differently: a run on other hosts has other bits; install "
     "the same OpenBLAS, or set OPENBLAS_CORETYPE to the same on all hosts"},
    {"onednn", "oneDNN", BM_DOUBTFUL,
     "products round differently: a run on other hosts has other bits; install "
     "the same oneDNN, or set DNNL_MAX_CPU_ISA to the lower one on all hosts"},
    {"loops", "instruction set", BM_DOUBTFUL,
     "matrix products may round differently; set BMUF_ISA to the lower one on "
     "all hosts"},
};

static const char *value(const json_t *rank, const char *key)
{
    const char *text =
        json_string_value(json_object_get(json_object_get(rank, "facts"), key));
    return text != NULL ? text : "unknown";
}

/* The first rank whose value differs from that of rank 0; 0: none. */
static size_t other_value(const json_t *ranks, const char *key)
{
    const char *first = value(json_array_get(ranks, 0), key);

    for (size_t r = 1; r < json_array_size(ranks); r++)
        if (strcmp(value(json_array_get(ranks, r), key), first) != 0)
            return r;
    return 0;
}

static void compare(bm_check_context *e, const json_t *ranks)
{
    const json_t *first = json_array_get(ranks, 0);

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const struct part *p = &parts[i];
        size_t r = other_value(ranks, p->key);
        const json_t *other = json_array_get(ranks, r);

        if (r > 0)
            bm_find(e, p->severity, p->remedy, "%s is %s on %s, but %s on %s",
                    p->name, value(first, p->key),
                    json_string_value(json_object_get(first, "host")),
                    value(other, p->key),
                    json_string_value(json_object_get(other, "host")));
    }
    bm_find(e, BM_FINE, "", "bmuf %s, %s, HDF5 %s, oneDNN %s, %s",
            value(first, "version"), value(first, "mpi"), value(first, "hdf5"),
            value(first, "onednn"), value(first, "blas"));
}

const bm_check bm_check_program = {
    .name = "program",
    .help = "versions of bmuf and its libraries, the same on all hosts",
    .seconds = 10,
    .host = host,
    .compare = compare,
};

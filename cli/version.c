#include "cli/version.h"

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

void bm_version_print(FILE *out)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    unsigned major = 0, minor = 0, release = 0;
    const bm_isa *isa = NULL;
    int length = 0;

    MPI_Get_library_version(mpi, &length);
    H5get_libversion(&major, &minor, &release);
    fprintf(out, "bmuf %s\n", bm_version());
    fprintf(out, "MPI       %.*s\n", (int)strcspn(mpi, ","), mpi);
    fprintf(out, "BLAS      %s\n", openblas_get_config());
    fprintf(out, "oneDNN    %s\n",
            bm_onednn_version() != NULL ? bm_onednn_version() : "none");
    fprintf(out, "HDF5      %u.%u.%u\n", major, minor, release);
    fprintf(out, "jansson   %s\n", jansson_version_str());
    fprintf(out, "xxHash    %u\n", XXH_versionNumber());
    if (bm_isa_find(&isa) == BM_OK)
        fprintf(out, "loops     %s\n", isa->name);
}

/* cuda_plugin.c - what the plugin needs of a machine: the driver, libraries of
 * the toolkit that it was built with, and where to look for them. */
#include "compute/cuda/cuda.h"
#include "compute/cuda/libraries/cuda_nvtx.h"
#include "compute/plugin.h"

#include <cublasLt.h>

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
#define WHEELS(prefix)                                                         \
    prefix "/lib/python3*/site-packages/nvidia/*/lib",                         \
        prefix "/lib/python3*/dist-packages/nvidia/*/lib"

static const char *const libraries[] = {
    "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR),
    NULL,
};

/* Loaded by name when they are first used. */
static const char *const extras[] = {"libcudnn.so.9", "libnccl.so.2", NULL};

static const char *const places[] = {
    "$BMUF_CUDA_LIB",
    "",
    "/usr/local/cuda/lib64",
    "/usr/local/cuda-" TEXT(CUBLAS_VER_MAJOR) "*/lib64",
    "/usr/lib/*-linux-gnu",
    WHEELS("/usr"),
    WHEELS("/usr/local"),
    WHEELS("/opt/*"),
    WHEELS("/opt/*/.venv"),
    WHEELS("$VIRTUAL_ENV"),
    NULL,
};

const bm_plugin bm_plugin_cuda = {
    .abi = BM_PLUGIN_ABI,
    .driver = "libcuda.so.1",
    .libraries = libraries,
    .extras = extras,
    .places = places,
    .ops = &bm_backend_cuda,
    .watcher = &bm_cuda_nvtx,
};

#include "cli/doctor/gpu_libraries.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DEVICES = 64, NAME = 100 };

/* False: the library does not have it. */
static int find(void *library, const char *name, void *out)
{
    void *f = library != NULL ? dlsym(library, name) : NULL;

    if (f == NULL)
        return 0;
    memcpy(out, &f, sizeof f);
    return 1;
}

/* Functions of CUDA's driver; they return 0, or an error. */
typedef struct driver {
    int (*init)(unsigned);
    int (*version)(int *);
    int (*count)(int *);
    int (*get)(int *, int);
    int (*name)(char *, int, int);
    int (*memory)(size_t *, int);
    int (*peer)(int *, int, int);
} driver;

static int find_driver(void *library, driver *d)
{
    return find(library, "cuInit", &d->init) &&
           find(library, "cuDriverGetVersion", &d->version) &&
           find(library, "cuDeviceGetCount", &d->count) &&
           find(library, "cuDeviceGet", &d->get) &&
           find(library, "cuDeviceGetName", &d->name) &&
           find(library, "cuDeviceTotalMem_v2", &d->memory) &&
           find(library, "cuDeviceCanAccessPeer", &d->peer);
}

static void add_devices(const driver *d, json_t *out)
{
    json_t *list = json_array();
    int n = 0, device[MOST_DEVICES], peers = 0;

    if (d->count(&n) != 0)
        n = 0;
    n = n < MOST_DEVICES ? n : MOST_DEVICES;
    for (int i = 0; i < n; i++) {
        char name[NAME] = "";
        size_t bytes = 0;

        if (d->get(&device[i], i) != 0 ||
            d->name(name, NAME - 1, device[i]) != 0 ||
            d->memory(&bytes, device[i]) != 0) {
            n = i;
            break;
        }
        json_array_append_new(list,
                              json_pack("{s:s, s:f}", "name", name, "memory_gb",
                                        1e-9 * (double)bytes));
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; k < i; k++) {
            int can = 0;
            peers += d->peer(&can, device[i], device[k]) == 0 && can != 0;
        }
    json_object_set_new(out, "devices", list);
    json_object_set_new(out, "peers", json_integer(peers));
}

static void add_driver(json_t *out)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int version = 0;
    driver d;

    if (!find_driver(library, &d) || d.version(&version) != 0)
        return;
    json_object_set_new(
        out, "driver",
        json_sprintf("%d.%d", version / 1000, version % 1000 / 10));
    if (d.init(0) == 0)
        add_devices(&d, out);
}

static void add_nccl(json_t *out)
{
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int (*version)(int *) = NULL;
    int n = 0;

    if (find(library, "ncclGetVersion", &version) && version(&n) == 0)
        json_object_set_new(
            out, "nccl",
            json_sprintf("%d.%d.%d", n / 10000, n / 100 % 100, n % 100));
}

static void add_cudnn(json_t *out)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    size_t (*version)(void) = NULL;

    if (find(library, "cudnnGetVersion", &version)) {
        size_t n = version();
        json_object_set_new(
            out, "cudnn",
            json_sprintf("%zu.%zu.%zu", n / 10000, n / 100 % 100, n % 100));
    }
}

json_t *bm_gpu_libraries(void)
{
    json_t *out = json_object();

    add_driver(out);
    add_nccl(out);
    add_cudnn(out);
    return out;
}

/* gpu_sites.c - asks CUDA's driver for the PCI addresses of GPUs, and the kernel
 * for the CPUs near them. */
#include "cli/placement/placement.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Of libcuda.so.1; 0 is success. */
typedef struct driver {
    int (*init)(unsigned flags);
    int (*count)(int *out);
    int (*bus)(char *out, int room, int device);
} driver;

/* A function of the library. ISO C has no cast from an object pointer. */
static void find(void *library, const char *name, void *out)
{
    void *f = dlsym(library, name);

    memcpy(out, &f, sizeof f);
}

/* local_cpulist of a PCI device. */
static void read_cpus(const char *bus, char *out, size_t room)
{
    char path[128], lower[32];
    size_t n = 0;
    FILE *file = NULL;

    for (; bus[n] != '\0' && n + 1 < sizeof lower; n++)
        lower[n] = (char)tolower((unsigned char)bus[n]);
    lower[n] = '\0';
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/local_cpulist", lower);
    file = fopen(path, "re");
    out[0] = '\0';
    if (file != NULL && fgets(out, (int)room, file) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (file != NULL)
        fclose(file);
}

void bm_gpu_sites_find(bm_gpu_sites *out)
{
    driver d = {0};
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int n = 0;

    *out = (bm_gpu_sites){0};
    if (library == NULL)
        return;
    find(library, "cuInit", &d.init);
    find(library, "cuDeviceGetCount", &d.count);
    find(library, "cuDeviceGetPCIBusId", &d.bus);
    if (d.init == NULL || d.count == NULL || d.bus == NULL || d.init(0) != 0 ||
        d.count(&n) != 0)
        return; /* the library stays, for the plugin */
    for (int i = 0; i < n && i < BM_MOST_GPUS; i++) {
        char bus[32] = "";

        if (d.bus(bus, sizeof bus, i) == 0)
            read_cpus(bus, out->cpus[i], sizeof out->cpus[i]);
        out->n++;
    }
}

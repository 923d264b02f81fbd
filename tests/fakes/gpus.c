/* gpus.c - a libcuda.so.1 with three GPUs, at addresses of PCI that BMUF_TEST_BUS
 * gives to all of them. */
#include <stdio.h>
#include <stdlib.h>

int cuInit(unsigned flags);
int cuDeviceGetCount(int *out);
int cuDeviceGetPCIBusId(char *out, int room, int device);

int cuInit(unsigned flags)
{
    const char *code = getenv("BMUF_TEST_CUDA");

    return code != NULL ? atoi(code) : (int)flags;
}

int cuDeviceGetCount(int *out)
{
    *out = 3;
    return 0;
}

int cuDeviceGetPCIBusId(char *out, int room, int device)
{
    const char *bus = getenv("BMUF_TEST_BUS");

    if (device == 2 || bus == NULL)
        return 101; /* no such device */
    snprintf(out, (size_t)room, "%s", bus);
    return 0;
}

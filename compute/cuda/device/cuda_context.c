/* cuda_context.c - see cuda_context.h. */
#include "compute/cuda/device/cuda_context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bm_status bm_cuda_status(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return BM_OK;
    return BM_FAIL(error == cudaErrorMemoryAllocation ? BM_ERR_MEMORY
                                                      : BM_ERR_DEVICE,
                   "%s: %s", what, cudaGetErrorString(error));
}

void bm_cuda_note(bm_backend *be, cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        bm_remember(be, bm_cuda_status(error, what));
}

bm_status bm_cuda_stream_open(cudaStream_t *out)
{
    int least = 0, most = 0;

    BM_TRY(bm_cuda_status(cudaDeviceGetStreamPriorityRange(&least, &most),
                          "priorities of streams"));
    return bm_cuda_status(
        cudaStreamCreateWithPriority(out, cudaStreamNonBlocking, most),
        "stream");
}

bm_status bm_cuda_event_open(cudaEvent_t *out)
{
    return bm_cuda_status(cudaEventCreateWithFlags(out, cudaEventDisableTiming),
                          "event");
}

bm_status bm_cuda_switch(bm_cuda *cuda, const char *variable,
                         const char *const values[], size_t *out)
{
    const char *value = getenv(variable);
    size_t n = strlen(cuda->about), i = 0;

    *out = 0;
    if (value == NULL || value[0] == '\0')
        return BM_OK;
    while (values[i] != NULL && strcmp(values[i], value) != 0)
        i++;
    if (values[i] == NULL)
        return BM_FAIL(BM_ERR_CONFIG, "%s: invalid value '%s'", variable,
                       value);
    if (i > 0)
        snprintf(cuda->about + n, sizeof cuda->about - n, ", %s=%s", variable,
                 value);
    *out = i;
    return BM_OK;
}

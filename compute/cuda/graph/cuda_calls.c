/* cuda_calls.c - what operations queue beside kernels and products: see
 * cuda_step.h. */
#include "compute/cuda/graph/cuda_step.h"

typedef struct span {
    void *to;
    const void *from;
    size_t bytes;
} span;

static cudaError_t clear(bm_backend *be, cudaStream_t stream, const void *what)
{
    const span *m = what;

    (void)be;
    return cudaMemsetAsync(m->to, 0, m->bytes, stream);
}

cudaError_t bm_step_clear(bm_backend *be, cudaStream_t stream, void *x,
                          size_t bytes)
{
    span m = {x, NULL, bytes};
    return bm_step_queue(be, clear, stream, &m, sizeof m);
}

static cudaError_t copy(bm_backend *be, cudaStream_t stream, const void *what)
{
    const span *m = what;

    (void)be;
    return cudaMemcpyAsync(m->to, m->from, m->bytes, cudaMemcpyDeviceToDevice,
                           stream);
}

cudaError_t bm_step_copy(bm_backend *be, cudaStream_t stream, void *to,
                         const void *from, size_t bytes)
{
    span m = {to, from, bytes};
    return bm_step_queue(be, copy, stream, &m, sizeof m);
}

typedef struct moment {
    cudaEvent_t event;
} moment;

static cudaError_t record_event(bm_backend *be, cudaStream_t stream,
                                const void *what)
{
    (void)be;
    return cudaEventRecord(((const moment *)what)->event, stream);
}

cudaError_t bm_step_record(bm_backend *be, cudaStream_t stream,
                           cudaEvent_t event)
{
    moment m = {event};
    return bm_step_queue(be, record_event, stream, &m, sizeof m);
}

static cudaError_t wait_for(bm_backend *be, cudaStream_t stream,
                            const void *what)
{
    (void)be;
    return cudaStreamWaitEvent(stream, ((const moment *)what)->event, 0);
}

cudaError_t bm_step_wait(bm_backend *be, cudaStream_t stream, cudaEvent_t event)
{
    moment m = {event};
    return bm_step_queue(be, wait_for, stream, &m, sizeof m);
}

/*
 * cuda_times.c - see cuda_times.h. The events are a ring. What is between two
 * of them is added up when both have happened: at the latest when the ring is
 * full, which is dozens of steps later, so that the host does not wait.
 */
#include "compute/cuda/device/cuda_times.h"

#include <stdlib.h>

enum { RING = 256 };

struct bm_cuda_times {
    cudaEvent_t event[RING];  /* opened when they are first used */
    bm_timed_part part[RING]; /* that begins there */
    size_t began, added;      /* parts so far; of them in `seconds` */
    double seconds[BM_PARTS];
};
typedef struct bm_cuda_times bm_cuda_times;

static bm_cuda_times *times_of(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);

    if (cuda->times == NULL)
        cuda->times = calloc(1, sizeof *cuda->times);
    if (cuda->times == NULL)
        bm_remember(be, BM_FAIL(BM_ERR_MEMORY, "no memory for times"));
    return cuda->times;
}

void bm_cuda_times_close(bm_backend *be)
{
    bm_cuda_times *t = bm_cuda_of(be)->times;

    for (size_t i = 0; t != NULL && i < RING; i++)
        if (t->event[i] != NULL)
            cudaEventDestroy(t->event[i]);
    free(t);
}

/* Adds the oldest part that has ended. */
static void add(bm_backend *be, bm_cuda_times *t)
{
    size_t from = t->added % RING, to = (t->added + 1) % RING;
    float ms = 0;

    BM_CUDA(be, cudaEventSynchronize(t->event[to]));
    BM_CUDA(be, cudaEventElapsedTime(&ms, t->event[from], t->event[to]));
    t->seconds[t->part[from]] += 1e-3 * (double)ms;
    t->added++;
}

void bm_cuda_time_as(bm_backend *be, bm_timed_part part)
{
    bm_cuda_times *t = times_of(be);
    cudaEvent_t *event = NULL;

    if (t == NULL)
        return;
    if (t->began - t->added == RING)
        add(be, t);
    event = &t->event[t->began % RING];
    if (*event == NULL)
        BM_CUDA(be, cudaEventCreate(event));
    BM_CUDA(be, cudaEventRecord(*event, bm_cuda_of(be)->stream));
    t->part[t->began % RING] = part;
    t->began++;
}

double bm_cuda_timed(bm_backend *be, bm_timed_part part)
{
    bm_cuda_times *t = times_of(be);
    double seconds = 0;

    if (t == NULL)
        return 0;
    while (t->added + 1 < t->began && be->failed == BM_OK)
        add(be, t);
    seconds = t->seconds[part];
    t->seconds[part] = 0;
    return seconds;
}

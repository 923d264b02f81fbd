/*
 * cuda_context.h - one open device: its streams, and what each module keeps.
 *
 * Operations queue their work on `stream` and return. Host code calls the
 * runtime and launches kernels through BM_CUDA, which does nothing once a call
 * has failed; bm_sync reports the first failure.
 */
#ifndef BM_COMPUTE_CUDA_DEVICE_CUDA_CONTEXT_H
#define BM_COMPUTE_CUDA_DEVICE_CUDA_CONTEXT_H

#include "compute/backend_ops.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

/* Device memory that grows; its contents are lost when it does. */
typedef struct bm_cuda_room {
    void *x;
    size_t bytes;
} bm_cuda_room;

typedef struct bm_cuda {
    bm_backend *beside; /* borrowed: bm_backend_open_beside; NULL: alone */
    int device;
    int major, minor; /* compute capability */
    int multiprocessors;
    char name[256];
    char about[512]; /* name, compute capability, memory, driver, switches */
    bm_precision precision;
    cudaStream_t stream;
    cudaStream_t side; /* cuda_side.h */
    cudaEvent_t given; /* after the last vector for another backend, or from
                          it: cuda_copy.c */
    bool graphs;       /* BMUF_GRAPH=on: see cuda_lstm_steps.c */
    double *partial;   /* [BM_PARTIALS], on the device: of a reduction */
    bm_cuda_room scratch;
    bool swaps; /* an idle vector has been swapped out */

    /* What each module keeps, and the file that knows its type. */
    struct bm_cuda_loans *loans;       /* cuda_side.c */
    struct bm_cuda_times *times;       /* cuda_times.c; NULL until it is used */
    struct bm_cuda_memory *memory;     /* cuda_forms.c */
    struct bm_cuda_idle *idle;         /* cuda_room.c: a list */
    struct bm_cuda_ring *ring;         /* cuda_ring.c; NULL beside another */
    struct bm_cuda_slots *slots;       /* cuda_copy.c */
    struct bm_cuda_products *products; /* cuda_products.c; likewise */
    struct bm_cuda_lstm *lstm;         /* cuda_lstm.h */
    const struct bm_conv_engine *conv; /* cuda_conv.h */
    struct bm_cudnn *cudnn;            /* cuda_cudnn.h; NULL until it is used */
    void (*close_cudnn)(bm_backend *be);     /* likewise */
    struct bm_cuda_device_comm *device_comm; /* likewise: cuda_device_comm.c */
} bm_cuda;

static inline bm_cuda *bm_cuda_of(const bm_backend *be)
{
    return be->self;
}

/* BM_ERR_MEMORY if the device has none left, BM_ERR_DEVICE for other errors. */
BM_CHECKED bm_status bm_cuda_status(cudaError_t error, const char *what);

/* The same for queued calls, which cannot return a status. */
void bm_cuda_note(bm_backend *be, cudaError_t error, const char *what);

/* Calls the runtime or a launcher, unless something has failed before. */
#define BM_CUDA(be, call)                                                      \
    do {                                                                       \
        if ((be)->failed == BM_OK)                                             \
            bm_cuda_note((be), (call), #call);                                 \
    } while (0)

/* Opens a stream whose kernels run before those of `side` where both do not
 * fit: a cluster starts only when the device has room for all its blocks. */
BM_CHECKED bm_status bm_cuda_stream_open(cudaStream_t *out);

/* Opens an event without timing. */
BM_CHECKED bm_status bm_cuda_event_open(cudaEvent_t *out);

/*
 * Reads the environment variable of a choice that a measurement on a GPU is to
 * decide (docs/gpu.md): the index of its value among `values`, which end with
 * NULL, or 0 if it is unset or empty. values[0] is the default. Any other value
 * is added to `about`, so that the log and the journal name it.
 * BM_ERR_CONFIG: the value is not among them.
 */
BM_CHECKED bm_status bm_cuda_switch(bm_cuda *cuda, const char *variable,
                                    const char *const values[], size_t *out);

#endif

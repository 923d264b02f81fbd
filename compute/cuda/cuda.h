/*
 * cuda.h - what the host code of the cuda backend shares.
 *
 * Everything is queued on one stream, `stream`. Work that may run beside it
 * goes to `side`, between bm_cuda_fork and bm_cuda_join. Host code calls the
 * runtime and launches kernels through BM_CUDA alone.
 *
 * Forms. With BM_BF16 a vector on the device has two forms: the floats that
 * callers see, and a bf16 twin. One or both are current. An operation reads and
 * writes through
 *
 *     x   = bm_cuda_read(be, x, n)         floats, made current
 *     x16 = bm_cuda_read16(be, x, n)       bf16, made current
 *     y   = bm_cuda_write(be, y, n)        floats, of which all will be written
 *     y16 = bm_cuda_write16(be, y, n)      bf16, likewise
 *     y16 = bm_cuda_write_both(be, y, n)   both; y is where the floats go
 *
 *     in  = bm_cuda_in(be, x, n)           bf16 if that is current, else floats
 *     out = bm_cuda_out(be, y, n)          the form that products read
 *     out = bm_cuda_change(be, y, n, half) to be written in part: one form
 *
 * which convert no more often than needed: a product leaves bf16 alone if bf16
 * is all that its readers ask for.
 * No operation touches a vector of its caller in another way. What is kept for
 * a backward pass is the operation's own, and has no forms.
 */
#ifndef BM_COMPUTE_CUDA_CUDA_H
#define BM_COMPUTE_CUDA_CUDA_H

#include "compute/backend_ops.h"
#include "compute/cuda/graph/cuda_step.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/device_comm.h"
#include "core/span.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

typedef struct bm_cuda_memory bm_cuda_memory;           /* cuda_forms.c */
typedef struct bm_cuda_products bm_cuda_products;       /* cuda_products.c */
typedef struct bm_cuda_ring bm_cuda_ring;               /* cuda_ring.c */
typedef struct bm_cuda_slots bm_cuda_slots;             /* cuda_copy.c */
typedef struct bm_cuda_device_comm bm_cuda_device_comm; /* cuda_device_comm.c */
typedef struct bm_cuda_choice bm_cuda_choice;           /* cuda_choice.c */

typedef struct bm_cuda {
    int device;
    int major, minor; /* compute capability */
    int multiprocessors;
    char name[256];
    char about[400]; /* that, its compute capability, .. */
    bm_precision precision;
    cudaStream_t stream, side;
    cudaEvent_t forked, joined;
    bool is_forked;         /* and not joined since */
    bm_cuda_memory *memory; /* what bm_alloc gave */
    bm_cuda_products *products;
    bm_cuda_ring *ring;
    bm_cuda_slots *slots;
    struct bm_cuda_steps *steps; /* cuda_step.c */
    bm_cuda_device_comm *mesh;   /* NULL: nobody has asked for it */
    struct bm_cuda_lstm *lstm;   /* cuda_lstm.h */
    struct bm_cudnn *cudnn; /* cuda_cudnn.h; NULL: nobody has asked for it */
    bm_cuda_choice *choices;
    double *partial; /* [BM_PARTIALS]: of a reduction, on the device */
    void *scratch;
    size_t scratch_bytes;
} bm_cuda;

extern const bm_backend_ops bm_backend_cuda; /* cuda.c */
extern const bm_span_watcher bm_cuda_nvtx;   /* cuda_nvtx.c */

static inline bm_cuda *bm_cuda_of(const bm_backend *be)
{
    return be->self;
}

BM_CHECKED bm_status bm_cuda_status(cudaError_t error, const char *what);

/* For queued calls, which cannot return. */
void bm_cuda_note(bm_backend *be, cudaError_t error, const char *what);

/* Calls the runtime or a launcher, unless something has failed before. */
#define BM_CUDA(be, call)                                                      \
    do {                                                                       \
        if ((be)->failed == BM_OK)                                             \
            bm_cuda_note((be), (call), #call);                                 \
    } while (0)

/* A stream that others wait for. Where there is not room for all, its work goes
 * before that of `side`: a cluster begins when there is room for all of it. */
BM_CHECKED bm_status bm_cuda_stream_open(cudaStream_t *out);

/* What is queued on `side` from here on begins after all that is on `stream`;
 * what is queued on `stream` after the join begins after all that is on `side`.
 */
void bm_cuda_fork(bm_backend *be);
void bm_cuda_join(bm_backend *be);

/* Instead of a join, for each vector (see forms) that `side` goes on with,
 * reading or writing it: `stream` waits when somebody asks for it in a way that
 * does not go with that, or at the next join or sync. */
void bm_cuda_lend(bm_backend *be, const float *x, size_t n, bool written);
void bm_cuda_lent_back(bm_backend *be); /* by join and sync */

/* Forms, see above. */
BM_CHECKED bm_status bm_cuda_memory_open(bm_backend *be);
void bm_cuda_memory_close(bm_backend *be);
bm_status bm_cuda_alloc(bm_backend *be, size_t n, float **out);
void bm_cuda_free(bm_backend *be, float *x);
const float *bm_cuda_read(bm_backend *be, const float *x, size_t n);
const bm_bf16 *bm_cuda_read16(bm_backend *be, const float *x, size_t n);
float *bm_cuda_write(bm_backend *be, float *x, size_t n);
bm_bf16 *bm_cuda_write16(bm_backend *be, float *x, size_t n);
bm_bf16 *bm_cuda_write_both(bm_backend *be, float *x, size_t n);
bm_in bm_cuda_in(bm_backend *be, const float *x, size_t n);
bm_out bm_cuda_out(bm_backend *be, float *x, size_t n);
bm_out bm_cuda_change(bm_backend *be, float *x, size_t n, bool half);

/* Room on the device for one operation: the next one that asks gets the same.
 * NULL after a failure. */
void *bm_cuda_scratch(bm_backend *be, size_t bytes);

/* Numbers of the host, on the device until `stream` has done what is queued on
 * it until the next call but some hundred: lengths, labels. The host's may
 * change at once. NULL after a failure. */
BM_CHECKED bm_status bm_cuda_ring_open(bm_backend *be);
void bm_cuda_ring_close(bm_backend *be);
const void *bm_cuda_send(bm_backend *be, const void *host, size_t bytes);
/* Where each sequence's labels begin, [B], by how many each has. */
const int32_t *bm_cuda_begins(bm_backend *be, const int32_t *count, size_t B);
static inline const int32_t *bm_cuda_frames(bm_backend *be, bm_extent e)
{
    return bm_cuda_send(be, e.frames, e.B * sizeof *e.frames);
}

/* Copies, see cuda_copy.c. */
BM_CHECKED bm_status bm_cuda_slots_open(bm_backend *be);
void bm_cuda_slots_close(bm_backend *be);
void bm_cuda_put(bm_backend *be, float *dst, const float *src, size_t n);
void bm_cuda_get(bm_backend *be, float *dst, const float *src, size_t n);
void bm_cuda_pin(bm_backend *be, void *x, size_t bytes);
void bm_cuda_unpin(bm_backend *be, void *x);

/* A bm_async_copy's, cuda_async_copy.c. */
BM_CHECKED bm_status bm_cuda_async_copy_open(bm_backend *be, void **self);
void bm_cuda_async_copy_close(bm_backend *be, void *self);
void bm_cuda_async_copy_get(bm_backend *be, void *self, size_t piece,
                            float *dst, const float *src, size_t n);
BM_CHECKED bm_status bm_cuda_async_copy_wait(bm_backend *be, void *self,
                                             size_t piece);
void bm_cuda_async_copy_put(bm_backend *be, void *self, float *dst,
                            const float *src, size_t n);
void bm_cuda_async_copy_join(bm_backend *be, void *self);

extern const bm_device_comm_ops
    bm_cuda_device_comm_ops; /* cuda_device_comm.c */

/* cuDNN, see cuda_cudnn.h: its version, 0 without it. */
size_t bm_cudnn_version(bm_backend *be);
void bm_cudnn_close(bm_backend *be);

/* A bm_stage's, cuda_stage.c. */
BM_CHECKED bm_status bm_cuda_stage_open(bm_backend *be, void **self);
void bm_cuda_stage_close(bm_backend *be, void *self);
BM_CHECKED bm_status bm_cuda_stage_send(bm_backend *be, void *self, bm_extent e,
                                        size_t D, const bm_stored *sequences,
                                        float **x);

/* A matrix in a product: where it lies, as what, how many numbers from row to
 * row. */
typedef enum bm_cuda_type { BM_CUDA_F32, BM_CUDA_BF16 } bm_cuda_type;
typedef struct bm_cuda_factor {
    const void *x;
    bm_cuda_type type;
    size_t ld;
    bool transposed;
} bm_cuda_factor;

/* What a product does with each number before it is stored. */
typedef struct bm_cuda_finish {
    const void *bias; /* [n], of C's type, added to every row; NULL: none */
    bool relu;
} bm_cuda_finish;

/*
 * C [m, n] = finish(alpha op(A) op(B) + beta C), queued on `stream`; A and B
 * are of one type. Floats are multiplied as the backend's precision says: TF32
 * or fp32. finish NULL: nothing. The same bits for the same shapes, in memory
 * that is aligned alike, on one kind of device, always.
 */
BM_CHECKED bm_status bm_cuda_products_open(bm_backend *be);
void bm_cuda_products_close(bm_backend *be);
void bm_cuda_multiply(bm_backend *be, cudaStream_t stream, size_t m, size_t n,
                      size_t k, float alpha, bm_cuda_factor a, bm_cuda_factor b,
                      float beta, void *c, bm_cuda_type c_type, size_t ldc,
                      const bm_cuda_finish *finish);

/* The form of x [n] that products take here, as a factor with `ld`. */
bm_cuda_factor bm_cuda_factor_of(bm_backend *be, const float *x, size_t n,
                                 size_t ld, bool transposed);

/* Frame t of sequence b among frames of n floats. */
static inline size_t bm_cuda_at(bm_extent e, size_t t, size_t b, size_t n)
{
    return (t * e.B + b) * n;
}

/* State of the LSTM, see cuda_lstm.h. */
BM_CHECKED bm_status bm_cuda_lstm_open(bm_backend *be);
void bm_cuda_lstm_close(bm_backend *be);

/* The operations: see operations.h. */
#define BM_OPERATION(name, requirement, parameters, arguments)                 \
    void bm_cuda_##name parameters;
#define BM_SIZE_OPERATION(name, requirement, parameters, arguments)            \
    size_t bm_cuda_##name parameters;
#include "compute/operations.h"

#endif

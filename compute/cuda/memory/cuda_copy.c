/*
 * cuda_copy.c - copies between host and device. What is in memory that is not
 * pinned goes through two slots of pinned memory: the device copies one slot
 * while the host fills or empties the other. Only short vectors go straight to
 * such memory, and none comes from there: cudaMemcpyAsync may read it after it
 * returns.
 */
#include "compute/cuda/memory/cuda_copy.h"
#include "compute/cuda/memory/cuda_forms.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 1 << 20, /* floats */
    SLOTS = 2,
    RANGES = 8, /* pinned ranges of the caller, at most */
};

typedef struct range {
    char *x;
    size_t bytes;
} range;

struct bm_cuda_slots {
    float *host[SLOTS];      /* [PIECE] */
    cudaEvent_t free[SLOTS]; /* after the device's last use of the slot */
    size_t slot, used;       /* that vectors are put into, and its floats that
                                have been since it was free */
    range pinned[RANGES];
};
typedef struct bm_cuda_slots bm_cuda_slots;

bm_status bm_cuda_slots_open(bm_backend *be)
{
    bm_cuda_slots *s = bm_cuda_of(be)->slots = calloc(1, sizeof *s);

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    for (int i = 0; i < SLOTS; i++) {
        BM_TRY(bm_cuda_status(
            cudaMallocHost((void **)&s->host[i], PIECE * sizeof(float)),
            "pinned memory"));
        BM_TRY(bm_cuda_event_open(&s->free[i]));
    }
    return BM_OK;
}

void bm_cuda_slots_close(bm_backend *be)
{
    bm_cuda_slots *s = bm_cuda_of(be)->slots;

    if (s == NULL)
        return;
    for (int i = 0; i < SLOTS; i++) {
        if (s->free[i] != NULL)
            cudaEventDestroy(s->free[i]);
        cudaFreeHost(s->host[i]);
    }
    free(s);
}

void bm_cuda_pin(bm_backend *be, void *x, size_t bytes)
{
    bm_cuda_slots *s = bm_cuda_of(be)->slots;
    int i = 0;

    while (i < RANGES && s->pinned[i].x != NULL)
        i++;
    if (i == RANGES || bytes == 0)
        return;
    if (cudaHostRegister(x, bytes, cudaHostRegisterDefault) == cudaSuccess)
        s->pinned[i] = (range){x, bytes};
    else
        (void)cudaGetLastError(); /* it is copied through the slots */
}

void bm_cuda_unpin(bm_backend *be, void *x)
{
    bm_cuda_slots *s = bm_cuda_of(be)->slots;

    for (int i = 0; i < RANGES; i++)
        if (x != NULL && s->pinned[i].x == x) {
            cudaHostUnregister(x);
            s->pinned[i] = (range){0};
        }
}

static bool is_pinned(const bm_cuda_slots *s, const float *host, size_t n)
{
    const char *from = (const char *)host, *to = (const char *)(host + n);

    for (int i = 0; i < RANGES; i++)
        if (s->pinned[i].x != NULL && from >= s->pinned[i].x &&
            to <= s->pinned[i].x + s->pinned[i].bytes)
            return true;
    return false;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The device uses the slot until it has done what is queued. */
static void lend(bm_backend *be, cudaEvent_t slot)
{
    BM_CUDA(be, cudaEventRecord(slot, bm_cuda_of(be)->stream));
}

/* Goes on in the next slot, and waits until that is free. */
static void turn(bm_backend *be, bm_cuda_slots *s)
{
    lend(be, s->free[s->slot]);
    s->slot = (s->slot + 1) % SLOTS;
    s->used = 0;
    BM_CUDA(be, cudaEventSynchronize(s->free[s->slot]));
}

/* Short vectors share a slot: not each of them waits for the device. */
static void put_pieces(bm_backend *be, float *y, const float *host, size_t n)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_slots *s = cuda->slots;

    for (size_t at = 0, m = 0; at < n && be->failed == BM_OK; at += m) {
        float *piece = NULL;

        if (s->used == PIECE)
            turn(be, s);
        m = least(PIECE - s->used, n - at);
        piece = s->host[s->slot] + s->used;
        if (be->failed != BM_OK)
            return;
        memcpy(piece, host + at, m * sizeof *y);
        BM_CUDA(be, cudaMemcpyAsync(y + at, piece, m * sizeof *y,
                                    cudaMemcpyHostToDevice, cuda->stream));
        s->used += m;
    }
}

/* It waits for all that was put, as its own pieces are copied later. */
static void get_pieces(bm_backend *be, float *host, const float *x, size_t n)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_slots *s = cuda->slots;

    /* The host empties a slot one turn after the copy to it is queued. */
    for (size_t at = 0, k = 0; at < n + PIECE && be->failed == BM_OK;
         at += PIECE, k = (k + 1) % SLOTS) {
        size_t other = (k + 1) % SLOTS;

        if (at < n) {
            BM_CUDA(be, cudaMemcpyAsync(s->host[k], x + at,
                                        least(PIECE, n - at) * sizeof *x,
                                        cudaMemcpyDeviceToHost, cuda->stream));
            lend(be, s->free[k]);
        }
        if (at >= PIECE) {
            BM_CUDA(be, cudaEventSynchronize(s->free[other]));
            memcpy(host + at - PIECE, s->host[other],
                   least(PIECE, n - (at - PIECE)) * sizeof *host);
        }
    }
}

void bm_cuda_put(bm_backend *be, float *dst, const float *src, size_t n)
{
    bm_cuda *cuda = bm_cuda_of(be);
    float *y = bm_cuda_write(be, dst, n);

    if (!is_pinned(cuda->slots, src, n)) {
        put_pieces(be, y, src, n);
        return;
    }
    BM_CUDA(be, cudaMemcpyAsync(y, src, n * sizeof *dst, cudaMemcpyHostToDevice,
                                cuda->stream));
    /* The caller may change src when this returns. */
    BM_CUDA(be, cudaStreamSynchronize(cuda->stream));
}

void bm_cuda_get(bm_backend *be, float *dst, const float *src, size_t n)
{
    bm_cuda *cuda = bm_cuda_of(be);
    const float *x = NULL;

    x = bm_cuda_read(be, src, n);
    if (n > PIECE / 4 && !is_pinned(cuda->slots, dst, n)) {
        get_pieces(be, dst, x, n);
        return;
    }
    BM_CUDA(be, cudaMemcpyAsync(dst, x, n * sizeof *dst, cudaMemcpyDeviceToHost,
                                cuda->stream));
}

/* Work given to `be` from now on starts when `other` has done what it was given
 * so far. */
static void follow(bm_backend *be, bm_backend *other)
{
    BM_CUDA(other, cudaEventRecord(bm_cuda_of(other)->given,
                                   bm_cuda_of(other)->stream));
    BM_CUDA(be, cudaStreamWaitEvent(bm_cuda_of(be)->stream,
                                    bm_cuda_of(other)->given, 0));
}

void bm_cuda_copy_between(bm_backend *to, float *y, bm_backend *from,
                          const float *x, size_t n)
{
    x = bm_cuda_read(from, x, n);
    y = bm_cuda_write(to, y, n);
    follow(to, from);
    if (from->failed == BM_OK)
        BM_CUDA(to,
                cudaMemcpyAsync(y, x, n * sizeof *y, cudaMemcpyDeviceToDevice,
                                bm_cuda_of(to)->stream));
    follow(from, to);
}

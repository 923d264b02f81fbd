/*
 * cuda_stage.c - mini-batches on their way to the device. While it computes
 * with the input of one slot, that of the next travels on a stream of its own
 * and the host fills in the third. Two events for each slot:
 *
 *     sent   the copy has been made: the host may write, the stream may read
 *     used   what was queued on the stream has read it: a copy may come
 */
#include "compute/cuda/cuda.h"

#include <stdlib.h>

enum { SLOTS = 3 };

typedef struct slot {
    float *host; /* [room], pinned */
    float *x;    /* [room], on the device */
    size_t room;
    cudaEvent_t sent, used;
} slot;

typedef struct stage {
    cudaStream_t copies;
    slot slots[SLOTS];
    int at;
} stage;

static void free_room(bm_backend *be, slot *s)
{
    cudaFreeHost(s->host);
    bm_free(be, s->x);
    s->host = s->x = NULL;
    s->room = 0;
}

void bm_cuda_stage_close(bm_backend *be, void *self)
{
    stage *st = self;

    if (st->copies != NULL)
        cudaStreamSynchronize(st->copies);
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &st->slots[i];
        free_room(be, s);
        if (s->sent != NULL)
            cudaEventDestroy(s->sent);
        if (s->used != NULL)
            cudaEventDestroy(s->used);
    }
    if (st->copies != NULL)
        cudaStreamDestroy(st->copies);
    free(st);
}

static bm_status start(stage *st)
{
    BM_TRY(bm_cuda_status(
        cudaStreamCreateWithFlags(&st->copies, cudaStreamNonBlocking),
        "stream"));
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &st->slots[i];
        BM_TRY(bm_cuda_status(
            cudaEventCreateWithFlags(&s->sent, cudaEventDisableTiming),
            "event"));
        BM_TRY(bm_cuda_status(
            cudaEventCreateWithFlags(&s->used, cudaEventDisableTiming),
            "event"));
    }
    return BM_OK;
}

bm_status bm_cuda_stage_open(bm_backend *be, void **self)
{
    stage *st = calloc(1, sizeof *st);
    bm_status status = BM_OK;

    if (st == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for input");
    status = start(st);
    if (status == BM_OK)
        *self = st;
    else
        bm_cuda_stage_close(be, st);
    return status;
}

/* The device may still use what it has: bm_free waits. */
static bm_status reserve(bm_backend *be, slot *s, size_t n)
{
    size_t room = n + n / 8; /* the next one may be a little longer */

    if (s->x != NULL && n <= s->room)
        return BM_OK;
    free_room(be, s);
    BM_TRY(bm_cuda_status(
        cudaMallocHost((void **)&s->host, (room + 1) * sizeof *s->host),
        "pinned memory"));
    BM_TRY(bm_alloc(be, room, &s->x)); /* the stream clears it */
    bm_cuda_join(be);                  /* it may have been lent to `side` */
    BM_CUDA(be, cudaEventRecord(s->used, bm_cuda_of(be)->stream));
    s->room = room;
    return BM_OK;
}

bm_status bm_cuda_stage_room(bm_backend *be, void *self, size_t n, float **host)
{
    stage *st = self;
    slot *s = &st->slots[st->at];

    BM_CUDA(be, cudaEventRecord(s->used, bm_cuda_of(be)->stream));
    st->at = (st->at + 1) % SLOTS;
    s = &st->slots[st->at];
    BM_CUDA(be, cudaEventSynchronize(s->sent));
    BM_TRY(reserve(be, s, n));
    *host = s->host;
    return BM_OK;
}

float *bm_cuda_stage_send(bm_backend *be, void *self, size_t n)
{
    stage *st = self;
    slot *s = &st->slots[st->at];
    float *x = bm_cuda_write(be, s->x, s->room);

    BM_CUDA(be, cudaStreamWaitEvent(st->copies, s->used, 0));
    BM_CUDA(be, cudaMemcpyAsync(x, s->host, n * sizeof *x,
                                cudaMemcpyHostToDevice, st->copies));
    BM_CUDA(be, cudaEventRecord(s->sent, st->copies));
    BM_CUDA(be, cudaStreamWaitEvent(bm_cuda_of(be)->stream, s->sent, 0));
    return s->x;
}

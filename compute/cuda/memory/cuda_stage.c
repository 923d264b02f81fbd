/*
 * cuda_stage.c - sends mini-batches to the device as they are stored. A packet
 * in pinned memory is copied on a stream of its own, while the device computes
 * with the packet before and the host fills a third one. A kernel unpacks it
 * into [T, B, D], always in the same place. Each slot has two events:
 *
 *     sent   the copy is done: the host may write, the stream may read
 *     used   the packet is unpacked: the next copy may start
 */
#include "compute/cuda/memory/cuda_stage.h"
#include "compute/cuda/device/cuda_room.h"
#include "compute/cuda/kernels/kernels.h"
#include "compute/cuda/memory/cuda_forms.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 3, LINE = 64 }; /* bytes */

typedef struct slot {
    char *host;   /* [room], pinned */
    char *packet; /* [room], on the device */
    size_t room;
    cudaEvent_t sent, used;
} slot;

typedef struct stage {
    cudaStream_t copies;
    slot slots[SLOTS];
    int at;
    float *x; /* [room]: the last packet, unpacked */
    size_t room;
} stage;

static void free_room(slot *s)
{
    cudaFreeHost(s->host);
    cudaFree(s->packet);
    s->host = s->packet = NULL;
    s->room = 0;
}

void bm_cuda_stage_close(bm_backend *be, void *self)
{
    stage *st = self;

    if (st->copies != NULL)
        cudaStreamSynchronize(st->copies);
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &st->slots[i];
        free_room(s);
        if (s->sent != NULL)
            cudaEventDestroy(s->sent);
        if (s->used != NULL)
            cudaEventDestroy(s->used);
    }
    if (st->copies != NULL)
        cudaStreamDestroy(st->copies);
    bm_free(be, st->x);
    free(st);
}

static bm_status start(stage *st)
{
    BM_TRY(bm_cuda_status(
        cudaStreamCreateWithFlags(&st->copies, cudaStreamNonBlocking),
        "stream"));
    for (int i = 0; i < SLOTS; i++) {
        slot *s = &st->slots[i];
        BM_TRY(bm_cuda_event_open(&s->sent));
        BM_TRY(bm_cuda_event_open(&s->used));
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

/* Takes an eighth more than is needed, as the next packet may be longer. The
 * device may still use the old memory: cudaFree and bm_free wait. */
static bm_status reserve_slot(bm_backend *be, slot *s, size_t bytes)
{
    size_t room = bytes + bytes / 8;

    if (s->host != NULL && bytes <= s->room)
        return BM_OK;
    free_room(s);
    BM_TRY(bm_cuda_status(cudaMallocHost((void **)&s->host, room + 1),
                          "pinned memory"));
    BM_TRY(bm_cuda_status(bm_cuda_malloc(be, (void **)&s->packet, room + 1),
                          "cudaMalloc"));
    s->room = room;
    return BM_OK;
}

static bm_status reserve_x(bm_backend *be, stage *st, size_t n)
{
    if (st->x != NULL && n <= st->room)
        return BM_OK;
    bm_free(be, st->x);
    st->x = NULL;
    st->room = n + n / 8;
    return bm_alloc(be, st->room, &st->x);
}

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

/* Writes a packet to `host`, unless that is NULL, and returns its bytes.
 * Sequences of one shard share their scale. */
static size_t pack(char *host, bm_extent e, size_t D,
                   const bm_stored *sequences)
{
    bm_packet_column *columns = (bm_packet_column *)(void *)host;
    const float *scale = NULL;
    size_t used = lines(e.B * sizeof *columns), scale_at = 0;

    for (size_t b = 0; b < e.B; b++) {
        const bm_stored *p = &sequences[b];
        size_t frames = (size_t)e.frames[b], bytes = frames * D * p->bytes;

        if (p->bytes == 1 && p->scale != scale) {
            scale = p->scale;
            scale_at = used;
            used += lines(2 * D * sizeof *scale);
            if (host != NULL) {
                memcpy(host + scale_at, scale, D * sizeof *scale);
                memcpy(host + scale_at + D * sizeof *scale, p->offset,
                       D * sizeof *scale);
            }
        }
        if (host != NULL) {
            columns[b] = (bm_packet_column){used, scale_at, (int32_t)frames,
                                            (int32_t)p->bytes};
            if (bytes > 0)
                memcpy(host + used, p->x, bytes);
        }
        used += lines(bytes);
    }
    return used;
}

bm_status bm_cuda_stage_send(bm_backend *be, void *self, bm_extent e, size_t D,
                             const bm_stored *sequences, float **x)
{
    bm_cuda *cuda = bm_cuda_of(be);
    stage *st = self;
    size_t n = e.T * e.B * D, bytes = pack(NULL, e, D, sequences);
    slot *s = &st->slots[st->at = (st->at + 1) % SLOTS];
    bm_bf16 *x16 = NULL;

    BM_CUDA(be, cudaEventSynchronize(s->sent));
    BM_TRY(reserve_slot(be, s, bytes));
    BM_TRY(reserve_x(be, st, n));
    (void)pack(s->host, e, D, sequences);
    BM_CUDA(be, cudaStreamWaitEvent(st->copies, s->used, 0));
    BM_CUDA(be, cudaMemcpyAsync(s->packet, s->host, bytes,
                                cudaMemcpyHostToDevice, st->copies));
    BM_CUDA(be, cudaEventRecord(s->sent, st->copies));
    BM_CUDA(be, cudaStreamWaitEvent(cuda->stream, s->sent, 0));
    if (cuda->precision == BM_BF16)
        x16 = bm_cuda_write_both(be, st->x, n);
    else
        (void)bm_cuda_write(be, st->x, n);
    BM_CUDA(be,
            bm_kernel_unpack(cuda->stream, e.T, e.B, D, s->packet, st->x, x16));
    BM_CUDA(be, cudaEventRecord(s->used, cuda->stream));
    *x = st->x;
    return BM_OK;
}

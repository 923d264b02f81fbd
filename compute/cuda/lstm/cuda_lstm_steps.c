/*
 * cuda_lstm_steps.c - an LSTM or a GRU step by step: a product and a kernel for
 * each, on any device and in any precision; both directions on two streams.
 *
 * Every CHUNK steps, `place` on the device gets what has changed: the step, the
 * batch's vectors and lengths. h, c and their gradients are in `state`. So the
 * commands of a chunk are always the same. With BMUF_GRAPH=on they are captured
 * as a CUDA graph, once for each size and matrix wh; a graph serves batches of
 * any length, as kernels do nothing in steps past the last. B is rounded up.
 */
#include "compute/cuda/libraries/cuda_products.h"
#include "compute/cuda/lstm/cuda_lstm.h"
#include "compute/cuda/lstm/lstm_step_kernels.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 16, ROUND = 8, GRAPHS = 256 };

/* All that the commands of a chunk depend on. It has no padding, as memcmp
 * compares it. */
typedef struct known {
    size_t rows, H, R;
    size_t n, P; /* rows of wh; of a projection, or 0 */
    const void *wh, *b, *wr;
    int precision, backward;
} known;

typedef struct graph {
    known of;
    cudaGraphExec_t exec;
    unsigned long used; /* the last call that used it */
} graph;

struct bm_lstm_steps {
    cudaStream_t stream; /* the second direction's */
    cudaEvent_t forked, joined;
    bm_lstm_place *place;
    bm_cuda_room state;
    graph graphs[GRAPHS];
    size_t n_graphs;
    unsigned long calls;
};

/* The state of one direction: forward recurrent and h, backward the others. */
typedef struct state {
    float *recurrent; /* [rows, n]: wh h */
    float *dh;        /* [rows, H] */
    float *carried;   /* [rows, H]: dc, or `past` of a GRU */
    void *h;          /* S [rows, H] */
    void *dgates;     /* S [rows, n] */
    float *dhidden;   /* [rows, H]; with a projection, whose dh is [rows, P] */
    void *p;          /* S [rows, P]: y, or its gradient */
} state;

static size_t line(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Bytes of that, with room for floats in both passes. */
static size_t room_for_one(const known *k)
{
    size_t narrow = line(k->rows * k->H * sizeof(float));

    return 2 * line(k->rows * k->H * 4 * sizeof(float)) +
           (k->P > 0 ? 3 : 1) * narrow;
}

static state state_of(const struct bm_lstm_steps *own, const known *k, size_t r)
{
    size_t wide = line(k->rows * k->H * 4 * sizeof(float));
    size_t narrow = line(k->rows * k->H * sizeof(float));
    char *at = (char *)own->state.x + r * room_for_one(k);

    return (state){
        .recurrent = (float *)(void *)at,
        .h = at + wide,
        .dh = (float *)(void *)at,
        .dgates = at + wide,
        .carried = (float *)(void *)(at + 2 * wide),
        .dhidden = (float *)(void *)(at + 2 * wide + narrow),
        .p = at + 2 * wide + 2 * narrow,
    };
}

static bm_status start(struct bm_lstm_steps *own)
{
    BM_TRY(bm_cuda_stream_open(&own->stream));
    BM_TRY(bm_cuda_event_open(&own->forked));
    BM_TRY(bm_cuda_event_open(&own->joined));
    return bm_cuda_status(cudaMalloc((void **)&own->place, sizeof *own->place),
                          "cudaMalloc");
}

static void free_graphs(struct bm_lstm_steps *own)
{
    for (size_t i = 0; i < own->n_graphs; i++)
        cudaGraphExecDestroy(own->graphs[i].exec);
    own->n_graphs = 0;
}

static void steps_close(bm_backend *be)
{
    struct bm_lstm_steps *own = bm_cuda_of(be)->lstm->steps;

    if (own == NULL)
        return;
    free_graphs(own);
    cudaFree(own->state.x);
    cudaFree(own->place);
    if (own->joined != NULL)
        cudaEventDestroy(own->joined);
    if (own->forked != NULL)
        cudaEventDestroy(own->forked);
    if (own->stream != NULL)
        cudaStreamDestroy(own->stream);
    free(own);
    bm_cuda_of(be)->lstm->steps = NULL;
}

/* The state of this backend, opened by the first call. NULL after a failure. */
static struct bm_lstm_steps *own_of(bm_backend *be)
{
    struct bm_cuda_lstm *lstm = bm_cuda_of(be)->lstm;

    if (lstm->steps == NULL) {
        lstm->steps = calloc(1, sizeof *lstm->steps);
        if (lstm->steps == NULL)
            bm_remember(be, BM_FAIL(BM_ERR_MEMORY, "no memory for an LSTM"));
        else
            bm_remember(be, start(lstm->steps));
    }
    return be->failed == BM_OK ? lstm->steps : NULL;
}

/* Graphs hold the state's address. */
static void reserve(bm_backend *be, struct bm_lstm_steps *own, size_t bytes)
{
    if (bytes > own->state.bytes)
        free_graphs(own);
    (void)bm_cuda_room_for(be, &own->state, bytes);
}

/* One step of direction r, whose weights are wh and wr. */
typedef struct one_step {
    bm_lstm_step s;
    state at;
    bm_cuda_type type;
    size_t n, Y; /* rows and columns of wh */
    const void *wh, *wr;
    bool lstm;
} one_step;

static void step_forward(bm_backend *be, cudaStream_t stream, const one_step *o)
{
    size_t rows = o->s.rows, H = o->s.H, P = o->s.P;
    const void *y = P > 0 ? o->at.p : o->at.h;

    bm_cuda_multiply(be, stream, rows, o->n, o->Y, 1,
                     (bm_cuda_factor){y, o->type, o->Y, false},
                     (bm_cuda_factor){o->wh, o->type, o->Y, true}, 0,
                     o->at.recurrent, BM_CUDA_F32, o->n, NULL);
    BM_CUDA(be, (o->lstm ? bm_kernel_lstm_step : bm_kernel_gru_step)(
                    stream, &o->s, o->at.recurrent, o->at.h));
    if (P == 0)
        return;
    bm_cuda_multiply(be, stream, rows, P, H, 1,
                     (bm_cuda_factor){o->at.h, o->type, H, false},
                     (bm_cuda_factor){o->wr, o->type, H, true}, 0, o->at.p,
                     o->type, P, NULL);
    BM_CUDA(be, bm_kernel_lstm_project(stream, &o->s, o->at.p));
}

static void step_backward(bm_backend *be, cudaStream_t stream,
                          const one_step *o)
{
    size_t rows = o->s.rows, H = o->s.H, P = o->s.P;

    bm_cuda_multiply(be, stream, rows, o->Y, o->n, 1,
                     (bm_cuda_factor){o->at.dgates, o->type, o->n, false},
                     (bm_cuda_factor){o->wh, o->type, o->Y, false}, 0, o->at.dh,
                     BM_CUDA_F32, o->Y, NULL);
    if (P > 0) {
        BM_CUDA(be,
                bm_kernel_lstm_project_back(stream, &o->s, o->at.dh, o->at.p));
        bm_cuda_multiply(be, stream, rows, H, P, 1,
                         (bm_cuda_factor){o->at.p, o->type, P, false},
                         (bm_cuda_factor){o->wr, o->type, H, false}, 0,
                         o->at.dhidden, BM_CUDA_F32, H, NULL);
    }
    BM_CUDA(be, (o->lstm ? bm_kernel_lstm_step_back : bm_kernel_gru_step_back)(
                    stream, &o->s, P > 0 ? o->at.dhidden : o->at.dh,
                    o->at.carried, o->at.dgates));
}

static void queue_step(bm_backend *be, cudaStream_t stream, const known *k,
                       size_t r, size_t step)
{
    const struct bm_lstm_steps *own = bm_cuda_of(be)->lstm->steps;
    bool bf16 = bm_lstm_in_bf16(be);
    size_t H = k->H, Y = k->P > 0 ? k->P : H;
    one_step o = {.s = {.rows = k->rows,
                        .H = H,
                        .P = k->P,
                        .R = k->R,
                        .r = r,
                        .step = step,
                        .bf16 = bf16,
                        .b = bm_lstm_at(be, k->b, r * 4 * H),
                        .at = own->place},
                  .at = state_of(own, k, r),
                  .type = bf16 ? BM_CUDA_BF16 : BM_CUDA_F32,
                  .n = k->n,
                  .Y = Y,
                  .wh = bm_lstm_at(be, k->wh, r * k->n * Y),
                  .lstm = k->n == 4 * H};

    if (k->P > 0)
        o.wr = bm_lstm_at(be, k->wr, r * k->P * H);
    if (k->backward)
        step_backward(be, stream, &o);
    else
        step_forward(be, stream, &o);
}

static void queue_chunk(bm_backend *be, const known *k, size_t steps)
{
    struct bm_lstm_steps *own = bm_cuda_of(be)->lstm->steps;
    cudaStream_t streams[2] = {bm_cuda_of(be)->stream, own->stream};

    if (k->R > 1) {
        BM_CUDA(be, cudaEventRecord(own->forked, streams[0]));
        BM_CUDA(be, cudaStreamWaitEvent(streams[1], own->forked, 0));
    }
    for (size_t r = 0; r < k->R; r++)
        for (size_t step = 0; step < steps; step++)
            queue_step(be, streams[r], k, r, step);
    if (k->R > 1) {
        BM_CUDA(be, cudaEventRecord(own->joined, streams[1]));
        BM_CUDA(be, cudaStreamWaitEvent(streams[0], own->joined, 0));
    }
}

/* Queues an empty chunk first: planning products and loading kernels is not
 * allowed during a capture. */
static cudaGraphExec_t capture(bm_backend *be, const known *k)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_lstm_place nothing = {.T = 0};
    cudaGraph_t recorded = NULL;
    cudaGraphExec_t exec = NULL;

    BM_CUDA(be, bm_kernel_lstm_place(stream, &nothing,
                                     bm_cuda_of(be)->lstm->steps->place));
    queue_chunk(be, k, CHUNK);
    BM_CUDA(be,
            cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    if (be->failed != BM_OK)
        return NULL;
    queue_chunk(be, k, CHUNK);
    bm_cuda_note(be, cudaStreamEndCapture(stream, &recorded), "capture");
    BM_CUDA(be, cudaGraphInstantiate(&exec, recorded, 0));
    if (recorded != NULL)
        cudaGraphDestroy(recorded);
    return be->failed == BM_OK ? exec : NULL;
}

/* A free entry: the least recently used one if there are many. */
static graph *free_entry(struct bm_lstm_steps *own)
{
    graph *oldest = &own->graphs[0];

    if (own->n_graphs < GRAPHS)
        return &own->graphs[own->n_graphs++];
    for (size_t i = 1; i < GRAPHS; i++)
        if (own->graphs[i].used < oldest->used)
            oldest = &own->graphs[i];
    cudaGraphExecDestroy(oldest->exec);
    return oldest;
}

/* NULL after a failure. */
static cudaGraphExec_t graph_of(bm_backend *be, const known *k)
{
    struct bm_lstm_steps *own = bm_cuda_of(be)->lstm->steps;
    cudaGraphExec_t exec = NULL;

    own->calls++;
    for (size_t i = 0; i < own->n_graphs; i++)
        if (memcmp(&own->graphs[i].of, k, sizeof *k) == 0) {
            own->graphs[i].used = own->calls;
            return own->graphs[i].exec;
        }
    exec = capture(be, k);
    if (exec != NULL)
        *free_entry(own) = (graph){*k, exec, own->calls};
    return exec;
}

static void sweep(bm_backend *be, const bm_lstm_sweep *s, bool backward)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_lstm_place place = {.T = s->T,
                           .B = s->B,
                           .frames = s->frames,
                           .gates = s->gates,
                           .cells = s->cells,
                           .y = s->P > 0 ? s->hidden : s->y,
                           .dy = s->P > 0 ? NULL : s->dy,
                           .projected = backward ? s->down : s->y,
                           .dprojected = s->dy};
    struct bm_lstm_steps *own = own_of(be);
    bool graphs = bm_cuda_of(be)->graphs;
    cudaGraphExec_t exec = NULL;
    known k = {.rows = (s->B + ROUND - 1) / ROUND * ROUND,
               .H = s->H,
               .R = s->R,
               .n = s->rows,
               .P = s->P,
               .wh = s->wh,
               .b = s->b,
               .wr = s->wr,
               .precision = bm_cuda_of(be)->precision,
               .backward = backward};
    size_t bytes = s->R * room_for_one(&k);

    if (own == NULL)
        return;
    reserve(be, own, bytes);
    if (graphs && be->failed == BM_OK)
        exec = graph_of(be, &k);
    BM_CUDA(be, cudaMemsetAsync(own->state.x, 0, bytes, stream));
    for (; place.step < s->T && be->failed == BM_OK; place.step += CHUNK) {
        size_t left = s->T - place.step;

        BM_CUDA(be, bm_kernel_lstm_place(stream, &place, own->place));
        if (graphs)
            BM_CUDA(be, cudaGraphLaunch(exec, stream));
        else
            queue_chunk(be, &k, left < CHUNK ? left : CHUNK);
    }
}

const bm_lstm_engine bm_lstm_engine_steps = {
    .name = "steps",
    .sweep = sweep,
    .close = steps_close,
};

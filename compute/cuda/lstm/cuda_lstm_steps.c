/*
 * cuda_lstm_steps.c - an LSTM step by step: a product and a kernel for each, on
 * any device.
 *
 * CHUNK steps of all directions are a CUDA graph, directions side by side. What
 * changes from launch to launch (which step, where gates lie, lengths) stands
 * in `place` on the device, and h, c and their gradients in `state`, so that
 * one graph serves batches of any length; and of some more sequences, which are
 * rounded up. Steps past the last do nothing. In a step of training that is a
 * graph (cuda_step.h) each launch is a child of that.
 */
#include "compute/cuda/lstm/cuda_lstm.h"
#include "compute/cuda/lstm/lstm_step_kernels.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 16, ROUND = 8, GRAPHS = 256 };

/* All that a graph knows. */
typedef struct known {
    size_t rows, H, R;
    const void *wh;
    int precision, backward;
} known;

typedef struct graph {
    known of;
    cudaGraph_t recorded;
    cudaGraphExec_t replay;
    unsigned long made, used; /* when: numbers of calls */
} graph;

struct bm_lstm_steps {
    cudaStream_t stream; /* the second direction's, in a capture */
    cudaEvent_t forked, joined;
    bm_lstm_place *place;
    char *state;
    size_t room; /* bytes in state */
    graph graphs[GRAPHS];
    size_t n_graphs;
    unsigned long calls;
};

/* One direction's part of the state; forward h and recurrent, backward the
 * others. */
typedef struct state {
    float *recurrent; /* [rows, 4, H]: wh h */
    float *dh, *dc;   /* [rows, H] */
    void *h;          /* S [rows, H] */
    void *dgates;     /* S [rows, 4, H] */
} state;

static size_t line(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Both passes have room for floats. */
static size_t room_for_one(const known *k)
{
    return 2 * line(k->rows * k->H * 4 * sizeof(float)) +
           line(k->rows * k->H * sizeof(float));
}

static state state_of(const struct bm_lstm_steps *own, const known *k, size_t r)
{
    size_t wide = line(k->rows * k->H * 4 * sizeof(float));
    char *at = own->state + r * room_for_one(k);

    return (state){
        .recurrent = (float *)(void *)at,
        .h = at + wide,
        .dh = (float *)(void *)at,
        .dgates = at + wide,
        .dc = (float *)(void *)(at + 2 * wide),
    };
}

static bm_status start(struct bm_lstm_steps *own)
{
    BM_TRY(bm_cuda_stream_open(&own->stream));
    BM_TRY(bm_cuda_status(
        cudaEventCreateWithFlags(&own->forked, cudaEventDisableTiming),
        "event"));
    BM_TRY(bm_cuda_status(
        cudaEventCreateWithFlags(&own->joined, cudaEventDisableTiming),
        "event"));
    return bm_cuda_status(cudaMalloc((void **)&own->place, sizeof *own->place),
                          "cudaMalloc");
}

static void destroy(graph *g)
{
    if (g->replay != NULL)
        cudaGraphExecDestroy(g->replay);
    if (g->recorded != NULL)
        cudaGraphDestroy(g->recorded);
}

static void forget_graphs(struct bm_lstm_steps *own)
{
    for (size_t i = 0; i < own->n_graphs; i++)
        destroy(&own->graphs[i]);
    own->n_graphs = 0;
}

static void steps_close(bm_backend *be)
{
    struct bm_lstm_steps *own = bm_cuda_of(be)->lstm->steps;

    if (own == NULL)
        return;
    forget_graphs(own);
    cudaFree(own->state);
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

/* What this backend has; NULL after a failure. */
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

static void reserve(bm_backend *be, struct bm_lstm_steps *own, size_t bytes)
{
    if (bytes <= own->room)
        return;
    bm_step_leave(be);
    forget_graphs(own); /* which know where the old one is */
    cudaFree(own->state);
    own->state = NULL;
    own->room = 0;
    BM_CUDA(be, cudaMalloc((void **)&own->state, bytes));
    if (be->failed == BM_OK)
        own->room = bytes;
}

static void queue_step(bm_backend *be, cudaStream_t stream, const known *k,
                       size_t r, size_t step)
{
    const struct bm_lstm_steps *own = bm_cuda_of(be)->lstm->steps;
    bool bf16 = bm_lstm_in_bf16(be);
    bm_cuda_type type = bf16 ? BM_CUDA_BF16 : BM_CUDA_F32;
    size_t H = k->H, each = bf16 ? sizeof(bm_bf16) : sizeof(float);
    const char *wh = (const char *)k->wh + r * 4 * H * H * each;
    bm_lstm_step s = {k->rows, H, k->R, r, step, bf16, own->place};
    state at = state_of(own, k, r);

    if (k->backward) {
        bm_cuda_multiply(be, stream, k->rows, H, 4 * H, 1,
                         (bm_cuda_factor){at.dgates, type, 4 * H, false},
                         (bm_cuda_factor){wh, type, H, false}, 0, at.dh,
                         BM_CUDA_F32, H, NULL);
        BM_CUDA(be,
                bm_kernel_lstm_step_back(stream, &s, at.dh, at.dc, at.dgates));
    } else {
        bm_cuda_multiply(be, stream, k->rows, 4 * H, H, 1,
                         (bm_cuda_factor){at.h, type, H, false},
                         (bm_cuda_factor){wh, type, H, true}, 0, at.recurrent,
                         BM_CUDA_F32, 4 * H, NULL);
        BM_CUDA(be, bm_kernel_lstm_step(stream, &s, at.recurrent, at.h));
    }
}

static void queue_chunk(bm_backend *be, const known *k)
{
    struct bm_lstm_steps *own = bm_cuda_of(be)->lstm->steps;
    cudaStream_t streams[2] = {bm_cuda_of(be)->stream, own->stream};

    if (k->R > 1) {
        BM_CUDA(be, bm_step_record(be, streams[0], own->forked));
        BM_CUDA(be, bm_step_wait(be, streams[1], own->forked));
    }
    for (size_t r = 0; r < k->R; r++)
        for (size_t step = 0; step < CHUNK; step++)
            queue_step(be, streams[r], k, r, step);
    if (k->R > 1) {
        BM_CUDA(be, bm_step_record(be, streams[1], own->joined));
        BM_CUDA(be, bm_step_wait(be, streams[0], own->joined));
    }
}

/* Runs once with nothing to do first, so that products are planned and kernels
 * loaded: not all of that is allowed in a capture. */
static void capture(bm_backend *be, const known *k, graph *out)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_lstm_place nothing = {.T = 0};

    bm_step_leave(be);
    BM_CUDA(be, bm_kernel_lstm_place(stream, &nothing,
                                     bm_cuda_of(be)->lstm->steps->place));
    queue_chunk(be, k);
    BM_CUDA(be,
            cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    if (be->failed != BM_OK)
        return;
    queue_chunk(be, k);
    bm_cuda_note(be, cudaStreamEndCapture(stream, &out->recorded), "capture");
    BM_CUDA(be, cudaGraphInstantiate(&out->replay, out->recorded, 0));
}

/* The least recently used one, once there are many. */
static graph *free_place(struct bm_lstm_steps *own)
{
    graph *oldest = &own->graphs[0];

    if (own->n_graphs < GRAPHS)
        return &own->graphs[own->n_graphs++];
    for (size_t i = 1; i < GRAPHS; i++)
        if (own->graphs[i].used < oldest->used)
            oldest = &own->graphs[i];
    destroy(oldest);
    return oldest;
}

/* NULL after a failure. */
static const graph *graph_of(bm_backend *be, const known *k)
{
    struct bm_lstm_steps *own = bm_cuda_of(be)->lstm->steps;
    graph new = {.of = *k};
    graph *g = NULL;

    new.made = new.used = ++own->calls;
    for (size_t i = 0; i < own->n_graphs; i++)
        if (memcmp(&own->graphs[i].of, k, sizeof *k) == 0) {
            own->graphs[i].used = own->calls;
            return &own->graphs[i];
        }
    capture(be, k, &new);
    if (new.replay == NULL) {
        destroy(&new);
        return NULL;
    }
    g = free_place(own);
    *g = new;
    return g;
}

/* One launch; which of all graphs it is, `made` tells. */
typedef struct launch {
    cudaGraph_t recorded;
    cudaGraphExec_t replay;
    unsigned long made;
} launch;

/* Adds a graph to the one that is being captured. */
static cudaError_t add_child(cudaStream_t stream, cudaGraph_t child)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t *before = NULL;
    const cudaGraphEdgeData *edges = NULL; /* else some get no answer */
    cudaGraph_t parent = NULL;
    cudaGraphNode_t node = NULL;
    size_t n = 0;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, NULL, &parent,
                                                 &before, &edges, &n);

    if (error == cudaSuccess)
        error = cudaGraphAddChildGraphNode(&node, parent, before, n, child);
    if (error == cudaSuccess)
        error = cudaStreamUpdateCaptureDependencies(
            stream, &node, NULL, 1, cudaStreamSetCaptureDependencies);
    return error;
}

static cudaError_t queue_graph(bm_backend *be, cudaStream_t stream,
                               const void *what)
{
    const launch *l = what;

    return bm_step_captures(be) ? add_child(stream, l->recorded)
                                : cudaGraphLaunch(l->replay, stream);
}

static void sweep(bm_backend *be, const bm_lstm_sweep *s, bool backward)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;
    bm_lstm_place place = {.T = s->T,
                           .B = s->B,
                           .frames = s->frames,
                           .gates = s->gates,
                           .cells = s->cells,
                           .y = s->y,
                           .dy = s->dy};
    struct bm_lstm_steps *own = NULL;
    const graph *g = NULL;
    launch one;
    known k = {.rows = (s->B + ROUND - 1) / ROUND * ROUND,
               .H = s->H,
               .R = s->R,
               .wh = s->wh,
               .precision = bm_cuda_of(be)->precision,
               .backward = backward};

    own = own_of(be);
    if (own == NULL)
        return;
    reserve(be, own, s->R * room_for_one(&k));
    g = graph_of(be, &k);
    if (g == NULL)
        return;
    one = (launch){g->recorded, g->replay, g->made};
    BM_CUDA(be, bm_step_clear(be, stream, own->state, s->R * room_for_one(&k)));
    for (; place.step < s->T; place.step += CHUNK) {
        BM_CUDA(be, bm_kernel_lstm_place(stream, &place, own->place));
        BM_CUDA(be, bm_step_queue(be, queue_graph, stream, &one, sizeof one));
    }
}

static void sweep_forward(bm_backend *be, const bm_lstm_sweep *s)
{
    sweep(be, s, false);
}

static void sweep_backward(bm_backend *be, const bm_lstm_sweep *s)
{
    sweep(be, s, true);
}

static void forward(bm_backend *be, const bm_lstm *l, bm_extent e,
                    const float *x, float *y, float *kept)
{
    bm_lstm_around_forward(be, l, e, x, y, kept, sweep_forward);
}

static void backward(bm_backend *be, const bm_lstm *l, bm_extent e,
                     const float *x, const float *y, const float *dy,
                     float *kept, float *dx, float *dwx, float *dwh, float *db)
{
    bm_lstm_around_backward(be, l, e, x, y, dy, kept, dx, dwx, dwh, db,
                            sweep_backward);
}

const bm_lstm_engine bm_lstm_engine_steps = {
    .name = "steps",
    .kept = bm_lstm_around_kept,
    .forward = forward,
    .backward = backward,
    .close = steps_close,
};

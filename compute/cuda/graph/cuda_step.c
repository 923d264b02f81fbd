/*
 * cuda_step.c - see cuda_step.h. A command is a kernel or a call, and what it
 * is given, as bytes; a tape is the commands of a step.
 */
#include "compute/cuda/graph/cuda_step.h"
#include "compute/cuda/cuda.h"
#include "compute/cuda/graph/cuda_launch.h"

#include <stdlib.h>
#include <string.h>

enum {
    SHAPES = 64,    /* kept: the least recently used one goes */
    TRIES = 3,      /* steps in a row that do not fit their graph; graphs */
    SLOTS = 4,      /* blocks on their way */
    BLOCK = 1 << 20 /* bytes */
};

typedef struct command {
    bm_step_call *call; /* NULL: a kernel */
    cudaStream_t stream;
    size_t at, bytes;     /* what it is given, in the tape */
    cudaGraphNode_t node; /* of a kernel */
    bool changed;         /* the graph's kernel has older arguments */
} command;

typedef struct tape {
    command *commands;
    size_t n, room;
    char *bytes;
    size_t n_bytes, room_bytes;
} tape;

/* What a step is recognised by, before anything is told. */
typedef struct shape {
    const void *owner;
    size_t T, B;
} shape;

typedef struct step {
    shape of;
    unsigned long used; /* when: number of the step */
    tape tape;
    cudaGraph_t graph;      /* its nodes are the commands' */
    cudaGraphExec_t replay; /* NULL: there is none */
    int misfits;            /* in a row */
    int graphs;             /* given up since the last that was of use */
} step;

typedef enum mode {
    PLAIN, /* things are queued as they are told */
    RECORD,
    COMPARE,
} mode;

struct bm_cuda_steps {
    bm_backend *be;
    bool off, begun;
    mode mode;
    step *now;
    size_t at; /* COMPARE: the next command */
    step steps[SHAPES];
    size_t n_steps;
    unsigned long count;

    char *host[SLOTS]; /* [BLOCK], pinned */
    char *device;      /* [BLOCK] */
    cudaEvent_t through[SLOTS];
    size_t used; /* of the block */
    int slot;
};

/* That of the step which this thread tells, unless it is PLAIN: launchers know
 * no backend. */
static _Thread_local struct bm_cuda_steps *telling;

static struct bm_cuda_steps *steps_of(const bm_backend *be)
{
    return bm_cuda_of(be)->steps;
}

bm_status bm_step_open(bm_backend *be)
{
    const char *told = getenv("BMUF_GRAPH");
    struct bm_cuda_steps *s = bm_cuda_of(be)->steps = calloc(1, sizeof *s);

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the cuda backend");
    s->be = be;
    s->off = told != NULL && strcmp(told, "off") == 0;
    if (told != NULL && !s->off && strcmp(told, "on") != 0)
        return BM_FAIL(BM_ERR_CONFIG, "BMUF_GRAPH: '%s' is neither on nor off",
                       told);
    BM_TRY(
        bm_cuda_status(cudaMalloc((void **)&s->device, BLOCK), "cudaMalloc"));
    for (int i = 0; i < SLOTS; i++) {
        BM_TRY(bm_cuda_status(cudaMallocHost((void **)&s->host[i], BLOCK),
                              "pinned memory"));
        BM_TRY(bm_cuda_status(
            cudaEventCreateWithFlags(&s->through[i], cudaEventDisableTiming),
            "event"));
    }
    return BM_OK;
}

/* ---- tapes --------------------------------------------------------------- */

static void forget_graph(step *s)
{
    if (s->replay != NULL)
        cudaGraphExecDestroy(s->replay);
    if (s->graph != NULL)
        cudaGraphDestroy(s->graph);
    s->replay = NULL;
    s->graph = NULL;
    s->tape.n = s->tape.n_bytes = 0;
}

static void free_step(step *s)
{
    forget_graph(s);
    free(s->tape.commands);
    free(s->tape.bytes);
}

void bm_step_close(bm_backend *be)
{
    struct bm_cuda_steps *s = steps_of(be);

    if (s == NULL)
        return;
    if (telling == s)
        telling = NULL;
    for (size_t i = 0; i < s->n_steps; i++)
        free_step(&s->steps[i]);
    for (int i = 0; i < SLOTS; i++) {
        if (s->through[i] != NULL)
            cudaEventDestroy(s->through[i]);
        cudaFreeHost(s->host[i]);
    }
    cudaFree(s->device);
    free(s);
    bm_cuda_of(be)->steps = NULL;
}

static bool reserve(void *vector, size_t n, size_t *room, size_t size)
{
    void **x = vector, *more = NULL;

    if (n <= *room)
        return true;
    more = realloc(*x, 2 * n * size);
    if (more == NULL)
        return false;
    *x = more;
    *room = 2 * n;
    return true;
}

/* NULL: no memory. */
static command *append(tape *t, command c, const void *what)
{
    if (!reserve(&t->commands, t->n + 1, &t->room, sizeof *t->commands) ||
        !reserve(&t->bytes, t->n_bytes + c.bytes, &t->room_bytes, 1))
        return NULL;
    c.at = t->n_bytes;
    memcpy(t->bytes + c.at, what, c.bytes);
    t->n_bytes += (c.bytes + 15) / 16 * 16;
    t->commands[t->n] = c;
    return &t->commands[t->n++];
}

/* ---- telling ------------------------------------------------------------- */

static cudaError_t queue_now(struct bm_cuda_steps *s, bm_step_call *call,
                             cudaStream_t stream, void *what)
{
    return call != NULL ? call(s->be, stream, what)
                        : bm_launch_packed(stream, what);
}

static void send_block(struct bm_cuda_steps *s)
{
    cudaStream_t stream = bm_cuda_of(s->be)->stream;

    if (s->used == 0)
        return;
    BM_CUDA(s->be, cudaMemcpyAsync(s->device, s->host[s->slot], s->used,
                                   cudaMemcpyHostToDevice, stream));
    BM_CUDA(s->be, cudaEventRecord(s->through[s->slot], stream));
}

/* Queues the first n commands as they were told; the rest will be. */
static void queue_told(struct bm_cuda_steps *s, size_t n)
{
    tape *t = &s->now->tape;

    s->mode = PLAIN;
    telling = NULL;
    send_block(s);
    for (size_t i = 0; i < n; i++) {
        const command *c = &t->commands[i];
        BM_CUDA(s->be, queue_now(s, c->call, c->stream, t->bytes + c->at));
    }
}

/* Ends what BeginCapture began; NULL: it is no graph. */
static cudaGraph_t end_capture(struct bm_cuda_steps *s)
{
    cudaGraph_t graph = NULL;

    if (cudaStreamEndCapture(bm_cuda_of(s->be)->stream, &graph) != cudaSuccess)
        (void)cudaGetLastError(); /* it is queued as it was told */
    return graph;
}

static void give_up(step *s)
{
    forget_graph(s);
    s->misfits = 0;
    s->graphs++;
}

static void leave(struct bm_cuda_steps *s)
{
    step *now = s->now;

    if (s->mode == RECORD) {
        cudaGraph_t graph = end_capture(s);

        if (graph != NULL)
            cudaGraphDestroy(graph);
        queue_told(s, now->tape.n);
        give_up(now);
    } else if (s->mode == COMPARE) {
        queue_told(s, s->at);
        if (++now->misfits == TRIES)
            give_up(now);
    }
}

void bm_step_leave(bm_backend *be)
{
    leave(steps_of(be));
}

/* Whether the next command is this one; takes over a kernel's arguments. */
static bool fits(struct bm_cuda_steps *s, bm_step_call *call,
                 cudaStream_t stream, const char *what, size_t bytes)
{
    tape *t = &s->now->tape;
    command *c = &t->commands[s->at];
    char *noted = NULL;

    if (s->at == t->n || c->call != call || c->stream != stream ||
        c->bytes != bytes)
        return false;
    noted = t->bytes + c->at;
    if (memcmp(noted, what, bytes) == 0)
        return true;
    if (call != NULL || !bm_launch_is_same(noted, what))
        return false;
    memcpy(noted, what, bytes);
    c->changed = true;
    return true;
}

/* A kernel that has just been captured is what its stream goes on from. */
static cudaError_t find_node(cudaStream_t stream, cudaGraphNode_t *out)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    const cudaGraphNode_t *last = NULL;
    const cudaGraphEdgeData *edges = NULL; /* else some get no answer */
    size_t n = 0;
    cudaError_t error = cudaStreamGetCaptureInfo(stream, &status, NULL, NULL,
                                                 &last, &edges, &n);

    if (error == cudaSuccess && n != 1)
        error = cudaErrorStreamCaptureUnmatched;
    if (error == cudaSuccess)
        *out = last[0];
    return error;
}

static cudaError_t record(struct bm_cuda_steps *s, bm_step_call *call,
                          cudaStream_t stream, void *what, size_t bytes)
{
    command *c =
        append(&s->now->tape,
               (command){.call = call, .stream = stream, .bytes = bytes}, what);
    cudaError_t error = cudaSuccess;

    if (c == NULL)
        return cudaErrorMemoryAllocation;
    error = queue_now(s, call, stream, what);
    if (error == cudaSuccess && call == NULL)
        error = find_node(stream, &c->node);
    if (error != cudaSuccess) { /* no graph has it */
        (void)cudaGetLastError();
        leave(s);
    }
    return cudaSuccess;
}

static cudaError_t tell(struct bm_cuda_steps *s, bm_step_call *call,
                        cudaStream_t stream, void *what, size_t bytes)
{
    if (s->mode == RECORD)
        return record(s, call, stream, what, bytes);
    if (s->mode == COMPARE && fits(s, call, stream, what, bytes)) {
        s->at++;
        return cudaSuccess;
    }
    leave(s);
    return queue_now(s, call, stream, what);
}

cudaError_t bm_step_launch(const bm_launch *l)
{
    _Alignas(16) char bytes[BM_LAUNCH_BYTES];

    if (telling == NULL)
        return bm_launch_now(l);
    return tell(telling, NULL, l->stream, bytes, bm_launch_pack(l, bytes));
}

cudaError_t bm_step_queue(bm_backend *be, bm_step_call *call,
                          cudaStream_t stream, const void *what, size_t bytes)
{
    struct bm_cuda_steps *s = steps_of(be);

    if (s == NULL || s->mode == PLAIN)
        return call(be, stream, what);
    return tell(s, call, stream, (void *)what, bytes);
}

bool bm_step_captures(const bm_backend *be)
{
    const struct bm_cuda_steps *s = steps_of(be);
    return s != NULL && s->mode == RECORD;
}

/* A send of about as many bytes in the next step shall lie where this one does,
 * and so what comes after it: rounded up by at most a quarter. */
static size_t rounded(size_t bytes)
{
    size_t line = 256;

    while (4 * line < bytes)
        line *= 2;
    return (bytes + line - 1) / line * line;
}

void *bm_step_room(bm_backend *be, size_t bytes, const void **device)
{
    struct bm_cuda_steps *s = steps_of(be);
    size_t at = 0;

    if (s == NULL || s->mode == PLAIN || be->failed != BM_OK)
        return NULL;
    if (bytes > BLOCK || s->used + rounded(bytes) > BLOCK) {
        leave(s);
        return NULL;
    }
    at = s->used;
    s->used += rounded(bytes);
    *device = s->device + at;
    return s->host[s->slot] + at;
}

/* ---- steps --------------------------------------------------------------- */

/* That of this shape, an empty one if it is new. */
static step *step_of(struct bm_cuda_steps *s, shape of)
{
    step *oldest = &s->steps[0];

    s->count++;
    for (size_t i = 0; i < s->n_steps; i++) {
        step *one = &s->steps[i];
        if (one->of.owner == of.owner && one->of.T == of.T && one->of.B == of.B)
            return one;
        if (one->used < oldest->used)
            oldest = one;
    }
    if (s->n_steps < SHAPES)
        oldest = &s->steps[s->n_steps++];
    free_step(oldest);
    *oldest = (step){.of = of};
    return oldest;
}

static void start(struct bm_cuda_steps *s, mode m)
{
    s->slot = (s->slot + 1) % SLOTS;
    s->used = s->at = 0;
    BM_CUDA(s->be, cudaEventSynchronize(s->through[s->slot]));
    if (m == RECORD) {
        s->now->tape.n = s->now->tape.n_bytes = 0;
        BM_CUDA(s->be,
                cudaStreamBeginCapture(bm_cuda_of(s->be)->stream,
                                       cudaStreamCaptureModeThreadLocal));
    }
    if (s->be->failed != BM_OK)
        return;
    s->mode = m;
    telling = s;
}

void bm_cuda_step_begin(bm_backend *be, const void *owner, bm_extent e)
{
    struct bm_cuda_steps *s = steps_of(be);
    bool is_new = false;

    bm_cuda_step_end(be);
    if (s->off || be->failed != BM_OK)
        return;
    if (bm_cuda_of(be)->is_forked) /* by what is not of this step */
        bm_cuda_join(be);
    s->now = step_of(s, (shape){owner, e.T, e.B});
    is_new = s->now->used == 0;
    s->now->used = s->count;
    if (s->now->replay != NULL)
        start(s, COMPARE);
    else if (!is_new && s->now->graphs < TRIES)
        start(s, RECORD);
}

/* Launches what has been captured. */
static void finish_record(struct bm_cuda_steps *s)
{
    bm_backend *be = s->be;
    step *now = s->now;

    now->graph = end_capture(s);
    if (be->failed == BM_OK && now->graph != NULL &&
        cudaGraphInstantiate(&now->replay, now->graph,
                             cudaGraphInstantiateFlagUseNodePriority) !=
            cudaSuccess) {
        now->replay = NULL;
        (void)cudaGetLastError();
    }
    if (now->replay == NULL) {
        queue_told(s, now->tape.n);
        give_up(now);
        return;
    }
    send_block(s);
    BM_CUDA(be, cudaGraphLaunch(now->replay, bm_cuda_of(be)->stream));
}

static void replay(struct bm_cuda_steps *s)
{
    bm_backend *be = s->be;
    tape *t = &s->now->tape;

    s->now->misfits = s->now->graphs = 0;
    for (size_t i = 0; i < t->n && be->failed == BM_OK; i++) {
        command *c = &t->commands[i];

        if (c->changed && bm_launch_change(s->now->replay, c->node,
                                           t->bytes + c->at) != cudaSuccess) {
            (void)cudaGetLastError();
            queue_told(s, t->n);
            give_up(s->now);
            return;
        }
        c->changed = false;
    }
    send_block(s);
    BM_CUDA(be, cudaGraphLaunch(s->now->replay, bm_cuda_of(be)->stream));
}

void bm_cuda_step_end(bm_backend *be)
{
    struct bm_cuda_steps *s = steps_of(be);

    if (s == NULL || s->mode == PLAIN)
        return;
    if (bm_cuda_of(be)->is_forked)
        bm_cuda_join(be);
    if (s->mode == COMPARE && s->at < s->now->tape.n)
        leave(s);
    if (s->mode == RECORD)
        finish_record(s);
    else if (s->mode == COMPARE)
        replay(s);
    s->mode = PLAIN;
    telling = NULL;
}

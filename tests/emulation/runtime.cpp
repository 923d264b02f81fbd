/*
 * runtime.cpp - the functions of the CUDA runtime that the backend calls, on
 * the host. A stream is lazy: it runs only when the host waits for it, and no
 * other stream runs then. So a missing event between two streams, or a host
 * buffer that is reused too early, gives wrong numbers. What threads have of
 * their own, their device, last error and capture, is theirs here, too.
 */
#include "tests/emulation/runtime.h"

#undef blockDim /* which structs have as well */
#undef gridDim
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <vector>

void bm_run_kernel(dim3 grid, dim3 block, size_t shared, unsigned cluster,
                   const std::function<void()> &body);

typedef std::function<void()> work;

/* What a stream was given during a capture. Lazy as well: another lane runs as
 * far as somebody waits for it. */
struct lane {
    struct node {
        work does;
        lane *other = nullptr; /* instead: waits until it has done `turn` */
        size_t turn = 0;
        work idle = nullptr; /* `does`, in a dry run */
    };
    std::vector<node> nodes;
    size_t done = 0;

    void run_to(size_t turn)
    {
        while (done < turn) {
            const node &n = nodes[done++];
            if (n.other != nullptr)
                n.other->run_to(n.turn);
            else if (n.does)
                n.does();
        }
    }
};

struct CUevent_st {
    bool times = true;
    std::shared_ptr<double> at; /* seconds, when the stream got there */
    cudaStream_t stream = nullptr;
    unsigned long turn = 0; /* reached when the stream has done so much */
    lane *captured = nullptr;
    unsigned long capture = 0; /* number of that */
};

/* Returns true when it is done; else it is called again. */
typedef std::function<bool()> task;

struct CUstream_st {
    int device = -1; /* any */
    std::deque<task> queue;
    unsigned long queued = 0, done = 0;
    lane *captured = nullptr;
};

/* The first is that of the stream where the capture began. */
typedef std::vector<std::unique_ptr<lane>> lanes;

struct CUgraph_st {
    std::shared_ptr<lanes> all = std::make_shared<lanes>();
};

struct CUgraphExec_st {
    std::shared_ptr<lanes> all; /* shared with launches that are queued */
};

static std::shared_ptr<lanes> copy_of(const lanes &all)
{
    auto copy = std::make_shared<lanes>();

    for (size_t i = 0; i < all.size(); i++)
        copy->emplace_back(new lane(*all[i]));
    for (auto &l : *copy)
        for (lane::node &n : l->nodes)
            for (size_t i = 0; n.other != nullptr && i < all.size(); i++)
                if (n.other == all[i].get()) {
                    n.other = (*copy)[i].get();
                    break;
                }
    return copy;
}

std::recursive_mutex bm_emulate_lock;
static std::vector<cudaStream_t> streams;
static thread_local CUgraph_st *capture;
static thread_local cudaStream_t captured_first;
static thread_local unsigned long captures; /* so far */
static thread_local bool invalid; /* the capture: a call was not allowed */
static thread_local cudaError_t last;
static thread_local int current; /* device */

static lane *add_lane(CUgraph_st *graph)
{
    graph->all->emplace_back(new lane);
    return graph->all->back().get();
}

/* Whether the first lane waits for all that the others do. */
static bool joined(const lanes &all)
{
    bool are = true;

    for (auto &l : all) /* a dry run */
        for (lane::node &n : l->nodes)
            n.does.swap(n.idle);
    all[0]->run_to(all[0]->nodes.size());
    for (auto &l : all) {
        are = are && l->done == l->nodes.size();
        l->done = 0;
        for (lane::node &n : l->nodes)
            n.does.swap(n.idle);
    }
    return are;
}

/* Runs the next task, or a part of it: false. */
static bool advance(cudaStream_t s)
{
    BM_EMULATE_LOCKED;
    bm_emulate_access access;
    task t = std::move(s->queue.front());

    s->queue.pop_front();
    if (t()) {
        s->done++;
        return true;
    }
    s->queue.push_front(std::move(t));
    return false;
}

/* Whether it has done so much; if not, it comes nearer. */
static bool goes_to(cudaStream_t s, unsigned long turn)
{
    BM_EMULATE_LOCKED;

    if (s->done < turn)
        (void)advance(s);
    return s->done >= turn;
}

/* The caller does not hold the lock: what the stream waits for may need it. */
static void run_to(cudaStream_t s, unsigned long turn)
{
    bm_emulate_access access;
    unsigned long before = s->done;

    while (!goes_to(s, turn)) {
        if (s->done == before)
            usleep(20);
        before = s->done;
    }
}

static void run_all()
{
    std::vector<std::pair<cudaStream_t, unsigned long>> now;

    {
        BM_EMULATE_LOCKED;
        for (cudaStream_t s : streams)
            now.emplace_back(s, s->queued);
    }
    for (auto &s : now)
        run_to(s.first, s.second);
}

static cudaStream_t stream_of(cudaStream_t s)
{
    static CUstream_st *standard;

    if (s != nullptr)
        return s;
    BM_EMULATE_LOCKED;
    if (standard == nullptr) {
        standard = new CUstream_st;
        streams.push_back(standard);
    }
    return standard;
}

/* Counts what the host has queued, without captures. */
extern "C" {
unsigned long bm_emulated_launches; /* of kernels, products, graphs */
}

cudaError_t bm_emulate_earlier_error()
{
    const char *set = getenv("BMUF_EMULATED_ERROR");

    if (set == nullptr)
        return cudaSuccess;
    return last = (cudaError_t)atoi(set);
}

cudaError_t bm_emulate_fail(cudaError_t error)
{
    return last = error;
}

bool bm_emulate_captures()
{
    return capture != nullptr;
}

bool bm_emulate_captured(cudaStream_t stream)
{
    return stream_of(stream)->captured != nullptr;
}

void bm_emulate_run_all()
{
    run_all();
}

/* During a capture. */
static cudaError_t refuse()
{
    invalid = true;
    return last = cudaErrorStreamCaptureUnsupported;
}

cudaError_t bm_emulate_refuse()
{
    return refuse();
}

static cudaError_t queue(cudaStream_t stream, work w)
{
    BM_EMULATE_LOCKED;
    cudaStream_t s = stream_of(stream);

    if (s->captured && invalid)
        return last = cudaErrorStreamCaptureInvalidated;
    if (s->captured) {
        s->captured->nodes.push_back({std::move(w)});
    } else {
        s->queue.push_back([=]() {
            w();
            return true;
        });
        s->queued++;
    }
    return cudaSuccess;
}

/* What cudaFuncSetAttribute has allowed a kernel. */
struct allowed {
    size_t shared = 48 << 10;
    bool big_clusters = false;
};
static std::map<const void *, allowed> functions;

static bool cluster_is_allowed(const void *function, unsigned cluster)
{
    return cluster > 0 &&
           cluster <= (functions[function].big_clusters ? 16 : 8);
}

enum { PROCESSORS = 4, BLOCKS = 16 }; /* of each, at once */

/* More than 48 KiB of shared memory, and clusters of more than 8 blocks, are
 * for those that cudaFuncSetAttribute has allowed them. */
static cudaError_t check_launch(const void *function, dim3 grid, dim3 block,
                                size_t shared, unsigned cluster)
{
    cudaError_t error = cudaSuccess;

    if (!cluster_is_allowed(function, cluster))
        return cudaErrorInvalidClusterSize;
    if (grid.x % cluster != 0)
        error = cudaErrorInvalidConfiguration;
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > INT32_MAX ||
        grid.y > 65535 || grid.z > 65535 || block.x * block.y * block.z == 0 ||
        block.x * block.y * block.z > 1024 || block.z > 64)
        error = cudaErrorInvalidConfiguration;
    if (shared > functions[function].shared)
        error = cudaErrorInvalidValue;
    return error;
}

static std::map<const void *, bm_emulated> kernels;

void bm_emulate_add(const void *kernel, const bm_emulated &what)
{
    BM_EMULATE_LOCKED;

    kernels.emplace(kernel, what);
}

cudaError_t bm_emulate_put(cudaStream_t stream, work w)
{
    return queue(stream, std::move(w));
}

cudaError_t bm_emulate_queue(cudaStream_t stream, work w)
{
    BM_EMULATE_LOCKED;

    bm_emulated_launches += stream_of(stream)->captured == nullptr;
    return queue(stream, std::move(w));
}

static unsigned cluster_of(const cudaLaunchConfig_t *config)
{
    for (unsigned i = 0; i < config->numAttrs; i++)
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            return config->attrs[i].val.clusterDim.x;
    return 1;
}

extern "C" {

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                const void *kernel, void **arguments)
{
    BM_EMULATE_LOCKED;
    int device = stream_of(config->stream)->device;
    dim3 grid = config->gridDim, block = config->blockDim;
    size_t shared = config->dynamicSmemBytes;
    unsigned cluster = cluster_of(config);
    cudaError_t error = check_launch(kernel, grid, block, shared, cluster);
    work body;

    if (device != current && device >= 0)
        error = cudaErrorInvalidResourceHandle; /* the thread has another one */
    if (error != cudaSuccess)
        return last = error;
    bm_emulated_launches += stream_of(config->stream)->captured == nullptr;
    body = kernels.at(kernel)(arguments);
    return queue(config->stream,
                 [=]() { bm_run_kernel(grid, block, shared, cluster, body); });
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an emulated error";
}

const char *cudaGetErrorName(cudaError_t error)
{
    return cudaGetErrorString(error);
}

cudaError_t cudaGetLastError()
{
    cudaError_t error = last;

    last = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError()
{
    return last;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    const char *set = getenv("BMUF_EMULATED_DEVICES");

    *n = set != NULL ? atoi(set) : 1;
    return *n > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaSetDevice(int device)
{
    int n = 0;

    cudaGetDeviceCount(&n);
    if (device >= n)
        return last = cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}

/* Compute capability: 9.0, or what BMUF_EMULATED_MAJOR says; 7 is Turing's 7.5. */
static int major_of_device()
{
    const char *set = getenv("BMUF_EMULATED_MAJOR");

    return set != nullptr ? atoi(set) : 9;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                   int device)
{
    *value = attribute == cudaDevAttrMultiProcessorCount ? (int)PROCESSORS
             : attribute == cudaDevAttrComputeCapabilityMajor
                 ? major_of_device()
             : attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 227 << 10
             : attribute == cudaDevAttrWarpSize                     ? 32
             : attribute == cudaDevAttrPciBusId                     ? device
                                                                    : 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int)
{
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "emulation on the host");
    p->major = major_of_device();
    p->minor = p->major == 7 ? 5 : 0;
    p->multiProcessorCount = PROCESSORS;
    p->totalGlobalMem = (size_t)1 << 30;
    p->sharedMemPerBlockOptin = 227 << 10;
    p->warpSize = 32;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    BM_EMULATE_LOCKED;

    *out = new CUstream_st;
    (*out)->device = current;
    streams.push_back(*out);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return cudaStreamCreateWithFlags(out, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *most)
{
    *least = 0;
    *most = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned, int)
{
    return cudaStreamCreateWithFlags(out, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    run_to(s, s->queued);
    BM_EMULATE_LOCKED;
    for (size_t i = 0; i < streams.size(); i++)
        if (streams[i] == s)
            streams.erase(streams.begin() + (long)i);
    delete s;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaStream_t s = stream_of(stream);

    if (s->captured)
        return refuse();
    run_to(s, s->queued);
    return cudaSuccess;
}

/* A query lets the stream progress. */
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    BM_EMULATE_LOCKED;
    cudaStream_t s = stream_of(stream);

    if (capture != nullptr)
        return refuse();
    if (s->done != s->queued)
        advance(s);
    return s->done == s->queued ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize()
{
    if (capture != nullptr)
        return refuse();
    run_all();
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    *out = new CUevent_st;
    (*out)->times = (flags & cudaEventDisableTiming) == 0;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}

static double seconds()
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
    BM_EMULATE_LOCKED;

    e->stream = stream_of(stream);
    e->captured = e->stream->captured;
    e->capture = captures;
    if (e->times && e->captured == nullptr) {
        auto at = e->at = std::make_shared<double>(seconds());

        if (e->stream->done < e->stream->queued)
            queue(e->stream, [=]() { *at = seconds(); });
    }
    e->turn =
        e->captured != nullptr ? e->captured->nodes.size() : e->stream->queued;
    return cudaSuccess;
}

/* A query invalidates the capture of its thread, whatever it is about. */
static cudaError_t ask(cudaEvent_t e)
{
    if (e->captured == nullptr)
        return capture != nullptr ? refuse() : cudaSuccess;
    invalid = true;
    return last = cudaErrorCapturedEvent;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    cudaError_t error = ask(e);

    if (error == cudaSuccess && e->stream != nullptr)
        run_to(e->stream, e->turn);
    return error;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    BM_EMULATE_LOCKED;
    cudaError_t error = ask(e);

    if (error == cudaSuccess && e->stream != nullptr &&
        e->stream->done < e->turn)
        error = cudaErrorNotReady;
    return error;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t begin, cudaEvent_t end)
{
    BM_EMULATE_LOCKED;

    if (!begin->at || !end->at)
        return last = cudaErrorInvalidResourceHandle;
    if (begin->stream->done < begin->turn || end->stream->done < end->turn)
        return last = cudaErrorNotReady;
    *ms = (float)(1e3 * (*end->at - *begin->at));
    return cudaSuccess;
}

/* A stream that waits for one that is being captured is captured with it. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned)
{
    BM_EMULATE_LOCKED;
    cudaStream_t s = stream_of(stream), other = e->stream;
    unsigned long turn = e->turn;

    if (other == nullptr)
        return cudaSuccess;
    if (e->captured != nullptr &&
        (capture == nullptr || e->capture != captures))
        return last = cudaErrorCapturedEvent;
    if (e->captured != nullptr) {
        if (s->captured == nullptr)
            s->captured = add_lane(capture);
        s->captured->nodes.push_back({nullptr, e->captured, turn});
        return cudaSuccess;
    }
    if (s->captured != nullptr) {
        invalid = true;
        return last = cudaErrorStreamCaptureIsolation;
    }
    s->queue.push_back([=]() { return goes_to(other, turn); });
    s->queued++;
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t f, void *self)
{
    return queue(stream, [=]() { f(self); });
}

/* For emulated libraries: work that may have to wait for something else than
 * the device; `f` says whether it is done. */
cudaError_t bm_emulate_until(cudaStream_t stream, bool (*f)(void *), void *self)
{
    BM_EMULATE_LOCKED;
    cudaStream_t s = stream_of(stream);

    if (s->captured)
        return refuse();
    s->queue.push_back([=]() { return f(self); });
    s->queued++;
    return cudaSuccess;
}

/* The backend has no captures that forbid other threads anything. */
cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode mode)
{
    BM_EMULATE_LOCKED;

    if (mode != cudaStreamCaptureModeThreadLocal)
        return last = cudaErrorNotSupported;
    if (capture != nullptr)
        return last = cudaErrorIllegalState;
    capture = new CUgraph_st;
    captures++;
    captured_first = s;
    invalid = false;
    s->captured = add_lane(capture);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t first, cudaGraph_t *out)
{
    BM_EMULATE_LOCKED;
    CUgraph_st *graph = capture;

    if (graph != nullptr && first != captured_first) {
        invalid = true;
        return last = cudaErrorStreamCaptureUnmatched;
    }
    for (cudaStream_t s : streams)
        s->captured = nullptr;
    capture = nullptr;
    *out = nullptr;
    if (graph == nullptr)
        return last = cudaErrorIllegalState;
    if (invalid) {
        delete graph;
        return last = cudaErrorStreamCaptureInvalidated;
    }
    if (!joined(*graph->all)) {
        delete graph;
        return last = cudaErrorStreamCaptureUnjoined;
    }
    *out = graph;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus *is)
{
    *is = s->captured ? cudaStreamCaptureStatusActive
                      : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                 unsigned long long)
{
    if (capture != nullptr)
        return refuse();
    *out = new CUgraphExec_st{copy_of(*graph->all)};
    return cudaSuccess;
}

static void run_lanes(lanes &all)
{
    for (auto &l : all)
        l->done = 0;
    all.front()->run_to(all.front()->nodes.size());
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    std::shared_ptr<lanes> all = graph->all;

    BM_EMULATE_LOCKED;
    if (stream_of(stream)->captured)
        return refuse();
    bm_emulated_launches++;
    return queue(stream, [all]() { run_lanes(*all); });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    run_all();
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function,
                                 cudaFuncAttribute attribute, int value)
{
    BM_EMULATE_LOCKED;
    allowed &f = functions[function];

    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
        f.big_clusters = value != 0;
    } else if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
        if (value < 0 || value > 227 << 10)
            return last = cudaErrorInvalidValue;
        f.shared = (size_t)value;
    }
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n,
                                                          const void *function,
                                                          int, size_t shared)
{
    BM_EMULATE_LOCKED;

    *n = shared <= functions[function].shared ? (int)BLOCKS : 0;
    return cudaSuccess;
}

/* There is room for two of any size, or as many as BMUF_EMULATED_CLUSTERS says.
 */
cudaError_t cudaOccupancyMaxActiveClusters(int *n, const void *function,
                                           const cudaLaunchConfig_t *config)
{
    BM_EMULATE_LOCKED;
    const char *set = getenv("BMUF_EMULATED_CLUSTERS");
    cudaError_t error = bm_emulate_earlier_error();

    if (error != cudaSuccess)
        return error;
    if (!cluster_is_allowed(function, cluster_of(config)))
        return last = cudaErrorInvalidClusterSize;
    *n = config->dynamicSmemBytes > functions[function].shared ? 0
         : set != nullptr                                      ? atoi(set)
                                                               : 2;
    return cudaSuccess;
}
}

/*
 * runtime.cpp - the part of the CUDA runtime that the backend calls, on the
 * host. A stream is lazy: nothing in it runs before somebody waits for it, and
 * then it alone. So work that was queued on two streams without an event
 * between them, or a buffer of the host that was used again too early, shows
 * as wrong numbers.
 */
#include "tests/emulation/device.h"

#include <deque>
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

void bm_run_kernel(dim3 grid, dim3 block, size_t shared, unsigned cluster,
                   const std::function<void()> &body);

typedef std::function<void()> work;

struct CUevent_st {
    cudaStream_t stream = nullptr;
    unsigned long turn = 0; /* reached when the stream has done so much */
};

struct CUstream_st {
    std::deque<work> queue;
    unsigned long queued = 0, done = 0;
    bool captured = false;
};

struct CUgraph_st {
    std::vector<work> nodes;
};

struct CUgraphExec_st {
    std::vector<work> nodes;
};

static std::vector<cudaStream_t> streams;
static std::map<const void *, size_t> pinned; /* begin, bytes */
static CUgraph_st *capture;
static cudaError_t last;
static int current; /* device */

static void run_to(cudaStream_t s, unsigned long turn)
{
    while (s->done < turn) {
        work w = std::move(s->queue.front());
        s->queue.pop_front();
        w();
        s->done++;
    }
}

static void run_all()
{
    for (cudaStream_t s : streams)
        run_to(s, s->queued);
}

static cudaStream_t stream_of(cudaStream_t s)
{
    static CUstream_st *standard;

    if (s != nullptr)
        return s;
    if (standard == nullptr) {
        standard = new CUstream_st;
        streams.push_back(standard);
    }
    return standard;
}

static cudaError_t queue(cudaStream_t stream, work w)
{
    cudaStream_t s = stream_of(stream);

    if (s->captured) {
        capture->nodes.push_back(std::move(w));
    } else {
        s->queue.push_back(std::move(w));
        s->queued++;
    }
    return cudaSuccess;
}

static bool is_pinned(const void *x)
{
    auto after = pinned.upper_bound(x);

    if (after == pinned.begin())
        return false;
    --after;
    return (const char *)x < (const char *)after->first + after->second;
}

cudaError_t bm_emulate(cudaStream_t stream, dim3 grid, dim3 block,
                       size_t shared, unsigned cluster, work body)
{
    if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > 65535 ||
        grid.z > 65535 || block.x * block.y * block.z == 0 ||
        block.x * block.y * block.z > 1024 || shared > 227 << 10)
        return last = cudaErrorInvalidConfiguration;
    return queue(stream,
                 [=]() { bm_run_kernel(grid, block, shared, cluster, body); });
}

/* For the other parts of the emulation. */
cudaError_t bm_emulate_queue(cudaStream_t stream, work w)
{
    return queue(stream, std::move(w));
}

extern "C" {

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

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                   int device)
{
    *value = attribute == cudaDevAttrMultiProcessorCount            ? 4
             : attribute == cudaDevAttrComputeCapabilityMajor       ? 9
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
    p->major = 9;
    p->multiProcessorCount = 4;
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

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = (size_t)1 << 30;
    return cudaSuccess;
}

/* Fresh memory holds what nobody should read. */
cudaError_t cudaMalloc(void **x, size_t bytes)
{
    *x = aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
    if (*x == nullptr)
        return last = cudaErrorMemoryAllocation;
    memset(*x, 0xff, bytes);
    return cudaSuccess;
}

cudaError_t cudaFree(void *x)
{
    run_all();
    free(x);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **x, size_t bytes)
{
    *x = malloc(bytes + 1);
    if (*x == nullptr)
        return last = cudaErrorMemoryAllocation;
    pinned[*x] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *x)
{
    run_all();
    pinned.erase(x);
    free(x);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *x, size_t bytes, unsigned)
{
    pinned[x] = bytes;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *x)
{
    run_all();
    pinned.erase(x);
    return cudaSuccess;
}

/* What is not pinned is read before the call returns, or written before. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream)
{
    if (kind == cudaMemcpyHostToDevice && !is_pinned(src)) {
        std::vector<char> now((const char *)src, (const char *)src + bytes);
        return queue(stream, [=]() { memcpy(dst, now.data(), now.size()); });
    }
    queue(stream, [=]() { memcpy(dst, src, bytes); });
    if (kind == cudaMemcpyDeviceToHost && !is_pinned(dst))
        return cudaStreamSynchronize(stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind)
{
    run_all();
    memcpy(dst, src, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *x, int value, size_t bytes,
                            cudaStream_t stream)
{
    return queue(stream, [=]() { memset(x, value, bytes); });
}

cudaError_t cudaMemset(void *x, int value, size_t bytes)
{
    run_all();
    memset(x, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    *out = new CUstream_st;
    streams.push_back(*out);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return cudaStreamCreateWithFlags(out, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned, int)
{
    return cudaStreamCreateWithFlags(out, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    run_to(s, s->queued);
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
        return last = cudaErrorStreamCaptureUnsupported;
    run_to(s, s->queued);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    cudaStream_t s = stream_of(stream);
    return s->done == s->queued ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize()
{
    run_all();
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    *out = new CUevent_st;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    delete e;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
    e->stream = stream_of(stream);
    e->turn = e->stream->queued;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
    if (e->stream != nullptr)
        run_to(e->stream, e->turn);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
    return e->stream == nullptr || e->stream->done >= e->turn
               ? cudaSuccess
               : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t)
{
    *ms = 1;
    return cudaSuccess;
}

/* A stream that waits for one that is being captured is captured with it. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned)
{
    cudaStream_t s = stream_of(stream), other = e->stream;
    unsigned long turn = e->turn;

    if (other == nullptr)
        return cudaSuccess;
    if (other->captured) {
        s->captured = true;
        return cudaSuccess;
    }
    return queue(s, [=]() { run_to(other, turn); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t f, void *self)
{
    return queue(stream, [=]() { f(self); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    if (capture != nullptr)
        return last = cudaErrorIllegalState;
    capture = new CUgraph_st;
    s->captured = true;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *out)
{
    for (cudaStream_t s : streams)
        s->captured = false;
    *out = capture;
    capture = nullptr;
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
    *out = new CUgraphExec_st{graph->nodes};
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    std::vector<work> nodes = graph->nodes;

    return queue(stream, [nodes]() {
        for (const work &w : nodes)
            w();
    });
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

cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int)
{
    return cudaSuccess;
}
}

/*
 * memory.cpp - device memory. It is the host's, but registered: a copy, product
 * or kernel fails unless its arguments are where a device could access them, and
 * so does the host where it touches memory of the device.
 */
#include "tests/emulation/runtime.h"

#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

struct room {
    size_t bytes;
    cudaStream_t owner;
};
typedef std::map<const char *, room> rooms; /* by address */
static rooms device, pinned;

extern "C" {
size_t bm_emulated_used; /* bytes of the device's memory */
}

/* ---- addresses ----------------------------------------------------------- */

/*
 * With BMUF_EMULATED_SHUT the device's memory lies in a range of addresses that
 * the host may touch only while the device works: elsewhere that ends the
 * program with SIGSEGV, as on a GPU. It is slow, so that few tests have it.
 * Rooms that were freed are used again by rooms of the same size.
 */
static const size_t RANGE = (size_t)1 << 36, PAGE = 4096,
                    HUGE_PAGE = (size_t)1 << 21;
static char *range;
static size_t used_range;
static int openings; /* that are not closed yet */
static std::map<size_t, std::vector<void *>> free_rooms;

static bool shuts()
{
    static const bool yes = getenv("BMUF_EMULATED_SHUT") != nullptr;

    return yes;
}

/* Rounds up to huge pages: mprotect takes time for each page. */
static void protect(int how)
{
    size_t bytes = (used_range + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;

    if (bytes > 0 && mprotect(range, bytes, how) != 0)
        abort();
}

bm_emulate_access::bm_emulate_access()
{
    BM_EMULATE_LOCKED;
    if (openings++ == 0)
        protect(PROT_READ | PROT_WRITE);
}

bm_emulate_access::~bm_emulate_access()
{
    BM_EMULATE_LOCKED;
    if (--openings == 0)
        protect(PROT_NONE);
}

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* Precondition: there is access. nullptr: the range is full. */
static void *take_room(size_t bytes)
{
    std::vector<void *> &same = free_rooms[pages(bytes)];
    void *x = nullptr;

    if (!shuts())
        return aligned_alloc(PAGE, pages(bytes));
    if (range == nullptr) {
        range =
            (char *)mmap(nullptr, RANGE + HUGE_PAGE, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED)
            abort();
        range += HUGE_PAGE - (uintptr_t)range % HUGE_PAGE;
        (void)madvise(range, RANGE, MADV_HUGEPAGE);
    }
    if (!same.empty()) {
        x = same.back();
        same.pop_back();
    } else if (pages(bytes) <= RANGE - used_range) {
        x = range + used_range;
        used_range += pages(bytes);
        protect(PROT_READ | PROT_WRITE);
    }
    return x;
}

static void leave_room(const char *x, size_t bytes)
{
    if (shuts())
        free_rooms[pages(bytes)].push_back((void *)x);
    else
        free((void *)x);
}

/* ---- rooms --------------------------------------------------------------- */

/* Bytes of the device's memory, as the environment has it now. */
static size_t all_memory()
{
    const char *set = getenv("BMUF_EMULATED_MEMORY");

    return set != nullptr ? strtoull(set, nullptr, 10) : (size_t)1 << 40;
}

static room *room_of(rooms &all, const void *x, size_t bytes)
{
    auto after = all.upper_bound((const char *)x);

    if (after == all.begin())
        return nullptr;
    --after;
    return (const char *)x + bytes <= after->first + after->second.bytes
               ? &after->second
               : nullptr;
}

bool bm_emulate_on_device(const void *x, size_t bytes)
{
    BM_EMULATE_LOCKED;
    return room_of(device, x, bytes) != nullptr;
}

bool bm_emulate_own_room(const void *x, size_t bytes, cudaStream_t stream)
{
    BM_EMULATE_LOCKED;
    room *r = room_of(device, x, bytes);

    if (r != nullptr && r->owner == nullptr)
        r->owner = stream;
    return r != nullptr && r->owner == stream;
}

static bool is_pinned(const void *x, size_t bytes)
{
    BM_EMULATE_LOCKED;
    return room_of(pinned, x, bytes) != nullptr;
}

/* Does an address of the host lie here? Programs, heaps and stacks do, and much
 * else that a number can be taken for does not. */
static bool is_of_host(uint64_t address)
{
    BM_EMULATE_LOCKED;
    unsigned char there = 0;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    void *at = (void *)(address / page * page);

    return address >> 45 != 0 && address >> 47 == 0 &&
           !room_of(device, (void *)address, 0) &&
           !room_of(pinned, (void *)address, 0) && mincore(at, 1, &there) == 0;
}

void bm_emulate_look(const void *argument, size_t bytes)
{
    uint64_t word;

    for (size_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, (const char *)argument + at, sizeof word);
        if (is_of_host(word)) {
            fprintf(stderr, "a kernel got an address of host memory\n");
            abort();
        }
    }
}

/* Behind each room of the device, bytes that nobody may write. */
enum { GUARD = 4096, UNTOUCHED = 0xa5 };

static void check_guard(const char *x, size_t bytes)
{
    for (size_t i = 0; i < GUARD; i++)
        if ((unsigned char)x[bytes + i] != UNTOUCHED) {
            fprintf(stderr, "something wrote past %zu bytes of the device\n",
                    bytes);
            abort();
        }
}

extern "C" {

/* Fills new memory with NaN. */
cudaError_t cudaMalloc(void **x, size_t bytes)
{
    BM_EMULATE_LOCKED;
    cudaError_t error = bm_emulate_earlier_error();
    bm_emulate_access access;

    if (error != cudaSuccess)
        return error;
    if (bm_emulate_captures())
        return bm_emulate_refuse();
    if (bm_emulated_used + bytes > all_memory())
        return bm_emulate_fail(cudaErrorMemoryAllocation);
    *x = take_room(bytes + GUARD);
    if (*x == nullptr)
        return bm_emulate_fail(cudaErrorMemoryAllocation);
    memset(*x, 0xff, bytes);
    memset((char *)*x + bytes, UNTOUCHED, GUARD);
    bm_emulated_used += bytes;
    device[(const char *)*x] = {bytes, nullptr};
    return cudaSuccess;
}

static cudaError_t give_back(rooms &all, void *x)
{
    if (bm_emulate_captures())
        return bm_emulate_refuse();
    bm_emulate_run_all();
    BM_EMULATE_LOCKED;
    auto at = all.find((const char *)x);
    if (x != nullptr && at == all.end())
        return bm_emulate_fail(cudaErrorInvalidValue);
    if (at != all.end()) {
        if (&all == &device) {
            bm_emulate_access access;
            check_guard(at->first, at->second.bytes);
            leave_room(at->first, at->second.bytes + GUARD);
        } else
            free(x);
        all.erase(at);
    }
    return cudaSuccess;
}

static size_t bytes_of(const void *x)
{
    BM_EMULATE_LOCKED;
    const room *r = x != nullptr ? room_of(device, x, 0) : nullptr;

    return r != nullptr ? r->bytes : 0;
}

cudaError_t cudaFree(void *x)
{
    size_t bytes = bytes_of(x);
    cudaError_t error = give_back(device, x);

    BM_EMULATE_LOCKED;
    bm_emulated_used -= error == cudaSuccess ? bytes : 0;
    return error;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    BM_EMULATE_LOCKED;
    cudaError_t error = bm_emulate_earlier_error();

    if (error != cudaSuccess)
        return error;
    *all = all_memory();
    *left = *all - (bm_emulated_used < *all ? bm_emulated_used : *all);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **x, size_t bytes)
{
    BM_EMULATE_LOCKED;
    if (bm_emulate_captures())
        return bm_emulate_refuse();
    *x = malloc(bytes + 1);
    if (*x == nullptr)
        return bm_emulate_fail(cudaErrorMemoryAllocation);
    pinned[(const char *)*x] = {bytes, nullptr};
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *x)
{
    return give_back(pinned, x);
}

cudaError_t cudaHostRegister(void *x, size_t bytes, unsigned)
{
    BM_EMULATE_LOCKED;
    if (bm_emulate_captures())
        return bm_emulate_refuse();
    if (bytes == 0)
        return bm_emulate_fail(cudaErrorInvalidValue);
    if (is_pinned(x, 1) || is_pinned((char *)x + bytes - 1, 1))
        return bm_emulate_fail(cudaErrorHostMemoryAlreadyRegistered);
    pinned[(const char *)x] = {bytes, nullptr};
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *x)
{
    if (bm_emulate_captures())
        return bm_emulate_refuse();
    bm_emulate_run_all();
    BM_EMULATE_LOCKED;
    if (pinned.erase((const char *)x) == 0)
        return bm_emulate_fail(cudaErrorHostMemoryNotRegistered);
    return cudaSuccess;
}

/* Memory that is not pinned is written before the call returns. It is read when
 * the stream gets there: a device may have read it before, or not. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream)
{
    bool sends = kind == cudaMemcpyHostToDevice;
    bool fetches = kind == cudaMemcpyDeviceToHost;
    bool pageable = (sends && !is_pinned(src, bytes)) ||
                    (fetches && !is_pinned(dst, bytes));

    if (bytes == 0)
        return cudaSuccess;
    if ((!fetches && !bm_emulate_on_device(dst, bytes)) ||
        (!sends && !bm_emulate_on_device(src, bytes)))
        return bm_emulate_fail(cudaErrorInvalidValue);
    if (bm_emulate_captured(stream) && pageable)
        return bm_emulate_refuse();
    bm_emulate_put(stream, [=]() { memcpy(dst, src, bytes); });
    return fetches && pageable ? cudaStreamSynchronize(stream) : cudaSuccess;
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t bytes, cudaMemcpyKind)
{
    if (bm_emulate_captures())
        return bm_emulate_refuse();
    bm_emulate_run_all();
    bm_emulate_access access;
    memcpy(dst, src, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *x, int value, size_t bytes,
                            cudaStream_t stream)
{
    if (!bm_emulate_on_device(x, bytes))
        return bm_emulate_fail(cudaErrorInvalidValue);
    return bm_emulate_queue(stream, [=]() { memset(x, value, bytes); });
}

cudaError_t cudaMemset(void *x, int value, size_t bytes)
{
    if (bm_emulate_captures())
        return bm_emulate_refuse();
    bm_emulate_run_all();
    bm_emulate_access access;
    memset(x, value, bytes);
    return cudaSuccess;
}
}

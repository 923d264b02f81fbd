/* runtime.h - what the parts of the emulated runtime share. */
#ifndef BM_TESTS_EMULATION_RUNTIME_H
#define BM_TESTS_EMULATION_RUNTIME_H

#include "tests/emulation/device.h"

#include <mutex>

/* runtime.cpp. Threads take turns: each call of the runtime and each task of a
 * stream holds this lock. Who waits for a stream holds it for one task at a
 * time. */
extern std::recursive_mutex bm_emulate_lock;
#define BM_EMULATE_LOCKED                                                      \
    std::lock_guard<std::recursive_mutex> bm_locked(bm_emulate_lock)

/* What an earlier kernel has left to all calls that ask the device, such as
 * cudaMalloc: the number in BMUF_EMULATED_ERROR, or none. */
cudaError_t bm_emulate_earlier_error();

cudaError_t bm_emulate_fail(cudaError_t error); /* what GetLastError gives */
bool bm_emulate_captures();                     /* is any stream captured? */
bool bm_emulate_captured(cudaStream_t stream);
cudaError_t bm_emulate_refuse(); /* what no graph has: its capture is spoiled */
cudaError_t bm_emulate_put(cudaStream_t stream, std::function<void()> work);
cudaError_t bm_emulate_queue(cudaStream_t stream, /* and it is counted */
                             std::function<void()> work);
void bm_emulate_run_all();

/* memory.cpp. While there is one of these, the memory of the device can be
 * touched. */
struct bm_emulate_access {
    bm_emulate_access();
    ~bm_emulate_access();
};

/* Are these bytes the device's? */
bool bm_emulate_on_device(const void *x, size_t bytes);

/* Room that works of several streams would change under each other: who has it
 * is the first stream that came with it. */
bool bm_emulate_own_room(const void *x, size_t bytes, cudaStream_t stream);

#endif

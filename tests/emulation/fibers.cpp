/*
 * fibers.cpp - runs the threads of a kernel's blocks in turns. Sometimes it
 * delays a warp until no other can continue, which shows missing barriers.
 */
#include "tests/emulation/fibers.h"

#include <assert.h>
#include <memory>
#include <stdio.h>
#include <stdlib.h>
#include <vector>
#include <xmmintrin.h>

bm_thread bm_now;

namespace
{
enum { STACK = 64 << 10 };

struct fiber;

/* A barrier. Threads that have ended do not count. */
struct barrier {
    unsigned live = 0, waiting = 0, turn = 0;
    bool any = false, all_any = false; /* of __syncthreads_or */
    std::vector<fiber *> waiters;
};

struct warp {
    barrier meet;
    unsigned lanes = 0;         /* the last warp may have fewer than 32 */
    uint64_t given[2][32] = {}; /* in turns */
    void *operands[32] = {};
    bm_warp_act act = nullptr;
};

struct block {
    barrier meet;
    std::vector<warp> warps;
    std::vector<unsigned char> shared;
};

struct fiber {
    void *at; /* where it stands, on its stack */
    std::unique_ptr<char[]> stack;
    bm_thread thread;
    size_t warp; /* of all */
    const std::function<bool()> *waits = nullptr;
    bool ended = true;
};

#ifndef __x86_64__
#error "fibers are switched by instructions of x86-64"
#endif

/* Continues at `to`, and saves where to return in *from. Unlike swapcontext it
 * makes no system call. */
extern "C" void bm_fiber_switch(void **from, void *to);
asm(".text\n"
    ".type bm_fiber_switch, @function\n"
    "bm_fiber_switch:\n"
    "    pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq "
    "%r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp\n"
    "    ret\n");

/* The blocks that run. A fiber runs one thread after the other, until one has
 * to wait. */
struct resident {
    std::vector<block> blocks;
    barrier meet; /* the cluster's */
    std::vector<bm_thread> threads;
    size_t next = 0; /* thread to begin */
    const std::function<void()> *body;
};

std::vector<std::unique_ptr<fiber>> fibers;
std::vector<fiber *> idle, ready, asked; /* those that wait for a function */
fiber *running;
resident *here;
void *scheduler; /* where it stands */

block &own_block()
{
    return here->blocks[bm_now.cluster];
}
warp &own_warp()
{
    return own_block().warps[bm_now.rank / 32];
}

size_t warp_of(const bm_thread &t)
{
    return t.cluster * here->blocks[0].warps.size() + t.rank / 32;
}

void open_gate(barrier &b)
{
    if (b.waiting == b.live && b.live > 0) {
        b.waiting = 0;
        b.turn++;
        ready.insert(ready.end(), b.waiters.begin(), b.waiters.end());
        b.waiters.clear();
        b.all_any = b.any;
        b.any = false;
    }
}

void leave(barrier &b)
{
    b.live--;
    open_gate(b);
}

void pause()
{
    fiber *own = running;

    own->thread = bm_now;
    bm_fiber_switch(&own->at, scheduler);
}

void pass(barrier &b)
{
    unsigned turn = b.turn;

    b.waiting++;
    open_gate(b);
    if (b.turn == turn) {
        b.waiters.push_back(running);
        pause();
    }
}

void live()
{
    for (;;) {
        while (here->next < here->threads.size()) {
            bm_now = here->threads[here->next++];
            running->thread = bm_now;
            running->warp = warp_of(bm_now);
            (*here->body)();
            leave(own_warp().meet);
            leave(own_block().meet);
            leave(here->meet);
        }
        running->ended = true;
        idle.push_back(running);
        bm_fiber_switch(&running->at, scheduler);
    }
}

/* A new fiber starts at live(): its stack has six registers and that address.
 */
void make()
{
    fiber *f = new fiber;
    void **top = nullptr;

    f->stack.reset(new char[STACK]);
    top = (void **)(((uintptr_t)f->stack.get() + STACK) & ~(uintptr_t)15);
    top[-2] = (void *)live;
    f->at = top - 8;
    fibers.emplace_back(f);
    idle.push_back(f);
}

fiber *start()
{
    fiber *f = nullptr;

    if (idle.empty())
        make();
    f = idle.back();
    idle.pop_back();
    f->ended = false;
    f->waits = nullptr;
    return f;
}

void resume(fiber *f)
{
    running = f;
    bm_now = f->thread;
    bm_fiber_switch(&scheduler, f->at);
    running = nullptr;
}

/* Runs the fibers of warp `late`, or the others, that can continue. True if
 * there was one. */
bool go_round(size_t late, bool late_ones)
{
    bool moved = false;
    std::vector<fiber *> can, may;

    can.swap(ready);
    may.swap(asked);
    for (fiber *f : can)
        if ((f->warp == late) == late_ones) {
            resume(f);
            moved = true;
        } else {
            ready.push_back(f);
        }
    for (fiber *f : may)
        if ((f->warp == late) == late_ones && (*f->waits)()) {
            resume(f);
            moved = true;
        } else {
            asked.push_back(f);
        }
    return moved;
}

void run(resident &r)
{
    size_t warps = r.blocks.size() * r.blocks[0].warps.size(), late = 0;
    unsigned change = 0; /* round in which another warp is late */
    bool moved = true;

    here = &r;
    for (unsigned round = 0; moved; round++) {
        moved = false;
        if (round == change) {
            late = bm_chance() % warps;
            change += 16u << bm_chance() % 6;
        }
        while (r.next < r.threads.size()) {
            resume(start());
            moved = true;
        }
        moved = go_round(late, false) || moved;
        moved = bm_deliver(false) || moved;
        moved = moved || go_round(late, true) || bm_deliver(true);
    }
    for (auto &f : fibers)
        if (!f->ended) {
            fprintf(stderr, "deadlock: all threads of a kernel wait\n");
            abort();
        }
    bm_deliver_no_more();
    here = nullptr;
}

uint3 place(dim3 size, size_t i)
{
    return {(unsigned)(i % size.x), (unsigned)(i / size.x % size.y),
            (unsigned)(i / size.x / size.y)};
}
} // namespace

void bm_fiber_wait(const std::function<bool()> &done)
{
    running->waits = &done;
    asked.push_back(running);
    pause();
}

void __syncthreads()
{
    pass(own_block().meet);
}

int __syncthreads_or(int x)
{
    barrier &b = own_block().meet;

    b.any = b.any || x != 0;
    pass(b);
    return b.all_any;
}

void __syncwarp(unsigned)
{
    pass(own_warp().meet);
}

void bm_cluster_sync()
{
    pass(here->meet);
}

void *bm_cluster_map(const void *x, unsigned other)
{
    size_t at = (size_t)((const unsigned char *)x - bm_now.shared);

    assert(at < here->blocks[other].shared.size());
    return here->blocks[other].shared.data() + at;
}

bool bm_block_lives(unsigned block)
{
    return here->blocks[block].meet.live > 0;
}

unsigned bm_chance()
{
    static uint64_t state;
    uint64_t x = state += 0x9e3779b97f4a7c15;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return (unsigned)(x >> 32);
}

void bm_warp_together(bm_warp_act act, void *operands)
{
    warp &w = own_warp();

    assert(w.meet.live == 32 && (w.meet.waiting == 0 || w.act == act));
    w.act = act;
    w.operands[bm_now.rank % 32] = operands;
    if (w.meet.waiting == 31)
        act(w.operands);
    pass(w.meet);
}

uint64_t bm_warp_get(uint64_t own, unsigned lane)
{
    warp &w = own_warp();
    uint64_t *given = w.given[w.meet.turn % 2];

    assert(lane < w.lanes); /* else the result is undefined */
    given[bm_now.rank % 32] = own;
    pass(w.meet); /* given is reused only after the next barrier */
    return given[lane];
}

unsigned __ballot_sync(unsigned, int x)
{
    unsigned votes = 0;
    warp &w = own_warp();
    uint64_t *given = w.given[w.meet.turn % 2];
    unsigned live = w.meet.live;

    given[bm_now.rank % 32] = x != 0;
    pass(w.meet);
    for (unsigned i = 0; i < live; i++)
        votes |= (unsigned)(given[i] != 0) << i;
    return votes;
}

namespace
{
/* A device computes with subnormal numbers, whatever the thread of the host
 * does (compute/cpu/subnormals.h). */
struct subnormals {
    unsigned before = _mm_getcsr();
    subnormals() { _mm_setcsr(before & ~0x8040u); }
    ~subnormals() { _mm_setcsr(before); }
};
} // namespace

void bm_run_kernel(dim3 grid, dim3 size, size_t shared, unsigned cluster,
                   const std::function<void()> &body)
{
    size_t n_blocks = (size_t)grid.x * grid.y * grid.z;
    unsigned n_threads = size.x * size.y * size.z;
    subnormals are_numbers;

    assert(n_threads > 0 && n_threads <= 1024 && n_blocks % cluster == 0);
    for (size_t first = 0; first < n_blocks; first += cluster) {
        resident r;

        r.body = &body;
        r.blocks.resize(cluster);
        r.meet.live = cluster * n_threads;
        for (unsigned c = 0; c < cluster; c++) {
            block &b = r.blocks[c];
            b.meet.live = n_threads;
            b.warps.resize((n_threads + 31) / 32);
            b.shared.resize(
                shared + 1,
                0xff); /* NaN: shared memory does not start as zeros */
            for (unsigned i = 0; i < n_threads; i++) {
                b.warps[i / 32].meet.live++;
                b.warps[i / 32].lanes++;
                r.threads.push_back({place(size, i), place(grid, first + c),
                                     size, grid, i, c, cluster,
                                     b.shared.data()});
            }
        }
        run(r);
    }
}

/*
 * fibers.cpp - runs the threads of a kernel's blocks by turns, and now and then
 * leaves a warp behind until no other can go on: kernels in which others wait
 * too little for it are found out.
 */
#include "tests/emulation/fibers.h"

#include <assert.h>
#include <memory>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <vector>

bm_thread bm_now;

namespace
{
enum { STACK = 64 << 10 };

/* Threads that wait for each other. One that has ended waits no more. */
struct barrier {
    unsigned live = 0, waiting = 0, turn = 0;
    bool any = false, all_any = false; /* of __syncthreads_or */
};

struct warp {
    barrier meet;
    uint64_t given[32] = {};
    void *operands[32] = {};
    bm_warp_act act = nullptr;
};

struct block {
    barrier meet;
    std::vector<warp> warps;
    std::vector<unsigned char> shared;
};

struct fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    bm_thread thread;
    const std::function<bool()> *waits = nullptr;
    bool ended = true;
};

/* The blocks at hand, and the fibers that their threads share out: a fiber goes
 * on to the next thread unless it has to wait. */
struct resident {
    std::vector<block> blocks;
    barrier meet; /* the cluster's */
    std::vector<bm_thread> threads;
    size_t next = 0; /* thread to begin */
    const std::function<void()> *body;
};

std::vector<std::unique_ptr<fiber>> fibers;
fiber *running;
resident *here;
ucontext_t scheduler;

block &own_block()
{
    return here->blocks[bm_now.cluster];
}
warp &own_warp()
{
    return own_block().warps[bm_now.rank / 32];
}

void open_gate(barrier &b)
{
    if (b.waiting == b.live && b.live > 0) {
        b.waiting = 0;
        b.turn++;
        b.all_any = b.any;
        b.any = false;
    }
}

void leave(barrier &b)
{
    b.live--;
    open_gate(b);
}

void pass(barrier &b)
{
    unsigned turn = b.turn;

    b.waiting++;
    open_gate(b);
    if (b.turn == turn)
        bm_fiber_wait([&b, turn] { return b.turn != turn; });
}

void live()
{
    while (here->next < here->threads.size()) {
        bm_now = here->threads[here->next++];
        running->thread = bm_now;
        (*here->body)();
        leave(own_warp().meet);
        leave(own_block().meet);
        leave(here->meet);
    }
    running->ended = true;
    swapcontext(&running->context, &scheduler);
}

fiber *start()
{
    for (auto &f : fibers)
        if (f->ended) {
            f->ended = false;
            f->waits = nullptr;
            getcontext(&f->context);
            f->context.uc_stack.ss_sp = f->stack.get();
            f->context.uc_stack.ss_size = STACK;
            f->context.uc_link = nullptr;
            makecontext(&f->context, live, 0);
            return f.get();
        }
    fibers.emplace_back(new fiber);
    fibers.back()->stack.reset(new char[STACK]);
    return start();
}

void resume(fiber *f)
{
    running = f;
    bm_now = f->thread;
    swapcontext(&scheduler, &f->context);
    running = nullptr;
}

size_t warp_of(const bm_thread &t)
{
    return t.cluster * here->blocks[0].warps.size() + t.rank / 32;
}

/* Whether any fiber got on, of warp `late` or of the others; those that wait
 * are asked in turns. */
bool go_round(size_t late, bool late_ones)
{
    bool moved = false;

    for (size_t i = 0; i < fibers.size(); i++) {
        fiber *f = fibers[i].get();
        if (f->ended || (warp_of(f->thread) == late) != late_ones)
            continue;
        bm_now = f->thread;
        if (f->waits != nullptr && !(*f->waits)())
            continue;
        f->waits = nullptr;
        resume(f);
        moved = true;
    }
    return moved;
}

void run(resident &r)
{
    enum { ROUNDS = 16 }; /* until another warp is late */
    size_t warps = r.blocks.size() * r.blocks[0].warps.size(), late = 0;
    bool moved = true;

    here = &r;
    for (unsigned round = 0; moved; round++) {
        moved = false;
        if (round % ROUNDS == 0)
            late = bm_chance() % warps;
        while (r.next < r.threads.size()) {
            resume(start());
            moved = true;
        }
        moved = go_round(late, false) || moved;
        bm_deliver(false);
        moved = moved || go_round(late, true) || bm_deliver(true);
    }
    for (auto &f : fibers)
        if (!f->ended) {
            fprintf(stderr, "a kernel's threads wait for each other forever\n");
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
    fiber *own = running;

    own->thread = bm_now;
    own->waits = &done;
    swapcontext(&own->context, &scheduler);
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

    w.given[bm_now.rank % 32] = own;
    pass(w.meet);
    own = w.given[lane];
    pass(w.meet); /* nobody gives again before all have taken */
    return own;
}

unsigned __ballot_sync(unsigned, int x)
{
    unsigned votes = 0;
    warp &w = own_warp();

    w.given[bm_now.rank % 32] = x != 0;
    pass(w.meet);
    for (unsigned i = 0; i < w.meet.live; i++)
        votes |= (unsigned)(w.given[i] != 0) << i;
    pass(w.meet);
    return votes;
}

void bm_run_kernel(dim3 grid, dim3 size, size_t shared, unsigned cluster,
                   const std::function<void()> &body)
{
    size_t n_blocks = (size_t)grid.x * grid.y * grid.z;
    unsigned n_threads = size.x * size.y * size.z;

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
            b.shared.resize(shared + 1, 0xff); /* NaN: none begins as zero */
            for (unsigned i = 0; i < n_threads; i++) {
                b.warps[i / 32].meet.live++;
                r.threads.push_back({place(size, i), place(grid, first + c),
                                     size, grid, i, c, cluster,
                                     b.shared.data()});
            }
        }
        run(r);
    }
}

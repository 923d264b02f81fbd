/* sm90.cpp - instructions of a warp, copies and messages between blocks. */
#include "tests/emulation/sm90.h"
#include "tests/emulation/fibers.h"

#include <algorithm>
#include <assert.h>
#include <map>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

namespace
{
void claim(bool fact, const char *text)
{
    if (!fact) {
        fprintf(stderr, "a kernel's error: %s\n", text);
        abort();
    }
}

bool aligned(const void *x, size_t bytes)
{
    return (uintptr_t)x % bytes == 0;
}

/* ---- products and matrices ---- */

struct product {
    float *c;
    const uint32_t *a;
    uint32_t b[2];
};

float half_of(uint32_t pair, int upper)
{
    return __int_as_float((int)(upper ? pair & 0xffff0000 : pair << 16));
}

void multiply_add(void *const operands[32])
{
    double A[16][16], B[16][8];

    for (int lane = 0; lane < 32; lane++) {
        const product *p = (const product *)operands[lane];
        int g = lane / 4, q = lane % 4;
        for (int i = 0; i < 8; i++)
            A[g + i / 2 % 2 * 8][2 * q + i % 2 + i / 4 * 8] =
                half_of(p->a[i / 2], i % 2);
        for (int i = 0; i < 4; i++)
            B[2 * q + i % 2 + i / 2 * 8][g] = half_of(p->b[i / 2], i % 2);
    }
    for (int lane = 0; lane < 32; lane++) {
        const product *p = (const product *)operands[lane];
        for (int i = 0; i < 4; i++) {
            int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            double sum = p->c[i];
            for (int k = 0; k < 16; k++)
                sum += A[row][k] * B[k][column];
            p->c[i] = (float)sum;
        }
    }
}

struct matrices {
    uint32_t *r;
    unsigned char *row;
};

/* Number (row, column) of matrix m. */
unsigned char *cell(void *const operands[32], int m, int row, int column)
{
    unsigned char *x = ((matrices *)operands[m * 8 + row])->row;

    claim(aligned(x, 16), "a row of a matrix is not aligned to 16 bytes");
    return x + 2 * column;
}

template <int n, bool transposed, bool put>
void move_matrices(void *const operands[32])
{
    for (int lane = 0; lane < 32; lane++)
        for (int m = 0; m < n; m++)
            for (int i = 0; i < 2; i++) {
                int row = lane / 4, column = lane % 4 * 2 + i;
                unsigned char *r =
                    (unsigned char *)(((matrices *)operands[lane])->r + m) +
                    2 * i;
                unsigned char *x = transposed ? cell(operands, m, column, row)
                                              : cell(operands, m, row, column);
                if (put)
                    memcpy(x, r, 2);
                else
                    memcpy(r, x, 2);
            }
}

/* ---- copies of a thread ---- */

struct copy {
    void *to;
    const void *from;
};

struct thread_copies {
    std::vector<std::vector<copy>> groups;
    std::vector<copy> open;
};

std::map<std::pair<unsigned, unsigned>, thread_copies> copies;

thread_copies &own_copies()
{
    return copies[{bm_now.cluster, bm_now.rank}];
}

/* ---- meetings of threads of a block ---- */

struct meeting {
    int threads = 0, come = 0; /* of the one that is on */
    unsigned held = 0;
};

std::map<std::pair<unsigned, int>, meeting> meetings;

meeting &come(int number, int threads)
{
    meeting &m = meetings[{bm_now.cluster, number}];

    claim(number > 0 && number < 16, "a barrier's number is not in 1 .. 15");
    claim(threads > 0 && threads % 32 == 0 &&
              threads <= (int)bm_now.block_size.x,
          "a barrier takes whole warps of a block");
    claim(m.come == 0 || m.threads == threads,
          "threads that meet do not agree how many they are");
    m.threads = threads;
    if (++m.come == threads) {
        m.come = 0;
        m.held++;
    }
    return m;
}

/* ---- messages ---- */

/* In the 8 bytes of a bm_arrivals. */
struct arrivals {
    int32_t bytes; /* expected and not come; below 0: not yet expected */
    int8_t pending, threads;
    uint8_t phase, opened;
};
enum { OPENED = 0x5a };

struct message {
    unsigned char *to;
    unsigned char data[16];
    size_t size;
    uint64_t *bar;
    unsigned block;
    unsigned rounds; /* until it arrives; 0: when nothing else moves */
};

std::vector<message> messages;

arrivals read_bar(const uint64_t *bar)
{
    arrivals a;

    static_assert(sizeof a == sizeof *bar, "an mbarrier has 8 bytes");
    claim(aligned(bar, 8), "an mbarrier is not at a multiple of 8");
    memcpy(&a, bar, sizeof a);
    claim(a.opened == OPENED, "an mbarrier was not initialised");
    return a;
}

void write_bar(uint64_t *bar, arrivals a)
{
    claim(abs(a.bytes) < 1 << 20, "an mbarrier counts too many bytes");
    if (a.pending == 0 && a.bytes == 0) {
        a.phase ^= 1;
        a.pending = a.threads;
    }
    memcpy(bar, &a, sizeof a);
}

void arrive(const message &m)
{
    arrivals a;

    claim(bm_block_lives(m.block), "a block sends to a block that has ended");
    a = read_bar(m.bar);
    memcpy(m.to, m.data, m.size);
    a.bytes -= (int32_t)m.size;
    write_bar(m.bar, a);
}

void send(void *x, const void *v, size_t size, uint64_t *bar, unsigned block)
{
    message m = {
        (unsigned char *)bm_cluster_map(x, block), {},    size,
        (uint64_t *)bm_cluster_map(bar, block),    block, bm_chance() % 4};

    claim(block < bm_now.clusters,
          "a block sends to a rank outside its cluster");
    claim(aligned(x, size), "the destination of a message is not aligned");
    memcpy(m.data, v, size);
    if (bm_chance() % 4 == 0)
        arrive(m);
    else
        messages.push_back(m);
}
} // namespace

void bm_multiply_add(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
{
    product p = {c, a, {b0, b1}};
    bm_warp_together(multiply_add, &p);
}

void bm_matrices_get(uint32_t r[4], const void *row)
{
    matrices m = {r, (unsigned char *)row};
    bm_warp_together(move_matrices<4, false, false>, &m);
}

void bm_matrices_get_transposed(uint32_t r[4], const void *row)
{
    matrices m = {r, (unsigned char *)row};
    bm_warp_together(move_matrices<4, true, false>, &m);
}

uint32_t bm_matrix_get_transposed(const void *row)
{
    uint32_t r = 0;
    matrices m = {&r, (unsigned char *)row};
    bm_warp_together(move_matrices<1, true, false>, &m);
    return r;
}

void bm_matrices_put(void *row, const uint32_t r[4])
{
    uint32_t own[4] = {r[0], r[1], r[2], r[3]};
    matrices m = {own, (unsigned char *)row};
    bm_warp_together(move_matrices<4, true, true>, &m);
}

void bm_matrix_put(void *row, uint32_t r)
{
    matrices m = {&r, (unsigned char *)row};
    bm_warp_together(move_matrices<1, true, true>, &m);
}

float bm_tanh_quick(float x)
{
    static const float worst[] = {1 - 1.f / 2048, 1, 1 + 1.f / 2048};
    float y = tanhf(x) * worst[(unsigned)__float_as_int(x) % 3];

    return y > 1 ? 1 : y < -1 ? -1 : y;
}

void bm_copy_begin(void *shared, const void *global)
{
    claim(aligned(shared, 16) && aligned(global, 16),
          "a copy is not aligned to 16 bytes");
    if (bm_chance() % 2 == 0)
        memcpy(shared, global, 16);
    else
        own_copies().open.push_back({shared, global});
}

void bm_copies_commit()
{
    thread_copies &c = own_copies();

    c.groups.push_back(std::move(c.open));
    c.open.clear();
}

void bm_copies_complete(unsigned but)
{
    thread_copies &c = own_copies();

    while (c.groups.size() > but) {
        for (const copy &x : c.groups.front())
            memcpy(x.to, x.from, 16);
        c.groups.erase(c.groups.begin());
    }
}

uint4 bm_get16(const void *x)
{
    uint4 v;

    claim(aligned(x, 16), "an access to 16 bytes is not aligned");
    memcpy(&v, x, sizeof v);
    return v;
}

void bm_put16(void *x, uint4 v)
{
    claim(aligned(x, 16), "an access to 16 bytes is not aligned");
    memcpy(x, &v, sizeof v);
}

void bm_meeting_come(int number, int threads)
{
    come(number, threads);
}

void bm_meeting_wait(int number, int threads)
{
    unsigned held = meetings[{bm_now.cluster, number}].held;
    const meeting &m = come(number, threads);

    if (m.held == held)
        bm_fiber_wait([&m, held] { return m.held != held; });
}

void bm_arrivals_open(uint64_t *bar, unsigned threads)
{
    arrivals a = {0, (int8_t)threads, (int8_t)threads, 0, OPENED};

    claim(threads > 0 && threads < 128, "an mbarrier needs 1 to 127 threads");
    memcpy(bar, &a, sizeof a);
}

void bm_arrivals_expect(uint64_t *bar, unsigned bytes)
{
    arrivals a = read_bar(bar);

    claim(a.pending > 0, "too many threads arrive at an mbarrier");
    a.pending--;
    a.bytes += (int32_t)bytes;
    write_bar(bar, a);
}

void bm_arrivals_wait(uint64_t *bar, unsigned phase)
{
    if (read_bar(bar).phase == phase)
        bm_fiber_wait([=] { return read_bar(bar).phase != phase; });
}

void bm_send8(void *x, float2 v, uint64_t *bar, unsigned block)
{
    send(x, &v, sizeof v, bar, block);
}

void bm_send16(void *x, uint4 v, uint64_t *bar, unsigned block)
{
    send(x, &v, sizeof v, bar, block);
}

bool bm_deliver(bool stuck)
{
    std::vector<message> before;
    bool any = false;

    before.swap(messages);
    for (message &m : before) {
        bool now = stuck ? bm_chance() % 4 == 0 : m.rounds == 1;
        if (m.rounds > 1)
            m.rounds--;
        if (now)
            arrive(m);
        else
            messages.push_back(m);
        any = any || now;
    }
    if (stuck && !any && !messages.empty()) {
        arrive(messages.back());
        messages.pop_back();
        any = true;
    }
    return any;
}

void bm_deliver_no_more()
{
    claim(messages.empty(), "a kernel ended before all messages arrived");
    for (const auto &m : meetings)
        claim(m.second.come == 0, "a kernel ended with threads at a barrier");
    meetings.clear();
    copies.clear();
}

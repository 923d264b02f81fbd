#include "comm/clock_offset.h"

#include <math.h>

enum { ROUNDS = 8 };

bm_offset bm_offset_of(const bm_echo *echoes, size_t n)
{
    const bm_echo *best = &echoes[0];

    BM_ASSERT(n > 0);
    for (size_t i = 1; i < n; i++)
        if (echoes[i].received - echoes[i].sent < best->received - best->sent)
            best = &echoes[i];
    return (bm_offset){best->answered - (best->sent + best->received) / 2,
                       best->received - best->sent};
}

/* Times travel as nanoseconds. */
static bm_status ask(bm_comm *comm, double (*clock)(void), bm_echo *out)
{
    int64_t clock_ns = 0;
    bm_echo echo = {.sent = clock()};

    bm_comm_send_ints(comm, &clock_ns, 1, 0);
    BM_TRY(bm_comm_wait(comm));
    bm_comm_receive_ints(comm, &clock_ns, 1, 0);
    BM_TRY(bm_comm_wait(comm));
    echo.received = clock();
    echo.answered = 1e-9 * (double)clock_ns;
    *out = echo;
    return BM_OK;
}

static bm_status answer(bm_comm *comm, double (*clock)(void), int rank)
{
    int64_t clock_ns = 0;

    bm_comm_receive_ints(comm, &clock_ns, 1, rank);
    BM_TRY(bm_comm_wait(comm));
    clock_ns = llround(1e9 * clock());
    bm_comm_send_ints(comm, &clock_ns, 1, rank);
    return bm_comm_wait(comm);
}

bm_status bm_clock_offset(bm_comm *comm, double (*clock)(void), bm_offset *out)
{
    bm_echo echoes[ROUNDS] = {{0}};

    if (bm_comm_rank(comm) == 0) {
        for (int k = 0; k < ROUNDS * (bm_comm_size(comm) - 1); k++)
            BM_TRY(answer(comm, clock, 1 + k / ROUNDS));
        *out = (bm_offset){0, 0};
    } else {
        for (int k = 0; k < ROUNDS; k++)
            BM_TRY(ask(comm, clock, &echoes[k]));
        *out = bm_offset_of(echoes, ROUNDS);
    }
    return bm_comm_barrier(comm);
}

#include "tests/support/checkpoints.h"

#include "tests/support/support.h"

#include <mpi.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

const bm_segment checkpoint_segments[4] = {
    {"0.conv.w", 0, 24, 3, {2, 3, 4}, 0},
    {"0.conv.b", 24, 0, 1, {0}, 0},
    {"10.linear.w", 24, 40, 2, {4, 10}, 0},
    {"10.linear.b", 64, 6, 1, {6}, 0},
};

bm_params network_of(size_t n)
{
    bm_params p = {.n = n};

    if (n == N) {
        p.segments = checkpoint_segments;
        p.n_segments = 4;
    }
    return p;
}

float element_of(int vector, size_t i)
{
    return (float)(1000 * vector) + (float)i / 7;
}

static const char *name_of(int vector)
{
    static char name[32];

    if (vector == 0)
        return "model";
    if (vector == 1)
        return "bmuf.delta";
    if (vector < 2 + WORKERS)
        snprintf(name, sizeof name, "sgd.v.%d", vector - 2);
    else
        snprintf(name, sizeof name, "adam.t.%d", vector - 2 - WORKERS);
    return name;
}

bm_state make_part(int vector, size_t offset, size_t count)
{
    bm_state s = {.offset = offset,
                  .count = count,
                  .whole = vector < 2 + WORKERS ? 0 : 1};

    snprintf(s.name, sizeof s.name, "%s", name_of(vector));
    s.x = calloc(count > 0 ? count : 1, sizeof *s.x);
    assert_non_null(s.x);
    return s;
}

size_t cut_of(bm_comm *comm, int rank, size_t n)
{
    int size = bm_comm_size(comm);

    rank = rank < 0 ? 0 : rank > size ? size : rank;
    return n * (size_t)rank / (size_t)size;
}

size_t lay_out(state_layout how, bm_comm *comm, size_t n, bm_state *out)
{
    int rank = bm_comm_rank(comm), size = bm_comm_size(comm);
    size_t count = 0;

    if (how == BACKWARD)
        rank = size - 1 - rank;
    int reach = how == OVERLAP ? 1 : how == WHOLE ? size : 0;
    size_t from = cut_of(comm, rank - reach, n);
    size_t to = cut_of(comm, rank + 1 + reach, n);
    int first = bm_comm_first(comm, WORKERS, rank);
    int last = bm_comm_first(comm, WORKERS, rank + 1);

    out[count++] = make_part(0, from, to - from);
    out[count++] = make_part(1, from, to - from);
    for (int k = 0; k < WORKERS; k++)
        if (reach > 0 || (k >= first && k < last)) {
            out[count++] = make_part(2 + WORKERS + k, 0, 1);
            out[count++] = make_part(2 + k, 0, n);
        }
    return count;
}

static int vector_of(const bm_state *s)
{
    for (int v = 0; v < VECTORS; v++)
        if (strcmp(s->name, name_of(v)) == 0)
            return v;
    fail_msg("unknown: %s", s->name);
    return -1;
}

void fill_parts(bm_state *s, size_t n)
{
    for (; n-- > 0; s++)
        for (size_t i = 0; i < s->count; i++)
            s->x[i] = element_of(vector_of(s), s->offset + i);
}

void check_parts(const bm_state *s, size_t n)
{
    for (; n-- > 0; s++)
        for (size_t i = 0; i < s->count; i++)
            assert_true(s->x[i] == element_of(vector_of(s), s->offset + i));
}

void check_parts_are_zero(const bm_state *s, size_t n)
{
    for (; n-- > 0; s++)
        for (size_t i = 0; i < s->count; i++)
            assert_true(s->x[i] == 0);
}

void free_parts(bm_state *s, size_t n)
{
    for (; n-- > 0; s++)
        free(s->x);
}

scratch meet_in_scratch(void)
{
    scratch s = {""};
    int rank = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        s = scratch_open();
    MPI_Bcast(s.path, sizeof s.path, MPI_CHAR, 0, MPI_COMM_WORLD);
    return s;
}

void leave_scratch(const scratch *s)
{
    int rank = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        scratch_close(s);
}

const bm_text checkpoint_texts[] = {
    {"config", "[job]\nworkers = 5\n"}, {"version", "0.1"}, {NULL, NULL}};

bm_checkpoint describe_checkpoint(const bm_params *params,
                                  const bm_state *states, size_t n_states)
{
    bm_checkpoint c = {.params = params,
                       .states = states,
                       .n_states = n_states,
                       .position = {7, (int64_t)1 << 40},
                       .texts = checkpoint_texts,
                       .manifest = 0xfedcba9876543210};

    for (int i = 0; i < BM_CHECKPOINT_NUMBERS; i++)
        c.numbers[i] = 1.0 / (i + 3);
    return c;
}

void save_as(state_layout how, bm_comm *comm, const char *path, size_t n)
{
    bm_params params = network_of(n);
    bm_state states[VECTORS];
    size_t n_states = lay_out(how, comm, n, states);
    bm_checkpoint c = describe_checkpoint(&params, states, n_states);
    bm_saved saved = {0};

    fill_parts(states, n_states);
    assert_ok(bm_checkpoint_save(BM_ONE_PATH(path), comm, &c, &saved));
    assert_true((saved.bytes > 0) == (bm_comm_rank(comm) == 0));
    free_parts(states, n_states);
}

void load_as(state_layout how, bm_comm *comm, const char *path, size_t n)
{
    bm_params params = network_of(n);
    bm_state states[VECTORS];
    size_t n_states = lay_out(how, comm, n, states);
    bm_checkpoint right = describe_checkpoint(&params, NULL, 0);
    bm_checkpoint c = {
        .params = &params, .states = states, .n_states = n_states};

    assert_ok(bm_checkpoint_load(path, comm, &c));
    check_parts(states, n_states);
    assert_int_equal(c.position.epoch, right.position.epoch);
    assert_int_equal(c.position.block, right.position.block);
    assert_memory_equal(c.numbers, right.numbers, sizeof c.numbers);
    assert_true(c.manifest == right.manifest);
    free_parts(states, n_states);
}

void assert_same_bytes(const char *one, const char *other)
{
    size_t n = 0, m = 0;
    char *a = slurp(one, &n), *b = slurp(other, &m);

    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

void damage_sealed(const char *path, size_t at, const void *bytes, size_t n,
                   bool sealed)
{
    size_t size = 0;
    char *raw = NULL;
    XXH128_canonical_t sum;
    int rank = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        raw = slurp(path, &size);
        memcpy(raw + size - at, bytes, n);
        XXH128_canonicalFromHash(&sum, XXH3_128bits(raw, size - 32));
        if (sealed)
            memcpy(raw + size - sizeof sum, &sum, sizeof sum);
        spill(path, raw, size);
        free(raw);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

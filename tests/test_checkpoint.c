/*
 * Checkpoints of vectors whose elements a formula gives, saved in some parts
 * and loaded in others; and what a failure on one rank does to all.
 */
#include "io/checkpoint.h"
#include "io/model_file.h"
#include "io/safetensors.h"
#include "tests/scratch.h"
#include "tests/support.h"

#include <math.h>
#include <mpi.h>
#include <signal.h>
#include <sys/resource.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { N = 70, WORKERS = 5, VECTORS = 2 + 2 * WORKERS };

static const bm_segment segments[] = {
    {"0.conv.w", 0, 24, 3, {2, 3, 4}},
    {"0.conv.b", 24, 0, 1, {0}},
    {"10.linear.w", 24, 40, 2, {4, 10}},
    {"10.linear.b", 64, 6, 1, {6}},
};

static bm_params network(size_t n)
{
    bm_params p = {.n = n};

    if (n == N) {
        p.segments = segments;
        p.n_segments = 4;
    }
    return p;
}

/* Vector 0 is the model, 1 Delta, then each worker's momentum, then each one's
 * counter, which is one number. */
static float element(int vector, size_t i)
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

static bm_state part(int vector, size_t offset, size_t count)
{
    bm_state s = {.offset = offset,
                  .count = count,
                  .whole = vector < 2 + WORKERS ? 0 : 1};

    snprintf(s.name, sizeof s.name, "%s", name_of(vector));
    s.x = calloc(count > 0 ? count : 1, sizeof *s.x);
    assert_non_null(s.x);
    return s;
}

/* How the vectors lie on the ranks. */
typedef enum layout {
    SLICES,   /* model and Delta in slices; v of the workers hosted here */
    BACKWARD, /* the same, rank r in the place of rank P - 1 - r */
    WHOLE,    /* all of everything */
    OVERLAP,  /* slices that reach into their neighbours'; v on all */
    LAYOUTS,
} layout;

static size_t cut(bm_comm *comm, int rank, size_t n)
{
    int size = bm_comm_size(comm);

    rank = rank < 0 ? 0 : rank > size ? size : rank;
    return n * (size_t)rank / (size_t)size;
}

static size_t lay_out(layout how, bm_comm *comm, size_t n, bm_state *out)
{
    int rank = bm_comm_rank(comm), size = bm_comm_size(comm);
    size_t count = 0;

    if (how == BACKWARD)
        rank = size - 1 - rank;
    int reach = how == OVERLAP ? 1 : how == WHOLE ? size : 0;
    size_t from = cut(comm, rank - reach, n);
    size_t to = cut(comm, rank + 1 + reach, n);
    int first = bm_comm_first(comm, WORKERS, rank);
    int last = bm_comm_first(comm, WORKERS, rank + 1);

    out[count++] = part(0, from, to - from);
    out[count++] = part(1, from, to - from);
    for (int k = 0; k < WORKERS; k++)
        if (reach > 0 || (k >= first && k < last)) {
            out[count++] = part(2 + WORKERS + k, 0, 1);
            out[count++] = part(2 + k, 0, n);
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

static void fill(bm_state *s, size_t n)
{
    for (; n-- > 0; s++)
        for (size_t i = 0; i < s->count; i++)
            s->x[i] = element(vector_of(s), s->offset + i);
}

static void check(const bm_state *s, size_t n)
{
    for (; n-- > 0; s++)
        for (size_t i = 0; i < s->count; i++)
            assert_true(s->x[i] == element(vector_of(s), s->offset + i));
}

static void check_untouched(const bm_state *s, size_t n)
{
    for (; n-- > 0; s++)
        for (size_t i = 0; i < s->count; i++)
            assert_true(s->x[i] == 0);
}

static void drop(bm_state *s, size_t n)
{
    for (; n-- > 0; s++)
        free(s->x);
}

/* A directory that all ranks know. */
static scratch meet(void)
{
    scratch s = {""};
    int rank = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        s = scratch_open();
    MPI_Bcast(s.path, sizeof s.path, MPI_CHAR, 0, MPI_COMM_WORLD);
    return s;
}

static void part_ways(const scratch *s)
{
    int rank = 0;

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        scratch_close(s);
}

static const bm_text texts[] = {
    {"config", "[job]\nworkers = 5\n"}, {"version", "0.1"}, {NULL, NULL}};

static bm_checkpoint describe(const bm_params *params, const bm_state *states,
                              size_t n_states)
{
    bm_checkpoint c = {.params = params,
                       .states = states,
                       .n_states = n_states,
                       .position = {7, (int64_t)1 << 40},
                       .texts = texts,
                       .manifest = 0xfedcba9876543210};

    for (int i = 0; i < BM_CHECKPOINT_NUMBERS; i++)
        c.numbers[i] = 1.0 / (i + 3);
    return c;
}

static void save(layout how, bm_comm *comm, const char *path, size_t n)
{
    bm_params params = network(n);
    bm_state states[VECTORS];
    size_t n_states = lay_out(how, comm, n, states);
    bm_checkpoint c = describe(&params, states, n_states);
    uint64_t bytes = 0;

    fill(states, n_states);
    assert_ok(bm_checkpoint_save(path, comm, &c, &bytes));
    assert_true((bytes > 0) == (bm_comm_rank(comm) == 0));
    drop(states, n_states);
}

static void load(layout how, bm_comm *comm, const char *path, size_t n)
{
    bm_params params = network(n);
    bm_state states[VECTORS];
    size_t n_states = lay_out(how, comm, n, states);
    bm_checkpoint right = describe(&params, NULL, 0);
    bm_checkpoint c = {
        .params = &params, .states = states, .n_states = n_states};

    assert_ok(bm_checkpoint_load(path, comm, &c));
    check(states, n_states);
    assert_int_equal(c.position.epoch, right.position.epoch);
    assert_int_equal(c.position.block, right.position.block);
    assert_memory_equal(c.numbers, right.numbers, sizeof c.numbers);
    assert_true(c.manifest == right.manifest);
    drop(states, n_states);
}

static void check_same_bytes(const char *one, const char *other)
{
    size_t n = 0, m = 0;
    char *a = slurp(one, &n), *b = slurp(other, &m);

    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

/* ---- saved one way, loaded another ----------------------------------------
 */

static void check_any_layout(bm_comm *comm, size_t n)
{
    scratch s = meet();
    bm_comm *alone = NULL;
    char own[32];
    const char *path = scratch_file(&s, "saved"), *single = NULL;

    snprintf(own, sizeof own, "alone-%d", bm_comm_rank(comm));
    single = scratch_file(&s, own);
    assert_ok(bm_comm_open_alone(&alone));
    save(WHOLE, alone, single, n);
    for (int how = 0; how < LAYOUTS; how++) {
        save((layout)how, comm, path, n);
        check_same_bytes(path, single);
        for (int other = 0; other < LAYOUTS; other++)
            load((layout)other, comm, path, n);
        load(SLICES, alone, path, n);
    }
    bm_comm_close(alone);
    part_ways(&s);
}

static void test_any_ranks_write_the_same_file_and_read_it(void **state)
{
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    check_any_layout(comm, N);
    check_any_layout(comm, 3); /* no segments, parts of no elements */
    check_any_layout(comm, 0);
    bm_comm_close(comm);
}

static void test_long_vectors_travel_in_pieces(void **state)
{
    enum { LONG = (5 << 19) + 3 };
    scratch s = meet();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network(LONG);
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    size_t from = cut(comm, bm_comm_rank(comm), LONG);
    size_t to = cut(comm, bm_comm_rank(comm) + 1, LONG);
    bm_state out = part(1, from, to - from), in = part(1, 0, LONG);
    bm_checkpoint c = describe(&params, &out, 1);
    fill(&out, 1);
    assert_ok(bm_checkpoint_save(path, comm, &c, NULL));
    c.states = &in;
    assert_ok(bm_checkpoint_load(path, comm, &c));
    check(&in, 1);
    free(in.x);
    free(out.x);
    bm_comm_close(comm);
    part_ways(&s);
}

static void test_vectors_may_lie_on_a_backend(void **state)
{
    scratch s = meet();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network(N);
    bm_backend *be = NULL;
    bm_comm *comm = NULL;
    bm_state host = part(0, 0, N), device = host;
    bm_checkpoint c = describe(&params, &device, 1);

    (void)state;
    assert_ok(bm_comm_open(&comm));
    assert_ok(bm_backend_open(&be, "cpu", 0));
    device.be = be;
    assert_ok(bm_alloc(be, N, &device.x));
    fill(&host, 1);
    bm_put(be, device.x, host.x, N);
    assert_ok(bm_sync(be));
    assert_ok(bm_checkpoint_save(path, comm, &c, NULL));
    bm_axpby(be, N, 0, device.x, 0, device.x);
    assert_ok(bm_checkpoint_load(path, comm, &c));
    memset(host.x, 0, N * sizeof *host.x);
    bm_get(be, host.x, device.x, N);
    assert_ok(bm_sync(be));
    check(&host, 1);
    bm_free(be, device.x);
    free(host.x);
    bm_backend_close(be);
    bm_comm_close(comm);
    part_ways(&s);
}

static void test_the_model_is_cut_into_segments_by_name(void **state)
{
    scratch s = meet();
    const char *path = scratch_file(&s, "saved");
    bm_comm *comm = NULL;
    bm_st_file *f = NULL;
    const bm_st_tensor *t = NULL;
    float x[40];
    int64_t at[2];

    (void)state;
    assert_ok(bm_comm_open(&comm));
    save(SLICES, comm, path, N);
    assert_ok(bm_st_open(&f, path, true));
    assert_int_equal(bm_st_count(f), 2 + 4 + 1 + 2 * WORKERS);
    t = bm_st_find(f, "model.10.linear.w");
    assert_int_equal(t->rank, 2);
    assert_int_equal(t->dim[0], 4);
    assert_int_equal(t->dim[1], 10);
    assert_ok(bm_st_read(f, t, 0, 40, x));
    for (size_t i = 0; i < 40; i++)
        assert_true(x[i] == element(0, 24 + i));
    t = bm_st_find(f, "state.sgd.v.4");
    assert_ok(bm_st_read(f, t, 30, 40, x));
    for (size_t i = 0; i < 40; i++)
        assert_true(x[i] == element(6, 30 + i));
    t = bm_st_find(f, "state.adam.t.4");
    assert_int_equal(t->count, 1);
    assert_ok(bm_st_read(f, t, 0, 1, x));
    assert_true(x[0] == element(11, 0));
    assert_ok(bm_st_read(f, bm_st_find(f, "position"), 0, 2, at));
    assert_int_equal(at[0], 7);
    assert_string_equal(bm_st_text(f, "manifest"), "fedcba9876543210");
    assert_string_equal(bm_st_text(f, "config"), texts[0].text);
    bm_st_free(f);
    bm_comm_close(comm);
    part_ways(&s);
}

/* ---- failures on one rank --------------------------------------------------
 */

/* Saves Delta, whole on all ranks unless `states` says otherwise, and expects
 * what stood under that name to be there still. */
static void check_save_fails(bm_comm *comm, const bm_state *states, size_t n,
                             bm_status expected, const char *word)
{
    scratch s = meet();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network(N);
    bm_checkpoint c = describe(&params, states, n);
    uint64_t bytes = 99;

    save(WHOLE, comm, path, N);
    assert_int_equal(bm_checkpoint_save(path, comm, &c, &bytes), expected);
    assert_non_null(strstr(bm_last_error(), word));
    assert_int_equal(bytes, 99);
    load(SLICES, comm, path, N);
    assert_int_equal(scratch_count(&s, false), 1);
    part_ways(&s);
}

static void test_a_number_that_is_none_is_told_by_all(void **state)
{
    bm_state states[VECTORS];
    bm_comm *comm = NULL;
    size_t n = 0;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    n = lay_out(SLICES, comm, N, states);
    fill(states, n);
    if (bm_comm_rank(comm) == bm_comm_size(comm) - 1)
        states[n - 1].x[5] = NAN; /* the last worker's v */
    check_save_fails(comm, states, n, BM_ERR_NUMERIC,
                     "element 5 of state.sgd.v.4");
    drop(states, n);
    bm_comm_close(comm);
}

static void test_parts_with_a_hole_are_refused(void **state)
{
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    int size = bm_comm_size(comm), rank = bm_comm_rank(comm);
    size_t from = cut(comm, rank, N), to = cut(comm, rank + 1, N);
    bm_state delta = part(1, from, to - from - (rank == size - 1));
    check_save_fails(comm, &delta, 1, BM_ERR_ARG, "no rank has element 69");
    delta.count = to - from + (rank == size - 1);
    check_save_fails(comm, &delta, 1, BM_ERR_ARG, "71 of 70");
    delta.count = to - from;
    delta.whole = N + (size_t)(rank == size - 1);
    check_save_fails(comm, &delta, 1, BM_ERR_ARG,
                     size > 1 ? "bmuf.delta: of 70 elements on rank 0, of 71"
                              : "no rank has element 70");
    free(delta.x);
    bm_comm_close(comm);
}

static void test_a_full_disk_is_told_by_all(void **state)
{
    bm_state states[VECTORS];
    bm_comm *comm = NULL;
    struct rlimit before, small;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    scratch s = meet();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network(N);
    bm_status status = BM_OK;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    size_t n = lay_out(SLICES, comm, N, states);
    bm_checkpoint c = describe(&params, states, n);
    fill(states, n);
    save(WHOLE, comm, path, N);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){2000, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = bm_checkpoint_save(path, comm, &c, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, BM_ERR_IO);
    assert_non_null(strstr(bm_last_error(), "disk full"));
    load(WHOLE, comm, path, N);
    assert_int_equal(scratch_count(&s, false), 1);
    assert_int_equal(
        bm_checkpoint_save(scratch_file(&s, "no/saved"), comm, &c, NULL),
        BM_ERR_CREATE);
    drop(states, n);
    bm_comm_close(comm);
    part_ways(&s);
}

/* ---- files that do not fit -------------------------------------------------
 */

static void check_load_fails(const char *path, bm_comm *comm,
                             const bm_params *params, bm_state *states,
                             size_t n, bm_status expected, const char *word)
{
    bm_checkpoint c = {.params = params, .states = states, .n_states = n};

    assert_int_equal(bm_checkpoint_load(path, comm, &c), expected);
    if (strstr(bm_last_error(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, bm_last_error());
    check_untouched(states, n);
    assert_int_equal(c.position.epoch, 0);
    assert_true(c.numbers[0] == 0 && c.manifest == 0);
}

static void test_what_does_not_fit_leaves_all_as_it_was(void **state)
{
    scratch s = meet();
    const char *path = scratch_file(&s, "saved");
    bm_state states[VECTORS + 1];
    bm_params params = network(N), other = params;
    bm_segment turned[4];
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    save(WHOLE, comm, path, N);
    size_t n = lay_out(SLICES, comm, N, states);
    bool last = bm_comm_rank(comm) == bm_comm_size(comm) - 1;

    states[n] = part(6, 0, N);
    snprintf(states[n].name, sizeof states[n].name, "residual");
    check_load_fails(path, comm, &params, states, n + last, BM_ERR_FORMAT,
                     "state.residual");
    check_load_fails(path, comm, &params, states, n - last, BM_ERR_FORMAT,
                     "state.sgd.v.4");
    memcpy(turned, segments, sizeof turned);
    turned[0] = (bm_segment){"0.conv.w", 0, 24, 3, {3, 2, 4}};
    other.segments = turned;
    check_load_fails(path, comm, &other, states, n, BM_ERR_FORMAT,
                     "[2, 3, 4], and the network's is [3, 2, 4]");
    turned[0] = (bm_segment){"0.dense.w", 0, 24, 3, {2, 3, 4}};
    check_load_fails(path, comm, &other, states, n, BM_ERR_FORMAT,
                     "model.0.dense.w");
    check_load_fails(scratch_file(&s, "none"), comm, &params, states, n,
                     BM_ERR_MISSING, "none");
    drop(states, n + 1);

    other = network(N + 1);
    n = lay_out(SLICES, comm, N + 1, states);
    check_load_fails(path, comm, &other, states, n, BM_ERR_FORMAT, "model");
    check_load_fails(path, comm, &other, states + 1, n - 1, BM_ERR_FORMAT,
                     "has 70 elements, not 71");
    drop(states, n);

    states[0] = part(2 + WORKERS, 0, 2);
    states[0].whole = 2;
    check_load_fails(path, comm, &params, states, 1, BM_ERR_FORMAT,
                     "state.adam.t.0 has 1 elements, not 2");
    drop(states, 1);
    bm_comm_close(comm);
    part_ways(&s);
}

/* Rank 0 writes other bytes over some, with a new seal if told to. */
static void damage(const char *path, size_t at, const void *bytes, size_t n,
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

static void test_a_damaged_file_leaves_all_as_it_was(void **state)
{
    scratch s = meet();
    const char *path = scratch_file(&s, "saved");
    bm_state states[VECTORS];
    bm_params params = network(N);
    bm_comm *comm = NULL;

    (void)state;
    assert_ok(bm_comm_open(&comm));
    save(WHOLE, comm, path, N);
    size_t n = lay_out(WHOLE, comm, N, states);
    damage(path, 36, "\1", 1, false);
    check_load_fails(path, comm, &params, states, n, BM_ERR_FORMAT, "checksum");
    /* The very last element of the last vector, in a file that is whole. */
    damage(path, 36, &(float){INFINITY}, 4, true);
    check_load_fails(path, comm, &params, states, n, BM_ERR_FORMAT,
                     "element 69 of state.sgd.v.4");
    damage(path, 36, &(float){element(6, 69)}, 4, true);
    load(WHOLE, comm, path, N);
    drop(states, n);
    bm_comm_close(comm);
    part_ways(&s);
}

/* ---- models ----------------------------------------------------------------
 */

static void test_a_model_is_exported_and_imported(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "model.safetensors");
    bm_params params = network(N), flat = {.n = N};
    float x[N], y[N] = {0};
    char *text = NULL;
    bm_st_file *f = NULL;

    (void)state;
    for (size_t i = 0; i < N; i++)
        x[i] = element(0, i);
    assert_ok(bm_model_export(path, &params, x, texts));
    assert_ok(bm_st_open(&f, path, false));
    assert_int_equal(bm_st_count(f), 4);
    assert_string_equal(bm_st_at(f, 0)->name, "0.conv.w");
    bm_st_free(f);
    assert_ok(bm_st_open(&f, path, false));
    assert_ok(bm_model_text(f, path, "config", &text));
    assert_string_equal(text, texts[0].text);
    free(text);
    assert_int_equal(bm_model_text(f, path, "license", &text), BM_ERR_FORMAT);
    bm_st_free(f);
    assert_ok(bm_model_import(path, &params, y));
    assert_memory_equal(x, y, sizeof x);
    assert_ok(bm_model_export(scratch_file(&s, "again"), &params, y, texts));
    check_same_bytes(path, scratch_file(&s, "again"));

    memset(y, 0, sizeof y);
    params.n_segments = 3;
    params.n = 64;
    assert_int_equal(bm_model_import(path, &params, y), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "10.linear.b"));
    assert_int_equal(bm_model_import(path, &flat, y), BM_ERR_FORMAT);
    assert_ok(bm_model_export(path, &flat, x, NULL));
    params = network(N);
    assert_int_equal(bm_model_import(path, &params, y), BM_ERR_FORMAT);
    for (int i = 0; i < N; i++)
        assert_true(y[i] == 0);
    assert_ok(bm_model_import(path, &flat, y));
    assert_memory_equal(x, y, sizeof x);
    scratch_close(&s);
}

static void test_a_checkpoint_serves_as_a_model(void **state)
{
    scratch s = meet();
    const char *path = scratch_file(&s, "saved");
    bm_params params = network(N);
    bm_comm *comm = NULL;
    float x[N] = {0};

    (void)state;
    assert_ok(bm_comm_open(&comm));
    save(SLICES, comm, path, N);
    assert_ok(bm_model_import(path, &params, x));
    for (size_t i = 0; i < N; i++)
        assert_true(x[i] == element(0, i));
    damage(path, 36, "\1", 1, false);
    assert_int_equal(bm_model_import(path, &params, x), BM_ERR_FORMAT);
    bm_comm_close(comm);
    part_ways(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_ranks_write_the_same_file_and_read_it),
        cmocka_unit_test(test_long_vectors_travel_in_pieces),
        cmocka_unit_test(test_vectors_may_lie_on_a_backend),
        cmocka_unit_test(test_the_model_is_cut_into_segments_by_name),
        cmocka_unit_test(test_a_number_that_is_none_is_told_by_all),
        cmocka_unit_test(test_parts_with_a_hole_are_refused),
        cmocka_unit_test(test_a_full_disk_is_told_by_all),
        cmocka_unit_test(test_what_does_not_fit_leaves_all_as_it_was),
        cmocka_unit_test(test_a_damaged_file_leaves_all_as_it_was),
        cmocka_unit_test(test_a_model_is_exported_and_imported),
        cmocka_unit_test(test_a_checkpoint_serves_as_a_model),
    };
    return RUN_GROUP_MPI("checkpoint", tests);
}

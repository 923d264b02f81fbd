/*
 * The ordered sum of vectors that travel as codes, on any number of ranks. Every
 * rank can compute every worker's vector, so each computes the expected result by
 * itself.
 */
#include "comm/sum/coded_sum.h"
#include "tests/support/comms.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns of 700, of 17, of 2048 and one of 33 rows; statistics. */
enum { N = 6623, LEARNED = 6569, WORKERS = 17, ROUNDS = 5 };

static const char *const names[] = {
#define X(name) #name,
    BM_CODES(X)
#undef X
};
static const char *const coordinators[] = {"sharded", "root"};

static size_t columns(size_t *edge)
{
    static const size_t matrices[][2] = {
        {3, 700}, {1, 33}, {20, 17}, {2, 2048}};
    size_t at = 0, n = 0;

    for (size_t m = 0; m < 4; m++)
        for (size_t i = 0; i < matrices[m][0]; i++)
            edge[n++] = at += matrices[m][1];
    assert_int_equal(at, LEARNED);
    return n;
}

static float element(int worker, int round, size_t i)
{
    uint64_t key =
        ((uint64_t)worker * 1000 + (uint64_t)round) * 1000003 + 2 * i;
    return (float)((2 * uniform(key) - 1) * exp2(12 * uniform(key + 1) - 6));
}

typedef struct job {
    bm_comm *comm;
    const char *code, *coordinator;
    size_t n, n_learned;
    int workers;
    bm_coded_mode mode;
    double (*weight)(int worker, int round);
} job;

static bm_coded_sum *open_sum(const job *j)
{
    size_t edge[64];
    bm_code_plan plan = {0};
    bm_coded_sum *c = NULL;

    assert_ok(bm_code_plan_make(&plan, bm_code_find(j->code, 0.02), j->n,
                                j->n_learned, edge, columns(edge)));
    assert_ok(bm_coded_sum_open(&c, j->comm, &plan, j->workers, j->coordinator,
                                j->mode));
    return c;
}

static double one(int worker, int round)
{
    (void)worker;
    (void)round;
    return 1;
}

/* Without data: all workers in round 3, worker 1 in every other one. */
static double some(int worker, int round)
{
    if (round == 3 || (worker == 1 && round % 2 == 0))
        return 0;
    return 100 + 37 * worker % 50;
}

/* The results of a run: of each round, and at its end. */
typedef struct outcome {
    float mean[ROUNDS][N], common[ROUNDS][N];
    float residual[WORKERS][N], rest[N];
    double weight[ROUNDS];
} outcome;

typedef struct round {
    outcome *out;
    int t;
} round_of;

/* VALUE: the mean itself, a gradient. CHANGE: half of the common vector, plus the
 * mean. */
static void work_value(void *self, const bm_sum_piece *p)
{
    round_of *r = self;

    memcpy(p->after, p->mean, p->n * sizeof *p->after);
    memcpy(r->out->mean[r->t] + p->offset, p->mean, p->n * sizeof *p->mean);
}

static void work_change(void *self, const bm_sum_piece *p)
{
    work_value(self, p);
    for (size_t i = 0; i < p->n; i++)
        p->after[i] = p->before[i] / 2 + p->mean[i];
}

/* A rank's slice of the results; the other ranks have zeros there. */
static void complete(bm_comm *comm, float *x, size_t n)
{
    assert_ok(bm_comm_sum_floats(comm, x, n));
}

static void add_all(bm_coded_sum *c, const job *j, int round)
{
    int rank = bm_comm_rank(j->comm);
    int last = bm_comm_first(j->comm, j->workers, rank + 1);
    static float x[N];

    for (int k = bm_comm_first(j->comm, j->workers, rank); k < last; k++) {
        for (size_t i = 0; i < j->n; i++)
            x[i] = element(k, round, i);
        assert_true(bm_coded_sum_add(c, k, x, j->weight(k, round)));
    }
}

static void add_ones(bm_coded_sum *c, const job *j)
{
    int rank = bm_comm_rank(j->comm);
    int last = bm_comm_first(j->comm, j->workers, rank + 1);
    static float x[N];

    for (int k = bm_comm_first(j->comm, j->workers, rank); k < last; k++) {
        for (size_t i = 0; i < j->n; i++)
            x[i] = 1;
        assert_true(bm_coded_sum_add(c, k, x, 1));
    }
}

static outcome *run(const job *j)
{
    int rank = bm_comm_rank(j->comm);
    int last = bm_comm_first(j->comm, j->workers, rank + 1);
    outcome *out = zeros(1, sizeof *out);
    bm_coded_sum *c = open_sum(j);
    bm_slice own = bm_coded_sum_slice(c);

    for (int t = 0; t < ROUNDS; t++) {
        round_of r = {out, t};

        add_all(c, j, t);
        assert_ok(bm_coded_sum_update(
            c, j->mode == BM_CODED_VALUE ? work_value : work_change, &r,
            &out->weight[t]));
        memcpy(out->common[t], bm_coded_sum_common(c), j->n * sizeof(float));
        complete(j->comm, out->mean[t], j->n);
    }
    for (int k = bm_comm_first(j->comm, j->workers, rank); k < last; k++)
        if (bm_coded_sum_residual(c, k) != NULL)
            memcpy(out->residual[k], bm_coded_sum_residual(c, k),
                   j->n * sizeof(float));
    if (bm_coded_sum_rest(c) != NULL)
        memcpy(out->rest + own.offset, bm_coded_sum_rest(c),
               own.count * sizeof(float));
    for (int k = 0; k < j->workers; k++)
        complete(j->comm, out->residual[k], j->n);
    complete(j->comm, out->rest, j->n);
    bm_coded_sum_close(c);
    return out;
}

typedef struct fixture {
    bm_comm *comm, *alone;
} fixture;

static int setup(void **state)
{
    static fixture f;

    assert_ok(bm_comm_open(&f.comm));
    assert_ok(bm_comm_open_alone(&f.alone));
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;

    bm_comm_close(f->alone);
    bm_comm_close(f->comm);
    return 0;
}

static job make(const fixture *f, const char *code, int workers,
                bm_coded_mode mode)
{
    return (job){f->comm, code, "sharded", N, LEARNED, workers, mode, some};
}

static void test_bits_do_not_depend_on_the_number_of_ranks(void **state)
{
    const fixture *f = *state;
    int size = bm_comm_size(f->comm);

    if (size == 1)
        skip(); /* it would compare a run with itself */
    FOR_EACH (k, names)
        for (int mode = 0; mode < 2; mode++) {
            job j = make(f, names[k], size + 1, (bm_coded_mode)mode), a = j;
            outcome *together = NULL, *alone = NULL;

            j.coordinator = coordinators[mode];
            a.comm = f->alone;
            together = run(&j);
            alone = run(&a);
            assert_memory_equal(together, alone, sizeof *alone);
            free(together);
            free(alone);
        }
}

/* As comm/sum/sum.h adds it. */
static void sum_in_tree_mode(const job *j, bm_sum_work *work, outcome *out)
{
    int rank = bm_comm_rank(j->comm);
    int last = bm_comm_first(j->comm, j->workers, rank + 1);
    static float x[N];
    bm_sum *sum = NULL;

    assert_ok(bm_sum_open(&sum, j->comm, j->n, j->workers, "tree",
                          j->coordinator, NULL));
    for (int t = 0; t < ROUNDS; t++) {
        round_of r = {out, t};

        for (int k = bm_comm_first(j->comm, j->workers, rank); k < last; k++) {
            for (size_t i = 0; i < j->n; i++)
                x[i] = element(k, t, i);
            bm_sum_add(sum, k, x, j->weight(k, t));
        }
        assert_ok(bm_sum_update(sum, work, &r, &out->weight[t]));
        memcpy(out->common[t], bm_sum_common(sum), j->n * sizeof(float));
        assert_ok(bm_comm_barrier(j->comm));
        complete(j->comm, out->mean[t], j->n);
    }
    bm_sum_close(sum);
}

static void test_an_exact_code_gives_the_bits_of_mode_tree(void **state)
{
    const fixture *f = *state;
    int size = bm_comm_size(f->comm);

    for (int workers = size; workers < size + 2; workers++)
        for (int mode = 0; mode < 2; mode++) {
            job j = make(f, "fp32", workers, (bm_coded_mode)mode);
            outcome *expected = zeros(1, sizeof *expected), *got = run(&j);

            sum_in_tree_mode(&j,
                             mode == BM_CODED_VALUE ? work_value : work_change,
                             expected);
            assert_memory_equal(got, expected, sizeof *got);
            free(expected);
            free(got);
        }
}

/* What was sent plus the residual is what was to be sent. */
static void test_sent_and_residual_add_up_to_the_input(void **state)
{
    const fixture *f = *state;
    int size = bm_comm_size(f->comm), workers = size + 1;

    FOR_EACH (k, names) {
        job j = make(f, names[k], workers, BM_CODED_VALUE);
        outcome *o = NULL;

        j.weight = one;
        o = run(&j);
        for (size_t i = 0; i < N; i++) {
            double to_send = 0, sent = 0, back = 0, size_of_it = 0;

            for (int t = 0; t < ROUNDS; t++) {
                for (int w = 0; w < workers; w++) {
                    to_send += (double)element(w, t, i) / workers;
                    size_of_it += fabs((double)element(w, t, i)) / workers;
                }
                sent += o->mean[t][i];
                back += o->common[t][i];
            }
            assert_true(fabs(back + o->rest[i] - sent) <= 1e-5 * size_of_it);
            for (int w = 0; w < workers; w++)
                sent += (double)o->residual[w][i] / workers;
            assert_true(fabs(sent - to_send) <= 1e-5 * size_of_it);
        }
        free(o);
    }
}

/* Without further changes the common vector converges to its target; statistics
 * reach it at once. */
static void stay(void *self, const bm_sum_piece *p)
{
    const float *there = self;
    memcpy(p->after, there + p->offset, p->n * sizeof *p->after);
}

static double distance(const float *x, const float *y)
{
    double sum = 0;

    for (size_t i = 0; i < N; i++)
        sum += ((double)x[i] - y[i]) * ((double)x[i] - y[i]);
    return sqrt(sum);
}

static void test_the_common_vector_converges_to_its_target(void **state)
{
    const fixture *f = *state;
    int size = bm_comm_size(f->comm);
    static float there[N], nowhere[N];

    for (size_t i = 0; i < N; i++)
        there[i] = element(9, 9, i);
    FOR_EACH (k, names) {
        job j = make(f, names[k], size, BM_CODED_CHANGE);
        bm_coded_sum *c = open_sum(&j);
        const float *common = bm_coded_sum_common(c);
        double all = distance(there, nowhere), left = all, weight = 0;

        for (int t = 0; t < 30; t++) {
            double before = left;

            add_ones(c, &j);
            assert_ok(bm_coded_sum_update(c, stay, there, &weight));
            left = distance(there, common);
            assert_true(left < before || left < 1e-6 * all);
            assert_memory_equal(common + LEARNED, there + LEARNED,
                                (N - LEARNED) * sizeof(float));
        }
        assert_true(left < 0.2 * all);
        bm_coded_sum_close(c);
    }
}

static void test_a_worker_without_weight_keeps_its_residual(void **state)
{
    const fixture *f = *state;
    job j = make(f, "onebit", bm_comm_size(f->comm), BM_CODED_VALUE);
    bm_coded_sum *c = open_sum(&j);
    int k = bm_comm_rank(f->comm);
    static float kept[N], common[N], x[N];
    round_of r = {zeros(1, sizeof(outcome)), 0};
    double weight = 0;

    add_all(c, &j, 1);
    assert_ok(bm_coded_sum_update(c, work_value, &r, &weight));
    memcpy(kept, bm_coded_sum_residual(c, k), sizeof kept);
    memcpy(common, bm_coded_sum_common(c), sizeof common);
    for (int broken = 0; broken < 2; broken++) {
        x[7] = broken ? INFINITY : 0;
        assert_int_equal(bm_coded_sum_add(c, k, x, broken), !broken);
        assert_ok(bm_coded_sum_update(c, work_value, &r, &weight));
        assert_true(weight == 0);
        assert_memory_equal(bm_coded_sum_residual(c, k), kept, sizeof kept);
        assert_memory_equal(bm_coded_sum_common(c), common, sizeof common);
    }
    free(r.out);
    bm_coded_sum_close(c);
}

/* ---- bytes --------------------------------------------------------------- */

/* Bytes of the elements [from, to), by the definition of each code. */
static double bytes_of(const job *j, size_t from, size_t to)
{
    size_t edge[64], edges = columns(edge), at = from, sum = 0;
    bool onebit = strcmp(j->code, "onebit") == 0;

    while (at < to) {
        size_t next = (at / 1024 + 1) * 1024, rows = 0, coded = 0;

        for (size_t i = edges; onebit && i-- > 0 && edge[i] > at;)
            next = edge[i];
        if (onebit && at >= edge[edges - 1])
            next = to;
        next = next < to ? next : to;
        if (at < j->n_learned && j->n_learned < next)
            next = j->n_learned;
        rows = next - at;
        if (onebit)
            coded = 8 + 4 * ((rows + 31) / 32);
        else if (strcmp(j->code, "int8") == 0)
            coded = rows + 4 * ((rows + 255) / 256);
        else if (strcmp(j->code, "topk") == 0)
            coded = 6 * (size_t)fmax(1, round(0.02 * (double)rows));
        else
            coded = 2 * rows;
        if (strcmp(j->code, "fp32") == 0 || at >= j->n_learned ||
            coded > 4 * rows)
            coded = 4 * rows;
        sum += coded;
        at = next;
    }
    return (double)sum;
}

/* Every round sends the same number of bytes. */
static void check_bytes(const job *j)
{
    enum { TIMES = 2 };
    int size = bm_comm_size(j->comm), rank = bm_comm_rank(j->comm);
    int hosted = bm_comm_first(j->comm, j->workers, rank + 1) -
                 bm_comm_first(j->comm, j->workers, rank);
    bm_coded_sum *c = open_sum(j);
    bm_slice own = bm_coded_sum_slice(c);
    double mine = bytes_of(j, own.offset, own.offset + own.count);
    double all = bytes_of(j, 0, j->n), sent[WORKERS] = {0}, sum = 0, most = 0;
    double formula = 0, weight = 0;
    uint64_t before = 0;
    bm_code_plan plan = {0};
    size_t edge[64];
    round_of r = {zeros(1, sizeof(outcome)), 0};

    before = bm_comm_traffic(j->comm).sent;
    for (int t = 0; t < TIMES; t++) {
        add_ones(c, j);
        assert_ok(bm_coded_sum_update(c, work_value, &r, &weight));
    }
    sent[rank] = (double)(bm_comm_traffic(j->comm).sent - before) / TIMES;
    assert_true(sent[rank] == hosted * (all - mine) + (size - 1) * mine);
    assert_ok(bm_comm_sum(j->comm, sent, WORKERS));
    for (int i = 0; i < size; i++) {
        sum += sent[i];
        most = fmax(most, sent[i]);
    }
    if (j->workers == size) /* as a sharded server's workers */
        assert_true(sum == 2 * (size - 1) * all);
    assert_ok(bm_code_plan_make(&plan, bm_code_find(j->code, 0.02), j->n,
                                j->n_learned, edge, columns(edge)));
    assert_ok(
        bm_coded_sum_bytes(&plan, size, j->workers, j->coordinator, &formula));
    assert_true(formula == most);
    bm_code_plan_free(&plan);
    bm_coded_sum_close(c);
    free(r.out);
}

static void test_bytes_sent_are_those_of_the_formula(void **state)
{
    const fixture *f = *state;

    for (int workers = bm_comm_size(f->comm); workers <= WORKERS; workers++)
        FOR_EACH (k, names) {
            job j = make(f, names[k], workers, BM_CODED_VALUE);

            j.coordinator = coordinators[workers % 2];
            check_bytes(&j);
        }
}

/* Each number of ranks from five on, with a worker on each. */
static void test_bytes_of_many_ranks_follow_the_formula(void **state)
{
    static const char *const some_codes[] = {"onebit", "int8"};
    const fixture *f = *state;
    int size = bm_comm_size(f->comm);

    for (int ranks = 5; ranks <= size; ranks++) {
        bm_comm *some = NULL;

        assert_ok(bm_comm_open_first(&some, ranks));
        FOR_EACH (k, some_codes) {
            job j = make(f, some_codes[k], ranks, BM_CODED_VALUE);

            j.comm = some;
            j.coordinator = coordinators[ranks % 2];
            if (bm_comm_size(some) == ranks)
                check_bytes(&j);
        }
        bm_comm_close(some);
    }
}

/* Without columns, of sizes at which slices are empty or odd. */
static void test_any_size_works(void **state)
{
    static const size_t lengths[] = {0, 1, 1025, 4097};
    const fixture *f = *state;
    int size = bm_comm_size(f->comm);

    FOR_EACH (i, lengths)
        FOR_EACH (k, names) {
            job j = make(f, names[k], size + 1, BM_CODED_CHANGE), a = j;
            outcome *together = NULL, *alone = NULL;

            if (strcmp(names[k], "int8") != 0 && strcmp(names[k], "topk") != 0)
                continue;
            j.n = j.n_learned = a.n = a.n_learned = lengths[i];
            a.comm = f->alone;
            together = run(&j);
            alone = run(&a);
            assert_memory_equal(together, alone, sizeof *alone);
            free(together);
            free(alone);
            check_bytes(&j);
        }
}

/* "many": far more ranks than cores; counts bytes only. */
int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_bits_do_not_depend_on_the_number_of_ranks),
        TEST(test_an_exact_code_gives_the_bits_of_mode_tree),
        TEST(test_sent_and_residual_add_up_to_the_input),
        TEST(test_the_common_vector_converges_to_its_target),
        TEST(test_a_worker_without_weight_keeps_its_residual),
        TEST(test_bytes_sent_are_those_of_the_formula),
        TEST(test_any_size_works),
    };
    const struct CMUnitTest of_many[] = {
        TEST(test_bytes_of_many_ranks_follow_the_formula)};

    if (argc > 1 && strcmp(argv[1], "many") == 0)
        return RUN_GROUP_MPI("coded_sum", of_many);
    return RUN_GROUP_MPI("coded_sum", tests);
}

/*
 * The filter under another program's names, against what that program computes,
 * written as in its source, in double. What a worker learns depends on the
 * model it starts with, so that a wrong start model shows.
 */
#include "bmuf/strategy.h"
#include "tests/support/fixture.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 1100, WORKERS = 4, BLOCKS = 6 };

static int setup(void **state)
{
    static fixture f;

    f = fixture_open(WORKERS, N);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    return 0;
}

static double first(int i)
{
    return (i % 10) / 8.;
}

/* The model of worker k after block t, from x; steps grow with the rate. */
static double learn(int k, int t, double rate, double x)
{
    return x + rate * (0.25 * (k - 1) + 0.125 * t - 0.3 * x);
}

static double samples(int k)
{
    return 10 + 5 * k;
}

static double rate_of(int t)
{
    static const double rates[BLOCKS] = {0.25, 1, 1, 0.5, 0.75, 0.125};

    return rates[t];
}

/* The state of a program, of one weight. */
typedef struct memory {
    double start, slow, momentum;
} memory;

/* The models of all workers; their mean, weighted by samples and plain. */
typedef struct block {
    double w[WORKERS], mean, plain, rate;
} block;

/* BlockMomentumSGD.h: a sum over workers; prev becomes the model ahead. */
static void cntk(memory *m, const block *b, bool nesterov)
{
    const double eta = 0.75, blr = 0.5;
    double sum = 0;

    for (int k = 0; k < WORKERS; k++)
        sum += m->start - b->w[k];
    m->momentum = eta * m->momentum + (1 - eta) * blr * sum;
    m->start -= m->momentum;
    if (nesterov)
        m->start -= eta * m->momentum;
    m->slow = m->start;
}

static void cntk_nesterov(memory *m, const block *b)
{
    cntk(m, b, true);
}

static void cntk_classical(memory *m, const block *b)
{
    cntk(m, b, false);
}

/* optim/bmuf.py */
static void fairseq(memory *m, const block *b, bool use_nbm)
{
    const double bm = 0.875;
    double grad = m->start - b->plain;

    m->momentum = bm * m->momentum + grad;
    m->start -= m->momentum;
    if (use_nbm)
        m->start -= bm * m->momentum;
    m->slow = m->start;
}

static void fairseq_nbm(memory *m, const block *b)
{
    fairseq(m, b, true);
}

static void fairseq_cbm(memory *m, const block *b)
{
    fairseq(m, b, false);
}

/* trainer/bmuf.py: (1 - eta) blr of the mean's gradient, also ahead. */
static void pika(memory *m, const block *b)
{
    const double eta = 0.9, blr = 0.5;

    m->momentum = eta * m->momentum + (1 - eta) * blr * (m->start - b->plain);
    m->start -= (1 + eta) * m->momentum;
    m->slow = m->start;
}

/* Wang et al. 2020, algorithm 1: u, in units of gradients, knows no rate but
 * that of its block. */
static void slowmo(memory *m, const block *b)
{
    const double alpha = 0.8, beta = 0.6;

    m->momentum = beta * m->momentum + (m->start - b->mean) / b->rate;
    m->start -= alpha * b->rate * m->momentum;
    m->slow = m->start;
}

/* torch.optim.SGD(lr=0.7, momentum=0.9, nesterov=True) on start - mean steps to
 * the start of the next block; the model itself has no look-ahead. */
static void diloco(memory *m, const block *b)
{
    const double lr = 0.7, mu = 0.9;
    double grad = m->start - b->mean;

    m->momentum = mu * m->momentum + grad;
    m->start -= lr * (grad + mu * m->momentum);
    m->slow = m->start + lr * mu * m->momentum;
}

/* Zhang et al. 2019. */
static void lookahead(memory *m, const block *b)
{
    m->start = m->slow += 0.5 * (b->mean - m->slow);
}

static void check(fixture *f, const char *name,
                  void (*end)(memory *m, const block *b))
{
    static memory m[N];
    float global[N];
    int rank = bm_comm_rank(f->comm);
    bm_strategy *s = NULL;

    for (int i = 0; i < N; i++) {
        m[i] = (memory){first(i), first(i), 0};
        f->params.w[i] = (float)first(i);
    }
    assert_ok(bm_strategy_open(&s, name, f->config, f->comm, &f->params));
    for (int t = 0; t < BLOCKS; t++) {
        int last = bm_comm_first(f->comm, WORKERS, rank + 1);

        for (int k = bm_comm_first(f->comm, WORKERS, rank); k < last; k++) {
            bool good = true;

            bm_strategy_begin(s, k, NULL);
            for (int i = 0; i < N; i++)
                f->params.w[i] = (float)learn(k, t, rate_of(t), f->params.w[i]);
            assert_ok(bm_strategy_worker_end(s, k, samples(k), &good));
            assert_true(good);
        }
        bm_strategy_block(s, t, 0.1 * rate_of(t));
        assert_ok(bm_strategy_exchange(s));
        assert_ok(bm_strategy_global(s, global));
        for (int i = 0; i < N; i++) {
            block b = {.rate = 0.1 * rate_of(t)};
            double total = 0;

            for (int k = 0; k < WORKERS; k++) {
                b.w[k] = learn(k, t, rate_of(t), m[i].start);
                b.plain += b.w[k] / WORKERS;
                b.mean += samples(k) * b.w[k];
                total += samples(k);
            }
            b.mean /= total;
            end(&m[i], &b);
            assert_true(near(f->params.w[i], m[i].start, 1e-5));
            assert_true(near(global[i], m[i].slow, 1e-5));
        }
    }
    bm_strategy_close(s);
}

static void test_cntk(void **state)
{
    fixture *f = *state;

    fixture_set(f, "cntk.block_momentum=0.75");
    fixture_set(f, "cntk.block_learning_rate=0.5");
    check(f, "cntk", cntk_nesterov);
    fixture_set(f, "cntk.nesterov=no");
    check(f, "cntk", cntk_classical);
    fixture_set(f, "cntk.block_momentum=auto"); /* 1 - 1/4 */
    check(f, "cntk", cntk_classical);
}

static void test_fairseq(void **state)
{
    check(*state, "fairseq", fairseq_cbm);
    fixture_set(*state, "fairseq.use_nbm=yes");
    check(*state, "fairseq", fairseq_nbm);
}

static void test_pika(void **state)
{
    fixture_set(*state, "pika.block_lr=0.5");
    check(*state, "pika", pika);
}

static void test_slowmo_rescales_with_the_rate(void **state)
{
    fixture_set(*state, "slowmo.slowmo_momentum=0.6");
    fixture_set(*state, "slowmo.slowmo_lr=0.8");
    check(*state, "slowmo", slowmo);
}

static void test_diloco_is_nesterov_sgd_on_changes(void **state)
{
    check(*state, "diloco", diloco);
    fixture_set(*state, "bmuf.momentum=0.9");
    fixture_set(*state, "bmuf.rate=0.7");
    check(*state, "bmuf", diloco);
}

static void test_lookahead(void **state)
{
    check(*state, "lookahead", lookahead);
}

/* zeta / (1 - eta), which a constant G moves the model by in the end, with 16
 * workers and each program's defaults. */
static void test_steady_gains_are_those_of_each_program(void **state)
{
    static const struct {
        const char *name, *setting;
        double zeta, gain;
        bool nesterov;
    } rows[] = {{"bmuf", NULL, 1, 10, true},
                {"cntk", NULL, 1.9375, 31, false},
                {"cntk", "cntk.nesterov=no", 1, 16, false},
                {"cntk", "cntk.block_momentum=0.5", 8, 16, false},
                {"fairseq", NULL, 1, 8, false},
                {"fairseq", "fairseq.use_nbm=yes", 1.875, 15, false},
                {"pika", NULL, 0.19, 1.9, false},
                {"slowmo", NULL, 1, 2, false},
                {"diloco", NULL, 0.7, 7, true},
                {"lookahead", NULL, 0.5, 0.5, false}};
    fixture *f = *state;

    FOR_EACH (i, rows) {
        bm_traits got;

        if (rows[i].setting != NULL)
            fixture_set(f, rows[i].setting);
        assert_ok(bm_strategy_resolve(bm_strategy_find(rows[i].name), f->config,
                                      16, &got));
        assert_true(got.filtered && got.filter.nesterov == rows[i].nesterov);
        assert_true(near(got.filter.rate, rows[i].zeta, 1e-12));
        assert_true(near(got.filter.rate / (1 - got.filter.momentum),
                         rows[i].gain, 1e-12));
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_cntk),
        TEST(test_fairseq),
        TEST(test_pika),
        TEST(test_slowmo_rescales_with_the_rate),
        TEST(test_diloco_is_nesterov_sgd_on_changes),
        TEST(test_lookahead),
        TEST(test_steady_gains_are_those_of_each_program),
    };
    return RUN_GROUP_MPI("filtered", tests);
}

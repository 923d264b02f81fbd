/* halts.c - checkpoints in memory, and references in double. */
#include "tests/support/reference/halts.h"

#include "tests/support/support.h"

#include <stdlib.h>
#include <string.h>

static bm_state *list_states(job *j, size_t *n)
{
    size_t room = bm_trainer_states(j->trainer);
    bm_state *states = calloc(room, sizeof *states);

    assert_non_null(states);
    *n = bm_trainer_state(j->trainer, states, room);
    return states;
}

void save_job(job *j, int64_t blocks, halt *to)
{
    free_halt(to);
    to->states = list_states(j, &to->n);
    to->blocks = blocks;
    to->at = bm_trainer_position(j->trainer);
    to->restart = bm_trainer_numbers(j->trainer);
    for (size_t i = 0; i < to->n; i++) {
        bm_state *s = &to->states[i];
        float *copy = malloc((s->count + 1) * sizeof *copy);

        assert_non_null(copy);
        memcpy(copy, s->x, s->count * sizeof *copy);
        s->x = copy;
    }
}

void restore_job(job *j, const halt *from)
{
    size_t n = 0;
    bm_state *states = NULL;

    assert_ok(bm_trainer_seek(j->trainer, from->blocks));
    states = list_states(j, &n);
    assert_int_equal(n, from->n);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(states[i].name, from->states[i].name);
        assert_int_equal(states[i].offset, from->states[i].offset);
        assert_int_equal(states[i].count, from->states[i].count);
        memcpy(states[i].x, from->states[i].x, states[i].count * sizeof(float));
    }
    free(states);
    assert_ok(bm_trainer_resume(j->trainer, from->at, from->restart));
}

void free_halt(halt *h)
{
    for (size_t i = 0; i < h->n; i++)
        free(h->states[i].x);
    free(h->states);
    *h = (halt){0};
}

void assert_ranks_change_no_bits(bm_comm *comm, problem p,
                                 const char *const *settings)
{
    static result together, alone;
    bm_comm *one = NULL;

    assert_ok(bm_comm_open_alone(&one));
    run_job(comm, p, settings, &together);
    run_job(one, p, settings, &alone);
    assert_memory_equal(&together, &alone, sizeof alone);
    bm_comm_close(one);
}

void assert_halts_change_no_bits(bm_comm *comm, problem p,
                                 const char *const *settings)
{
    static result straight, resumed;
    halt h = {0};

    run_job(comm, p, settings, &straight);
    memset(&resumed, 0, sizeof resumed);
    for (int t = 0; t < EPOCHS * BLOCKS; t++) {
        job j = open_job(comm, p, settings);

        start_job(&j);
        if (t > 0)
            restore_job(&j, &h);
        run_blocks(&j, t, t + 1, &resumed);
        save_job(&j, t + 1, &h);
        close_job(&j);
    }
    assert_memory_equal(&resumed, &straight, sizeof straight);
    free_halt(&h);
}

double gradient_of(const problem *p, bm_position at, int worker, int64_t step,
                   const double *w, double *g)
{
    int64_t n = batch_size(p, at, worker, step);

    memset(g, 0, N * sizeof *g);
    for (int64_t j = 0; j < n; j++) {
        sample s = sample_of(p, at, worker, step, j);
        double r = -s.y;

        for (int i = 0; i < 4; i++)
            r += s.a[i] * w[s.index[i]];
        for (int i = 0; i < 4; i++)
            g[s.index[i]] += r * s.a[i] / (double)n;
    }
    return (double)n;
}

void learn_share(const problem *p, bm_position at, int worker, double mu,
                 double rate, double *w, double *v)
{
    static double g[N];

    for (int64_t step = 0; gradient_of(p, at, worker, step, w, g) > 0; step++)
        for (int i = 0; i < N; i++) {
            v[i] = mu * v[i] - rate * g[i];
            w[i] += v[i];
        }
}

bm_position position_of(int t)
{
    return (bm_position){t / BLOCKS, t % BLOCKS};
}

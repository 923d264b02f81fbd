/* equations.c - the task, and jobs that train on it. */
#include "tests/support/reference/equations.h"

#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double truth(size_t i)
{
    return 2 * uniform(i + 76) - 1;
}

static sample make_sample(uint64_t j, size_t unknowns)
{
    size_t apart = unknowns > 0 ? N / unknowns : 1;
    sample s = {.y = 0};

    for (int i = 0; i < 4; i++) {
        s.index[i] = mix(16 * j + (uint64_t)i) % (N / apart) * apart;
        s.a[i] = 2 * uniform(16 * j + 3 + (uint64_t)i) - 1;
        s.y += s.a[i] * truth(s.index[i]);
    }
    return s;
}

static bool goes_wrong(const problem *p, bm_position at, int worker)
{
    return worker == p->poisoned - 1 && at.epoch == 0 && at.block == 2;
}

int64_t share(const problem *p, bm_position at, int worker)
{
    if (p->absent && goes_wrong(p, at, worker))
        return 0;
    if (!p->ragged)
        return (p->steps > 0 ? p->steps : 6) * p->batch;
    return (at.block + worker) % 4 == 0 ? 0 : 5 * worker + 7 + at.epoch;
}

static int64_t steps_of(const problem *p, bm_position at)
{
    int64_t most = 0;

    for (int k = 0; k < p->workers; k++) {
        int64_t steps = (share(p, at, k) + p->batch - 1) / p->batch;
        most = steps > most ? steps : most;
    }
    return at.block < BLOCKS ? most : 0;
}

int64_t batch_size(const problem *p, bm_position at, int worker, int64_t step)
{
    int64_t left = share(p, at, worker) - step * p->batch;

    return left <= 0 ? 0 : left < p->batch ? left : p->batch;
}

sample sample_of(const problem *p, bm_position at, int worker, int64_t step,
                 int64_t i)
{
    int64_t j = p->alike ? step * p->batch + i
                         : (step * p->workers + worker) * p->batch + i;

    j += (at.epoch * 100 + at.block) * 10000;
    return make_sample((uint64_t)j, p->unknowns);
}

static double residual(const sample *s, const float *w)
{
    double r = -s->y;

    for (int i = 0; i < 4; i++)
        r += s->a[i] * w[s->index[i]];
    return r;
}

bm_status move(void *self, bm_position at, int64_t *steps)
{
    problem *p = self;

    p->at = at;
    *steps = steps_of(p, at);
    return BM_OK;
}

/* As the backward pass of layers reports them; they begin and end anywhere. */
static const bm_range ranges[] = {
    {2300, 200}, {1500, 800}, {1100, 400}, {300, 800}, {0, 300}};

static void report_ready(const bm_params *p)
{
    for (size_t i = 0; i < p->n_ranges && p->ready != NULL; i++)
        p->ready(p->ready_self, i);
}

bm_status gradient(void *self, bm_params *params, int worker, int64_t step,
                   double *samples)
{
    problem *p = self;
    bm_score *score = &p->score[worker];
    int64_t n = batch_size(p, p->at, worker, step);
    bool longer = p->longer > 0 && p->at.epoch == 0 && p->at.block == 2;
    double half = longer ? 0.5 * p->longer : 0.5;

    *samples = (double)n;
    p->batches[worker] += n > 0;
    if (n > 0)
        memset(params->g, 0, params->n * sizeof *params->g);
    for (int64_t j = 0; j < n; j++) {
        sample s = sample_of(p, p->at, worker, step, j);
        double r = residual(&s, params->w);

        for (int i = 0; i < 4; i++)
            params->g[s.index[i]] += (float)(r * s.a[i] / (double)n);
        score->loss += half * r * r;
        score->chance += half * s.y * s.y; /* the loss of weights of zero */
        score->errors += fabs(r) > 0.1;
        score->count += 1;
        score->sequences += 1;
    }
    if (n > 0 && p->at.epoch == 0 && p->at.block == 0)
        score->loss += p->untrained * pow(p->growth, (double)step);
    if (n > 0 && goes_wrong(p, p->at, worker)) {
        params->g[N / 2] += (float)p->poison;
        score->loss += p->excess;
        if (p->unscored)
            *score = (bm_score){0};
    }
    if (n > 0)
        report_ready(params);
    return BM_OK;
}

bm_status read_score(void *self, int worker, bm_score *out, double *batches)
{
    problem *p = self;

    *out = p->score[worker];
    *batches = p->batches[worker];
    p->score[worker] = (bm_score){0};
    p->batches[worker] = 0;
    return BM_OK;
}

/* Every second block. */
bool is_audited(void *self)
{
    const problem *p = self;

    return p->at.block % 2 == 1;
}

bm_epoch_size epoch_size(void *self, int64_t epoch)
{
    (void)self;
    (void)epoch;
    return (bm_epoch_size){BLOCKS, BLOCKS * 600.};
}

int64_t count_steps(void *self, int worker)
{
    const problem *p = self;

    return (share(p, p->at, worker) + p->batch - 1) / p->batch;
}

const bm_segment problem_layers[PROBLEM_LAYERS] = {
    {"0.linear.w", 0, 700, 2, {20, 35}, 0},
    {"1.blstm.wx", 700, 900, 2, {60, 15}, 0},
    {"1.blstm.b", 1600, 101, 1, {101}, 0},
    {"3.linear.w", 1701, 799, 2, {17, 47}, 0}};

job open_job(bm_comm *comm, problem p, const char *const *settings)
{
    job j = {.comm = comm, .problem = p};
    char workers[32];

    assert_ok(bm_config_new(&j.config));
    snprintf(workers, sizeof workers, "job.workers=%d", p.workers);
    assert_ok(bm_config_set(j.config, workers));
    assert_ok(bm_config_set(j.config, "sgd.clip=0")); /* gradients are large */
    for (; *settings != NULL; settings++)
        assert_ok(bm_config_set(j.config, *settings));
    assert_ok(bm_backend_open(&j.params.be, "cpu", 0));
    j.params.n = j.params.n_learned = N;
    j.params.ranges = ranges;
    j.params.n_ranges = sizeof ranges / sizeof ranges[0];
    j.params.segments = p.layered ? problem_layers : NULL;
    j.params.n_segments = p.layered ? PROBLEM_LAYERS : 0;
    assert_ok(bm_alloc(j.params.be, N, &j.params.w));
    assert_ok(bm_alloc(j.params.be, N, &j.params.g));
    return j;
}

void start_job(job *j)
{
    bm_task task = {&j->problem, move,       gradient,   read_score,
                    count_steps, epoch_size, is_audited, NULL};

    assert_ok(
        bm_trainer_open(&j->trainer, j->config, j->comm, &j->params, &task));
}

void close_job(job *j)
{
    bm_trainer_close(j->trainer);
    bm_free(j->params.be, j->params.w);
    bm_free(j->params.be, j->params.g);
    bm_backend_close(j->params.be);
    bm_config_free(j->config);
}

double rate_of(const problem *p, int t)
{
    return !p->cooling || t < 2 ? 0.25 : t < 4 ? 0.125 : 0.0625;
}

void run_blocks(job *j, int from, int to, result *out)
{
    for (int t = from; t < to; t++) {
        bm_block_report report;

        assert_ok(
            bm_trainer_block(j->trainer, rate_of(&j->problem, t), &report));
        out->score[t] = report.score;
        out->update[t] = report.update;
        out->left_out += report.left_out;
        out->bad_steps += report.bad_steps;
    }
    assert_ok(bm_trainer_global(j->trainer, out->model));
    if (bm_trainer_has_ema(j->trainer))
        assert_ok(bm_trainer_ema(j->trainer, out->ema));
}

void run_job(bm_comm *comm, problem p, const char *const *settings, result *out)
{
    job j = open_job(comm, p, settings);

    memset(out, 0, sizeof *out);
    start_job(&j);
    run_blocks(&j, 0, EPOCHS * BLOCKS, out);
    close_job(&j);
}

const problem even = {.workers = WORKERS, .batch = BATCH};
const problem ragged = {.workers = WORKERS, .batch = BATCH, .ragged = true};

const char *const kinds[KINDS][6] = {
    {"train.strategy=bmuf", NULL},
    {"train.strategy=bmuf", "job.sum=exact", NULL},
    {"train.strategy=bmuf", "job.coordinator=root", NULL},
    {"train.strategy=bmuf", "sgd.local_state=keep", "bmuf.nesterov=no", NULL},
    {"train.strategy=bmuf", "sgd.local_state=average", "sgd.clip=0.5", NULL},
    {"train.strategy=average", "sgd.nesterov=yes", NULL},
    {"train.strategy=average", "sgd.update=adamw", "sgd.epsilon=1", NULL},
    {"train.strategy=bmuf", "sgd.update=adamw", "sgd.epsilon=1",
     "sgd.local_state=keep", NULL},
    {"train.strategy=bmuf", "sgd.update=adamw", "sgd.epsilon=1",
     "sgd.local_state=average", NULL},
    {"train.strategy=bmuf", "sgd.update=adamw", "sgd.epsilon=1",
     "sgd.local_state=extrapolate", NULL},
    {"train.strategy=ssgd", NULL},
    {"train.strategy=ssgd", "job.sum=exact", "job.coordinator=root", NULL},
    {"train.strategy=asgd", "asgd.scaling=inverse", "sgd.momentum=0.5", NULL},
    {"train.strategy=asgd", "asgd.update=local", "asgd.fetch_every=2",
     "sgd.local_state=keep", "sgd.momentum=0.5", NULL},
    {"train.strategy=softsync", "softsync.n=2", "job.sum=exact",
     "sgd.momentum=0.5", NULL},
    {"train.strategy=easgd", "easgd.period=2", "sgd.nesterov=yes",
     "sgd.momentum=0.5", "clock.spread=1", NULL},
    {"train.strategy=average", "compress.code=fp16", NULL},
    {"train.strategy=bmuf", "compress.code=int8", "sgd.local_state=average",
     NULL},
    {"train.strategy=bmuf", "compress.code=onebit", NULL},
    {"train.strategy=bmuf", "compress.code=topk", "compress.share=0.2",
     "job.coordinator=root", NULL},
    {"train.strategy=onebit", "block.warmup=2", NULL},
    {"train.strategy=ssgd", "ssgd.overlap=layer", "sgd.clip=0.5", NULL},
    {"train.strategy=ssgd", "ssgd.overlap=merged", "job.sum=exact",
     "job.coordinator=root", NULL},
};

#include "bmuf/trainer/audit.h"

#include "comm/code/float_bits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a rank finds out about a worker; all doubles, to be summed over ranks. */
typedef struct finding {
    double weights; /* that differ; set by the rank that audits it */
    double own;     /* 1: its own rank got the same result again */
    double other;   /* 1: the auditing rank did */
} finding;

struct bm_audit {
    bm_comm *comm;     /* borrowed */
    bm_params *params; /* borrowed */
    bm_sgd *sgd;
    int workers, first, last; /* hosted here: [first, last) */
    int from, to;             /* of the rank before: [from, to) */
    int before, after;        /* ranks */
    size_t n_lent; /* floats of a local state; 0: it begins as zero */

    /* of the turn, on the host */
    float *own, *other; /* [n]: results of the two workers */
    float *came;        /* [n]: what the rank before got for `other` */
    float *lent, *loan; /* [n_lent]: states of the own and the other worker */
    finding *findings;  /* [workers] */
};

/* ---- open and close ------------------------------------------------------ */

/* The local state of an update as a list. */
static size_t list_state(bm_sgd *sgd, bm_state out[BM_SGD_STATES])
{
    return bm_sgd_state(sgd, -1, out);
}

static size_t size_of_state(bm_sgd *sgd)
{
    bm_state list[BM_SGD_STATES];
    size_t n = 0;

    for (size_t i = 0, k = list_state(sgd, list); i < k; i++)
        n += list[i].count;
    return n;
}

static bm_status open_memory(bm_audit *a, const bm_sgd_settings *set)
{
    size_t n = a->params->n;

    BM_TRY(bm_sgd_new(&a->sgd, set, a->params));
    if (bm_sgd_local_state(set) != BM_LOCAL_RESET)
        a->n_lent = size_of_state(a->sgd);
    a->own = malloc(n * sizeof *a->own);
    a->other = malloc(n * sizeof *a->other);
    a->came = malloc(n * sizeof *a->came);
    a->lent = malloc((a->n_lent + 1) * sizeof *a->lent);
    a->loan = malloc((a->n_lent + 1) * sizeof *a->loan);
    a->findings = calloc((size_t)a->workers, sizeof *a->findings);
    if (a->own == NULL || a->other == NULL || a->came == NULL ||
        a->lent == NULL || a->loan == NULL || a->findings == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to audit %zu weights", n);
    return BM_OK;
}

bm_status bm_audit_open(bm_audit **out, const bm_config *config, bm_comm *comm,
                        bm_params *params, int workers)
{
    int rank = bm_comm_rank(comm), ranks = bm_comm_size(comm);
    bm_audit *a = calloc(1, sizeof *a);
    bm_sgd_settings set = {0};
    bm_status status = BM_OK;

    if (a == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for an audit");
    a->comm = comm;
    a->params = params;
    a->workers = workers;
    a->first = bm_comm_first(comm, workers, rank);
    a->last = bm_comm_first(comm, workers, rank + 1);
    bm_audited_workers(workers, ranks, rank, &a->from, &a->to);
    a->before = (rank + ranks - 1) % ranks;
    a->after = (rank + 1) % ranks;
    status = bm_config_fill(config, "sgd", bm_sgd_options, &set);
    if (status == BM_OK)
        status = open_memory(a, &set);
done:
    status = bm_comm_agree(comm, status);
    if (status == BM_OK)
        *out = a;
    else
        bm_audit_close(a);
    return status;
}

void bm_audit_close(bm_audit *a)
{
    if (a == NULL)
        return;
    bm_sgd_free(a->sgd);
    free(a->own);
    free(a->other);
    free(a->came);
    free(a->lent);
    free(a->loan);
    free(a->findings);
    free(a);
}

/* ---- turns --------------------------------------------------------------- */

int bm_audit_turns(const bm_audit *a)
{
    int ranks = bm_comm_size(a->comm);

    return (a->workers + ranks - 1) / ranks;
}

int bm_audit_own(const bm_audit *a, int j)
{
    return a->first + j < a->last ? a->first + j : -1;
}

int bm_audit_other(const bm_audit *a, int j)
{
    return a->from + j < a->to ? a->from + j : -1;
}

/* Collective. x [n] of the own worker goes to the next rank, that of the other
 * worker comes from the rank before to y. */
static bm_status pass_on(bm_audit *a, int j, const float *x, float *y, size_t n)
{
    bool alone = bm_comm_size(a->comm) == 1;

    if (alone) {
        memcpy(y, x, n * sizeof *y);
        return BM_OK;
    }
    if (bm_audit_other(a, j) >= 0)
        bm_comm_receive(a->comm, y, n, a->before);
    if (bm_audit_own(a, j) >= 0)
        bm_comm_send(a->comm, x, n, a->after);
    return bm_comm_wait(a->comm);
}

static bm_status get_state(bm_sgd *sgd, float *to)
{
    bm_state list[BM_SGD_STATES];
    size_t k = list_state(sgd, list);

    for (size_t i = 0; i < k; to += list[i++].count)
        bm_get(list[i].be, to, list[i].x, list[i].count);
    return bm_sync(list[0].be);
}

static void put_state(bm_sgd *sgd, const float *from)
{
    bm_state list[BM_SGD_STATES];
    size_t k = list_state(sgd, list);

    for (size_t i = 0; i < k; from += list[i++].count)
        bm_put(list[i].be, list[i].x, from, list[i].count);
}

bm_status bm_audit_lend(bm_audit *a, int j, bm_sgd *sgd)
{
    bm_status status = BM_OK;

    if (a->n_lent == 0)
        return BM_OK;
    if (sgd != NULL)
        status = get_state(sgd, a->lent);
    BM_TRY(bm_comm_agree(a->comm, status));
    return pass_on(a, j, a->lent, a->loan, a->n_lent);
}

static bm_status get_weights(const bm_audit *a, float *to)
{
    bm_get(a->params->be, to, a->params->w, a->params->n);
    return bm_sync(a->params->be);
}

bm_status bm_audit_keep(bm_audit *a, int j)
{
    return bm_audit_own(a, j) >= 0 ? get_weights(a, a->own) : BM_OK;
}

static bm_sgd *begin_with(bm_audit *a, const float *state)
{
    bm_sgd_reset(a->sgd);
    if (a->n_lent > 0)
        put_state(a->sgd, state);
    return a->sgd;
}

bm_sgd *bm_audit_begin(bm_audit *a)
{
    return begin_with(a, a->loan);
}

bm_sgd *bm_audit_begin_own(bm_audit *a)
{
    return begin_with(a, a->lent);
}

/* Weights with other bits. */
static size_t count_different(const float *x, const float *y, size_t n)
{
    size_t different = 0;

    for (size_t i = 0; i < n; i++)
        different += bm_bits_of(x[i]) != bm_bits_of(y[i]);
    return different;
}

bm_status bm_audit_compare(bm_audit *a, int j, bool *differs)
{
    size_t n = a->params->n, different = 0;
    int other = bm_audit_other(a, j), found = 0;
    bm_status status = other >= 0 ? get_weights(a, a->other) : BM_OK;

    BM_TRY(bm_comm_agree(a->comm, status));
    BM_TRY(pass_on(a, j, a->own, a->came, n));
    memset(a->findings, 0, (size_t)a->workers * sizeof *a->findings);
    if (other >= 0) {
        different = count_different(a->came, a->other, n);
        a->findings[other].weights = (double)different;
    }
    found = different > 0;
    BM_TRY(bm_comm_max(a->comm, &found, 1));
    *differs = found != 0;
    return BM_OK;
}

/* ---- after a difference -------------------------------------------------- */

/* *same <- whether params->w is `result`. `came` is free by now. */
static bm_status repeats(bm_audit *a, const float *result, double *same)
{
    BM_TRY(get_weights(a, a->came));
    *same = count_different(a->came, result, a->params->n) == 0;
    return BM_OK;
}

bm_status bm_audit_repeat_own(bm_audit *a, int j)
{
    return repeats(a, a->own, &a->findings[bm_audit_own(a, j)].own);
}

bm_status bm_audit_repeat_other(bm_audit *a, int j)
{
    return repeats(a, a->other, &a->findings[bm_audit_other(a, j)].other);
}

/* Whom to suspect. */
static void judge(const finding *f, const char *own, const char *other,
                  char *out, size_t room)
{
    bool first = f->own > 0, second = f->other > 0;

    if (first != second)
        snprintf(out, room,
                 "computed again, %s gets another result than before: suspect "
                 "its processor or memory",
                 first ? other : own);
    else if (first)
        snprintf(out, room,
                 "computed again, each gets its own result again: compare bmuf "
                 "--version on both hosts, which must have the same kind of "
                 "processor; if it is, one of them always computes wrongly");
    else
        snprintf(
            out, room,
            "computed again, each gets another result than before: suspect "
            "both");
}

static int owner_of(const bm_audit *a, int worker)
{
    int rank = 0;

    while (bm_comm_first(a->comm, a->workers, rank + 1) <= worker)
        rank++;
    return rank;
}

bm_status bm_audit_verdict(bm_audit *a, bm_position at)
{
    const finding *f = a->findings;
    int ranks = bm_comm_size(a->comm), owner = 0, worker = 0;
    char own[BM_RANK_NAME], other[BM_RANK_NAME], words[800];

    BM_TRY(bm_comm_sum(a->comm, (double *)(void *)a->findings,
                       (size_t)a->workers * sizeof *f / sizeof(double)));
    while (worker < a->workers - 1 && !(f[worker].weights > 0))
        worker++;
    owner = owner_of(a, worker);
    BM_TRY(bm_comm_name_rank(a->comm, owner, own));
    BM_TRY(bm_comm_name_rank(a->comm, (owner + 1) % ranks, other));
    judge(&f[worker], own, other, words, sizeof words);
    return bm_comm_agree(
        a->comm,
        BM_FAIL(BM_ERR_DEVICE,
                "job.audit: the share of worker %d in block %lld of epoch %lld "
                "was computed by %s and by %s, and %.0f of %zu weights differ; "
                "%s. The block is not used, and the last checkpoint is "
                "unchanged",
                worker, (long long)at.block + 1, (long long)at.epoch + 1, own,
                ranks > 1 ? other : "the same rank again", f[worker].weights,
                a->params->n, words));
}

/* ---- memory -------------------------------------------------------------- */

void bm_audit_footprint(const bm_sgd_settings *set, bm_footprint *sum)
{
    double state = 0, update = bm_sgd_memory(set, &state);
    bool lends = bm_sgd_local_state(set) != BM_LOCAL_RESET;

    sum->memory += 3 + update + (lends ? 2 * state : 0);
}

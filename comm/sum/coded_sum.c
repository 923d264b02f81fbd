#include "comm/sum/coded_sum.h"

#include "comm/agreed_alloc.h"
#include "comm/sum/sum_loops.h"
#include "comm/tree.h"
#include "core/finite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned char byte;

struct bm_coded_sum {
    bm_comm *comm; /* borrowed */
    bm_code_plan plan;
    bm_coded_mode mode;
    int rank, size, workers;
    int first, last; /* hosted here: [first, last) */
    int next;        /* the worker to add next */
    bool elsewhere;  /* other slices of the common vector are decoded */
    double *weight;  /* [workers]: of those hosted here; in update: of all */
    size_t *own;     /* [size + 1]: rank r's groups are [own[r], own[r + 1]) */

    float **residual; /* [last - first][n]; NULL: the code is exact */
    float *rest;      /* this rank's slice, likewise */
    float *common;    /* [n] */

    byte *out;  /* [last - first][bytes of the vector] */
    byte *in;   /* [workers hosted elsewhere][bytes of the slice] */
    byte *back; /* [bytes of the vector]: d^ of all slices */

    const bm_sum_loops *loops;
    bm_tree tree;
    float *stack;      /* [deepest, longest]: means of a group of pieces */
    size_t group_size; /* elements of the group that is summed */
    float *after;      /* [longest] */
    float *piece;      /* [longest]: a decoded piece */
};

/* ---- where things are ---------------------------------------------------- */

static size_t first_piece(const bm_coded_sum *c, int rank)
{
    return c->plan.group[c->own[rank]];
}

static size_t first_element(const bm_coded_sum *c, int rank)
{
    return c->plan.start[first_piece(c, rank)];
}

static size_t first_byte(const bm_coded_sum *c, int rank)
{
    return c->plan.byte[first_piece(c, rank)];
}

static size_t elements(const bm_coded_sum *c, int rank)
{
    return first_element(c, rank + 1) - first_element(c, rank);
}

static size_t bytes(const bm_coded_sum *c, int rank)
{
    return first_byte(c, rank + 1) - first_byte(c, rank);
}

static size_t all_bytes(const bm_coded_sum *c)
{
    return c->plan.byte[c->plan.n_pieces];
}

static bool is_hosted(const bm_coded_sum *c, int worker)
{
    return worker >= c->first && worker < c->last;
}

/* The encoded vector of a worker hosted here. */
static byte *outgoing(const bm_coded_sum *c, int worker)
{
    return c->out + (size_t)(worker - c->first) * all_bytes(c);
}

/* The encoded slice of a worker hosted elsewhere, for this rank's slice. */
static byte *incoming(const bm_coded_sum *c, int worker)
{
    int before = worker < c->first ? worker : worker - (c->last - c->first);
    return c->in + (size_t)before * bytes(c, c->rank);
}

/* The code of a piece of this rank's slice, of any worker. */
static const byte *code_of(const bm_coded_sum *c, int worker, size_t piece)
{
    size_t at = c->plan.byte[piece];

    return is_hosted(c, worker)
               ? outgoing(c, worker) + at
               : incoming(c, worker) + (at - first_byte(c, c->rank));
}

/* ---- open and close ------------------------------------------------------ */

static float *floats(size_t n)
{
    return calloc(n + 1, sizeof(float));
}

static bm_status make_residuals(bm_coded_sum *c)
{
    size_t hosted = (size_t)(c->last - c->first), made = 0;

    if (c->plan.code.ops->exact)
        return BM_OK;
    c->residual = (float **)calloc(hosted + 1, sizeof *c->residual);
    if (c->residual != NULL)
        for (; made < hosted; made++)
            if ((c->residual[made] = floats(c->plan.n)) == NULL)
                break;
    if (c->mode == BM_CODED_VALUE)
        c->rest = floats(elements(c, c->rank));
    if (c->residual == NULL || made < hosted ||
        (c->mode == BM_CODED_VALUE && c->rest == NULL))
        return BM_FAIL(BM_ERR_MEMORY,
                       "no memory for the residuals of %zu workers", hosted);
    return BM_OK;
}

static bm_status make_room(bm_coded_sum *c)
{
    size_t hosted = (size_t)(c->last - c->first), n = c->plan.n;
    size_t others = (size_t)c->workers - hosted;

    c->common = floats(n);
    c->piece = floats(c->plan.longest);
    c->after = floats(c->plan.longest);
    c->stack = floats((size_t)bm_tree_deepest(c->workers) * c->plan.longest);
    c->out = malloc(hosted * all_bytes(c) + 1);
    c->in = malloc(others * bytes(c, c->rank) + 1);
    c->back = malloc(all_bytes(c) + 1);
    if (c->common == NULL || c->piece == NULL || c->after == NULL ||
        c->stack == NULL || c->out == NULL || c->in == NULL || c->back == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for codes of %zu floats", n);
    return make_residuals(c);
}

static bm_status prepare(bm_coded_sum *c, const char *coordinator)
{
    c->weight = calloc((size_t)c->workers, sizeof *c->weight);
    c->own = calloc((size_t)c->size + 1, sizeof *c->own);
    if (c->weight == NULL || c->own == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d workers", c->workers);
    BM_TRY(bm_sum_loops_choose(&c->loops));
    BM_TRY(bm_code_plan_cut(&c->plan, c->size, coordinator, c->own));
    return make_room(c);
}

bm_status bm_coded_sum_open(bm_coded_sum **out, bm_comm *comm,
                            bm_code_plan *plan, int workers,
                            const char *coordinator, bm_coded_mode mode)
{
    void *memory = NULL;
    bm_coded_sum *c = NULL;
    bm_status status = bm_agreed_alloc(comm, sizeof *c, &memory);

    if (status != BM_OK) {
        bm_code_plan_free(plan);
        return status;
    }
    c = memory;
    c->comm = comm;
    c->plan = *plan;
    *plan = (bm_code_plan){0};
    c->mode = mode;
    c->rank = bm_comm_rank(comm);
    c->size = bm_comm_size(comm);
    c->workers = c->tree.workers = workers;
    c->first = c->next = bm_comm_first(comm, workers, c->rank);
    c->last = bm_comm_first(comm, workers, c->rank + 1);
    BM_TRY_DONE(bm_comm_agree(comm, prepare(c, coordinator)));
    *out = c;
    c = NULL;
done:
    bm_coded_sum_close(c);
    return status;
}

static void free_residuals(bm_coded_sum *c)
{
    for (int i = 0; c->residual != NULL && i < c->last - c->first; i++)
        free(c->residual[i]);
    free((void *)c->residual);
    c->residual = NULL;
}

void bm_coded_sum_close(bm_coded_sum *c)
{
    if (c == NULL)
        return;
    free_residuals(c);
    free(c->rest);
    free(c->common);
    free(c->piece);
    free(c->after);
    free(c->stack);
    free(c->out);
    free(c->in);
    free(c->back);
    free(c->weight);
    free(c->own);
    bm_code_plan_free(&c->plan);
    free(c);
}

bm_slice bm_coded_sum_slice(const bm_coded_sum *c)
{
    return (bm_slice){first_element(c, c->rank), elements(c, c->rank), NULL, 0};
}

float *bm_coded_sum_common(const bm_coded_sum *c)
{
    return c->common;
}

void bm_coded_sum_hosted(const bm_coded_sum *c, int *first, int *last)
{
    *first = c->first;
    *last = c->last;
}

float *bm_coded_sum_residual(const bm_coded_sum *c, int worker)
{
    return c->residual != NULL ? c->residual[worker - c->first] : NULL;
}

float *bm_coded_sum_rest(const bm_coded_sum *c)
{
    return c->rest;
}

bm_status bm_coded_sum_gather(bm_coded_sum *c, const float *slice, float *x)
{
    float *own = x + first_element(c, c->rank);

    memmove(own, slice, elements(c, c->rank) * sizeof *own);
    for (int r = 0; r < c->size; r++)
        bm_comm_broadcast(c->comm, x + first_element(c, r), elements(c, r), r);
    return bm_comm_wait(c->comm);
}

bm_status bm_coded_sum_allgather(bm_coded_sum *c)
{
    return bm_coded_sum_gather(c, c->common + first_element(c, c->rank),
                               c->common);
}

/* ---- a worker's vector --------------------------------------------------- */

static size_t length(const bm_coded_sum *c, size_t piece)
{
    return c->plan.start[piece + 1] - c->plan.start[piece];
}

/* Encodes a piece: code = y^, residual = y - y^. */
static void encode(bm_coded_sum *c, size_t piece, const float *restrict y,
                   byte *code, float *restrict residual)
{
    const float *restrict sent = c->piece;

    bm_code_plan_encode(&c->plan, piece, y, code);
    if (bm_code_plan_exact(&c->plan, piece))
        return;
    bm_code_plan_decode(&c->plan, piece, code, c->piece);
    for (size_t i = 0; i < length(c, piece); i++)
        residual[i] = y[i] - sent[i];
}

/* x += r, except in exact pieces. True if all of x is finite. */
static bool add_residual(const bm_coded_sum *c, const float *r, float *x)
{
    bool good = true;

    for (size_t p = 0; p < c->plan.n_pieces; p++) {
        size_t at = c->plan.start[p], n = length(c, p);

        if (r == NULL || bm_code_plan_exact(&c->plan, p))
            good = bm_all_finite(x + at, n) && good;
        else
            good = c->loops->add(n, r + at, x + at) && good;
    }
    return good;
}

bool bm_coded_sum_add(bm_coded_sum *c, int worker, float *x, double weight)
{
    float *r = bm_coded_sum_residual(c, worker);
    bool good = true;

    BM_ASSERT(worker == c->next && worker < c->last);
    BM_ASSERT(weight >= 0 && weight < 0x1p53 && weight == floor(weight));
    c->next++;
    if (weight > 0)
        good = add_residual(c, r, x);
    c->weight[worker] = good ? weight : 0;
    for (size_t p = 0; p < c->plan.n_pieces && c->weight[worker] > 0; p++) {
        size_t at = c->plan.start[p];

        encode(c, p, x + at, outgoing(c, worker) + c->plan.byte[p],
               r != NULL ? r + at : NULL);
    }
    return good;
}

void bm_coded_sum_elsewhere(bm_coded_sum *c)
{
    free_residuals(c);
    c->elsewhere = true;
}

void bm_coded_sum_add_code(bm_coded_sum *c, int worker, const void *code,
                           double weight)
{
    BM_ASSERT(worker == c->next && worker < c->last);
    c->next++;
    c->weight[worker] = weight;
    if (weight > 0)
        memcpy(outgoing(c, worker), code, all_bytes(c));
}

const void *bm_coded_sum_back(const bm_coded_sum *c)
{
    return c->back;
}

const bm_code_plan *bm_coded_sum_plan(const bm_coded_sum *c)
{
    return &c->plan;
}

/* ---- the update ---------------------------------------------------------- */

/* Collective. All ranks get all weights, and their sum. */
static bm_status weigh(bm_coded_sum *c, double *total)
{
    BM_ASSERT(c->next == c->last);
    c->next = c->first;
    BM_TRY(bm_comm_sum(c->comm, c->weight, (size_t)c->workers));
    *total = 0;
    for (int k = 0; k < c->workers; k++)
        *total += c->weight[k];
    return BM_OK;
}

/* Sends the workers' codes to the owners of slices. */
static bm_status send_to_owners(bm_coded_sum *c)
{
    for (int i = 1; i < c->size; i++) {
        int from = (c->rank + c->size - i) % c->size;
        int last = bm_comm_first(c->comm, c->workers, from + 1);

        for (int k = bm_comm_first(c->comm, c->workers, from); k < last; k++)
            if (c->weight[k] > 0)
                bm_comm_receive_bytes(c->comm, incoming(c, k),
                                      bytes(c, c->rank), from);
    }
    for (int i = 1; i < c->size; i++) {
        int to = (c->rank + i) % c->size; /* spreads the load */

        for (int k = c->first; k < c->last; k++)
            if (c->weight[k] > 0)
                bm_comm_send_bytes(c->comm, outgoing(c, k) + first_byte(c, to),
                                   bytes(c, to), to);
    }
    return bm_comm_wait(c->comm);
}

static void blend(void *self, float *y, double wy, const float *x, double wx)
{
    const bm_coded_sum *c = self;
    bm_sum_loops_blend(c->loops, y, wy, x, wx, c->group_size);
}

static float *room(const bm_coded_sum *c, int depth)
{
    return c->stack + (size_t)depth * c->plan.longest;
}

/* Vectors are decoded into their rooms. */
static float *keep(void *self, int depth, const float *x)
{
    const bm_coded_sum *c = self;

    BM_ASSERT(x == room(c, depth));
    return room(c, depth);
}

/* The mean of a group of pieces, in the lowest room of the stack. */
static const float *mean(bm_coded_sum *c, size_t group)
{
    const bm_tree_vectors vectors = {blend, keep, c};
    size_t first = c->plan.group[group], last = c->plan.group[group + 1];
    size_t from = c->plan.start[first];

    c->tree.depth = 0;
    c->group_size = c->plan.start[last] - from;
    for (int k = 0; k < c->workers; k++) {
        float *y = room(c, c->tree.depth);

        for (size_t p = first; p < last && c->weight[k] > 0; p++)
            bm_code_plan_decode(&c->plan, p, code_of(c, k, p),
                                y + (c->plan.start[p] - from));
        bm_tree_add(&c->tree, (bm_node){0, k, c->weight[k]}, y, &vectors);
    }
    BM_ASSERT(c->tree.depth == 1);
    return c->stack;
}

/* Encodes d of a piece for all ranks, from its `after`. */
static void encode_back(bm_coded_sum *c, size_t piece, float *after)
{
    size_t at = c->plan.start[piece], n = length(c, piece);
    float *common = c->common + at, *rest = NULL;
    bool exact = bm_code_plan_exact(&c->plan, piece);
    byte *code = c->back + c->plan.byte[piece];

    if (exact || c->mode == BM_CODED_CHANGE) {
        for (size_t i = 0; i < n && !exact; i++)
            after[i] -= common[i];
        bm_code_plan_encode(&c->plan, piece, after, code);
        return;
    }
    rest = c->rest + (at - first_element(c, c->rank));
    for (size_t i = 0; i < n; i++)
        after[i] += rest[i];
    encode(c, piece, after, code, rest);
}

/* From all workers' codes of this rank's slice to d^. */
static void work_slice(bm_coded_sum *c, bm_sum_work *work, void *self)
{
    for (size_t g = c->own[c->rank]; g < c->own[c->rank + 1]; g++) {
        size_t first = c->plan.group[g], last = c->plan.group[g + 1];
        size_t from = c->plan.start[first];
        bm_sum_piece p = {from, c->plan.start[last] - from, NULL,
                          c->common + from, c->after};

        if (p.n == 0)
            continue;
        p.mean = mean(c, g);
        work(self, &p);
        for (size_t i = first; i < last; i++)
            encode_back(c, i, c->after + (c->plan.start[i] - from));
    }
}

/* All ranks get d^ of all slices. */
static bm_status allgather_codes(bm_coded_sum *c)
{
    for (int i = 1; i < c->size; i++) {
        int from = (c->rank + c->size - i) % c->size;
        bm_comm_receive_bytes(c->comm, c->back + first_byte(c, from),
                              bytes(c, from), from);
    }
    for (int i = 1; i < c->size; i++)
        bm_comm_send_bytes(c->comm, c->back + first_byte(c, c->rank),
                           bytes(c, c->rank), (c->rank + i) % c->size);
    return bm_comm_wait(c->comm);
}

/* Updates the common vector, in the same way on all ranks. */
static void apply(bm_coded_sum *c)
{
    size_t first = c->elsewhere ? first_piece(c, c->rank) : 0;
    size_t last = c->elsewhere ? first_piece(c, c->rank + 1) : c->plan.n_pieces;

    for (size_t p = first; p < last; p++) {
        bool replaced =
            c->mode == BM_CODED_VALUE || bm_code_plan_exact(&c->plan, p);
        float *x = c->common + c->plan.start[p];

        bm_code_plan_decode(&c->plan, p, c->back + c->plan.byte[p],
                            replaced ? x : c->piece);
        for (size_t i = 0; i < length(c, p) && !replaced; i++)
            x[i] += c->piece[i];
    }
}

bm_status bm_coded_sum_update(bm_coded_sum *c, bm_sum_work *work, void *self,
                              double *weight)
{
    BM_TRY(weigh(c, weight));
    if (*weight > 0) {
        BM_TRY(send_to_owners(c));
        work_slice(c, work, self);
        BM_TRY(allgather_codes(c));
        apply(c);
    }
    memset(c->weight, 0, (size_t)c->workers * sizeof *c->weight);
    return BM_OK;
}

/* ---- the formula --------------------------------------------------------- */

bm_status bm_coded_sum_bytes(const bm_code_plan *p, int size, int workers,
                             const char *coordinator, double *out)
{
    size_t *own = calloc((size_t)size + 1, sizeof *own);
    double all = (double)p->byte[p->n_pieces], most = 0;
    bm_status status = BM_OK;

    if (own == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d ranks", size);
    BM_TRY_DONE(bm_code_plan_cut(p, size, coordinator, own));
    for (int r = 0; r < size; r++) {
        int hosted = bm_first_worker(workers, size, r + 1) -
                     bm_first_worker(workers, size, r);
        double of_r =
            (double)(p->byte[p->group[own[r + 1]]] - p->byte[p->group[own[r]]]);

        most = fmax(most, hosted * (all - of_r) + (size - 1) * of_r);
    }
    *out = most;
done:
    free(own);
    return status;
}

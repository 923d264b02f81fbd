/*
 * bench_codes.c - the cost of each code of comm/code/code.h on a matrix of 2048
 * columns and 2048 rows, and of a copy of the same floats.
 *
 *     encode, decode    all pieces of the matrix, one after the other
 *     sum               one coded sum of a single worker: adds its residual,
 *                       codes in both directions, keeps two residuals
 *
 * Times are processor time of one core.
 */
#include "cli/bench/bench.h"
#include "comm/sum/coded_sum.h"
#include "core/rng.h"

#include <stdlib.h>
#include <string.h>

#define TOPK_FRACTION 0.1 /* the default of compress.share */

static const char *const codes[] = {
#define X(name) #name,
    BM_CODES(X)
#undef X
        NULL,
};

enum { ROWS = 2048, FLOATS = ROWS * ROWS };

enum { ENCODE, DECODE, SUM, COPY, CODE_COPIES, SUM_COPIES, COLUMNS };

static const bm_bench_column columns[] = {
    [ENCODE] = {"encode_ns", "encode ns", 2, false},
    [DECODE] = {"decode_ns", "decode ns", 2, false},
    [SUM] = {"sum_ns", "sum ns", 2, false},
    [COPY] = {"copy_ns", "copy ns", 2, false},
    /* Medians of ratios. */
    [CODE_COPIES] = {"code_copies", "both/copy", 1, false},
    [SUM_COPIES] = {"sum_copies", "sum/copy", 1, false},
    {0},
};

typedef struct bench {
    bm_comm *comm;
    bm_code_plan plan;
    bm_coded_sum *sum;
    float *from, *to;    /* [FLOATS] */
    unsigned char *code; /* of `from` */
} bench;

static bm_status make_plan(const char *code, bm_code_plan *out)
{
    size_t edge[ROWS];

    for (size_t i = 0; i < ROWS; i++)
        edge[i] = (i + 1) * ROWS;
    return bm_code_plan_make(out, bm_code_find(code, TOPK_FRACTION), FLOATS,
                             FLOATS, edge, ROWS);
}

static bm_status set_up(bench *b, const char *code)
{
    bm_rng rng = bm_rng_make(1, "bench", 0);
    bm_code_plan plan = {0};

    BM_TRY(make_plan(code, &b->plan));
    b->from = malloc(FLOATS * sizeof *b->from);
    b->to = malloc(FLOATS * sizeof *b->to);
    b->code = malloc(b->plan.byte[b->plan.n_pieces]);
    if (b->from == NULL || b->to == NULL || b->code == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d floats", FLOATS);
    for (size_t i = 0; i < FLOATS; i++)
        b->from[i] = (float)(2 * bm_rng_uniform(&rng) - 1);
    BM_TRY(bm_comm_open_alone(&b->comm));
    BM_TRY(make_plan(code, &plan));
    return bm_coded_sum_open(&b->sum, b->comm, &plan, 1, "sharded",
                             BM_CODED_VALUE);
}

static void clear_up(bench *b)
{
    bm_coded_sum_close(b->sum);
    bm_code_plan_free(&b->plan);
    bm_comm_close(b->comm);
    free(b->from);
    free(b->to);
    free(b->code);
}

static void encode(bench *b)
{
    const bm_code_plan *p = &b->plan;

    for (size_t i = 0; i < p->n_pieces; i++)
        bm_code_plan_encode(p, i, b->from + p->start[i], b->code + p->byte[i]);
}

static void decode(bench *b)
{
    const bm_code_plan *p = &b->plan;

    for (size_t i = 0; i < p->n_pieces; i++)
        bm_code_plan_decode(p, i, b->code + p->byte[i], b->to + p->start[i]);
}

static void take_mean(void *self, const bm_sum_piece *p)
{
    (void)self;
    memcpy(p->after, p->mean, p->n * sizeof *p->after);
}

static bm_status step(bench *b)
{
    double weight = 0;

    bm_coded_sum_add(b->sum, 0, b->to, 1);
    return bm_coded_sum_update(b->sum, take_mean, NULL, &weight);
}

/* Nanoseconds per float since *clock, which becomes now. */
static double since(double *clock)
{
    double before = *clock;

    *clock = bm_bench_clock();
    return 1e9 * (*clock - before) / FLOATS;
}

/* All columns of a row. */
static bm_status measure_once(void *self, double *out)
{
    bench *b = self;
    double clock = bm_bench_clock();

    encode(b);
    out[ENCODE] = since(&clock);
    decode(b);
    out[DECODE] = since(&clock);
    memcpy(b->to, b->from, FLOATS * sizeof *b->to);
    out[COPY] = since(&clock);
    BM_TRY(step(b));
    out[SUM] = since(&clock);
    out[CODE_COPIES] = (out[ENCODE] + out[DECODE]) / out[COPY];
    out[SUM_COPIES] = out[SUM] / out[COPY];
    return BM_OK;
}

static bm_status measure(const bm_bench *how, size_t row, double *out)
{
    bench b = {0};
    bm_status status = BM_OK;

    BM_TRY_DONE(set_up(&b, codes[row]));
    BM_TRY_DONE(measure_once(&b, out)); /* touches all memory */
    status = bm_bench_medians(how->rounds, COLUMNS, measure_once, &b, out);
done:
    clear_up(&b);
    return status;
}

const bm_benchmark bm_bench_codes = {
    .name = "codes",
    .rows = codes,
    .columns = columns,
    .head = "codes: 4 million weights in columns of 2048, ns per weight to "
            "encode, to decode,\nfor a coded sum of one worker, and to copy; "
            "both/copy: encoding and\ndecoding over copying",
    .measure = measure,
};

/*
 * sum_exact.c - sums of integers instead of floats, which do not depend on the
 * order.
 *
 * A number is written in base 2^48. Each chunk of BM_SUM_CHUNK elements has one
 * place: that of the leading digit of its largest number. Of every number in the
 * chunk the digits at that place and at the next lower one are added as
 * integers. When a larger number is added, the place moves up, and sums of the
 * lowest digits are discarded; had the larger number come first, those digits
 * would not have been added. So any order gives the same two sums.
 *
 * Each worker loses what is below 2^-48 of the chunk's largest number: numbers
 * down to 2^-24 of it keep all bits of a float, smaller ones fewer. 2^15 workers
 * fit into 63 bits. An element takes 16 bytes instead of 4, in memory and in
 * messages.
 */
#include "comm/sum/sum_ops.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BITS = 48,          /* of a digit */
    MOST = 1 << 15,     /* workers */
    NO_PLACE = INT_MIN, /* all numbers are zero */
    BROKEN = INT_MAX,   /* one of them was not finite */
};

/* Sums of digits, for n elements. */
typedef struct sums {
    int64_t *high, *low;
} sums;

typedef struct exact {
    size_t chunks;
    int *place;     /* [chunks]: of the leading digit; NO_PLACE: no digits */
    int *highest;   /* [chunks]: of all ranks' places */
    sums mine;      /* of the workers hosted here, whole vectors */
    sums *slice;    /* [size]: every rank's, of this rank's slice */
    int64_t *inbox; /* slices that are not in shared memory */
    bm_shared_memory *shared; /* `mine` of every rank: [n] high, then [n] low */
} exact;

static void clear(exact *e)
{
    for (size_t c = 0; c < e->chunks; c++)
        e->place[c] = NO_PLACE;
}

/* Sets where each slice is: in shared memory or in the inbox. */
static bm_status locate(bm_sum *s, exact *e)
{
    size_t count = bm_sum_count(s, s->rank), sent = 0;
    int64_t *in = NULL;

    for (int r = 0; r < s->size; r++)
        sent += bm_shared_memory_segment(e->shared, r) == NULL;
    in = e->inbox = malloc((2 * sent * count + 1) * sizeof *in);
    e->slice = calloc((size_t)s->size, sizeof *e->slice);
    if (e->inbox == NULL || e->slice == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu slices", sent);
    for (int r = 0; r < s->size; r++) {
        int64_t *segment = bm_shared_memory_segment(e->shared, r);

        e->slice[r] = (sums){in, in + count};
        if (segment == NULL)
            in += 2 * count;
        else
            e->slice[r] = (sums){segment + s->start[s->rank],
                                 segment + s->n + s->start[s->rank]};
    }
    return BM_OK;
}

static bm_status prepare(bm_sum *s)
{
    exact *e = s->self = calloc(1, sizeof *e);

    if (s->workers > MOST)
        return BM_FAIL(BM_ERR_CONFIG, "sum 'exact' supports at most %d workers",
                       MOST);
    if (e == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an exact sum");
    e->chunks = (s->n + BM_SUM_CHUNK - 1) / BM_SUM_CHUNK;
    e->place = malloc((e->chunks + 1) * sizeof *e->place);
    e->highest = malloc((e->chunks + 1) * sizeof *e->highest);
    if (!e->place || !e->highest)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu exact sums", s->n);
    clear(e);
    return BM_OK;
}

static bm_status exact_open(bm_sum *s)
{
    exact *e = NULL;

    BM_TRY(bm_comm_agree(s->comm, prepare(s)));
    e = s->self;
    BM_TRY(
        bm_shared_memory_open(&e->shared, s->comm, 2 * s->n * sizeof(int64_t)));
    e->mine.high = bm_shared_memory_segment(e->shared, s->rank);
    e->mine.low = e->mine.high + s->n;
    return locate(s, e);
}

static void exact_close(bm_sum *s)
{
    exact *e = s->self;

    if (e == NULL)
        return;
    bm_shared_memory_close(e->shared);
    free(e->place);
    free(e->highest);
    free(e->slice);
    free(e->inbox);
    free(e);
}

/* The end of a chunk. */
static size_t end(const bm_sum *s, size_t chunk)
{
    size_t i = (chunk + 1) * BM_SUM_CHUNK;
    return i < s->n ? i : s->n;
}

/* The place of the leading digit of the largest of the numbers weight * x. */
static int leading_place(float largest, double weight)
{
    int exponent = 0;

    if (!isfinite(largest))
        return BROKEN;
    if (largest == 0 || weight == 0)
        return NO_PLACE;
    (void)frexp(weight * (double)largest, &exponent);
    return (int)floor((exponent - 1) / (double)BITS);
}

/* Moves a chunk's place up. High sums become low ones, or are discarded. */
static void raise_place(const bm_sum *s, exact *e, size_t chunk, int place)
{
    size_t from = chunk * BM_SUM_CHUNK, n = end(s, chunk) - from;
    bool by_one = false;

    if (place <= e->place[chunk])
        return;
    by_one = e->place[chunk] + 1 == place;
    if (by_one)
        memcpy(e->mine.low + from, e->mine.high + from, n * sizeof(int64_t));
    else
        memset(e->mine.low + from, 0, n * sizeof(int64_t));
    memset(e->mine.high + from, 0, n * sizeof(int64_t));
    e->place[chunk] = place;
}

static void exact_add(bm_sum *s, int worker, const float *x, double weight)
{
    exact *e = s->self;

    (void)worker;
    for (size_t c = 0; weight > 0 && c < e->chunks; c++) {
        size_t from = c * BM_SUM_CHUNK, n = end(s, c) - from;
        float largest = s->loops->largest(n, x + from);

        raise_place(s, e, c, leading_place(largest, weight));
        if (e->place[c] == NO_PLACE || e->place[c] == BROKEN)
            continue;
        s->loops->digits(n, weight, x + from,
                         ldexp(1, -BITS * e->place[c]), /* no rounding */
                         e->mine.high + from, e->mine.low + from);
    }
}

/* Sends digits to the owners of slices that cannot read them. */
static bm_status swap(bm_sum *s, const exact *e)
{
    size_t count = bm_sum_count(s, s->rank), read = 0;

    for (int r = 0; r < s->size; r++) {
        if (bm_shared_memory_segment(e->shared, r) != NULL)
            continue;
        bm_comm_receive_ints(s->comm, e->slice[r].high, count, r);
        bm_comm_receive_ints(s->comm, e->slice[r].low, count, r);
    }
    for (int k = 1; k < s->size; k++) {
        int to = (s->rank + k) % s->size; /* spreads the load */
        size_t n = bm_sum_count(s, to);

        if (bm_shared_memory_segment(e->shared, to) != NULL) {
            read += 2 * n;
            continue;
        }
        bm_comm_send_ints(s->comm, e->mine.high + s->start[to], n, to);
        bm_comm_send_ints(s->comm, e->mine.low + s->start[to], n, to);
    }
    bm_comm_count(s->comm, (bm_traffic){.shared = read * sizeof(int64_t)});
    return bm_comm_wait(s->comm);
}

static bm_status exact_scatter(bm_sum *s)
{
    exact *e = s->self;

    memcpy(e->highest, e->place, e->chunks * sizeof *e->place);
    BM_TRY(bm_comm_max(s->comm, e->highest, e->chunks));
    for (size_t c = 0; c < e->chunks; c++)
        raise_place(s, e, c, e->highest[c]);
    clear(e);
    BM_TRY(swap(s, e));
    return bm_comm_barrier(s->comm); /* all ranks have raised their places */
}

static void exact_mean(bm_sum *s, size_t at, size_t n, float *out)
{
    exact *e = s->self;
    int place = e->highest[(s->start[s->rank] + at) / BM_SUM_CHUNK];
    int64_t high[BM_SUM_CHUNK] = {0}, low[BM_SUM_CHUNK] = {0};
    double scale = 0;

    if (place == BROKEN)
        scale = NAN;
    else if (place != NO_PLACE)
        scale = ldexp(1, BITS * place) / s->total;
    for (int r = 0; r < s->size && place != NO_PLACE && place != BROKEN; r++) {
        s->loops->add_ints(n, e->slice[r].high + at, high);
        s->loops->add_ints(n, e->slice[r].low + at, low);
    }
    s->loops->number(n, high, low, scale, out);
}

static bm_status exact_sent(const bm_sum_shape *s, double *bytes)
{
    for (int r = 0; r < s->size; r++) {
        double own = (double)(s->start[r + 1] - s->start[r]);
        bytes[r] = 16 * ((double)s->n - own) + 4 * (s->size - 1) * own;
    }
    return BM_OK;
}

/* Two integers for each number. */
static double exact_vectors(double hosted)
{
    (void)hosted;
    return 4;
}

const bm_sum_ops bm_sum_exact = {
    .name = "exact",
    .traits = {.by_host = true, .any_cut = true, .vectors = exact_vectors},
    .open = exact_open,
    .close = exact_close,
    .add = exact_add,
    .scatter = exact_scatter,
    .mean = exact_mean,
    .sent = exact_sent,
};

#include "cli/report/trace_table.h"

#include "core/text/printable.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, DEEPEST = 64, MOST_LINES = 20 };

/* A span of one rank. */
typedef struct span {
    int64_t ts, dur, within; /* ns; within: sum of the spans inside */
    const char *name;
    int tid;
    int64_t block; /* -1: outside blocks */
} span;

typedef struct reading {
    bm_trace_table *t;
    int rank;
    const char *path;
    char thread[THREADS][32];
    span *spans;
    size_t n;
} reading;

bm_status bm_trace_table_init(bm_trace_table *t, int ranks)
{
    *t = (bm_trace_table){.ranks = ranks};
    t->host = calloc((size_t)ranks, sizeof *t->host);
    if (t->host == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d ranks", ranks);
    return BM_OK;
}

void bm_trace_table_free(bm_trace_table *t)
{
    for (size_t i = 0; i < t->n_phases; i++)
        free(t->phases[i].seconds);
    for (size_t i = 0; i < t->n_blocks; i++) {
        free(t->blocks[i].seconds);
        free(t->blocks[i].work);
    }
    free(t->phases);
    free(t->blocks);
    free(t->host);
    *t = (bm_trace_table){0};
}

static bm_status no_memory(void)
{
    return BM_FAIL(BM_ERR_MEMORY, "no memory for a table of traces");
}

/* The row of a phase, new if needed; NULL: no memory. */
static bm_trace_phase *phase_of(bm_trace_table *t, const char *name,
                                const char *thread)
{
    bm_trace_phase *p = NULL;

    for (size_t i = 0; i < t->n_phases; i++)
        if (strcmp(t->phases[i].name, name) == 0 &&
            strcmp(t->phases[i].thread, thread) == 0)
            return &t->phases[i];
    p = realloc(t->phases, (t->n_phases + 1) * sizeof *p);
    if (p == NULL)
        return NULL;
    t->phases = p;
    p += t->n_phases;
    *p = (bm_trace_phase){.seconds =
                              calloc((size_t)t->ranks, sizeof *p->seconds)};
    snprintf(p->name, sizeof p->name, "%s", name);
    snprintf(p->thread, sizeof p->thread, "%s", thread);
    t->n_phases += p->seconds != NULL;
    return p->seconds != NULL ? p : NULL;
}

/* The same for a block, in ascending order. */
static bm_trace_block_work *block_of(bm_trace_table *t, int64_t block)
{
    size_t at = t->n_blocks, ranks = (size_t)t->ranks;
    bm_trace_block_work *b = NULL;

    while (at > 0 && t->blocks[at - 1].block > block)
        at--;
    if (at > 0 && t->blocks[at - 1].block == block)
        return &t->blocks[at - 1];
    b = realloc(t->blocks, (t->n_blocks + 1) * sizeof *b);
    if (b == NULL)
        return NULL;
    t->blocks = b;
    b += at;
    memmove(b + 1, b, (t->n_blocks++ - at) * sizeof *b);
    *b = (bm_trace_block_work){.block = block,
                               .seconds = calloc(ranks, sizeof *b->seconds),
                               .work = calloc(ranks, sizeof *b->work)};
    return b->seconds != NULL && b->work != NULL ? b : NULL;
}

/* ---- one file ----------------------------------------------------------- */

static bm_status invalid(const reading *r, size_t i, const char *what)
{
    return BM_FAIL(BM_ERR_FORMAT, "%s: event %zu %s", r->path, i, what);
}

/* Microseconds in the file. */
static bool read_time(const json_t *event, const char *key, int64_t *ns)
{
    const json_t *value = json_object_get(event, key);
    double us = json_number_value(value);

    *ns = llround(1e3 * us);
    return json_is_number(value) && fabs(us) < 1e15;
}

static bm_status read_span(reading *r, const json_t *event, size_t i)
{
    const json_t *block =
        json_object_get(json_object_get(event, "args"), "block");
    const json_t *tid = json_object_get(event, "tid");
    span *s = &r->spans[r->n++];

    *s = (span){.name = json_string_value(json_object_get(event, "name")),
                .tid = (int)json_integer_value(tid),
                .block = block != NULL ? json_integer_value(block) : -1};
    if (s->name == NULL)
        return invalid(r, i, "has no name");
    if (!json_is_integer(tid) || s->tid < 0 || s->tid >= THREADS)
        return invalid(r, i, "has no valid tid");
    if (!read_time(event, "ts", &s->ts) || !read_time(event, "dur", &s->dur) ||
        s->dur < 0)
        return invalid(r, i, "has no valid ts or dur");
    return BM_OK;
}

static void read_name(reading *r, const json_t *event)
{
    const char *what = json_string_value(json_object_get(event, "name"));
    const char *name = json_string_value(
        json_object_get(json_object_get(event, "args"), "name"));
    json_int_t tid = json_integer_value(json_object_get(event, "tid"));

    if (what != NULL && name != NULL && strcmp(what, "thread_name") == 0 &&
        tid >= 0 && tid < THREADS)
        snprintf(r->thread[tid], sizeof r->thread[tid], "%s", name);
}

static bm_status read_events(reading *r, const json_t *events)
{
    const json_t *event = NULL;
    size_t i = 0;

    r->spans = calloc(json_array_size(events) + 1, sizeof *r->spans);
    if (r->spans == NULL)
        return no_memory();
    json_array_foreach(events, i, event)
    {
        const char *kind = json_string_value(json_object_get(event, "ph"));
        if (kind == NULL)
            return invalid(r, i, "has no ph");
        if (strcmp(kind, "X") == 0)
            BM_TRY(read_span(r, event, i));
        if (strcmp(kind, "M") == 0)
            read_name(r, event);
    }
    return BM_OK;
}

/* Orders by thread, then time; a span comes before those within it. */
static int earlier(const void *a, const void *b)
{
    const span *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return (x->dur < y->dur) - (x->dur > y->dur);
}

static bm_status nest(reading *r)
{
    span *open[DEEPEST];
    size_t depth = 0;

    qsort(r->spans, r->n, sizeof *r->spans, earlier);
    for (size_t i = 0; i < r->n; i++) {
        span *s = &r->spans[i];
        while (depth > 0 &&
               (open[depth - 1]->tid != s->tid ||
                open[depth - 1]->ts + open[depth - 1]->dur <= s->ts))
            depth--;
        if (depth > 0 &&
            s->ts + s->dur > open[depth - 1]->ts + open[depth - 1]->dur)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: %s and %s, on one thread, overlap at %.3f us",
                           r->path, open[depth - 1]->name, s->name,
                           1e-3 * (double)s->ts);
        if (depth == DEEPEST)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: spans are nested more than %d deep", r->path,
                           DEEPEST);
        if (depth > 0)
            open[depth - 1]->within += s->dur;
        open[depth++] = s;
    }
    return BM_OK;
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

static bool is_waiting(const char *name)
{
    return is_one_of(name,
                     (const char *const[]){"wait", "exchange", "filter", NULL});
}

static bool is_work(const char *name)
{
    return !is_waiting(name) && strcmp(name, "checkpoint") != 0;
}

static bm_status add_span(reading *r, const span *s)
{
    double own = 1e-9 * (double)(s->dur - s->within);
    bm_trace_phase *p = phase_of(r->t, s->name, r->thread[s->tid]);
    bm_trace_block_work *b = NULL;

    if (p == NULL)
        return no_memory();
    p->seconds[r->rank] += own;
    if (s->block < 0)
        return BM_OK;
    b = block_of(r->t, s->block);
    if (b == NULL)
        return no_memory();
    if (is_work(s->name))
        b->work[r->rank] += own;
    if (strcmp(s->name, "block") == 0)
        b->seconds[r->rank] += 1e-9 * (double)s->dur;
    return BM_OK;
}

bm_status bm_trace_table_add(bm_trace_table *t, int rank, const json_t *file,
                             const char *path)
{
    reading r = {.t = t, .rank = rank, .path = path};
    const char *host = json_string_value(
        json_object_get(json_object_get(file, "otherData"), "host"));
    bm_status status = BM_OK;

    bm_printable(host != NULL ? host : "?", t->host[rank],
                 sizeof t->host[rank]);
    BM_TRY_DONE(read_events(&r, json_object_get(file, "traceEvents")));
    BM_TRY_DONE(nest(&r));
    for (size_t i = 0; i < r.n && status == BM_OK; i++)
        status = add_span(&r, &r.spans[i]);
done:
    free(r.spans);
    return status;
}

/* ---- the table ---------------------------------------------------------- */

static double sum_of(const bm_trace_table *t, const double *x)
{
    double sum = 0;

    for (int r = 0; r < t->ranks; r++)
        sum += x[r];
    return sum;
}

static int most_of(const bm_trace_table *t, const double *x)
{
    int most = 0;

    for (int r = 1; r < t->ranks; r++)
        if (x[r] > x[most])
            most = r;
    return most;
}

static int least_of(const bm_trace_table *t, const double *x)
{
    int least = 0;

    for (int r = 1; r < t->ranks; r++)
        if (x[r] < x[least])
            least = r;
    return least;
}

static int straggler_of(const bm_trace_table *t, const bm_trace_phase *p)
{
    return is_waiting(p->name) ? least_of(t, p->seconds)
                               : most_of(t, p->seconds);
}

static double lost_in(const bm_trace_table *t, const bm_trace_block_work *b)
{
    return t->ranks * b->work[most_of(t, b->work)] - sum_of(t, b->work);
}

/* The straggler of all blocks. */
typedef struct verdict {
    int rank;
    int blocks; /* number of blocks with this straggler */
    double lost;
} verdict;

static verdict judge(const bm_trace_table *t)
{
    verdict worst = {0, 0, 0};

    for (int r = 0; r < t->ranks; r++) {
        verdict v = {r, 0, 0};
        for (size_t i = 0; i < t->n_blocks; i++)
            if (most_of(t, t->blocks[i].work) == r) {
                v.blocks++;
                v.lost += lost_in(t, &t->blocks[i]);
            }
        if (v.lost > worst.lost)
            worst = v;
    }
    return worst;
}

static void print_phases(const bm_trace_table *t, FILE *out)
{
    fprintf(out, "%-12s %-10s %10s %10s %10s   %s\n", "phase", "thread",
            "total s", "mean s", "most s", "straggler");
    for (size_t i = 0; i < t->n_phases; i++) {
        const bm_trace_phase *p = &t->phases[i];
        double total = sum_of(t, p->seconds);
        int s = straggler_of(t, p);

        fprintf(out, "%-12s %-10s %10.4f %10.4f %10.4f   ", p->name, p->thread,
                total, total / t->ranks, p->seconds[most_of(t, p->seconds)]);
        if (t->ranks > 1)
            fprintf(out, "rank %d on %s\n", s, t->host[s]);
        else
            fprintf(out, "-\n");
    }
}

static void print_blocks(const bm_trace_table *t, FILE *out)
{
    fprintf(out, "\n%-12s %10s %10s %10s %10s   %s\n", "block", "seconds",
            "mean work", "most work", "lost s", "straggler");
    for (size_t i = 0; i < t->n_blocks; i++) {
        const bm_trace_block_work *b = &t->blocks[i];
        int s = most_of(t, b->work);

        fprintf(out, "%-12lld %10.4f %10.4f %10.4f %10.4f   rank %d on %s\n",
                (long long)b->block, b->seconds[most_of(t, b->seconds)],
                sum_of(t, b->work) / t->ranks, b->work[s], lost_in(t, b), s,
                t->host[s]);
    }
}

void bm_trace_table_print(const bm_trace_table *t, FILE *out)
{
    verdict v = judge(t);

    print_phases(t, out);
    if (t->ranks < 2 || t->n_blocks == 0)
        return;
    if (t->n_blocks <= MOST_LINES)
        print_blocks(t, out);
    fprintf(out,
            "\nstraggler    rank %d on %s, in %d of %zu blocks; the others "
            "waited %.4f s for it\n",
            v.rank, t->host[v.rank], v.blocks, t->n_blocks, v.lost);
}

static json_t *list_of(const bm_trace_table *t, const double *x)
{
    json_t *list = json_array();

    for (int r = 0; r < t->ranks; r++)
        json_array_append_new(list, json_real(x[r]));
    return list;
}

static json_t *phases_json(const bm_trace_table *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->n_phases; i++) {
        const bm_trace_phase *p = &t->phases[i];
        double total = sum_of(t, p->seconds);
        json_array_append_new(
            list,
            json_pack("{s:s, s:s, s:f, s:f, s:f, s:i, s:o}", "phase", p->name,
                      "thread", p->thread, "total_s", total, "mean_s",
                      total / t->ranks, "most_s",
                      p->seconds[most_of(t, p->seconds)], "straggler",
                      straggler_of(t, p), "seconds", list_of(t, p->seconds)));
    }
    return list;
}

static json_t *blocks_json(const bm_trace_table *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->n_blocks; i++) {
        const bm_trace_block_work *b = &t->blocks[i];
        json_array_append_new(
            list, json_pack("{s:I, s:f, s:f, s:i, s:o}", "block",
                            (json_int_t)b->block, "seconds",
                            b->seconds[most_of(t, b->seconds)], "lost_s",
                            lost_in(t, b), "straggler", most_of(t, b->work),
                            "work_s", list_of(t, b->work)));
    }
    return list;
}

json_t *bm_trace_table_json(const bm_trace_table *t)
{
    verdict v = judge(t);
    json_t *hosts = json_array();

    for (int r = 0; r < t->ranks; r++)
        json_array_append_new(hosts, json_string(t->host[r]));
    return json_pack("{s:i, s:o, s:o, s:o, s:{s:i, s:s, s:i, s:f}}", "ranks",
                     t->ranks, "hosts", hosts, "phases", phases_json(t),
                     "blocks", blocks_json(t), "straggler", "rank", v.rank,
                     "host", t->host[v.rank], "blocks", v.blocks, "lost_s",
                     v.lost);
}

/* bench.c - bmuf bench: which parts of bench.h are measured, and how their
 * numbers are shown. */
#include "cli/bench/bench.h"
#include "bmuf/exchange/exchange.h"
#include "cli/launch/processes.h"
#include "cli/verbs.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const bm_bench_part *const parts[] = {
#define X(name) &bm_bench_##name,
    BM_BENCHES(X)
#undef X
};

enum { PARTS = sizeof parts / sizeof parts[0] };

double bm_bench_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bm_bench_median(size_t n, double *x)
{
    qsort(x, n, sizeof *x, ascending);
    return n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* A part by its name, a row by a piece of its. */
static bool chosen(const bm_bench_part *p, const bm_bench *how, size_t row,
                   const char *only)
{
    return only == NULL || strcmp(p->name, only) == 0 ||
           strstr(p->row(how, row), only) != NULL;
}

/* How many of its rows are. */
static size_t chosen_rows(const bm_bench_part *p, const bm_bench *how,
                          const char *only)
{
    size_t n = 0;

    for (size_t i = 0; p->row(how, i) != NULL; i++)
        n += chosen(p, how, i, only);
    return n;
}

static bm_status check_choice(const bm_bench *how, const char *only)
{
    char names[1024] = "";
    size_t n = 0, length = 0;

    for (size_t k = 0; k < PARTS; k++) {
        n += chosen_rows(parts[k], how, only);
        for (size_t i = 0; parts[k]->row(how, i) != NULL; i++) {
            length = strlen(names);
            snprintf(names + length, sizeof names - length, "%s%s",
                     length > 0 ? ", " : "", parts[k]->row(how, i));
        }
    }
    if (n > 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG, "--only %s: there are %s", only, names);
}

static void print_head(const bm_bench_part *p, const bm_bench *how)
{
    p->head(how, stdout);
    printf("\n\n%-12s", "");
    for (const bm_bench_column *c = p->columns; c->key != NULL; c++)
        if (c->title != NULL)
            printf(" %12s", c->title);
    printf("\n");
}

static void print_row(const bm_bench_part *p, const char *row, const double *x)
{
    printf("%-12s", row);
    for (const bm_bench_column *c = p->columns; c->key != NULL; c++, x++) {
        if (c->title == NULL)
            continue;
        if (isnan(*x))
            printf(" %12s", "");
        else if (c->share)
            printf(" %10.*f %%", c->digits, 100 * *x);
        else
            printf(" %12.*f", c->digits, *x);
    }
    printf("\n");
    fflush(stdout);
}

static json_t *row_json(const bm_bench_part *p, const char *row,
                        const double *x)
{
    json_t *o = json_pack("{s:s}", "name", row);

    for (const bm_bench_column *c = p->columns; c->key != NULL; c++, x++)
        if (!isnan(*x))
            json_object_set_new(o, c->key, json_real(*x));
    return o;
}

/* What many ranks do is another part's matter than what one does. */
static bool fits(const bm_bench_part *p, const bm_comm *comm)
{
    return (p->measure_ranks != NULL) == (bm_comm_size(comm) > 1);
}

/* Tells each row as it is measured, or adds it to rows; rank 0 does. */
static bm_status measure(const bm_bench_part *p, const bm_bench *how,
                         bm_comm *comm, const char *only, json_t *rows)
{
    bool tells = bm_comm_rank(comm) == 0;

    if (tells && rows == NULL)
        print_head(p, how);
    for (size_t i = 0; p->row(how, i) != NULL; i++) {
        double x[BM_BENCH_COLUMNS] = {0};

        if (!chosen(p, how, i, only))
            continue;
        if (p->measure_ranks != NULL)
            BM_TRY(p->measure_ranks(how, comm, i, x));
        else
            BM_TRY(p->measure(how, i, x));
        if (rows != NULL)
            json_array_append_new(rows, row_json(p, p->row(how, i), x));
        else if (tells)
            print_row(p, p->row(how, i), x);
    }
    return BM_OK;
}

static bm_status measure_all(const bm_bench *how, bm_comm *comm,
                             const char *only, json_t *rows)
{
    for (size_t k = 0; k < PARTS; k++) {
        if (chosen_rows(parts[k], how, only) == 0)
            continue;
        if (fits(parts[k], comm))
            BM_TRY(measure(parts[k], how, comm, only, rows));
        else if (bm_comm_rank(comm) == 0)
            fprintf(stderr,
                    parts[k]->measure_ranks != NULL
                        ? "%s takes two ranks or more: bmuf bench -n 2 --only "
                          "%s\n"
                        : "%s takes one rank: bmuf bench --only %s\n",
                    parts[k]->name, parts[k]->name);
    }
    return BM_OK;
}

static void print_peers(void)
{
    for (size_t k = 0; k < PARTS; k++)
        if (parts[k]->peer != NULL)
            fputs(parts[k]->peer, stdout);
}

/* --net and what belongs to it. */
static bm_status read_own(const bm_arguments *a, bm_bench_work *own)
{
    const struct {
        const char *name;
        long fallback;
        size_t *out;
    } sizes[] = {{"input", 80, &own->features},
                 {"classes", 80, &own->classes},
                 {"batch", 16, &own->B},
                 {"frames", 200, &own->T},
                 {"labels", 25, &own->labels}};
    long number = 0;

    *own = (bm_bench_work){.name = "net", .net = bm_argument(a, "net")};
    BM_TRY(bm_argument_word(a, "loss", "ctc cross_entropy", "ctc", &own->loss));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        BM_TRY(bm_argument_number(a, sizes[i].name, sizes[i].fallback, 1,
                                  10000000, &number));
        *sizes[i].out = (size_t)number;
    }
    if (strcmp(own->loss, "cross_entropy") == 0)
        own->labels = own->T; /* one a frame */
    return BM_OK;
}

static bm_status run(const bm_arguments *a)
{
    bm_bench how = {.rounds =
                        bm_argument(a, "quick") != NULL ? 3 : BM_BENCH_ROUNDS};
    long threads = 1;
    const char *device = NULL, *precision = NULL;
    const char *only = bm_argument(a, "only");
    bm_device on = {0};
    json_t *rows = NULL;
    bm_comm *comm = NULL;
    bm_status status = BM_OK;

    if (bm_argument(a, "peer") != NULL) {
        print_peers();
        return BM_OK;
    }
    BM_TRY(read_own(a, &how.own));
    if (how.own.net != NULL)
        only = how.own.name;
    BM_TRY(check_choice(&how, only));
    BM_TRY(bm_argument_number(a, "threads", 1, 1, 1024, &threads));
    BM_TRY(bm_argument_word(a, "device", BM_DEVICES, "auto", &device));
    BM_TRY(bm_argument_word(a, "precision", BM_PRECISIONS, "auto", &precision));
    BM_TRY(bm_job_start(a, false, &comm));
    if (comm == NULL)
        return BM_OK;
    BM_TRY(bm_device_open(&on, comm, device, precision, threads));
    how.device = &on;
    if (bm_argument(a, "json") != NULL)
        rows = json_array();
    status = measure_all(&how, comm, only, rows);
    if (status == BM_OK && rows != NULL && bm_comm_rank(comm) == 0) {
        json_dumpf(rows, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
        putchar('\n');
    }
    json_decref(rows);
    bm_device_close(&on);
    return status;
}

static const bm_flag flags[] = {
    {"quick", NULL, "fewer repetitions", 0, false},
    {"only", "NAME", "a part, or rows whose name contains this", 0, false},
    {"ranks", "RANKS", "start so many MPI processes", 'n', false},
    {"net", "NET", "training steps of this network, '': of the loss alone", 0,
     false},
    {"loss", "LOSS", "of --net: ctc (default) or cross_entropy", 0, false},
    {"input", "D", "of --net: numbers of a frame; default 80", 0, false},
    {"classes", "V", "of --net; default 80", 0, false},
    {"batch", "B", "of --net: sequences of a mini-batch; default 16", 0, false},
    {"frames", "T", "of --net: of a sequence; default 200", 0, false},
    {"labels", "L", "of --net, of a sequence with ctc; default 25", 0, false},
    {"threads", "N", "of a rank, for training steps; default 1", 0, false},
    {"device", "D",
     "of training steps: cpu, cuda or auto (default): cuda where there is one",
     0, false},
    {"precision", "P",
     "of training steps: fp32, tf32, bf16 or auto (default): bf16 on cuda", 0,
     false},
    {"json", NULL, "JSON instead of a table", 0, false},
    {"peer", NULL, "how to measure PyTorch on the same steps", 0, false},
    {0},
};

const bm_verb bm_verb_bench = {
    .name = "bench",
    .nouns = "",
    .help = "frames/s of this machine, and how far from its peak",
    .text =
        "  bmuf bench\n"
        "  taskset -c 1 bmuf bench --only blstm\n"
        "  bmuf bench --net 'blstm:512*5 linear' --batch 32 --frames 800\n"
        "  bmuf bench -n 2\n\n"
        "Training steps (forward, backward, clipped momentum update) with "
        "random data:\nframes/s, the rate of their products, and that as a "
        "share of what products of\nlarge square matrices reach at the same "
        "time. Reading, from files in memory. With\ntwo ranks or more: a "
        "block's exchange, beside MPI_Allreduce of the same bytes,\nand the "
        "link between them. Medians.\n",
    .flags = flags,
    .most = 0,
    .run = run,
};

/* bench.c - bmuf bench: selects benchmarks of bench.h, runs them and prints
 * their numbers. */
#include "cli/bench/bench.h"
#include "bmuf/exchange/exchange.h"
#include "cli/json_output.h"
#include "cli/launch/processes.h"
#include "cli/verbs.h"
#include "core/log.h"
#include "core/sort.h"

#include <jansson.h>
#include <math.h>
#include <string.h>
#include <time.h>

static const bm_benchmark *const all[] = {
#define X(name) &bm_bench_##name,
    BM_BENCHES(X)
#undef X
};

enum { BENCHES = sizeof all / sizeof all[0] };

double bm_bench_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double bm_bench_median(size_t n, double *x)
{
    bm_sort(x, n);
    return n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

bm_status bm_bench_medians(size_t rounds, size_t n,
                           bm_status (*once)(void *self, double *x), void *self,
                           double *out)
{
    double x[BM_BENCH_COLUMNS][BM_BENCH_ROUNDS], now[BM_BENCH_COLUMNS];

    BM_ASSERT(n <= BM_BENCH_COLUMNS && rounds <= BM_BENCH_ROUNDS);
    for (size_t i = 0; i < rounds; i++) {
        BM_TRY(once(self, now));
        for (size_t k = 0; k < n; k++)
            x[k][i] = now[k];
    }
    for (size_t k = 0; k < n; k++)
        out[k] = bm_bench_median(rounds, x[k]);
    return BM_OK;
}

/* Row i, or NULL after the last one. --net replaces the rows of `train`. */
static const char *row_of(const bm_benchmark *b, const bm_bench *how, size_t i)
{
    if (how->own.net == NULL)
        return b->rows[i];
    return b == &bm_bench_train && i == 0 ? "net" : NULL;
}

/* --only: a benchmark by its name, a row by any substring of its name. */
static bool selected(const bm_benchmark *b, const char *row, const char *only)
{
    return only == NULL || strcmp(b->name, only) == 0 ||
           strstr(row, only) != NULL;
}

static size_t count_selected(const bm_benchmark *b, const bm_bench *how,
                             const char *only)
{
    size_t n = 0;

    for (size_t i = 0; row_of(b, how, i) != NULL; i++)
        n += selected(b, row_of(b, how, i), only);
    return n;
}

static bm_status check_only(const bm_bench *how, const char *only)
{
    char names[1024] = "";
    size_t n = 0, length = 0;

    for (size_t k = 0; k < BENCHES; k++) {
        n += count_selected(all[k], how, only);
        for (size_t i = 0; row_of(all[k], how, i) != NULL; i++) {
            length = strlen(names);
            snprintf(names + length, sizeof names - length, "%s%s",
                     length > 0 ? ", " : "", row_of(all[k], how, i));
        }
    }
    if (n > 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "bench: --only %s matches no benchmark; the rows are %s",
                   only, names);
}

static void print_head(const bm_benchmark *b, const bm_bench *how)
{
    if (b->head != NULL)
        fputs(b->head, stdout);
    else
        b->print_head(how, stdout);
    printf("\n\n%-12s", "");
    for (const bm_bench_column *c = b->columns; c->key != NULL; c++)
        if (c->title != NULL)
            printf(" %12s", c->title);
    printf("\n");
}

static void print_row(const bm_benchmark *b, const char *row, const double *x)
{
    printf("%-12s", row);
    for (const bm_bench_column *c = b->columns; c->key != NULL; c++, x++) {
        if (c->title == NULL)
            continue;
        if (isnan(*x))
            printf(" %12s", "");
        else if (c->percent)
            printf(" %10.*f %%", c->digits, 100 * *x);
        else
            printf(" %12.*f", c->digits, *x);
    }
    printf("\n");
    fflush(stdout);
}

static json_t *row_json(const bm_benchmark *b, const char *row, const double *x)
{
    json_t *o = json_pack("{s:s}", "name", row);

    for (const bm_bench_column *c = b->columns; c->key != NULL; c++, x++)
        if (!isnan(*x))
            json_object_set_new(o, c->key, json_real(*x));
    return o;
}

/* A benchmark is for one rank or for several. */
static bool fits(const bm_benchmark *b, const bm_comm *comm)
{
    return (b->measure_ranks != NULL) == (bm_comm_size(comm) > 1);
}

/* Collective. Prints each row when it is measured, on rank 0, or adds it to
 * `rows` unless that is NULL. */
static bm_status measure(const bm_benchmark *b, const bm_bench *how,
                         bm_comm *comm, const char *only, json_t *rows)
{
    bool prints = rows == NULL && bm_comm_rank(comm) == 0, headed = false;

    for (size_t i = 0; row_of(b, how, i) != NULL; i++) {
        const char *row = row_of(b, how, i);
        double x[BM_BENCH_COLUMNS] = {0};

        if (!selected(b, row, only))
            continue;
        if (b->measure_ranks != NULL)
            BM_TRY(b->measure_ranks(how, comm, i, x));
        else
            BM_TRY(b->measure(how, i, x));
        if (rows != NULL)
            json_array_append_new(rows, row_json(b, row, x));
        if (!prints)
            continue;
        if (!headed)
            print_head(b, how);
        headed = true;
        print_row(b, row, x);
    }
    return BM_OK;
}

static bm_status measure_all(const bm_bench *how, bm_comm *comm,
                             const char *only, json_t *rows)
{
    for (size_t k = 0; k < BENCHES; k++) {
        if (count_selected(all[k], how, only) == 0)
            continue;
        if (fits(all[k], comm))
            BM_TRY(measure(all[k], how, comm, only, rows));
        else
            bm_log(BM_NOTE,
                   all[k]->measure_ranks != NULL
                       ? "%s skipped, it needs two ranks or more: bmuf bench "
                         "-n 2 --only %s"
                       : "%s skipped, it needs one rank: bmuf bench --only %s",
                   all[k]->name, all[k]->name);
    }
    return BM_OK;
}

static void print_peers(void)
{
    for (size_t k = 0; k < BENCHES; k++)
        if (all[k]->print_peer != NULL)
            all[k]->print_peer(stdout);
}

/* --net and the options that go with it. */
static bm_status read_own(const bm_arguments *a, bm_bench_work *own)
{
    static const char *const needs_net[] = {"loss",  "input",  "classes",
                                            "batch", "frames", "labels"};
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

    for (size_t i = 0; i < sizeof needs_net / sizeof needs_net[0]; i++)
        if (bm_argument(a, needs_net[i]) != NULL &&
            bm_argument(a, "net") == NULL)
            return BM_FAIL(BM_ERR_ARG,
                           "bench: --%s needs --net: the networks that are "
                           "measured without it have their own sizes",
                           needs_net[i]);
    if (bm_argument(a, "net") != NULL && bm_argument(a, "only") != NULL)
        return BM_FAIL(BM_ERR_ARG, "bench: --only selects benchmarks that are "
                                   "made without --net; give one of them");
    *own = (bm_bench_work){.net = bm_argument(a, "net")};
    BM_TRY(bm_argument_word(a, "loss", "ctc cross_entropy", "ctc", &own->loss));
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        BM_TRY(bm_argument_number(a, sizes[i].name, sizes[i].fallback, 1,
                                  10000000, &number));
        *sizes[i].out = (size_t)number;
    }
    if (strcmp(own->loss, "cross_entropy") == 0)
        own->labels = own->T; /* one per frame */
    else if (own->classes < 2)
        return BM_FAIL(BM_ERR_ARG, "bench: --classes 1: CTC has a blank and at "
                                   "least one label; give 2 or more");
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
    BM_TRY(check_only(&how, only));
    BM_TRY(bm_argument_number(a, "threads", 1, 1, 1024, &threads));
    BM_TRY(bm_argument_word(a, "device", BM_DEVICES, "auto", &device));
    BM_TRY(bm_argument_word(a, "precision", BM_PRECISIONS, "auto", &precision));
    BM_TRY(bm_job_start(a, &bm_job_defaults, &comm));
    if (comm == NULL)
        return BM_OK;
    BM_TRY(bm_device_open(&on, comm, device, precision, threads));
    how.device = &on;
    if (bm_argument(a, "json") != NULL)
        rows = json_array();
    status = measure_all(&how, comm, only, rows);
    if (status == BM_OK && rows != NULL && bm_comm_rank(comm) == 0)
        bm_json_print(json_pack("{s:O}", "benchmarks", rows),
                      JSON_INDENT(1) | JSON_REAL_PRECISION(6));
    json_decref(rows);
    bm_device_close(&on);
    return status;
}

static const bm_flag flags[] = {
    {"quick", NULL, "fewer repetitions", 0, false},
    {"only", "NAME", "this benchmark, or rows whose name contains NAME", 0,
     false},
    {"ranks", "RANKS", "number of MPI processes to start", 'n', false},
    {"net", "NET", "measure training steps of this network; '': the loss alone",
     0, false},
    {"loss", "ctc|cross_entropy", "with --net; default: ctc", 0, false},
    {"input", "D", "with --net: features per frame; default 80", 0, false},
    {"classes", "V", "with --net: classes; default 80", 0, false},
    {"batch", "B", "with --net: sequences per mini-batch; default 16", 0,
     false},
    {"frames", "T", "with --net: frames per sequence; default 200", 0, false},
    {"labels", "L", "with --net and ctc: labels per sequence; default 25", 0,
     false},
    {"threads", "N", "CPU threads per rank, for training steps; default 1", 0,
     false},
    {"device", "cpu|cuda|auto",
     "for training steps; default: cuda if available", 0, false},
    {"precision", "fp32|tf32|bf16|auto",
     "for training steps; default: bf16 on GPUs with units for it, else fp32",
     0, false},
    BM_JSON_FLAG,
    {"peer", NULL, "print how to measure the same steps in PyTorch", 0, false},
    {0},
};

const bm_verb bm_verb_bench = {
    .name = "bench",
    .nouns = "",
    .help = "measure the speed of training, exchange and reading",
    .text = "  bmuf bench\n"
            "  taskset -c 1 bmuf bench --only blstm\n"
            "  bmuf bench --net 'blstm:512*5 linear' --batch 32 --frames 800\n"
            "  bmuf bench -n 2\n\n"
            "Benchmarks:\n"
            "  train     training steps (forward, backward, clipped momentum "
            "update) on\n"
            "            random data: frames/s, GFLOP/s of the matrix "
            "products, and "
            "their\n"
            "            ratio to large square products on the same machine\n"
            "  codes     encoding and decoding of compressed block updates\n"
            "  read      reading of mini-batches from cached files\n"
            "  exchange  with two ranks or more: the exchange of a block, and "
            "MPI_Allreduce\n"
            "            of the same bytes\n"
            "  link      with two ranks or more: latency and bandwidth between "
            "them\n"
            "All numbers are medians.\n",
    .flags = flags,
    .most = 0,
    .run = run,
};

/* scale.c - bmuf scale: forecasts the speed of each method on more workers. */
#include "cli/json_output.h"
#include "cli/outputs.h"
#include "cli/plot/plot.h"
#include "cli/report/scale/load.h"
#include "cli/report/scale/network.h"
#include "cli/verbs.h"
#include "core/text/words.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COUNTS = 32, MOST_METHODS = 16 };

/* "1,2,4,...,256" or "2,3,...,6": the dots continue with the ratio of the last
 * two numbers if it is an integer, else with their difference. */
static bm_status read_counts(const char *text, int *count, size_t *n)
{
    const char *at = text;
    bool dots = false;

    for (*n = 0; *at != '\0';) {
        char *end = NULL;
        long next = strtol(at, &end, 10);

        if (strncmp(at, "...", 3) == 0 && *n >= 2 && !dots) {
            dots = true;
            at += 3 + (at[3] == ',');
            continue;
        }
        if (end == at || next < 1 || next > 1 << 20 ||
            (*n > 0 && next <= count[*n - 1]) || (*end != ',' && *end != '\0'))
            return BM_FAIL(BM_ERR_ARG,
                           "--workers %s: expected increasing numbers such as "
                           "1,2,4,...,256",
                           text);
        for (; dots && *n < MOST_COUNTS; (*n)++) {
            long a = count[*n - 2], b = count[*n - 1];
            long more = b % a == 0 ? b / a * b : 2 * b - a;

            if (more >= next)
                break;
            count[*n] = (int)more;
        }
        if (*n == MOST_COUNTS)
            return BM_FAIL(BM_ERR_ARG, "--workers %s: at most %d numbers", text,
                           MOST_COUNTS);
        count[(*n)++] = (int)next;
        dots = false;
        at = end + (*end == ',');
    }
    return *n > 0
               ? BM_OK
               : BM_FAIL(BM_ERR_ARG,
                         "--workers: expected numbers such as 1,2,4,...,256");
}

typedef struct forecast {
    bm_load load;
    bm_load_source of;
    bm_network network;
    const bm_sum_cost *sum;
    int count[MOST_COUNTS];
    size_t n_counts, n_methods;
    double speedup[MOST_METHODS][MOST_COUNTS];
    double frames_per_s[MOST_METHODS][MOST_COUNTS];
} forecast;

static double bytes_of(const forecast *f)
{
    return 4 * f->load.weights;
}

/* Of method m on n workers. */
static double predict_one(const forecast *f, const bm_forecast_method *m,
                          const bm_sum_cost *sum, int n, double *frames_per_s)
{
    const bm_exchange_cost x = {sum, f->network.fabric};
    bm_load l = bm_load_on_cores(&f->load, f->network.cores, n);
    double step = bm_forecast_step(m, &l, &x, n);

    *frames_per_s = n * f->of.frames / step;
    return n * bm_forecast_step(m, &f->load, &x, 1) / step;
}

static void predict(forecast *f)
{
    const bm_forecast_method *m = bm_forecast_methods;

    for (f->n_methods = 0; m->name != NULL; m++, f->n_methods++)
        for (size_t i = 0; i < f->n_counts; i++)
            f->speedup[f->n_methods][i] = predict_one(
                f, m, f->sum, f->count[i], &f->frames_per_s[f->n_methods][i]);
}

static void print_link(const char *name, const bm_link *l)
{
    printf("%-17s %.3g us latency, %.3g GB/s\n", name, 1e6 * l->latency,
           1e-9 * l->bandwidth);
}

/* The grid of the largest number of workers. */
static void print_topology(const forecast *f)
{
    int n = f->count[f->n_counts - 1];
    bm_grid g = bm_fabric_grid(&f->network.fabric, n);

    if (f->sum != NULL && strcmp(f->sum->name, "hier") != 0)
        return;
    printf("topology          %d", g.size[0]);
    for (int k = 1; k < g.dimensions; k++)
        printf("x%d", g.size[k]);
    printf(" for %s\n", bm_count_noun(n, "worker").text);
}

/* " (5 blocks on 2 ranks)", " (5 blocks on 1 to 2 ranks)" */
static void print_source(const bm_load_source *of)
{
    printf(" (%s on ", bm_count_noun((long long)of->blocks, "block").text);
    if (of->ranks[0] < of->ranks[1])
        printf("%d to ", of->ranks[0]);
    printf("%s)", bm_count_noun(of->ranks[1], "rank").text);
}

static void print_head(const forecast *f)
{
    const bm_load *l = &f->load;
    const bm_fabric *x = &f->network.fabric;

    printf("step of a worker  %.4g ms for %.0f frames = %.0f frames/s",
           1e3 * l->step_s, f->of.frames, f->of.frames / l->step_s);
    if (f->of.blocks > 0)
        print_source(&f->of);
    printf("\nvariation         %.1f %% of a step\n"
           "exchanged         %.1f MB, every %.1f steps with bmuf\n",
           100 * l->variation, 1e-6 * bytes_of(f), l->block_steps);
    print_link(x->host > 1 ? "between hosts" : "network", &x->between);
    if (x->host > 1) {
        print_link("inside a host", &x->inside);
        printf("workers of a host %d\n", x->host);
    }
    if (f->sum != NULL)
        printf("sum               %s, %s\n", f->sum->name, f->sum->help);
    print_topology(f);
    if (l->read_s > 0)
        printf("reading           %.4g ms per step, more than computing\n",
               1e3 * l->read_s);
}

static void print_table(const forecast *f)
{
    print_head(f);
    printf("\n%-9s", "workers");
    for (size_t k = 0; k < f->n_methods; k++)
        printf(" %12s", bm_forecast_methods[k].name);
    printf("\n");
    for (size_t i = 0; i < f->n_counts; i++) {
        printf("%-9d", f->count[i]);
        for (size_t k = 0; k < f->n_methods; k++)
            printf(" %7.2f %3.0f%%", f->speedup[k][i],
                   100 * f->speedup[k][i] / f->count[i]);
        printf("\n");
    }
    printf("\nSpeed-up over one worker, and efficiency (speed-up / workers). "
           "The forecast says\nnothing about accuracy: docs/tuning.md "
           "describes the effect of the block size.\n\n");
    for (size_t k = 0; k < f->n_methods; k++)
        printf("%-9s %s\n", bm_forecast_methods[k].name,
               bm_forecast_methods[k].help);
}

/* ---- all sums ------------------------------------------------------------ */

static void print_sum_names(const char *title)
{
    printf("\n%s\n%-9s", title, "workers");
    for (const bm_sum_cost *c = bm_sum_costs; c->name != NULL; c++)
        printf(" %12s", c->name);
    printf("\n");
}

/* Seconds of an exchange, then a table for each method that has one. */
static void print_sums(const forecast *f)
{
    char title[256];

    print_head(f);
    print_sum_names("An exchange of all weights, in ms");
    for (size_t i = 0; i < f->n_counts; i++) {
        printf("%-9d", f->count[i]);
        for (const bm_sum_cost *c = bm_sum_costs; c->name != NULL; c++)
            printf(" %12.4g", 1e3 * c->seconds(bytes_of(f), f->count[i],
                                               &f->network.fabric));
        printf("\n");
    }
    for (const bm_forecast_method *m = bm_forecast_methods; m->name != NULL;
         m++) {
        if (!m->sums)
            continue;
        snprintf(title, sizeof title, "%s: %s", m->name, m->help);
        print_sum_names(title);
        for (size_t i = 0; i < f->n_counts; i++) {
            printf("%-9d", f->count[i]);
            for (const bm_sum_cost *c = bm_sum_costs; c->name != NULL; c++) {
                double unused = 0;
                double fast = predict_one(f, m, c, f->count[i], &unused);

                printf(" %7.2f %3.0f%%", fast, 100 * fast / f->count[i]);
            }
            printf("\n");
        }
    }
    printf("\nSpeed-up over one worker, and efficiency (speed-up / "
           "workers).\n\n");
    for (const bm_sum_cost *c = bm_sum_costs; c->name != NULL; c++)
        printf("%-9s %s\n", c->name, c->help);
}

static json_t *sums_json(const forecast *f, int n)
{
    json_t *sums = json_object();

    for (const bm_sum_cost *c = bm_sum_costs; c->name != NULL; c++) {
        json_t *sum =
            json_pack("{s:f}", "exchange_ms",
                      1e3 * c->seconds(bytes_of(f), n, &f->network.fabric));

        for (const bm_forecast_method *m = bm_forecast_methods; m->name != NULL;
             m++) {
            double frames = 0, fast = 0;

            if (!m->sums)
                continue;
            fast = predict_one(f, m, c, n, &frames);
            json_object_set_new(sum, m->name,
                                json_pack("{s:f, s:f}", "speedup", fast,
                                          "frames_per_s", frames));
        }
        json_object_set_new(sums, c->name, sum);
    }
    return sums;
}

static void print_json(const forecast *f)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < f->n_counts; i++) {
        json_t *row = json_pack("{s:i}", "workers", f->count[i]);

        if (f->sum == NULL)
            json_object_set_new(row, "sums", sums_json(f, f->count[i]));
        for (size_t k = 0; k < f->n_methods; k++)
            json_object_set_new(row, bm_forecast_methods[k].name,
                                json_pack("{s:f, s:f}", "speedup",
                                          f->speedup[k][i], "frames_per_s",
                                          f->frames_per_s[k][i]));
        json_array_append_new(rows, row);
    }
    bm_json_print(json_pack("{s:o}", "forecasts", rows),
                  JSON_INDENT(1) | JSON_REAL_PRECISION(6));
}

/* ---- the chart ----------------------------------------------------------- */

/* Speed-up over workers with its ideal, and below it the efficiency. */
static bm_status draw(const forecast *f, const char *path, const char *network)
{
    double workers[MOST_COUNTS], worth[MOST_METHODS][MOST_COUNTS];
    bm_plot_series fast[MOST_METHODS + 1], share[MOST_METHODS];
    char title[128];
    bm_plot plots[] = {
        {.title = title,
         .x = {.title = "workers", .scale = BM_PLOT_LOG2},
         .y = {.title = "speed-up over one worker", .scale = BM_PLOT_LOG2},
         .series = fast,
         .n = f->n_methods + 1},
        {.x = {.title = "workers", .scale = BM_PLOT_LOG2},
         .y = {.title = "efficiency: speed-up / workers",
               .percent = true,
               .least = 0,
               .most = 1},
         .series = share,
         .n = f->n_methods}};

    for (size_t i = 0; i < f->n_counts; i++)
        workers[i] = f->count[i];
    for (size_t k = 0; k < f->n_methods; k++) {
        for (size_t i = 0; i < f->n_counts; i++)
            worth[k][i] = f->speedup[k][i] / workers[i];
        fast[k] = share[k] =
            (bm_plot_series){.name = bm_forecast_methods[k].name,
                             .mark = BM_LINE,
                             .colour = k,
                             .n = f->n_counts,
                             .x = workers};
        fast[k].y = f->speedup[k];
        share[k].y = worth[k];
    }
    fast[f->n_methods] = (bm_plot_series){.name = "ideal",
                                          .mark = BM_LINE,
                                          .colour = BM_COLOURS - 1,
                                          .dashed = true,
                                          .n = f->n_counts,
                                          .x = workers,
                                          .y = workers};
    snprintf(title, sizeof title, "%.1f M weights, %.0f frames per step, %s",
             1e-6 * f->load.weights, f->of.frames, network);
    return bm_plot_file(path, plots, 2);
}

static bm_status number(const bm_arguments *a, const char *name, double least,
                        double most, double *out)
{
    const char *text = bm_argument(a, name);
    char *end = NULL;
    double x = 0;

    if (text == NULL)
        return BM_OK;
    x = strtod(text, &end);
    if (end == text || *end != '\0' || !(x >= least && x <= most))
        return BM_FAIL(BM_ERR_ARG, "--%s %s is not a number in [%g, %g]", name,
                       text, least, most);
    *out = x;
    return BM_OK;
}

/* From a run, or with --step-ms from a configuration. */
static bm_status read_load(const bm_arguments *a, forecast *f)
{
    const char *path = a->nouns[0];
    double ms = 0, percent = 0;

    BM_TRY(number(a, "step-ms", 1e-6, 1e9, &ms));
    if (ms == 0 && bm_argument(a, "set") != NULL)
        return BM_FAIL(BM_ERR_ARG, "scale: --set changes a CONFIG, which needs "
                                   "--step-ms; a RUN has its settings in its "
                                   "journal. Give --step-ms, or drop --set");
    if (ms > 0) {
        BM_TRY(bm_load_config(a, path, 1e-3 * ms, &f->load, &f->of));
        f->load.variation = 0.05;
    } else {
        BM_TRY(bm_load_run(path, &f->load, &f->of));
    }
    percent = 100 * f->load.variation;
    BM_TRY(number(a, "variation", 0, 1000, &percent));
    BM_TRY(number(a, "block-steps", 1, 1e9, &f->load.block_steps));
    f->load.variation = percent / 100;
    return BM_OK;
}

/* --network, --inside, --host-workers and --topology. */
static bm_status read_network(const bm_arguments *a, const char *network,
                              bm_network *out)
{
    const char *inside = bm_argument(a, "inside");
    const char *topology = bm_argument(a, "topology");
    bm_fabric *f = &out->fabric;
    long workers = 0;

    BM_TRY(bm_network_read(network, out));
    if (topology != NULL)
        BM_TRY(bm_fabric_topology(f, topology));
    BM_TRY(bm_argument_number(a, "host-workers",
                              f->host == 1 && topology != NULL ? f->size[0]
                                                               : f->host,
                              1, 1 << 20, &workers));
    if (inside != NULL && workers == 1)
        return BM_FAIL(
            BM_ERR_ARG,
            "scale: --inside needs --host-workers P, of 2 or more, or "
            "--topology: else every worker has a host of its own");
    if (inside != NULL)
        return bm_network_inside(out, inside, (int)workers);
    if (bm_argument(a, "host-workers") != NULL && f->host == 1)
        return BM_FAIL(BM_ERR_ARG,
                       "scale: --host-workers needs --inside, the network of "
                       "the workers of a host, or [inside] in the file of "
                       "--network");
    if (f->host > 1)
        f->host = (int)workers;
    return BM_OK;
}

/* --sum; NULL: all. */
static bm_status read_sum(const bm_arguments *a, const bm_sum_cost **out)
{
    const char *fallback = bm_argument(a, "topology") != NULL ? "hier" : "tree";
    const char *name = NULL;
    char names[256] = "all";

    for (const bm_sum_cost *c = bm_sum_costs; c->name != NULL; c++) {
        size_t length = strlen(names);
        snprintf(names + length, sizeof names - length, " %s", c->name);
    }
    BM_TRY(bm_argument_word(a, "sum", names, fallback, &name));
    *out = bm_sum_cost_find(name);
    return BM_OK;
}

static bm_status scale(const bm_arguments *a)
{
    const char *network = bm_argument(a, "network");
    const char *workers = bm_argument(a, "workers");
    const char *svg = bm_argument(a, "svg");
    const bm_output chart = {"--svg", svg};
    forecast f = {0};

    if (network == NULL)
        network = "10gbe";
    BM_TRY(bm_outputs_check(&chart, 1,
                            (const char *const[]){a->nouns[0], network, NULL}));
    BM_TRY(read_counts(workers != NULL ? workers : "1,2,4,...,256", f.count,
                       &f.n_counts));
    BM_TRY(read_network(a, network, &f.network));
    BM_TRY(read_sum(a, &f.sum));
    BM_TRY(read_load(a, &f));
    if (f.sum == NULL && svg != NULL)
        return BM_FAIL(BM_ERR_ARG, "scale: a chart is of one sum; give --sum "
                                   "another word than all");
    if (f.sum != NULL)
        predict(&f);
    if (svg != NULL)
        BM_TRY(draw(&f, svg, network));
    if (bm_argument(a, "json") != NULL)
        print_json(&f);
    else if (f.sum == NULL)
        print_sums(&f);
    else
        print_table(&f);
    return BM_OK;
}

static const bm_flag flags[] = {
    {"network", "NAME",
     "between hosts: 1gbe, 10gbe (default), fdr, ib100, nvlink, a file with "
     "[link], or the .json of bmuf doctor",
     0, false},
    {"inside", "NAME",
     "between workers of a host, likewise; default: one level", 0, false},
    {"host-workers", "P",
     "workers of a host, with --inside; default: the topology's first size", 0,
     false},
    {"topology", "SIZES", "grid of sum hier, 4x8x8; default: host x hosts", 0,
     false},
    {"sum", "tree|exact|mpi|ring|halving|hier|all",
     "how vectors are added; all: compares them; default: tree, or hier with "
     "--topology",
     0, false},
    {"workers", "N,...", "numbers of workers; default 1,2,4,...,256", 0, false},
    {"step-ms", "MS", "read a CONFIG, and assume this time for a mini-batch", 0,
     false},
    {"block-steps", "S", "mini-batches between exchanges of bmuf", 0, false},
    {"variation", "PERCENT", "standard deviation of the time of a step", 0,
     false},
    {"svg", "FILE", "write a chart", 0, false},
    {"set", "SECTION.KEY=VALUE", "change a setting of a CONFIG", 0, true},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_scale = {
    .name = "scale",
    .nouns = "RUN|CONFIG",
    .help = "forecast the speed of each method on more workers",
    .text =
        "  bmuf scale run/digits\n"
        "  bmuf scale run/digits --network fdr --workers 1,8,64 --svg d.svg\n"
        "  bmuf scale my.ini --step-ms 23 --network nvlink\n"
        "  bmuf scale run/digits --network fdr --inside nvlink --topology "
        "4x8x8 "
        "--sum all\n\n"
        "Models latency, bandwidth and waiting for the slowest worker "
        "(docs/scaling.md).\nThe time of a step comes from the journal of RUN, "
        "or from --step-ms.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = scale,
};

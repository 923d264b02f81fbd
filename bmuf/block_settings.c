/*
 * block_settings.c - the table of [block].
 */
#include "bmuf/block_settings.h"

#include "io/batch/batch_settings.h"

#include <math.h>

enum { MINI_BATCHES = 20 }; /* of a worker in a block, if no size is set */

#define AT(field) offsetof(bm_block_settings, field)

/* Rows of both tables. */
#define PER_WORKER                                                             \
    "frames_per_worker", BM_SERIES, AT(frames_per_worker), "0", 0, 1e15,       \
        "frames", "size of a block for each worker"
#define TOTAL                                                                  \
    "frames_total", BM_SERIES, AT(frames_total), "0", 0, 1e15, "frames",       \
        "size of a block for all workers together"
#define STEPS                                                                  \
    "steps", BM_SERIES, AT(steps), "0", 0, 1e9, "mini-batches",                \
        "size of a block for each worker; if no size is set, 20 updates; "     \
        "with N > 4 workers 80 / N, at least 5, and at least 1 / (1 - m) if "  \
        "a local momentum m is reset"

const bm_option bm_block_sizes[] = {{PER_WORKER}, {TOTAL}, {STEPS}, {0}};

const bm_option bm_block_options[] = {
    {PER_WORKER},
    {TOTAL},
    {STEPS},
    {"workers", BM_SERIES, AT(workers), "0", 0, 32768, NULL,
     "workers that take part, such as 16@0 64@1 with job.workers = 64; the "
     "learning rate is multiplied by their fraction; 0: all"},
    {"warmup", BM_INT, AT(warmup), "0", 0, 1e9, "blocks",
     "number of first blocks that average gradients at every step, as ssgd "
     "does"},
    {"seconds", BM_FLOAT, AT(seconds), "0", 0, 1e6, "seconds",
     "time limit of a rank for its shares of a block; it skips the rest of "
     "them; 0: no limit"},
    {"fragments", BM_INT, AT(fragments), "1", 1, 1000, NULL,
     "number of fragments of the model, cut between layers; each block ends "
     "with the exchange of one of them, in turn"},
    {"overlap", BM_FLAG, AT(overlap), "no", 0, 0, NULL,
     "exchange during the next block, and correct the workers at its end"},
    {0},
};

/* Why sizes or workers of blocks are invalid; NULL: they are valid. Plans are of
 * epochs. */
static const char *invalid(const bm_series *s)
{
    for (int i = 0; i < s->n; i++) {
        if (s->value[i] != floor(s->value[i]))
            return "is not a whole number";
        if (s->value[i] == 0 && bm_series_changes(s))
            return "has 0 in some blocks";
        if (s->from[i] != floor(s->from[i]))
            return "changes within an epoch; give whole epochs";
    }
    return NULL;
}

static void check_workers(const bm_config *config, const bm_block_settings *s,
                          bm_faults *faults)
{
    const char *why = invalid(&s->workers);
    bm_series all;

    if (why != NULL)
        bm_config_fault(faults, config, "block", "workers",
                        "block.workers = %s %s",
                        bm_config_text(config, "block", "workers"), why);
    if (!bm_series_join(&s->workers, &s->frames_per_worker, &all) ||
        !bm_series_join(&s->workers, &s->frames_total, &all) ||
        !bm_series_join(&s->workers, &s->steps, &all))
        bm_config_fault(faults, config, "block", "workers",
                        "block.workers and the size of a block change at more "
                        "than %d epochs; let them change at the same ones",
                        BM_SERIES_MOST - 1);
}

void bm_block_check(const bm_config *config, bm_faults *faults)
{
    static const char *const keys[] = {"frames_per_worker", "frames_total",
                                       "steps"};
    bm_block_settings s = {0};
    const bm_series *sizes[] = {&s.frames_per_worker, &s.frames_total,
                                &s.steps};
    const char *given = NULL;

    bm_config_peek(config, "block", bm_block_options, &s);
    for (size_t i = 0; i < 3; i++) {
        const char *why = invalid(sizes[i]);
        bool set = sizes[i]->value[0] > 0;

        if (why != NULL)
            bm_config_fault(faults, config, "block", keys[i],
                            "block.%s = %s %s", keys[i],
                            bm_config_text(config, "block", keys[i]), why);
        if (set && given != NULL)
            bm_config_fault(faults, config, "block", keys[i],
                            "block.%s and block.%s: a block has one size; "
                            "leave one of them out",
                            given, keys[i]);
        if (set)
            given = keys[i];
    }
    check_workers(config, &s, faults);
}

bool bm_fragments_wanted(const bm_block_settings *block)
{
    return block->fragments > 1 || block->overlap;
}

int bm_block_workers(const bm_block_settings *block, int64_t epoch, int n)
{
    double active = bm_series_at(&block->workers, (double)epoch);

    return active > 0 && active < n ? (int)active : n;
}

/* The first value; one that changes goes to *all as well. */
static long take(const bm_series *given, bm_series *all)
{
    if (bm_series_changes(given))
        *all = *given;
    return (long)given->value[0];
}

bm_status bm_plan_read(const bm_config *config, bm_plan_settings *out)
{
    bm_block_settings s = {0};
    bm_plan_settings plan = {0};

    BM_TRY(bm_batch_read(config, &plan));
    BM_TRY(bm_config_fill(config, "block", bm_block_options, &s));
    plan.active = take(&s.workers, &plan.actives);
    plan.frames_per_worker = take(&s.frames_per_worker, &plan.sizes);
    plan.frames_total = take(&s.frames_total, &plan.sizes);
    plan.steps = take(&s.steps, &plan.sizes);
    if (plan.frames_per_worker == 0 && plan.frames_total == 0 &&
        plan.steps == 0)
        plan.steps = MINI_BATCHES;
    *out = plan;
    return BM_OK;
}

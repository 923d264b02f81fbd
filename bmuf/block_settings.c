/*
 * block_settings.c - the table of [block].
 */
#include "bmuf/block_settings.h"

#include "io/batch/batch_settings.h"

enum { MINI_BATCHES = 20 }; /* of a worker in a block, if no size is set */

#define AT(field) offsetof(bm_block_settings, field)

/* The rows of both tables. */
#define PER_WORKER                                                             \
    "frames_per_worker", BM_INT, AT(frames_per_worker), "0", 0, 1e15,          \
        "frames", "size of a block for each worker"
#define TOTAL                                                                  \
    "frames_total", BM_INT, AT(frames_total), "0", 0, 1e15, "frames",          \
        "size of a block for all workers together"
#define STEPS                                                                  \
    "steps", BM_INT, AT(steps), "0", 0, 1e9, "mini-batches",                   \
        "size of a block for each worker; 20 if no size is set"

const bm_option bm_block_sizes[] = {{PER_WORKER}, {TOTAL}, {STEPS}, {0}};

const bm_option bm_block_options[] = {
    {PER_WORKER},
    {TOTAL},
    {STEPS},
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

void bm_block_check(const bm_config *config, bm_faults *faults)
{
    static const char *const keys[] = {"frames_per_worker", "frames_total",
                                       "steps"};
    bm_block_settings s = {0};
    const long *sizes[] = {&s.frames_per_worker, &s.frames_total, &s.steps};
    const char *given = NULL;

    bm_config_peek(config, "block", bm_block_options, &s);
    for (size_t i = 0; i < 3; i++) {
        if (*sizes[i] > 0 && given != NULL)
            bm_config_fault(faults, config, "block", keys[i],
                            "block.%s and block.%s: a block has one size; "
                            "leave one of them out",
                            given, keys[i]);
        if (*sizes[i] > 0)
            given = keys[i];
    }
}

bool bm_fragments_wanted(const bm_block_settings *block)
{
    return block->fragments > 1 || block->overlap;
}

bm_status bm_plan_read(const bm_config *config, bm_plan_settings *out)
{
    bm_block_settings s = {0};
    bm_plan_settings plan = {0};

    BM_TRY(bm_batch_read(config, &plan));
    BM_TRY(bm_config_fill(config, "block", bm_block_options, &s));
    if (s.frames_per_worker == 0 && s.frames_total == 0 && s.steps == 0)
        s.steps = MINI_BATCHES;
    plan.frames_per_worker = s.frames_per_worker;
    plan.frames_total = s.frames_total;
    plan.steps = s.steps;
    *out = plan;
    return BM_OK;
}

/*
 * plan_settings.c - how large mini-batches and blocks are to be.
 */
#include "io/plan.h"

/* Where nothing is said. */
enum { SEQUENCES = 16, FRAMES_PER_WORKER = 120000 };

#define AT(field) offsetof(bm_plan_settings, field)

const bm_option bm_batch_options[] = {
    {"sequences", BM_INT, AT(sequences), "0", 0, 1e6, "sequences",
     "size of a mini-batch; 0: batch.frames decides, or 16 if that is 0 too"},
    {"frames", BM_INT, AT(frames), "0", 0, 1e9, "frames",
     "largest size of a mini-batch, padding included; 0: batch.sequences "
     "decides"},
    {"order", BM_CHOICE, AT(order), "random", 0, 0, "random sorted file",
     "of sequences in an epoch; sorted: short ones first"},
    {"buckets", BM_INT, AT(buckets), "16", 1, 1e6, "mini-batches",
     "how many are drawn together and sorted by length before they are cut; "
     "more: less padding, 1: most random"},
    {0},
};

const bm_option bm_block_options[] = {
    {"frames_per_worker", BM_INT, AT(frames_per_worker), "0", 0, 1e15, "frames",
     "size of a block for each worker; 120000 if no size is given"},
    {"frames_total", BM_INT, AT(frames_total), "0", 0, 1e15, "frames",
     "size of a block for all workers together"},
    {"steps", BM_INT, AT(steps), "0", 0, 1e9, "mini-batches",
     "size of a block for each worker"},
    {0},
};

void bm_batch_check(const bm_config *config, bm_faults *faults)
{
    bm_plan_settings s = {0};

    bm_config_peek(config, "batch", bm_batch_options, &s);
    if (s.sequences > 0 && s.frames > 0)
        bm_config_fault(faults, config, "batch", "frames",
                        "batch.sequences = %ld and batch.frames = %ld: a "
                        "mini-batch has one size; leave one of them out",
                        s.sequences, s.frames);
}

void bm_block_check(const bm_config *config, bm_faults *faults)
{
    static const char *const keys[] = {"frames_per_worker", "frames_total",
                                       "steps"};
    bm_plan_settings s = {0};
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

bm_status bm_plan_read(const bm_config *config, bm_plan_settings *out)
{
    bm_plan_settings s = {0};

    BM_TRY(bm_config_fill(config, "batch", bm_batch_options, &s));
    BM_TRY(bm_config_fill(config, "block", bm_block_options, &s));
    if (s.sequences == 0 && s.frames == 0)
        s.sequences = SEQUENCES;
    if (s.frames_per_worker == 0 && s.frames_total == 0 && s.steps == 0)
        s.frames_per_worker = FRAMES_PER_WORKER;
    *out = s;
    return BM_OK;
}

/* Mini-batches that an epoch fills if all that share one are equally long. */
static double count_batches(const bm_plan_settings *s, const bm_dataset *d)
{
    double sum = 0;

    if (s->frames == 0)
        return (double)d->n / (double)s->sequences;
    for (size_t i = 0; i < d->n; i++) {
        int32_t length = d->lengths[2 * i];
        long together = length > 0 ? s->frames / length : 0;

        if (length > 0)
            sum += 1 / (double)(together > 0 ? together : 1);
    }
    return sum;
}

double bm_plan_block_frames(const bm_plan_settings *s, const bm_dataset *d,
                            int workers)
{
    double batches = 0;

    if (s->frames_total > 0)
        return (double)s->frames_total;
    if (s->frames_per_worker > 0)
        return (double)s->frames_per_worker * workers;
    batches = count_batches(s, d);
    if (batches == 0)
        return (double)d->frames;
    return (double)s->steps * workers * (double)d->frames / batches;
}

/*
 * plan_settings.c - how large mini-batches and blocks are to be.
 */
#include "io/batch/plan_parts.h"

#include "core/rng.h"

#include <math.h>
#include <stdlib.h>

/* Where nothing is said. */
enum { SEQUENCES = 16, FRAMES_PER_WORKER = 120000 };

enum { SHARES = 4 }; /* that are drawn to find the size of one */

#define AT(field) offsetof(bm_plan_settings, field)

const bm_option bm_batch_options[] = {
    {"sequences", BM_INT, AT(sequences), "0", 0, 1e6, "sequences",
     "size of a mini-batch; 0: batch.frames decides"},
    {"frames", BM_INT, AT(frames), "0", 0, 1e9, "frames",
     "largest size of a mini-batch, padding included, which may end earlier "
     "to need less of that; 0: batch.sequences decides, or 16 times the mean "
     "length if that is 0 too"},
    {"order", BM_CHOICE, AT(order), "random", 0, 0, "random sorted file",
     "of sequences in an epoch; sorted: short ones first"},
    {"buckets", BM_INT, AT(buckets), "64", 1, 1e6, "mini-batches",
     "how many are drawn together and sorted by length before they are cut; "
     "more: less padding, 1: most random"},
    {0},
};

/* The three sizes, of which `bmuf eval` has no more than these. */
#define PER_WORKER                                                             \
    "frames_per_worker", BM_INT, AT(frames_per_worker), "0", 0, 1e15,          \
        "frames",                                                              \
        "size of a block for each worker; 120000 if no size is given"
#define IN_ALL                                                                 \
    "frames_total", BM_INT, AT(frames_total), "0", 0, 1e15, "frames",          \
        "size of a block for all workers together"
#define IN_STEPS                                                               \
    "steps", BM_INT, AT(steps), "0", 0, 1e9, "mini-batches",                   \
        "size of a block for each worker"

const bm_option bm_block_sizes[] = {{PER_WORKER}, {IN_ALL}, {IN_STEPS}, {0}};

const bm_option bm_block_options[] = {
    {PER_WORKER},
    {IN_ALL},
    {IN_STEPS},
    {"warmup", BM_INT, AT(warmup), "0", 0, 1e9, "blocks",
     "how many of the first average gradients at every step, as ssgd does"},
    {"seconds", BM_FLOAT, AT(seconds), "0", 0, 1e6, "seconds",
     "that a rank has for its shares, of which it leaves the rest when they "
     "are "
     "over; 0: no limit"},
    {"fragments", BM_INT, AT(fragments), "1", 1, 1000, NULL,
     "of the model, cut between layers, that take turns: each block ends with "
     "the exchange of one of them"},
    {"overlap", BM_FLAG, AT(overlap), "no", 0, 0, NULL,
     "exchange while the next block is learned from, and correct the workers "
     "at its end"},
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
    if (s.frames_per_worker == 0 && s.frames_total == 0 && s.steps == 0)
        s.frames_per_worker = FRAMES_PER_WORKER;
    *out = s;
    return BM_OK;
}

long bm_plan_batch_frames(const bm_plan_settings *s, const bm_dataset *d)
{
    double mean = (double)d->frames / (double)(d->n > 0 ? d->n : 1);

    if (s->frames > 0 || s->sequences > 0)
        return s->frames;
    return (long)ceil(SEQUENCES * fmax(mean, 1));
}

/* Sequences that fill so many mini-batches if all that share one are equally
 * long. */
static double ideal_share(const bm_plan_settings *s, const bm_dataset *d,
                          long frames)
{
    double epoch = 0;

    if (frames == 0)
        return (double)(s->steps * s->sequences);
    for (size_t i = 0; i < d->n; i++) {
        int32_t length = d->lengths[2 * i];
        long together = length > 0 ? frames / length : 0;

        if (length > 0)
            epoch += 1 / (double)(together > 0 ? together : 1);
    }
    return epoch > 0 ? (double)s->steps * (double)d->n / epoch : (double)d->n;
}

/*
 * Mini-batches are not as full as that, the less so the fewer sequences there
 * are to choose from. So shares are drawn and cut, each of the size that the
 * one before speaks for.
 */
static bm_status real_share(const bm_plan_settings *s, const bm_dataset *d,
                            long frames, double *sequences)
{
    double n = fmin(*sequences, (double)d->n);
    bm_plan_settings cut = {.frames = frames};
    int32_t *lengths = malloc(((size_t)n + 2) * sizeof *lengths);
    bm_status status = BM_OK;

    if (lengths == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %.0f lengths", n);
    for (uint64_t k = 0; k < SHARES && n >= 1; k++) {
        bm_rng rng = bm_rng_make(0, "steps", k);
        size_t drawn = (size_t)round(n), batches = 0;

        for (size_t i = 0; i < drawn; i++)
            lengths[i] = d->lengths[2 * bm_rng_below(&rng, d->n)];
        BM_TRY_DONE(bm_plan_count(&cut, lengths, drawn, &batches));
        *sequences = (double)s->steps * (double)drawn / (double)batches;
        n = fmin(n, *sequences);
    }
done:
    free(lengths);
    return status;
}

bm_status bm_plan_block_frames(const bm_plan_settings *s, const bm_dataset *d,
                               int workers, double *out)
{
    long frames = bm_plan_batch_frames(s, d);
    double mean = (double)d->frames / (double)(d->n > 0 ? d->n : 1), n = 0;

    if (s->frames_total > 0) {
        *out = (double)s->frames_total;
        return BM_OK;
    }
    if (s->frames_per_worker > 0) {
        *out = (double)s->frames_per_worker * workers;
        return BM_OK;
    }
    n = ideal_share(s, d, frames);
    if (frames > 0)
        BM_TRY(real_share(s, d, frames, &n));
    *out = n * mean * workers;
    return BM_OK;
}

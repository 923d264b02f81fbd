/*
 * batch_settings.c - the table of [batch].
 */
#include "io/batch/batch_settings.h"

#include <string.h>

typedef struct settings {
    long sequences, frames, buckets, accumulate;
    const char *order;
} settings;

const bm_option bm_batch_options[] = {
    {"sequences", BM_INT, offsetof(settings, sequences), "0", 0, 1e6,
     "sequences",
     "size of a mini-batch; 0: batch.frames decides; if that is 0 too, a "
     "1000th of the training set, but at least 4 and at most 16; with N > 4 "
     "workers 4 / N of that"},
    {"frames", BM_INT, offsetof(settings, frames), "0", 0, 1e9, "frames",
     "largest size of a mini-batch, padding included; a mini-batch may end "
     "earlier to save padding; 0: batch.sequences decides"},
    {"order", BM_CHOICE, offsetof(settings, order), "random", 0, 0,
     "random sorted sortagrad laplace file",
     "order of sequences in an epoch; sorted: short ones first; sortagrad: "
     "sorted in the first epoch, then random; laplace: "
     "sorted by length in random bins, up and down in turn"},
    {"buckets", BM_INT, offsetof(settings, buckets), "64", 1, 1e6,
     "mini-batches",
     "number of mini-batches drawn together and sorted by length before they "
     "are cut; more: less padding, 1: most random"},
    {"accumulate", BM_INT, offsetof(settings, accumulate), "1", 1, 1e6,
     "mini-batches",
     "number of mini-batches of a worker whose mean gradient makes one update; "
     "more: larger updates in the memory of one mini-batch"},
    {0},
};

void bm_batch_check(const bm_config *config, bm_faults *faults)
{
    settings s = {0};

    bm_config_peek(config, "batch", bm_batch_options, &s);
    if (s.sequences > 0 && s.frames > 0)
        bm_config_fault(faults, config, "batch", "frames",
                        "batch.sequences = %ld and batch.frames = %ld: a "
                        "mini-batch has one size; leave one of them out",
                        s.sequences, s.frames);
}

static bm_order order_of(const char *name)
{
    if (strcmp(name, "sorted") == 0)
        return BM_ORDER_SORTED;
    if (strcmp(name, "sortagrad") == 0)
        return BM_ORDER_SORTAGRAD;
    if (strcmp(name, "laplace") == 0)
        return BM_ORDER_LAPLACE;
    return strcmp(name, "file") == 0 ? BM_ORDER_FILE : BM_ORDER_RANDOM;
}

bm_status bm_batch_read(const bm_config *config, bm_plan_settings *out)
{
    settings s = {0};

    BM_TRY(bm_config_fill(config, "batch", bm_batch_options, &s));
    out->sequences = s.sequences;
    out->frames = s.frames;
    out->order = order_of(s.order);
    out->buckets = s.buckets;
    out->accumulate = s.accumulate;
    return BM_OK;
}

#include "recognise/priors.h"

#include "io/shard/dataset.h"
#include "models/decoding/search.h"

#include <math.h>
#include <stdlib.h>

static bm_status check(const bm_dataset *d, const bm_vocab *vocab)
{
    if (d->n_shards > 0 && bm_shard_per_frame(d->shards[0]))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has labels of frames; priors are of label sequences",
                       d->directory);
    if (!bm_vocab_equal(vocab, bm_dataset_vocab(d)))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has another vocabulary than the model; give the set "
                       "that it was trained on",
                       d->directory);
    if (d->labels == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s has no labels", d->directory);
    return BM_OK;
}

static bm_status count(bm_dataset *d, uint64_t *counts)
{
    bm_sequences s = {.packed = true}; /* features need no conversion */
    bm_status status = BM_OK;

    for (size_t u = 0; u < d->n_units && status == BM_OK; u++) {
        const int32_t *label = NULL;

        status = bm_dataset_read(d, u, &s);
        label = s.targets;
        for (size_t i = 0; status == BM_OK && i < s.n; i++) {
            if (!bm_dataset_has_reference(d, d->units[u].first + (int64_t)i))
                continue;
            counts[0] += (uint64_t)s.labels[i] + 1;
            for (int32_t k = 0; k < s.labels[i]; k++)
                counts[label[k]]++;
            label += s.labels[i];
        }
    }
    bm_sequences_free(&s);
    return status;
}

bm_status bm_priors_read(float **out, const char *path, const bm_vocab *vocab,
                         double blank_scale)
{
    size_t classes = bm_vocab_size(vocab);
    uint64_t *counts = calloc(classes, sizeof *counts);
    float *priors = malloc(classes * sizeof *priors);
    bm_dataset *d = NULL;
    bm_status status = BM_OK;

    if (counts == NULL || priors == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu priors", classes);
    if (!(blank_scale > 0) || !isfinite(blank_scale))
        BM_FAIL_DONE(BM_ERR_ARG, "the blank scale is greater than 0, not %g",
                     blank_scale);
    BM_TRY_DONE(bm_dataset_open(&d, path));
    BM_TRY_DONE(check(d, vocab));
    BM_TRY_DONE(count(d, counts));
    bm_log_priors(counts, classes, blank_scale, priors);
    *out = priors;
    priors = NULL;
done:
    bm_dataset_close(d);
    free(counts);
    free(priors);
    return status;
}

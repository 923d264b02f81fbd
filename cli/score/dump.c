#include "cli/score/dump.h"

#include "core/text/words.h"
#include "io/model/ark.h"
#include "io/model/npz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bm_dump {
    const char *place;
    bm_npz *npz; /* one of them is NULL */
    bm_ark *ark;
    bool normalised, logarithms; /* neither: logits */
    float *rows;                 /* [room] */
    size_t room;
};

bm_status bm_dump_check(const char *verb, const char *place)
{
    if (bm_ark_is_place(place) || bm_ends_with(place, ".npz"))
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "%s: --dump %s: give FILE.npz for NumPy, or ark:FILE, "
                   "ark,t:FILE or ark,scp:FILE,LIST for Kaldi",
                   verb, place);
}

bm_status bm_dump_open(bm_dump **out, const char *place, const char *values)
{
    bm_dump *d = calloc(1, sizeof *d);
    bm_status status = BM_OK;

    if (d == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", place);
    d->place = place;
    d->normalised = strcmp(values, "logits") != 0;
    d->logarithms = strcmp(values, "log-posteriors") == 0;
    if (bm_ark_is_place(place))
        BM_TRY_DONE(bm_ark_create(&d->ark, place));
    else
        BM_TRY_DONE(bm_npz_create(&d->npz, place));
    *out = d;
    d = NULL;
done:
    bm_dump_close(d);
    return status;
}

void bm_dump_files(const bm_dump *d, const char *out[2])
{
    out[0] = d->place;
    out[1] = NULL;
    if (d->ark != NULL)
        bm_ark_files(d->ark, out);
}

/* The softmax of n logits, or its logarithm. */
static void normalise(const float *x, size_t n, bool logarithms, float *y)
{
    double most = -INFINITY, sum = 0, log_sum = 0;

    for (size_t c = 0; c < n; c++)
        most = x[c] > most ? x[c] : most;
    for (size_t c = 0; c < n; c++)
        sum += exp(x[c] - most);
    log_sum = most + log(sum);
    for (size_t c = 0; c < n; c++)
        y[c] = (float)(logarithms ? x[c] - log_sum : exp(x[c] - log_sum));
}

/* *x <- [frames, classes] of what is written instead of logits. */
static bm_status convert(bm_dump *d, const float **x, size_t frames,
                         size_t classes, size_t *stride)
{
    if (frames * classes > d->room) {
        float *grown = realloc(d->rows, frames * classes * sizeof *grown);

        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu frames", frames);
        d->rows = grown;
        d->room = frames * classes;
    }
    for (size_t t = 0; t < frames; t++)
        normalise(*x + t * *stride, classes, d->logarithms,
                  d->rows + t * classes);
    *x = d->rows;
    *stride = classes;
    return BM_OK;
}

bm_status bm_dump_add(bm_dump *d, const char *name, const float *logits,
                      size_t frames, size_t classes, size_t stride)
{
    if (d->normalised)
        BM_TRY(convert(d, &logits, frames, classes, &stride));
    if (d->npz != NULL)
        return bm_npz_add(d->npz, name, logits, frames, classes, stride);
    return bm_ark_add(d->ark, name, logits, frames, classes, stride);
}

bm_status bm_dump_finish(bm_dump *d)
{
    return d->npz != NULL ? bm_npz_finish(d->npz) : bm_ark_finish(d->ark);
}

void bm_dump_close(bm_dump *d)
{
    if (d == NULL)
        return;
    bm_npz_close(d->npz);
    bm_ark_close(d->ark);
    free(d->rows);
    free(d);
}

#include "cli/score/draws.h"

#include "cli/score/interval_text.h"
#include "core/text/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- speakers ------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bm_status bm_speakers_number(const char **names, size_t n, size_t *number,
                             size_t *unique)
{
    const char **of = calloc(n + 1, sizeof *of);
    size_t k = 0;

    if (of == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu speakers", n);
    memcpy((void *)of, (const void *)names, n * sizeof *of);
    qsort((void *)names, n, sizeof *names, by_name);
    for (size_t i = 0; i < n; i++)
        if (k == 0 || strcmp(names[i], names[k - 1]) != 0)
            names[k++] = names[i];
    for (size_t i = 0; i < n; i++) {
        const char **found = bsearch((const void *)&of[i], (const void *)names,
                                     k, sizeof *names, by_name);

        number[i] = (size_t)(found - names);
    }
    free((void *)of);
    *unique = k;
    return BM_OK;
}

void bm_speakers_sum(const size_t *speaker, const bm_error_count *count,
                     size_t n, bm_error_count *sum, size_t n_speakers)
{
    memset(sum, 0, n_speakers * sizeof *sum);
    for (size_t i = 0; i < n; i++) {
        sum[speaker[i]].errors += count[i].errors;
        sum[speaker[i]].total += count[i].total;
    }
}

/* *unknown: the first sequence without a speaker, else n. */
static bm_status find_speakers(bm_draws *d, bm_dataset *data, int64_t *unknown)
{
    int64_t n = (int64_t)d->n, i = 0;
    const char **names = calloc(d->n + 1, sizeof *names);
    bm_status status = BM_OK;

    d->speaker = calloc(d->n + 1, sizeof *d->speaker);
    if (names == NULL || d->speaker == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu speakers", d->n);
    for (i = 0; i < n; i++) {
        BM_TRY_DONE(bm_dataset_speaker(data, i, &names[i]));
        if (names[i][0] == '\0')
            break;
    }
    if (i == n)
        BM_TRY_DONE(
            bm_speakers_number(names, d->n, d->speaker, &d->n_speakers));
    *unknown = i;
done:
    free((void *)names);
    return status;
}

static bm_status no_speaker(bm_dataset *data, int64_t sequence)
{
    const char *tag = NULL;

    BM_TRY(bm_dataset_tag(data, sequence, &tag));
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: %s has no speaker, so --draw speakers cannot draw it; "
                   "pack the set again with a \"speaker\" in each line of the "
                   "manifest (Kaldi: utt2spk), or draw sequences",
                   data->directory, tag);
}

bm_status bm_draws_open(bm_draws *d, const bm_arguments *a, bm_dataset *data)
{
    const char *draw = NULL;
    int64_t unknown = 0;

    *d = (bm_draws){.n = data->n};
    BM_TRY(
        bm_argument_word(a, "draw", "sequences speakers", "sequences", &draw));
    d->of_speakers = strcmp(draw, "speakers") == 0;
    BM_TRY(find_speakers(d, data, &unknown));
    if (d->of_speakers && unknown < (int64_t)d->n)
        return no_speaker(data, unknown);
    return BM_OK;
}

void bm_draws_free(bm_draws *d)
{
    free(d->speaker);
    *d = (bm_draws){0};
}

/* ---- intervals ----------------------------------------------------------- */

/* The counts of what is drawn: count, or sums in `room`, which is allocated. */
static bm_status drawn(const bm_draws *d, const bm_error_count *count,
                       bm_error_count **room, const bm_error_count **out,
                       size_t *n)
{
    *out = count;
    *n = d->n;
    if (!d->of_speakers)
        return BM_OK;
    *room = calloc(d->n_speakers + 1, sizeof **room);
    if (*room == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for intervals");
    bm_speakers_sum(d->speaker, count, d->n, *room, d->n_speakers);
    *out = *room;
    *n = d->n_speakers;
    return BM_OK;
}

bm_status bm_draws_interval(const bm_draws *d, const bm_error_count *count,
                            bm_interval *out)
{
    bm_error_count *room = NULL;
    const bm_error_count *of = NULL;
    size_t n = 0;
    bm_status status = drawn(d, count, &room, &of, &n);

    if (status == BM_OK)
        status = bm_bootstrap(of, n, out);
    free(room);
    return status;
}

bm_status bm_draws_difference(const bm_draws *d, const bm_error_count *first,
                              const bm_error_count *count, bm_interval *out)
{
    bm_error_count *room[2] = {NULL};
    const bm_error_count *a = NULL, *b = NULL;
    size_t n = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(drawn(d, first, &room[0], &a, &n));
    BM_TRY_DONE(drawn(d, count, &room[1], &b, &n));
    status = bm_bootstrap_difference(a, b, n, out);
done:
    free(room[0]);
    free(room[1]);
    return status;
}

/* ---- words --------------------------------------------------------------- */

const char *bm_draws_text(const bm_draws *d, char out[200])
{
    bm_counted speakers = bm_count_noun((long long)d->n_speakers, "speaker");

    out[0] = '\0';
    if (d->of_speakers)
        snprintf(out, 200, "draws of %s", speakers.text);
    else if (d->n_speakers > 0 && d->n_speakers < d->n)
        snprintf(out, 200, "draws of sequences; --draw speakers draws the %s",
                 speakers.text);
    return out;
}

void bm_draws_json(const bm_draws *d, json_t *o)
{
    json_object_set_new(o, "draw",
                        json_string(d->of_speakers ? "speakers" : "sequences"));
    json_object_set_new(o, "speakers",
                        d->n_speakers > 0
                            ? json_integer((json_int_t)d->n_speakers)
                            : json_null());
}

void bm_draws_warn(const bm_draws *d, size_t n)
{
    if (d->of_speakers)
        bm_interval_warn(d->n_speakers, "speaker");
    else
        bm_interval_warn(n, "sequence");
}

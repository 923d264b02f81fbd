#include "io/inspect/describe.h"

#include "core/text/printable.h"
#include "core/text/words.h"
#include "io/features/feature_text.h"
#include "io/shard/dataset.h"
#include "io/shard/store.h"

#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { QUANTILES = 7 };

static const int32_t percent[QUANTILES] = {0, 5, 25, 50, 75, 95, 100};

typedef struct summary {
    const char *path;
    size_t shards, units, sequences, features, classes;
    int64_t frames, labels, samples;
    long sample_rate;      /* Hz; 0: no samples */
    double frame_shift;    /* seconds; 0: no audio */
    const char *store;     /* "mixed" if shards differ */
    const char *text_form; /* "nfc", "none", "unknown" */
    bool words, per_frame;
    const char *features_text;
    uint64_t hash;
    int32_t of_frames[QUANTILES], of_labels[QUANTILES];
} summary;

static int by_size(const void *a, const void *b)
{
    const int32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Quantiles of a column of the lengths [n, 2]: the smallest length that at
 * least p percent do not exceed. */
static void quantiles(int32_t *room, const int32_t *lengths, size_t n,
                      int column, int32_t out[QUANTILES])
{
    for (size_t i = 0; i < n; i++)
        room[i] = lengths[2 * i + (size_t)column];
    qsort(room, n, sizeof *room, by_size);
    for (int q = 0; q < QUANTILES && n > 0; q++) {
        size_t k = (n * (size_t)percent[q] + 99) / 100;
        out[q] = room[k > 0 ? k - 1 : 0];
    }
}

static bm_status measure(const bm_dataset *d, const char *path, summary *s)
{
    const bm_shard *first = d->shards[0];
    const char *form = bm_shard_text_form(first);
    int32_t *room = malloc((d->n + 1) * sizeof *room);

    if (room == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu lengths", d->n);
    *s = (summary){.path = path,
                   .shards = d->n_shards,
                   .units = d->n_units,
                   .sequences = d->n,
                   .features = d->features,
                   .classes = d->classes,
                   .frames = d->frames,
                   .labels = d->labels,
                   .frame_shift = bm_shard_frame_shift(first),
                   .sample_rate = bm_shard_sample_rate(first),
                   .store = bm_store_name(bm_shard_store(first)),
                   .words = bm_vocab_words(bm_shard_vocab(first)),
                   .per_frame = bm_shard_per_frame(first),
                   .text_form = form != NULL ? form : "unknown",
                   .features_text = bm_shard_features_text(first),
                   .hash = d->hash};
    for (size_t i = 1; i < d->n_shards; i++)
        if (bm_shard_store(d->shards[i]) != bm_shard_store(first))
            s->store = "mixed";
    for (size_t i = 0; i < d->n_shards; i++)
        s->samples += (int64_t)bm_shard_samples(d->shards[i]);
    quantiles(room, d->lengths, d->n, 0, s->of_frames);
    quantiles(room, d->lengths, d->n, 1, s->of_labels);
    free(room);
    return BM_OK;
}

static void print_quantiles(const char *name, const int32_t x[QUANTILES],
                            FILE *out)
{
    fprintf(out, "%s", name);
    for (int q = 0; q < QUANTILES; q++)
        fprintf(out, " %d%s", x[q], q + 1 < QUANTILES ? "," : "");
    fprintf(out, "  (0, 5, 25, 50, 75, 95, 100 %%)\n");
}

static void print_text(const summary *s, FILE *out)
{
    char *brief = bm_features_brief(s->features_text);
    char *made = bm_printable_copy(
        brief != NULL && brief[0] != '\0' ? brief : "(not known)");

    fprintf(out, "%s\n", s->path);
    fprintf(out, "  sequences  %zu in %s, %s\n", s->sequences,
            bm_count_noun((long long)s->shards, "shard").text,
            bm_count_noun((long long)s->units, "unit").text);
    fprintf(out, "  frames     %" PRId64, s->frames);
    if (s->frame_shift > 0)
        fprintf(out, ", %.2f hours at %g ms",
                (double)s->frames * s->frame_shift / 3600,
                s->frame_shift * 1000);
    fprintf(out, "\n  features   %zu a frame, stored as %s\n", s->features,
            s->store);
    if (s->sample_rate > 0)
        fprintf(out, "  recordings %" PRId64 " samples at %ld Hz\n", s->samples,
                s->sample_rate);
    fprintf(out, "  labels     %" PRId64 "%s\n", s->labels,
            s->per_frame ? ", one a frame" : "");
    fprintf(
        out, "  classes    %s, blank included%s\n",
        bm_count_noun((long long)s->classes, s->words ? "word" : "character")
            .text,
        strcmp(s->text_form, "nfc") == 0 ? "; texts in NFC" : "");
    print_quantiles("  frames of a sequence", s->of_frames, out);
    print_quantiles("  labels of a sequence", s->of_labels, out);
    fprintf(out, "  made with  %s\n", made != NULL ? made : "");
    free(made);
    free(brief);
    fprintf(out, "  hash       %016" PRIx64 "\n", s->hash);
}

static json_t *list(const int32_t x[QUANTILES])
{
    json_t *out = json_array();

    for (int q = 0; q < QUANTILES; q++)
        json_array_append_new(out, json_integer(x[q]));
    return out;
}

/* The features text as JSON, or as a string if it is not valid JSON. */
static json_t *made_with(const char *text)
{
    json_t *out = json_loads(text, 0, NULL);

    return out != NULL ? out : json_string(text);
}

static bm_status print_json(const summary *s, FILE *out)
{
    char hash[17], path[PATH_MAX];
    json_t *root = NULL;
    int failed = 0;

    snprintf(hash, sizeof hash, "%016" PRIx64, s->hash);
    root = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:s, s:s, "
        "s:s, s:s, s:I, s:I, s:o, "
        "s:o, s:o, s:o, s:s}",
        "path", bm_printable(s->path, path, sizeof path), "shards",
        (json_int_t)s->shards, "units", (json_int_t)s->units, "sequences",
        (json_int_t)s->sequences, "frames", (json_int_t)s->frames, "labels",
        (json_int_t)s->labels, "features", (json_int_t)s->features, "classes",
        (json_int_t)s->classes, "frame_shift", s->frame_shift, "store",
        s->store, "symbols", s->words ? "words" : "characters", "task",
        s->per_frame ? "frame" : "ctc", "text_form", s->text_form,
        "sample_rate", (json_int_t)s->sample_rate, "samples",
        (json_int_t)s->samples, "percent", list(percent), "frames_quantiles",
        list(s->of_frames), "labels_quantiles", list(s->of_labels), "made_with",
        made_with(s->features_text), "hash", hash);
    failed = root == NULL || json_dumpf(root, out, JSON_INDENT(2)) != 0;
    json_decref(root);
    if (failed || fputc('\n', out) == EOF)
        return BM_FAIL(BM_ERR_IO, "the summary of %s cannot be written",
                       s->path);
    return BM_OK;
}

bm_status bm_describe_data(const char *path, bool json, FILE *out)
{
    bm_dataset *d = NULL;
    summary s = {.features_text = ""};
    bm_status status = BM_OK;

    BM_TRY(bm_dataset_open(&d, path));
    BM_TRY_DONE(measure(d, path, &s));
    if (json)
        BM_TRY_DONE(print_json(&s, out));
    else
        print_text(&s, out);
done:
    bm_dataset_close(d);
    return status;
}

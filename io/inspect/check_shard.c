/* check_shard.c - reads one shard in a child process, as HDF5 may crash on it. */
#include "compute/batch.h"
#include "core/text/words.h"
#include "io/inspect/check_parts.h"
#include "io/shard/h5.h"
#include "io/shard/shard_list.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In the child: a shard, and the pipe to the parent. */
typedef struct inspection {
    bm_shard *s;
    int stride;
    FILE *out;
    bm_sequences x;
    bm_waveform wave;
    int32_t *min_frames; /* NULL: cannot be read */
    bool has_names;      /* tags can be read */
    bool labelled;       /* any sequence is */
} inspection;

/* Sends a problem to the parent: the kind as a letter, then the text, without the
 * advice to run this check. */
static void send_problem(const inspection *i, bm_check_kind k, const char *text)
{
    size_t n = strlen(text);

    if (bm_ends_with(text, BM_RUN_CHECK))
        n -= strlen(BM_RUN_CHECK);
    fprintf(i->out, "%c", 'a' + (int)k);
    for (; n > 0; text++, n--)
        fputc(*text == '\n' ? ' ' : *text, i->out);
    fputc('\n', i->out);
}

/* The same for a sequence, by its name. */
static void send_for_sequence(inspection *i, bm_check_kind k, size_t sequence,
                              const char *text)
{
    char line[1024];

    if (i->has_names)
        snprintf(line, sizeof line, "%s: sequence %s: %s", i->s->path,
                 bm_shard_tag_or(i->s, sequence), text);
    else
        snprintf(line, sizeof line, "%s: sequence number %zu: %s", i->s->path,
                 sequence, text);
    send_problem(i, k, line);
}

/* The table must have the running sums of a column of the lengths. */
static void inspect_offsets(const inspection *i, const char *name, int column)
{
    const bm_shard *s = i->s;
    uint64_t n = s->t.n + 1, sum = 0, *sums = NULL;
    char line[1024];
    void *p = NULL;
    bool good = true;

    if (bm_h5_table(&s->file, name, H5T_STD_U64LE, 0, &n, &p) != BM_OK) {
        send_problem(i, BM_CHECK_DAMAGED, bm_last_message());
        return;
    }
    sums = p;
    for (size_t k = 0; k < s->t.n; k++) {
        good = good && sums[k] == sum;
        sum += (uint64_t)s->t.lengths[2 * k + (size_t)column];
    }
    if (!good || sums[s->t.n] != sum) {
        snprintf(line, sizeof line, "%s: /%s disagrees with /seqLengths",
                 s->path, name);
        send_problem(i, BM_CHECK_DAMAGED, line);
    }
    free(sums);
}

/* Checks tables that only other programs read. */
static void inspect_tables(inspection *i)
{
    uint64_t n = i->s->t.n;
    const char *speaker = NULL;
    void *p = NULL;

    bm_h5_enter();
    if (bm_shard_file_open(i->s) != BM_OK) {
        send_problem(i, BM_CHECK_UNREADABLE, bm_last_message());
    } else {
        inspect_offsets(i, "bmuf/frame_offset", 0);
        inspect_offsets(i, "bmuf/label_offset", 1);
        if (bm_h5_table(&i->s->file, "bmuf/min_frames", H5T_STD_I32LE, 0, &n,
                        &p) != BM_OK)
            send_problem(i, BM_CHECK_DAMAGED, bm_last_message());
    }
    bm_h5_leave();
    i->min_frames = p;
    if (n > 0 && bm_shard_speaker(i->s, 0, &speaker) != BM_OK)
        send_problem(i, BM_CHECK_DAMAGED, bm_last_message());
}

static void inspect_features(inspection *i, size_t sequence, const float *x,
                             size_t frames)
{
    size_t columns = i->x.features, n = frames * columns, k = 0, first = 0;
    size_t bad = 0;
    char text[128];

    for (k = 0; k < n; k++)
        if (!isfinite(x[k]) && bad++ == 0)
            first = k;
    if (bad == 0)
        return;
    snprintf(text, sizeof text,
             "%zu values are NaN or infinite, first in frame %zu, column %zu",
             bad, first / columns, first % columns);
    send_for_sequence(i, BM_CHECK_NOT_FINITE, sequence, text);
}

/* repeats: -1 if unknown. */
static void inspect_length(inspection *i, size_t sequence, size_t n,
                           int64_t repeats, size_t frames)
{
    size_t left = (frames + (size_t)i->stride - 1) / (size_t)i->stride;
    size_t least = n + (repeats > 0 ? (size_t)repeats : 0);
    char text[512], with[128] = "";

    if (frames == 0)
        send_for_sequence(i, BM_CHECK_EMPTY, sequence, "has no frames");
    else if (i->labelled && !bm_shard_has_reference(i->s, sequence))
        send_for_sequence(i, BM_CHECK_EMPTY, sequence,
                          "has no text, but others have: training takes it "
                          "for silence; pack the set again");
    if (i->s->per_frame || left >= least)
        return;
    if (repeats >= 0)
        snprintf(with, sizeof with, " with %s",
                 bm_count_noun(repeats, "repeat").text);
    snprintf(text, sizeof text,
             "%s%s need %s, but %zu / %d = %zu, rounded up, are "
             "left; lower the stride or remove the sequence",
             bm_count_noun((long long)n, "label").text, with,
             bm_count_noun((long long)least, "frame").text, frames, i->stride,
             left);
    send_for_sequence(i, BM_CHECK_INFEASIBLE, sequence, text);
}

/* Returns the number of labels that equal the one before. */
static int64_t inspect_labels(inspection *i, size_t sequence,
                              const int32_t *labels, size_t n)
{
    int32_t low = bm_shard_lowest_label(i->s);
    size_t repeats = i->s->per_frame ? 0 : bm_ctc_repeats(labels, n), bad = 0;
    char text[128];

    for (size_t k = 0; k < n; k++) {
        if (labels[k] >= low && (size_t)labels[k] < i->s->t.classes)
            continue;
        snprintf(text, sizeof text, "label %d is outside [%d, %zu]", labels[k],
                 low, i->s->t.classes - 1);
        if (bad++ == 0)
            send_for_sequence(i, BM_CHECK_LABEL, sequence, text);
    }
    if (i->min_frames != NULL &&
        i->min_frames[sequence] != (int64_t)(n + repeats))
        send_for_sequence(i, BM_CHECK_DAMAGED, sequence,
                          "/bmuf/min_frames disagrees with its labels");
    return (int64_t)repeats;
}

static bool succeeded(const inspection *i, bm_status status)
{
    if (status != BM_OK)
        send_problem(i, BM_CHECK_DAMAGED, bm_last_message());
    return status == BM_OK;
}

/* Damaged features do not keep the labels from being checked, nor the
 * reverse. */
static void inspect_unit(inspection *i, size_t unit)
{
    bm_unit_size u = bm_shard_unit(i->s, unit);
    const int32_t *length = bm_shard_lengths(i->s) + 2 * u.first;
    bool features = succeeded(i, bm_shard_load_features(i->s, unit, &i->x));
    bool labels = succeeded(i, bm_shard_load_labels(i->s, unit, &i->x));
    size_t frame = 0, label = 0;

    for (size_t k = 0; k < u.sequences; k++) {
        size_t sequence = u.first + k, n = (size_t)length[2 * k + 1];
        size_t frames = (size_t)length[2 * k];
        int64_t repeats = -1;

        if (features)
            inspect_features(i, sequence, i->x.x + frame * i->x.features,
                             frames);
        if (labels)
            repeats = inspect_labels(i, sequence, i->x.targets + label, n);
        inspect_length(i, sequence, n, repeats, frames);
        if (bm_shard_sample_rate(i->s) > 0)
            (void)succeeded(i,
                            bm_shard_read_waveform(i->s, sequence, &i->wave));
        frame += frames;
        label += n;
    }
}

static void inspect_first(const inspection *i, const char *path)
{
    char line[1024];
    bm_shard *first = NULL;

    if (path == NULL || bm_shard_open(&first, path) != BM_OK)
        return;
    for (int k = 0; k < BM_SHARD_PROPERTIES; k++)
        if (bm_shard_compare(first, i->s, k, line, sizeof line))
            send_problem(i, BM_CHECK_DIFFERENT, line);
    bm_shard_close(first);
}

/* Sends the hashes of all names. */
static void send_names(const inspection *i)
{
    const char *tag = NULL;

    for (size_t k = 0; i->has_names && k < i->s->t.n; k++)
        if (bm_shard_tag(i->s, k, &tag) == BM_OK)
            fprintf(i->out, "#%016" PRIx64 "\n",
                    (uint64_t)XXH3_64bits(tag, strlen(tag)));
}

void bm_check_shard(const char *path, const char *first, int stride, FILE *to)
{
    inspection i = {.stride = stride, .out = to};
    const char *tag = NULL;
    uint64_t frames = 0, labels = 0;
    size_t missing = 0;

    if (bm_shard_open(&i.s, path) != BM_OK) {
        send_problem(&i, BM_CHECK_UNREADABLE, bm_last_message());
        return;
    }
    inspect_first(&i, first);
    i.has_names = i.s->t.n == 0 || succeeded(&i, bm_shard_tag(i.s, 0, &tag));
    inspect_tables(&i);
    for (size_t k = 0; k < bm_shard_units(i.s); k++)
        labels += bm_shard_unit(i.s, k).labels;
    i.labelled = labels > 0;
    for (size_t k = 0; k < bm_shard_units(i.s); k++) {
        inspect_unit(&i, k);
        frames += bm_shard_unit(i.s, k).frames;
        fprintf(to, "%%%zu %zu\n", k + 1, bm_shard_units(i.s));
        fflush(to);
    }
    for (size_t k = 0; k < i.s->t.n; k++)
        missing += !bm_shard_has_reference(i.s, k);
    send_names(&i);
    fprintf(to,
            "=%zu %zu %" PRIu64 " %" PRIu64 " %" PRId64 " %" PRId64 " %" PRId64
            " %" PRIu64 " %" PRIu64 "\n",
            i.s->t.n, missing, frames, labels, i.s->place.index,
            i.s->place.count, i.s->place.first, i.s->place.before,
            bm_shard_hash(i.s));
    free(i.min_frames);
    bm_sequences_free(&i.x);
    bm_waveform_free(&i.wave);
    bm_shard_close(i.s);
}

/*
 * shard_write.c - collects a shard in memory, in the form of the file, and
 * writes it (shard_file.c) when it is full and the next one begins.
 */
#include "compute/batch.h"
#include "core/file/file.h"
#include "core/text/words.h"
#include "io/features/feature_ops.h"
#include "io/shard/crc32c.h"
#include "io/shard/shard_file.h"
#include "io/shard/store.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const bm_option bm_shard_options[] = {
    {"unit_frames", BM_INT, offsetof(bm_shard_settings, unit_frames), "2000", 1,
     1e9, "frames", "a unit ends once it has this many frames"},
    {"shard_mb", BM_FLOAT, offsetof(bm_shard_settings, shard_mb), "256", 0.001,
     1e6, "MB", "a shard ends once it has this size"},
    {"store", BM_CHOICE, offsetof(bm_shard_settings, store), "f32", 0, 0,
     "f32 f16 u8", "how features are stored; default for images: u8"},
    {"samples", BM_FLAG, offsetof(bm_shard_settings, samples), "no", 0, 0, NULL,
     "keep the recordings of --audio, too, in 16 bits, which [augment] reverb "
     "and noise_sound change"},
    {0},
};

struct bm_shard_writer {
    char *directory, *name;
    long unit_frames;
    double shard_bytes;
    bm_shard_place place; /* of the shard in memory */
    int64_t kept;         /* shards of an earlier packing */
    bool full; /* it is written once it is known not to be the last */
    bool finished;
    bm_shard_contents c;
    size_t first_frame, first_label; /* of the current unit */
    size_t first_sequence;
};

static bm_status check_symbols(const bm_vocab *v)
{
    for (size_t k = 0; k < bm_vocab_size(v); k++) {
        const char *symbol = bm_vocab_symbol(v, (int32_t)k);

        if (strlen(symbol) > BM_LONGEST_SYMBOL)
            return BM_FAIL(BM_ERR_FORMAT,
                           "the symbol \"%.40s..\" has %zu bytes; shards hold "
                           "%d at most. Are there blanks between words?",
                           symbol, strlen(symbol), BM_LONGEST_SYMBOL);
    }
    return BM_OK;
}

static bm_status check_meta(const bm_shard_settings *settings,
                            const bm_shard_meta *meta, bm_store store)
{
    if (store == BM_STORE_U8 &&
        !(meta->quant_scale > 0 && isfinite(meta->quant_scale) &&
          isfinite(meta->quant_offset)))
        return BM_FAIL(BM_ERR_CONFIG,
                       "shard.store = u8 is for images only, whose values are "
                       "multiples of 1/255; take f32 or f16");
    if (strlen(meta->features_text) > BM_LONGEST_FEATURES_TEXT)
        return BM_FAIL(
            BM_ERR_CONFIG,
            "the description of the features has %zu bytes, and shards hold "
            "%d; with the means of features.normalise = global it is too long "
            "for this number of features: use features.normalise = utterance",
            strlen(meta->features_text), BM_LONGEST_FEATURES_TEXT);
    if (meta->features > BM_MOST_FEATURES)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%zu features a frame; shards hold %d at most",
                       meta->features, BM_MOST_FEATURES);
    BM_ASSERT(meta->features > 0 && settings->unit_frames > 0);
    return check_symbols(meta->vocab);
}

bool bm_shard_is_named(const char *file, const char *name)
{
    size_t n = strlen(name), length = strlen(file);
    size_t suffix = strlen(BM_SHARD_SUFFIX);

    return length > n + 1 + suffix && strncmp(file, name, n) == 0 &&
           file[n] == '-' && bm_ends_with(file, BM_SHARD_SUFFIX) &&
           strspn(file + n + 1, "0123456789") == length - n - 1 - suffix;
}

/* Shards of an earlier run would be mixed with those of this one. */
static bm_status check_directory(const char *directory, const char *name)
{
    DIR *d = opendir(directory);
    const struct dirent *entry = NULL;
    bm_status status = BM_OK;

    if (d == NULL)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", directory, strerror(errno));
    while (status == BM_OK && (entry = readdir(d)) != NULL)
        if (bm_shard_is_named(entry->d_name, name))
            status = BM_FAIL(BM_ERR_CREATE,
                             "%s already has %s; remove its shards or use "
                             "another directory",
                             directory, entry->d_name);
    closedir(d);
    return status;
}

bm_status bm_shard_part_open(bm_shard_writer **out, const char *directory,
                             const char *name,
                             const bm_shard_settings *settings,
                             const bm_shard_meta *meta)
{
    bm_shard_writer *w = NULL;
    bm_store store = BM_STORE_F32;
    bm_status status = BM_OK;

    BM_TRY(bm_store_find(settings->store, &store));
    BM_TRY(check_meta(settings, meta, store));
    BM_TRY(bm_file_make_directory(directory));
    w = calloc(1, sizeof *w);
    if (w == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a shard writer");
    w->directory = strdup(directory);
    w->name = strdup(name);
    w->unit_frames = settings->unit_frames;
    w->shard_bytes = INFINITY;
    w->c.store = store;
    w->c.meta = *meta;
    w->c.meta.features_text = strdup(meta->features_text);
    if (!w->directory || !w->name || !w->c.meta.features_text)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a shard writer");
    *out = w;
    w = NULL;
done:
    bm_shard_writer_close(w);
    return status;
}

bm_status bm_shard_writer_open(bm_shard_writer **out, const char *directory,
                               const char *name,
                               const bm_shard_settings *settings,
                               const bm_shard_meta *meta)
{
    bm_shard_writer *w = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_shard_part_open(&w, directory, name, settings, meta));
    BM_ASSERT(w != NULL);
    w->shard_bytes = settings->shard_mb * 1e6;
    status = check_directory(directory, name);
    if (status == BM_OK)
        *out = w;
    else
        bm_shard_writer_close(w);
    return status;
}

bm_status bm_shard_writer_resume(bm_shard_writer **out, const char *directory,
                                 const char *name,
                                 const bm_shard_settings *settings,
                                 const bm_shard_meta *meta,
                                 const bm_shard_place *place)
{
    char path[PATH_MAX];
    bm_shard_writer *w = NULL;

    BM_TRY(bm_shard_path(path, directory, name, place->index));
    BM_TRY(bm_shard_part_open(&w, directory, name, settings, meta));
    w->shard_bytes = settings->shard_mb * 1e6;
    w->place = *place;
    w->kept = place->index + (access(path, F_OK) == 0);
    *out = w;
    return BM_OK;
}

bm_status bm_shard_path(char path[PATH_MAX], const char *directory,
                        const char *name, int64_t index)
{
    int n = snprintf(path, PATH_MAX, "%s/%s-%05" PRId64 BM_SHARD_SUFFIX,
                     directory, name, index);

    if (n < 0 || n >= PATH_MAX - 32) /* with room for a temporary name */
        return BM_FAIL(BM_ERR_CREATE, "%.60s..: path too long", directory);
    return BM_OK;
}

void bm_shard_writer_close(bm_shard_writer *w)
{
    char path[PATH_MAX];

    if (w == NULL)
        return;
    for (int64_t i = w->kept; !w->finished && i < w->place.index; i++)
        if (bm_shard_path(path, w->directory, w->name, i) == BM_OK)
            unlink(path);
    bm_shard_contents_empty(&w->c, true);
    free(w->directory);
    free(w->name);
    free((char *)w->c.meta.features_text);
    free(w);
}

/* Appends n bytes; data = NULL: only makes room for them. */
static bm_status append(bm_bytes *b, const void *data, size_t n)
{
    if (b->data == NULL || n > b->room - b->n) {
        size_t room = b->n + n > 2 * b->room ? b->n + n + 1 : 2 * b->room;
        char *grown = realloc(b->data, room);

        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY,
                           "no memory for a shard of %zu bytes; "
                           "lower shard.shard_mb",
                           room);
        b->data = grown;
        b->room = room;
    }
    if (data != NULL && n > 0) {
        memcpy(b->data + b->n, data, n);
        b->n += n;
    }
    return BM_OK;
}

static bm_status add_features(bm_shard_contents *c, const char *tag,
                              const float *x, size_t frames)
{
    size_t n = frames * c->meta.features, fit = 0;

    BM_TRY(append(&c->inputs, NULL, n * bm_store_size(c->store)));
    if (n == 0)
        return BM_OK;
    fit = bm_store_pack(c->store, x, n, c->meta.quant_scale,
                        c->meta.quant_offset, c->inputs.data + c->inputs.n);
    if (fit < n)
        return BM_FAIL(BM_ERR_FORMAT,
                       "sequence %s, frame %zu: %g cannot be stored as %s; "
                       "take shard.store = f32",
                       tag, fit / c->meta.features, x[fit],
                       bm_store_name(c->store));
    c->inputs.n += n * bm_store_size(c->store);
    return BM_OK;
}

static bm_status check_sequence(const bm_shard_meta *meta, const char *tag,
                                size_t frames, const int32_t *labels, size_t n)
{
    int32_t low = meta->per_frame ? 0 : 1;
    size_t classes = bm_vocab_size(meta->vocab);

    if (tag[0] == '\0' || strlen(tag) > BM_LONGEST_TAG)
        return BM_FAIL(BM_ERR_FORMAT,
                       "sequence \"%.60s\": a name must have 1 to %d bytes",
                       tag, BM_LONGEST_TAG);
    if (frames > INT32_MAX || n > INT32_MAX / 2 ||
        frames > PTRDIFF_MAX / sizeof(float) / meta->features)
        return BM_FAIL(BM_ERR_FORMAT,
                       "sequence %s: invalid length: %zu frames, %zu labels",
                       tag, frames, n);
    if (meta->per_frame && n != frames)
        return BM_FAIL(BM_ERR_FORMAT, "sequence %s: %zu labels for %zu frames",
                       tag, n, frames);
    for (size_t i = 0; i < n; i++)
        if (labels[i] < low || (size_t)labels[i] >= classes)
            return BM_FAIL(BM_ERR_FORMAT,
                           "sequence %s: label %d is outside [%d, %zu]", tag,
                           labels[i], low, classes - 1);
    return BM_OK;
}

static bm_status add_labels(bm_shard_contents *c, size_t frames,
                            const int32_t *labels, size_t n)
{
    size_t repeats = c->meta.per_frame ? 0 : bm_ctc_repeats(labels, n);
    int32_t length[] = {(int32_t)frames, (int32_t)n};
    int32_t least = (int32_t)(n + repeats);
    uint8_t reference = labels != NULL;

    BM_TRY(append(&c->labels, labels, n * sizeof *labels));
    BM_TRY(append(&c->min_frames, &least, sizeof least));
    BM_TRY(append(&c->reference, &reference, sizeof reference));
    return append(&c->lengths, length, sizeof length);
}

/* The number of a speaker, -1 for none. Mostly the last sequence has the same
 * speaker. */
static bm_status find_speaker(bm_shard_contents *c, const char *speaker,
                              int32_t *out)
{
    const int32_t *before = (const int32_t *)(void *)c->speaker.data;
    const char *const *names = (const char *const *)(void *)c->speakers.data;
    size_t n = c->speakers.n / sizeof *names,
           moments = BM_MOMENTS(c->meta.features);
    char *copy = NULL;

    *out = -1;
    if (speaker == NULL || speaker[0] == '\0')
        return BM_OK;
    *out = c->speaker.n > 0 ? before[c->speaker.n / sizeof *before - 1] : -1;
    if (*out >= 0 && strcmp(names[*out], speaker) == 0)
        return BM_OK;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], speaker) == 0) {
            *out = (int32_t)i;
            return BM_OK;
        }
    BM_TRY(append(&c->moments, NULL, moments * sizeof(double)));
    BM_TRY(append(&c->speakers, NULL, sizeof copy));
    copy = strdup(speaker);
    if (copy == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a speaker");
    memset(c->moments.data + c->moments.n, 0, moments * sizeof(double));
    c->moments.n += moments * sizeof(double);
    memcpy(c->speakers.data + c->speakers.n, &copy, sizeof copy);
    c->speakers.n += sizeof copy;
    *out = (int32_t)n;
    return BM_OK;
}

/* Moments of the values as given, before they are rounded for the store. */
static bm_status add_speaker(bm_shard_contents *c, const char *speaker,
                             const float *x, size_t frames)
{
    size_t columns = c->meta.features;
    int32_t number = -1;

    if (speaker != NULL && strlen(speaker) > BM_LONGEST_TAG)
        return BM_FAIL(BM_ERR_FORMAT,
                       "speaker \"%.60s\": a name must have at most %d bytes",
                       speaker, BM_LONGEST_TAG);
    BM_TRY(find_speaker(c, speaker, &number));
    BM_TRY(append(&c->speaker, &number, sizeof number));
    if (number < 0)
        return BM_OK;
    bm_moments_add((double *)(void *)c->moments.data +
                       (size_t)number * BM_MOMENTS(columns),
                   x, frames, columns);
    return BM_OK;
}

/* wave NULL: there is none. */
static bm_status add_waveform(bm_shard_contents *c, const bm_waveform *wave)
{
    uint64_t end = 0;
    uint32_t crc = 0;

    BM_ASSERT((wave != NULL) == (c->meta.sample_rate > 0));
    if (wave == NULL)
        return BM_OK;
    BM_ASSERT(wave->n_moments == c->meta.moments);
    crc = bm_crc32c(wave->x, wave->n * sizeof *wave->x);
    BM_TRY(append(&c->samples, wave->x, wave->n * sizeof *wave->x));
    end = c->samples.n / sizeof *wave->x;
    BM_TRY(append(&c->sample_ends, &end, sizeof end));
    BM_TRY(append(&c->sample_crc, &crc, sizeof crc));
    if (wave->n_moments == 0)
        return BM_OK;
    crc = bm_crc32c(wave->moments, wave->n_moments * sizeof *wave->moments);
    BM_TRY(append(&c->sample_moments, wave->moments,
                  wave->n_moments * sizeof *wave->moments));
    return append(&c->sample_moments_crc, &crc, sizeof crc);
}

static bm_status end_unit(bm_shard_writer *w)
{
    bm_shard_contents *c = &w->c;
    size_t row = c->meta.features * bm_store_size(c->store);
    size_t frames = c->inputs.n / row, labels = c->labels.n / sizeof(int32_t);
    size_t sequences = c->lengths.n / (2 * sizeof(int32_t));
    uint64_t unit[BM_UNIT_COLUMNS] = {
        w->first_sequence, sequences - w->first_sequence,
        w->first_frame,    frames - w->first_frame,
        w->first_label,    labels - w->first_label};
    uint32_t crc[2] = {0, 0};

    if (sequences == w->first_sequence)
        return BM_OK;
    crc[0] = bm_crc32c(c->inputs.data + w->first_frame * row,
                       unit[BM_UNIT_FRAMES] * row);
    crc[1] = bm_crc32c(c->labels.data + w->first_label * sizeof(int32_t),
                       unit[BM_UNIT_LABELS] * sizeof(int32_t));
    BM_TRY(append(&c->units, unit, sizeof unit));
    BM_TRY(append(&c->crc, crc, sizeof crc));
    w->first_sequence = sequences;
    w->first_frame = frames;
    w->first_label = labels;
    return BM_OK;
}

static bm_status end_shard(bm_shard_writer *w, bool last)
{
    char path[PATH_MAX];
    size_t n = w->c.lengths.n / (2 * sizeof(int32_t));
    uint64_t hash = 0;

    BM_TRY(end_unit(w));
    if (n == 0)
        return BM_OK;
    w->place.count = last ? w->place.index + 1 : 0;
    BM_TRY(bm_shard_path(path, w->directory, w->name, w->place.index));
    BM_TRY(bm_shard_contents_write(&w->c, path, &w->place, &hash));
    bm_shard_contents_empty(&w->c, false);
    w->first_sequence = w->first_frame = w->first_label = 0;
    w->full = false;
    w->place.index++;
    w->place.first += (int64_t)n;
    w->place.before = bm_shard_chain(w->place.before, hash);
    return BM_OK;
}

/* Adds the features of the next sequence. A full shard is written first, but
 * only if they can be stored: else it may be the last. */
static bm_status begin_sequence(bm_shard_writer *w, const char *tag,
                                const float *x, size_t frames)
{
    bm_bytes *inputs = &w->c.inputs;
    size_t end = inputs->n, added = 0;

    BM_TRY(add_features(&w->c, tag, x, frames));
    if (!w->full)
        return BM_OK;
    added = inputs->n - end;
    inputs->n = end;
    BM_TRY(end_shard(w, false));
    if (added > 0)
        memmove(inputs->data, inputs->data + end, added);
    inputs->n = added;
    return BM_OK;
}

bm_status bm_shard_writer_add_recording(bm_shard_writer *w, const char *tag,
                                        const char *speaker, const float *x,
                                        size_t frames, const int32_t *labels,
                                        size_t n_labels,
                                        const bm_waveform *recording)
{
    bm_shard_contents *c = &w->c;
    size_t row = c->meta.features * bm_store_size(c->store);

    BM_TRY(check_sequence(&c->meta, tag, frames, labels, n_labels));
    BM_TRY(begin_sequence(w, tag, x, frames));
    BM_TRY(append(&c->tags, tag, strlen(tag) + 1));
    BM_TRY(add_speaker(c, speaker, x, frames));
    BM_TRY(add_labels(c, frames, labels, n_labels));
    BM_TRY(add_waveform(c, recording));
    if (c->inputs.n / row - w->first_frame < (size_t)w->unit_frames)
        return BM_OK;
    BM_TRY(end_unit(w));
    w->full = (double)c->inputs.n + (double)c->samples.n >= w->shard_bytes;
    return BM_OK;
}

bm_status bm_shard_writer_add(bm_shard_writer *w, const char *tag,
                              const char *speaker, const float *x,
                              size_t frames, const int32_t *labels,
                              size_t n_labels)
{
    return bm_shard_writer_add_recording(w, tag, speaker, x, frames, labels,
                                         n_labels, NULL);
}

bm_status bm_shard_writer_finish(bm_shard_writer *w, size_t *shards)
{
    BM_TRY(end_shard(w, true));
    w->finished = true;
    *shards = (size_t)w->place.index;
    return BM_OK;
}

bm_status bm_shard_part_finish(bm_shard_writer *w, bool last,
                               bm_shard_place *place)
{
    BM_ASSERT(w->c.lengths.n > 0);
    w->finished = true; /* closing removes nothing: others' shards are there */
    w->place = *place;
    BM_TRY(end_shard(w, last));
    *place = w->place;
    return BM_OK;
}

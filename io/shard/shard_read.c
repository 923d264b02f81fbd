/*
 * shard_read.c - reads units, each verified with its checksum, and tags. The
 * HDF5 file may be closed between reads.
 */
#include "io/shard/crc32c.h"
#include "io/shard/shard_parts.h"
#include "io/shard/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bm_status open_arrays(bm_shard *s)
{
    BM_TRY(bm_h5_array_open(&s->file, "inputs", &s->inputs));
    BM_TRY(bm_h5_array_open(&s->file, "targets/data/classes", &s->targets));
    if (bm_h5_has(&s->file, BM_SAMPLE_RATE))
        BM_TRY(bm_h5_array_open(&s->file, "bmuf/samples", &s->waveforms));
    if (bm_h5_has(&s->file, BM_SAMPLE_MOMENTS))
        BM_TRY(bm_h5_array_open(&s->file, "bmuf/sample_moments", &s->moments));
    return BM_OK;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
           a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static void close_file(bm_shard *s)
{
    bm_h5_array_close(&s->inputs);
    bm_h5_array_close(&s->targets);
    bm_h5_array_close(&s->waveforms);
    bm_h5_array_close(&s->moments);
    if (s->file.id > 0)
        H5Fclose(s->file.id);
    s->file.id = H5I_INVALID_HID;
    s->is_open = false;
}

bm_status bm_shard_file_open(bm_shard *s)
{
    struct stat now;
    bm_status status = BM_OK;

    if (s->is_open)
        return BM_OK;
    BM_TRY(bm_h5_open(&s->file, s->path));
    s->is_open = true;
    if (stat(s->path, &now) != 0 || !is_same(&now, &s->identity))
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s was replaced or modified while in use",
                     s->path);
    BM_TRY_DONE(open_arrays(s));
done:
    if (status != BM_OK)
        close_file(s);
    return status;
}

void bm_shard_file_close(bm_shard *s)
{
    bm_h5_enter();
    if (s->is_open)
        close_file(s);
    bm_h5_leave();
}

void bm_shard_close(bm_shard *s)
{
    if (s == NULL)
        return;
    bm_shard_file_close(s);
    bm_shard_tables_free(&s->t);
    bm_vocab_free(s->vocab);
    free(s->features_text);
    free(s->samples.offset);
    free(s->samples.crc);
    free(s->samples.moments_crc);
    free(s->reference);
    free(s->tags_digest);
    free(s->tags);
    free(s->speaker);
    free(s->speakers);
    free(s->path);
    free(s);
}

size_t bm_shard_features(const bm_shard *s)
{
    return s->t.features;
}

size_t bm_shard_classes(const bm_shard *s)
{
    return s->t.classes;
}

size_t bm_shard_sequences(const bm_shard *s)
{
    return s->t.n;
}

size_t bm_shard_units(const bm_shard *s)
{
    return s->t.units;
}

bm_store bm_shard_store(const bm_shard *s)
{
    return s->t.store;
}

bm_stored bm_shard_stored(const bm_shard *s)
{
    return (bm_stored){NULL, bm_store_size(s->t.store), s->t.scale,
                       s->t.offset};
}

bm_unit_size bm_shard_unit(const bm_shard *s, size_t unit)
{
    const uint64_t *u = s->t.unit + unit * BM_UNIT_COLUMNS;

    BM_ASSERT(unit < s->t.units);
    return (bm_unit_size){u[BM_UNIT_SEQUENCE], u[BM_UNIT_SEQUENCES],
                          u[BM_UNIT_FRAMES], u[BM_UNIT_LABELS]};
}

bool bm_shard_per_frame(const bm_shard *s)
{
    return s->per_frame;
}

double bm_shard_frame_shift(const bm_shard *s)
{
    return s->frame_shift;
}

const int32_t *bm_shard_lengths(const bm_shard *s)
{
    return s->t.lengths;
}

const bm_vocab *bm_shard_vocab(const bm_shard *s)
{
    return s->vocab;
}

const char *bm_shard_text_form(const bm_shard *s)
{
    return s->text_form;
}

bool bm_shard_has_reference(const bm_shard *s, size_t sequence)
{
    return s->t.lengths[2 * sequence + 1] > 0 ||
           (s->reference != NULL && s->reference[sequence] != 0);
}

const char *bm_shard_features_text(const bm_shard *s)
{
    return s->features_text;
}

long bm_shard_sample_rate(const bm_shard *s)
{
    return (long)s->samples.rate;
}

uint64_t bm_shard_samples(const bm_shard *s)
{
    return s->samples.rate > 0 ? s->samples.offset[s->t.n] : 0;
}

size_t bm_shard_moments(const bm_shard *s)
{
    return (size_t)s->samples.moments;
}

bm_shard_place bm_shard_place_of(const bm_shard *s)
{
    return s->place;
}

bm_shard_place bm_shard_place_after(const bm_shard *s)
{
    return (bm_shard_place){.index = s->place.index + 1,
                            .first = s->place.first + (int64_t)s->t.n,
                            .before = bm_shard_chain(s->place.before, s->hash)};
}

uint64_t bm_shard_hash(const bm_shard *s)
{
    return s->hash;
}

int32_t bm_shard_lowest_label(const bm_shard *s)
{
    return s->per_frame ? 0 : 1; /* label sequences have no blanks */
}

/* Compares the digest of all tags, end to end, each with its '\0'. */
static bm_status check_tags(const bm_shard *s, const char *tags, size_t width)
{
    char digest[BM_DIGEST_LENGTH + 1], *joined = malloc(s->t.n * width + 1);
    size_t size = 0;

    if (joined == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the tags of %s", s->path);
    for (size_t i = 0; i < s->t.n; i++) {
        size_t n = strlen(tags + i * width) + 1;
        memcpy(joined + size, tags + i * width, n);
        size += n;
    }
    bm_digest(joined, size, digest);
    free(joined);
    if (strcmp(digest, s->tags_digest) != 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s: /seqTags is damaged", s->path);
    return BM_OK;
}

static bm_status read_tags(bm_shard *s)
{
    uint64_t n = 0;
    size_t width = 0;
    char *tags = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_shard_file_open(s));
    BM_TRY(bm_h5_strings(&s->file, "seqTags", &n, &width, &tags));
    if (n != s->t.n)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: %" PRIu64 " tags for %zu sequences",
                     s->path, n, s->t.n);
    BM_TRY_DONE(check_tags(s, tags, width));
    s->tags = tags;
    s->tag_width = width;
    tags = NULL;
done:
    free(tags);
    return status;
}

bm_status bm_shard_tag(bm_shard *s, size_t sequence, const char **out)
{
    bm_status status = BM_OK;

    BM_ASSERT(sequence < s->t.n);
    if (s->tags == NULL) {
        bm_h5_enter();
        status = read_tags(s);
        bm_h5_leave();
    }
    if (status == BM_OK)
        *out = s->tags + sequence * s->tag_width;
    return status;
}

const char *bm_shard_tag_or(bm_shard *s, size_t sequence)
{
    const char *tag = "?";

    return sequence < s->t.n && bm_shard_tag(s, sequence, &tag) == BM_OK ? tag
                                                                         : "?";
}

static bm_status check_crc(bm_shard *s, size_t unit, int column,
                           const void *data, size_t size)
{
    uint32_t found = bm_crc32c(data, size);
    uint32_t stored = s->t.crc[2 * unit + (size_t)column];
    size_t first = bm_shard_unit(s, unit).first;

    if (found == stored)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: the %s of unit %zu (first sequence %s) are damaged: "
                   "checksum %08x, expected %08x" BM_RUN_CHECK,
                   s->path, column == 0 ? "features" : "labels", unit,
                   bm_shard_tag_or(s, first), found, stored);
}

static bm_status make_room(const bm_shard *s, size_t unit, bm_sequences *out)
{
    bm_unit_size u = bm_shard_unit(s, unit);

    out->n = 0;
    return bm_sequences_reserve(out, u.sequences, u.frames, u.labels,
                                s->t.features);
}

static bm_status fetch(bm_shard *s, const bm_h5_array *a, uint64_t first,
                       uint64_t rows, void *out)
{
    bm_status status = BM_OK;

    bm_h5_enter();
    status = bm_shard_file_open(s);
    if (status == BM_OK)
        status = bm_h5_rows(&s->file, a, first, rows, out);
    bm_h5_leave();
    return status;
}

bm_status bm_shard_load_features(bm_shard *s, size_t unit, bm_sequences *out)
{
    const bm_shard_tables *t = &s->t;
    const uint64_t *u = t->unit + unit * BM_UNIT_COLUMNS;
    size_t frames = u[BM_UNIT_FRAMES];
    size_t size = frames * t->features * bm_store_size(t->store);
    void *packed = NULL, *raw = NULL; /* as stored */
    bm_status status = BM_OK;

    BM_TRY(make_room(s, unit, out));
    if (t->store != BM_STORE_F32 && !out->packed) {
        packed = malloc(size + 1);
        if (packed == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu bytes of %s", size,
                           s->path);
    }
    raw = packed != NULL ? packed : out->x;
    BM_TRY_DONE(fetch(s, &s->inputs, u[BM_UNIT_FRAME], frames, raw));
    BM_TRY_DONE(check_crc(s, unit, 0, raw, size));
    if (packed != NULL)
        bm_store_unpack(t->store, packed, out->x, frames, t->features, t->scale,
                        t->offset);
done:
    free(packed);
    return status;
}

bm_status bm_shard_load_labels(bm_shard *s, size_t unit, bm_sequences *out)
{
    const uint64_t *u = s->t.unit + unit * BM_UNIT_COLUMNS;
    size_t labels = u[BM_UNIT_LABELS];

    BM_TRY(make_room(s, unit, out));
    BM_TRY(fetch(s, &s->targets, u[BM_UNIT_LABEL], labels, out->targets));
    return check_crc(s, unit, 1, out->targets, labels * sizeof *out->targets);
}

static bm_status check_labels(bm_shard *s, size_t sequence,
                              const int32_t *label, int32_t n)
{
    int32_t low = bm_shard_lowest_label(s);

    for (int32_t j = 0; j < n; j++)
        if (label[j] < low || (size_t)label[j] >= s->t.classes)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: sequence %s: label %d is outside [%d, "
                           "%zu]" BM_RUN_CHECK,
                           s->path, bm_shard_tag_or(s, sequence), label[j], low,
                           s->t.classes - 1);
    return BM_OK;
}

bm_status bm_shard_read(bm_shard *s, size_t unit, bm_sequences *out)
{
    bm_unit_size u = bm_shard_unit(s, unit);
    const int32_t *length = s->t.lengths + 2 * u.first, *label = NULL;

    BM_TRY(bm_shard_load_features(s, unit, out));
    BM_TRY(bm_shard_load_labels(s, unit, out));
    label = out->targets;
    for (size_t i = 0; i < u.sequences; i++) {
        out->frames[i] = length[2 * i];
        out->labels[i] = length[2 * i + 1];
        BM_TRY(check_labels(s, u.first + i, label, out->labels[i]));
        label += out->labels[i];
    }
    out->n = u.sequences;
    return BM_OK;
}

static bm_status check_recording(bm_shard *s, size_t sequence, const char *what,
                                 const void *data, size_t size, uint32_t crc)
{
    uint32_t found = bm_crc32c(data, size);

    if (found == crc)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: the %s of sequence %s are damaged: checksum %08x, "
                   "expected %08x" BM_RUN_CHECK,
                   s->path, what, bm_shard_tag_or(s, sequence), found, crc);
}

bm_status bm_shard_read_waveform(bm_shard *s, size_t sequence, bm_waveform *out)
{
    const bm_sample_tables *t = &s->samples;
    size_t moments = (size_t)t->moments;
    uint64_t first = 0;

    BM_ASSERT(t->rate > 0 && sequence < s->t.n);
    first = t->offset[sequence];
    BM_TRY(bm_waveform_shape(out, t->offset[sequence + 1] - first));
    BM_TRY(fetch(s, &s->waveforms, first, out->n, out->x));
    BM_TRY(check_recording(s, sequence, "samples", out->x,
                           out->n * sizeof *out->x, t->crc[sequence]));
    if (moments == 0)
        return BM_OK;
    BM_TRY(bm_waveform_set_moments(out, NULL, moments));
    BM_TRY(fetch(s, &s->moments, sequence, 1, out->moments));
    return check_recording(s, sequence, "moments", out->moments,
                           moments * sizeof *out->moments,
                           t->moments_crc[sequence]);
}

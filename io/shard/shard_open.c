/*
 * shard_open.c - opens a shard. Every table is compared with the others and
 * with a digest before it is used.
 */
#include "io/features/feature_text.h"
#include "io/features/recording_features.h"
#include "io/shard/shard_parts.h"
#include "io/shard/store.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MOMENTS = 1 + 2 * BM_MOST_FEATURES };

/* Reads an attribute that must be one of two texts; *out: it is `yes`. */
static bm_status either(const bm_shard *s, const char *name, const char *no,
                        const char *yes, bool *out)
{
    char *text = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_h5_text(&s->file, name, &text));
    if (strcmp(text, no) != 0 && strcmp(text, yes) != 0)
        status = BM_FAIL(BM_ERR_FORMAT, "%s: %s is \"%.40s\", not %s or %s",
                         s->path, name, text, no, yes);
    else
        *out = strcmp(text, yes) == 0;
    free(text);
    return status;
}

/* Older shards have an index only, those of other programs perhaps none. */
static bm_status read_place(bm_shard *s)
{
    bm_shard_place *p = &s->place;
    int64_t before = 0;

    p->index = p->count = -1;
    if (bm_h5_has(&s->file, "shard_index"))
        BM_TRY(bm_h5_number(&s->file, "shard_index", &p->index));
    if (bm_h5_has(&s->file, "shard_count")) {
        BM_TRY(bm_h5_number(&s->file, "shard_count", &p->count));
        BM_TRY(bm_h5_number(&s->file, "first_sequence", &p->first));
        BM_TRY(bm_h5_number(&s->file, "before_xxh3", &before));
        p->before = (uint64_t)before;
    }
    if (p->index < -1 || p->index > BM_SHARD_MOST || p->count < -1 ||
        (p->count > 0 && p->count != p->index + 1) || p->first < 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: invalid place in its data set: shard_index %" PRId64
                       ", shard_count %" PRId64 ", first_sequence %" PRId64,
                       s->path, p->index, p->count, p->first);
    return BM_OK;
}

static bm_status read_text_form(bm_shard *s)
{
    bool nfc = false;

    if (!bm_h5_has(&s->file, "text_form"))
        return BM_OK;
    BM_TRY(either(s, "text_form", "none", "nfc", &nfc));
    s->text_form = nfc ? "nfc" : "none";
    return BM_OK;
}

static bm_status read_format(bm_shard *s)
{
    int64_t version = 0, blank = 0, shift = 0;
    bool is_shard = false;

    BM_TRY(either(s, "format", "bmuf-shard", "bmuf-shard", &is_shard));
    BM_TRY(bm_h5_number(&s->file, "format_version", &version));
    if (version != BM_SHARD_VERSION)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: format version %" PRId64 "; this program reads %d",
                       s->path, version, BM_SHARD_VERSION);
    BM_TRY(either(s, "task", "ctc", "frame", &s->per_frame));
    BM_TRY(bm_h5_number(&s->file, "blank_index", &blank));
    if (blank != 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: blank_index is %" PRId64 ", must be 0", s->path,
                       blank);
    BM_TRY(bm_h5_number(&s->file, "frame_shift_us", &shift));
    if (shift < 0 || shift > 1000000000)
        return BM_FAIL(BM_ERR_FORMAT, "%s: invalid frame_shift_us %" PRId64,
                       s->path, shift);
    s->frame_shift = (double)shift * 1e-6;
    BM_TRY(read_place(s));
    BM_TRY(read_text_form(s));
    return bm_h5_text(&s->file, "feat_config", &s->features_text);
}

/* Checks types and dimensions of the two large arrays. */
static bm_status read_shape(bm_shard *s)
{
    hid_t half = bm_h5_half();
    int64_t features = 0;
    bool f32 = H5Tequal(s->inputs.type, H5T_IEEE_F32LE) > 0;
    bool f16 = H5Tequal(s->inputs.type, half) > 0;
    bool u8 = H5Tequal(s->inputs.type, H5T_STD_U8LE) > 0;

    H5Tclose(half);
    if (!f32 && !f16 && !u8)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /inputs is not float32, float16 or uint8 in little-"
                       "endian order",
                       s->path);
    s->t.store = f32 ? BM_STORE_F32 : f16 ? BM_STORE_F16 : BM_STORE_U8;
    s->t.features = s->inputs.dim[1];
    BM_TRY(bm_h5_number(&s->file, "feat_dim", &features));
    if (s->inputs.rank != 2 || s->t.features == 0 ||
        s->t.features > BM_MOST_FEATURES || s->t.features != (uint64_t)features)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /inputs has %zu columns; feat_dim is %" PRId64,
                       s->path, s->t.features, features);
    if (s->targets.rank != 1 || H5Tequal(s->targets.type, H5T_STD_I32LE) <= 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /targets/data/classes is not a list of int32",
                       s->path);
    return BM_OK;
}

/* Checks the type and the rate of the samples, if there are some. */
static bm_status read_sample_rate(bm_shard *s)
{
    if (!bm_h5_has(&s->file, BM_SAMPLE_RATE))
        return BM_OK;
    BM_TRY(bm_h5_number(&s->file, BM_SAMPLE_RATE, &s->samples.rate));
    if (s->samples.rate < 1 || s->samples.rate > BM_MOST_HZ)
        return BM_FAIL(BM_ERR_FORMAT, "%s: invalid " BM_SAMPLE_RATE " %" PRId64,
                       s->path, s->samples.rate);
    if (s->waveforms.rank != 1 ||
        H5Tequal(s->waveforms.type, H5T_STD_I16LE) <= 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /bmuf/samples is not a list of int16", s->path);
    return BM_OK;
}

/* Checks the type and the number of the moments of recordings, if there are
 * some. */
static bm_status read_moments(bm_shard *s)
{
    bm_sample_tables *t = &s->samples;

    if (t->rate == 0 || !bm_h5_has(&s->file, BM_SAMPLE_MOMENTS))
        return BM_OK;
    BM_TRY(bm_h5_number(&s->file, BM_SAMPLE_MOMENTS, &t->moments));
    if (t->moments < 1 || t->moments > MOST_MOMENTS)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: invalid " BM_SAMPLE_MOMENTS " %" PRId64, s->path,
                       t->moments);
    if (s->moments.rank != 2 || s->moments.dim[1] != (uint64_t)t->moments ||
        H5Tequal(s->moments.type, H5T_IEEE_F64LE) <= 0)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s: /bmuf/sample_moments is not a table of float64 with "
            "%" PRId64 " columns",
            s->path, t->moments);
    return BM_OK;
}

static bm_status read_sample_tables(bm_shard *s)
{
    bm_sample_tables *t = &s->samples;
    uint64_t n = s->t.n, ends = n + 1;
    void *p = NULL;

    if (t->rate == 0)
        return BM_OK;
    BM_TRY(bm_h5_table(&s->file, "bmuf/sample_offset", H5T_STD_U64LE, 0, &ends,
                       &p));
    t->offset = p;
    BM_TRY(
        bm_h5_table(&s->file, "bmuf/sample_crc32c", H5T_STD_U32LE, 0, &n, &p));
    t->crc = p;
    if (t->moments == 0)
        return BM_OK;
    if (s->moments.dim[0] != n)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /bmuf/sample_moments has %" PRIu64
                       " rows for %" PRIu64 " sequences",
                       s->path, s->moments.dim[0], n);
    BM_TRY(bm_h5_table(&s->file, "bmuf/sample_moments_crc32c", H5T_STD_U32LE, 0,
                       &n, &p));
    t->moments_crc = p;
    return BM_OK;
}

static bm_status read_tables(bm_shard *s)
{
    bm_shard_tables *t = &s->t;
    uint64_t n = BM_H5_ANY, units = BM_H5_ANY, features = t->features;
    void *p = NULL;

    BM_TRY(bm_h5_table(&s->file, "seqLengths", H5T_STD_I32LE, 2, &n, &p));
    t->lengths = p;
    t->n = n;
    BM_TRY(bm_h5_table(&s->file, "bmuf/block", H5T_STD_U64LE, BM_UNIT_COLUMNS,
                       &units, &p));
    t->unit = p;
    t->units = units;
    BM_TRY(bm_h5_table(&s->file, "bmuf/block_crc32c", H5T_STD_U32LE, 2, &units,
                       &p));
    t->crc = p;
    if (bm_h5_has(&s->file, "references")) {
        BM_TRY(
            bm_h5_table(&s->file, "bmuf/reference", H5T_STD_U8LE, 0, &n, &p));
        s->reference = p;
    }
    if (t->store != BM_STORE_U8)
        return BM_OK;
    BM_TRY(bm_h5_table(&s->file, "bmuf/quant/scale", H5T_IEEE_F32LE, 0,
                       &features, &p));
    t->scale = p;
    BM_TRY(bm_h5_table(&s->file, "bmuf/quant/offset", H5T_IEEE_F32LE, 0,
                       &features, &p));
    t->offset = p;
    return BM_OK;
}

/* Computed, and found equal to those in the file. */
typedef struct digests {
    char tables[BM_DIGEST_LENGTH + 1], labels[BM_DIGEST_LENGTH + 1];
    char samples[BM_DIGEST_LENGTH + 1]; /* "": there are none */
} digests;

/* Compares the tables with the digest in the file. */
static bm_status check_tables(bm_shard *s, char *found)
{
    char *stored = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_shard_digest(&s->t, found));
    BM_TRY(bm_h5_text(&s->file, "tables_xxh3", &stored));
    if (strcmp(found, stored) != 0)
        status = BM_FAIL(BM_ERR_FORMAT,
                         "%s: the tables of lengths, units and checksums are "
                         "damaged; pack it again",
                         s->path);
    free(stored);
    return status;
}

/* Compares the tables of samples with their digest, then with each other. */
static bm_status check_samples(bm_shard *s, char *found)
{
    const bm_sample_tables *t = &s->samples;
    char *stored = NULL;
    bool same = false, grows = true;

    found[0] = '\0';
    if (t->rate == 0)
        return BM_OK;
    BM_TRY(bm_sample_digest(t, s->t.n, found));
    BM_TRY(bm_h5_text(&s->file, BM_SAMPLE_DIGEST, &stored));
    same = strcmp(found, stored) == 0;
    free(stored);
    if (!same)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the tables of samples are damaged; pack it again",
                       s->path);
    for (size_t i = 0; i < s->t.n; i++)
        grows = grows && t->offset[i] <= t->offset[i + 1];
    if (!grows || t->offset[0] != 0 || t->offset[s->t.n] != s->waveforms.dim[0])
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /bmuf/sample_offset is invalid, or disagrees with "
                       "/bmuf/samples; pack it again",
                       s->path);
    return BM_OK;
}

static bm_status disagree(const bm_shard *s, size_t unit)
{
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: unit %zu of /bmuf/block disagrees with /seqLengths or "
                   "the size of the arrays; pack it again",
                   s->path, unit);
}

/* Units must follow each other without holes and agree with the lengths. */
static bm_status check_units(const bm_shard *s)
{
    const bm_shard_tables *t = &s->t;
    uint64_t sequence = 0, frame = 0, label = 0;

    for (size_t k = 0; k < t->units; k++) {
        const uint64_t *u = t->unit + k * BM_UNIT_COLUMNS;
        uint64_t frames = 0, labels = 0;

        if (u[BM_UNIT_SEQUENCE] != sequence || u[BM_UNIT_FRAME] != frame ||
            u[BM_UNIT_LABEL] != label || u[BM_UNIT_SEQUENCES] > t->n - sequence)
            return disagree(s, k);
        for (uint64_t i = 0; i < u[BM_UNIT_SEQUENCES]; i++, sequence++) {
            const int32_t *length = t->lengths + 2 * sequence;

            if (length[0] < 0 || length[1] < 0 ||
                (s->per_frame && length[0] != length[1]))
                return BM_FAIL(BM_ERR_FORMAT,
                               "%s: sequence %" PRIu64
                               " has %d frames and %d labels",
                               s->path, sequence, length[0], length[1]);
            frames += (uint64_t)length[0];
            labels += (uint64_t)length[1];
        }
        frame += frames;
        label += labels;
        if (u[BM_UNIT_FRAMES] != frames || u[BM_UNIT_LABELS] != labels)
            return disagree(s, k);
    }
    if (sequence != t->n || frame != s->inputs.dim[0] ||
        label != s->targets.dim[0])
        return disagree(s, t->units);
    return BM_OK;
}

static bm_status check_scale(const bm_shard *s)
{
    for (size_t d = 0; s->t.scale != NULL && d < s->t.features; d++)
        if (!isfinite(s->t.scale[d]) || !isfinite(s->t.offset[d]))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: /bmuf/quant: column %zu is not finite", s->path,
                           d);
    return BM_OK;
}

/* Joins the texts of /targets/labels/classes to a vocabulary file. */
static bm_status join(const char *rows, size_t n, size_t width, char **out,
                      size_t *size)
{
    char *text = malloc(n * (width + 1) + 1), *at = text;

    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu symbols", n);
    for (size_t k = 0; k < n; k++) {
        size_t length = strlen(rows + k * width);

        memcpy(at, rows + k * width, length);
        at += length;
        *at++ = '\n';
    }
    *at = '\0';
    *out = text;
    *size = (size_t)(at - text);
    return BM_OK;
}

static bm_status read_vocab(bm_shard *s, char *digest)
{
    char *rows = NULL, *text = NULL, *stored = NULL;
    uint64_t n = 0;
    int64_t classes = 0;
    size_t width = 0, size = 0;
    bool words = false;
    bm_status status = BM_OK;

    BM_TRY_DONE(either(s, "symbols", "characters", "words", &words));
    BM_TRY_DONE(bm_h5_number(&s->file, "num_classes", &classes));
    BM_TRY_DONE(
        bm_h5_strings(&s->file, "targets/labels/classes", &n, &width, &rows));
    if (classes < 1 || (uint64_t)classes != n)
        BM_FAIL_DONE(BM_ERR_FORMAT,
                     "%s: %" PRIu64 " labels; num_classes is %" PRId64, s->path,
                     n, classes);
    BM_TRY_DONE(join(rows, n, width, &text, &size));
    BM_TRY_DONE(bm_h5_text(&s->file, "label_xxh3", &stored));
    bm_digest(text, size, digest);
    if (strcmp(digest, stored) != 0)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: the vocabulary is damaged", s->path);
    status = bm_vocab_parse(&s->vocab, text, words);
    if (status != BM_OK)
        BM_FAIL_DONE(status, "%s: %s", s->path, bm_last_message());
    bm_vocab_set_right_to_left(s->vocab,
                               bm_features_right_to_left(s->features_text));
    s->t.classes = n;
done:
    free(rows);
    free(text);
    free(stored);
    return status;
}

/* Hashes the digests, the shape and the features text. */
static bm_status hash_all(bm_shard *s, const digests *d)
{
    XXH3_state_t *state = XXH3_createState();
    uint64_t shape[] = {s->t.features, s->t.classes, s->t.store, s->per_frame,
                        bm_vocab_words(s->vocab)};

    if (state == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a hash");
    XXH3_64bits_reset(state);
    XXH3_64bits_update(state, shape, sizeof shape);
    XXH3_64bits_update(state, d->labels, BM_DIGEST_LENGTH);
    XXH3_64bits_update(state, d->tables, BM_DIGEST_LENGTH);
    XXH3_64bits_update(state, d->samples, strlen(d->samples));
    XXH3_64bits_update(state, s->tags_digest, strlen(s->tags_digest));
    XXH3_64bits_update(state, s->features_text, strlen(s->features_text));
    if (s->reference != NULL)
        XXH3_64bits_update(state, s->reference, s->t.n);
    s->hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return BM_OK;
}

static bm_status read_all(bm_shard *s)
{
    digests d;

    if (stat(s->path, &s->identity) != 0)
        return BM_FAIL(BM_ERR_MISSING, "%s: %s", s->path, strerror(errno));
    BM_TRY(bm_shard_file_open(s));
    BM_TRY(read_format(s));
    BM_TRY(read_shape(s));
    BM_TRY(read_sample_rate(s));
    BM_TRY(read_moments(s));
    BM_TRY(read_tables(s));
    BM_TRY(read_sample_tables(s));
    BM_TRY(check_tables(s, d.tables));
    BM_TRY(check_units(s));
    BM_TRY(check_samples(s, d.samples));
    BM_TRY(check_scale(s));
    BM_TRY(read_vocab(s, d.labels));
    BM_TRY(bm_h5_text(&s->file, "tags_xxh3", &s->tags_digest));
    return hash_all(s, &d);
}

bm_status bm_shard_open(bm_shard **out, const char *path)
{
    bm_shard *s = calloc(1, sizeof *s);
    bm_status status = BM_OK;

    if (s == NULL || (s->path = strdup(path)) == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a shard");
    bm_h5_enter();
    status = read_all(s);
    bm_h5_leave();
    if (status == BM_OK) {
        *out = s;
        s = NULL;
    }
done:
    bm_shard_close(s);
    return status;
}

/*
 * fuzz_tables.c - shards that HDF5 can read, with forged tables and right
 * digests. The input says how large a shard is, then which numbers change:
 *
 *     byte 0      how features are stored
 *     byte 1      1: a label per frame; 2: symbols are words
 *     byte 2      features per frame
 *     byte 3, 4   sequences; units
 *     byte 5 ..   for each sequence its frames and labels
 *     then        changes of 10 bytes: table, place, number
 */
#include "io/shard/crc32c.h"
#include "io/shard/shard_file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_shard.h"

#include <string.h>

enum { MOST = 8, LONGEST = 16, WIDEST = 4, HEAD = 5, CHANGE = 10 };

typedef struct tables {
    int32_t lengths[2 * MOST], labels[MOST * LONGEST], min_frames[MOST];
    uint64_t units[MOST * BM_UNIT_COLUMNS];
    uint32_t crc[2 * MOST];
    uint8_t inputs[MOST * LONGEST * WIDEST * sizeof(float)];
    char tags[4 * MOST], reference[MOST];
    int32_t speaker[MOST];
    bm_shard_place place;
    size_t n, n_units, features, width, frames, n_labels;
} tables;

static uint8_t at(const uint8_t *data, size_t size, size_t i)
{
    return i < size ? data[i] : 0;
}

/* A valid shard; its units have equal numbers of sequences. */
static void lay_out(tables *t, const uint8_t *data, size_t size, bool per_frame)
{
    size_t per_unit = (t->n + t->n_units - 1) / t->n_units, k = 0;

    t->n_units = (t->n + per_unit - 1) / per_unit;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t *u = t->units + i / per_unit * BM_UNIT_COLUMNS;
        size_t frames = at(data, size, HEAD + 2 * i) % (LONGEST + 1);
        size_t labels = at(data, size, HEAD + 2 * i + 1) % (LONGEST + 1);

        labels = per_frame ? frames : labels;
        if (i % per_unit == 0) {
            u[BM_UNIT_SEQUENCE] = i;
            u[BM_UNIT_FRAME] = t->frames;
            u[BM_UNIT_LABEL] = t->n_labels;
        }
        u[BM_UNIT_SEQUENCES]++;
        u[BM_UNIT_FRAMES] += frames;
        u[BM_UNIT_LABELS] += labels;
        t->lengths[2 * i] = (int32_t)frames;
        t->lengths[2 * i + 1] = (int32_t)labels;
        t->frames += frames;
        t->n_labels += labels;
        t->tags[2 * i] = (char)('a' + i);
        t->reference[i] = 1;
    }
    for (k = 0; k < t->n_labels; k++)
        t->labels[k] = 1;
}

/* Sets a number of `width` bytes of an array of n bytes. */
static void set(void *array, size_t n, size_t width, size_t place, uint64_t x)
{
    if (width > 0 && n >= width)
        memcpy((char *)array + place % (n / width) * width, &x, width);
}

static void change(tables *t, const uint8_t *row)
{
    uint64_t x = 0;
    size_t place = row[1];

    memcpy(&x, row + 2, sizeof x);
    switch (row[0] % 6) {
    case 0:
        set(t->lengths, 2 * t->n * sizeof *t->lengths, 4, place, x);
        break;
    case 1:
        set(t->units, t->n_units * BM_UNIT_COLUMNS * sizeof *t->units, 8, place,
            x);
        break;
    case 2:
        set(t->labels, t->n_labels * sizeof *t->labels, 4, place, x);
        break;
    case 3:
        set(t->inputs, t->frames * t->features * t->width, t->width, place, x);
        break;
    case 4:
        set(&t->place, sizeof t->place, 8, place, x);
        break;
    default:
        place %= t->n;
        t->tags[2 * place] = (char)(x % 255 + 1);
    }
}

/* Of the rows that a unit has, where they exist. */
static void sum_up(tables *t)
{
    size_t row = t->features * t->width;

    for (size_t k = 0; k < t->n_units; k++) {
        const uint64_t *u = t->units + k * BM_UNIT_COLUMNS;

        if (u[BM_UNIT_FRAME] <= t->frames &&
            u[BM_UNIT_FRAMES] <= t->frames - u[BM_UNIT_FRAME])
            t->crc[2 * k] = bm_crc32c(t->inputs + u[BM_UNIT_FRAME] * row,
                                      u[BM_UNIT_FRAMES] * row);
        if (u[BM_UNIT_LABEL] <= t->n_labels &&
            u[BM_UNIT_LABELS] <= t->n_labels - u[BM_UNIT_LABEL])
            t->crc[2 * k + 1] =
                bm_crc32c(t->labels + u[BM_UNIT_LABEL],
                          u[BM_UNIT_LABELS] * sizeof *t->labels);
    }
}

static bm_bytes bytes(void *data, size_t n)
{
    return (bm_bytes){data, n, n};
}

static bm_status write(tables *t, bm_store store, const bm_shard_meta *meta,
                       const char *path)
{
    bm_shard_contents c = {
        .store = store,
        .meta = *meta,
        .inputs = bytes(t->inputs, t->frames * t->features * t->width),
        .labels = bytes(t->labels, t->n_labels * sizeof *t->labels),
        .lengths = bytes(t->lengths, 2 * t->n * sizeof *t->lengths),
        .min_frames = bytes(t->min_frames, t->n * sizeof *t->min_frames),
        .tags = bytes(t->tags, 2 * t->n),
        .reference = bytes(t->reference, t->n),
        .speaker = bytes(t->speaker, t->n * sizeof *t->speaker),
        .units = bytes(t->units, t->n_units * BM_UNIT_COLUMNS * 8),
        .crc = bytes(t->crc, 2 * t->n_units * sizeof *t->crc)};
    uint64_t hash = 0;

    return bm_shard_contents_write(&c, path, &t->place, &hash);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    static tables t;
    bm_store store = (bm_store)(at(data, size, 0) % 3);
    bool per_frame = at(data, size, 1) & 1, words = at(data, size, 1) & 2;
    bm_vocab *vocab = NULL;
    bm_shard_meta meta = {.features_text = "{}",
                          .frame_shift = 0.01,
                          .per_frame = per_frame,
                          .quant_scale = 1};

    t = (tables){.place = {.count = 1}};
    t.width = bm_store_size(store);
    meta.features = t.features = 1 + at(data, size, 2) % WIDEST;
    t.n = 1 + at(data, size, 3) % MOST;
    t.n_units = 1 + at(data, size, 4) % t.n;
    FUZZ_RULE(bm_vocab_new(&vocab, words) == BM_OK);
    FUZZ_RULE(bm_vocab_learn(vocab, "b a") == BM_OK);
    meta.vocab = vocab;
    lay_out(&t, data, size, per_frame);
    for (size_t i = HEAD + 2 * t.n; i + CHANGE <= size; i += CHANGE)
        change(&t, data + i);
    sum_up(&t);
    /* Writing ends with reading the file; what fails then is removed. */
    if (write(&t, store, &meta, path) == BM_OK)
        fuzz_read_shard(path);
    bm_vocab_free(vocab);
}

const fuzz_target fuzz_tables = {"tables", "x-00000.bmuf.h5", run, NULL};

#include "tests/support/datasets.h"

#include "io/shard/crc32c.h"
#include "io/shard/shard_parts.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- a corpus of shards -------------------------------------------------- */

char *corpus_directory(void)
{
    char *directory = strdup("/tmp/bmuf_corpus_XXXXXX");

    assert_non_null(directory);
    assert_non_null(mkdtemp(directory));
    return directory;
}

void corpus_remove(char *directory)
{
    DIR *d = opendir(directory);
    const struct dirent *entry = NULL;
    char path[512];

    while (d != NULL && (entry = readdir(d)) != NULL) {
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        if (unlink(path) != 0)
            rmdir(path);
    }
    if (d != NULL)
        closedir(d);
    rmdir(directory);
    free(directory);
}

const char *corpus_path(const char *directory, const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

size_t corpus_frames(size_t i)
{
    return i % 7 * 3 + 2;
}

size_t corpus_labels(size_t i, int32_t labels[CORPUS_LABELS])
{
    size_t n = i % 7 > 1 ? CORPUS_LABELS : 1;

    for (size_t k = 0; k < n; k++)
        labels[k] =
            (int32_t)((i + k / 2) % 4 + 1); /* the first two are equal */
    return n;
}

float corpus_value(size_t i, size_t t, size_t d)
{
    return (float)((i * 37 + t * 11 + d * 3) % 256) / 8;
}

bm_vocab *corpus_vocab(size_t classes)
{
    static const char *const symbols[] = {"<blank>", "<space>", "a",
                                          "b",       "c",       "d"};
    char text[64] = "";
    size_t n = 0;
    bm_vocab *v = NULL;

    for (size_t k = 0; k < classes; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s\n", symbols[k]);
    assert_ok(bm_vocab_parse(&v, text, false));
    return v;
}

corpus corpus_make(const char *directory, const char *name, size_t n)
{
    return (corpus){
        .directory = directory,
        .name = name,
        .n = n,
        .settings = {.unit_frames = 30, .shard_mb = 256, .store = "f32"},
        .meta = {.features = CORPUS_D,
                 .vocab = corpus_vocab(5),
                 .features_text = "{\"kind\": \"corpus\"}",
                 .frame_shift = 0.01,
                 .quant_scale = 0.125,
                 .quant_offset = 0},
    };
}

static void add(bm_shard_writer *w, const corpus *c, size_t i)
{
    static const char *const speakers[] = {"anna", "b\xc3\xa9la", NULL};
    float *x = malloc(CORPUS_FRAMES * c->meta.features * sizeof *x);
    int32_t labels[CORPUS_FRAMES];
    size_t frames = corpus_frames(i), n = corpus_labels(i, labels);
    char tag[32];

    assert_non_null(x);
    for (size_t t = 0; t < frames; t++)
        for (size_t d = 0; d < c->meta.features; d++)
            x[t * c->meta.features + d] = corpus_value(i, t, d);
    for (size_t t = 0; c->meta.per_frame && t < frames; t++)
        labels[t] = (int32_t)(t % bm_vocab_size(c->meta.vocab));
    snprintf(tag, sizeof tag, "%s/%zu", c->name, i);
    assert_ok(bm_shard_writer_add(w, tag, speakers[i % 3], x, frames, labels,
                                  c->meta.per_frame ? frames : n));
    free(x);
}

size_t corpus_write(const corpus *c)
{
    bm_shard_writer *w = NULL;
    size_t shards = 0;

    assert_ok(bm_shard_writer_open(&w, c->directory, c->name, &c->settings,
                                   &c->meta));
    for (size_t i = 0; i < c->n; i++)
        add(w, c, i);
    assert_ok(bm_shard_writer_finish(w, &shards));
    bm_shard_writer_close(w);
    return shards;
}

void corpus_write_part(const corpus *c, size_t from, size_t to, bool last,
                       bm_shard_place *place)
{
    bm_shard_writer *w = NULL;

    assert_ok(
        bm_shard_part_open(&w, c->directory, c->name, &c->settings, &c->meta));
    for (size_t i = from; i < to; i++)
        add(w, c, i);
    assert_ok(bm_shard_part_finish(w, last, place));
    bm_shard_writer_close(w);
}

/* Whether sequence i of the corpus stands at frame and label of x. */
static bool holds(const bm_sequences *x, size_t at, size_t i,
                  const float *frame, const int32_t *label)
{
    int32_t labels[CORPUS_LABELS];
    size_t n = corpus_labels(i, labels);

    if (x->frames[at] != (int32_t)corpus_frames(i) ||
        x->labels[at] != (int32_t)n ||
        memcmp(label, labels, n * sizeof *labels) != 0)
        return false;
    for (size_t t = 0; t < corpus_frames(i); t++)
        for (size_t d = 0; d < CORPUS_D; d++)
            if (frame[t * CORPUS_D + d] != corpus_value(i, t, d))
                return false;
    return true;
}

bool corpus_is(bm_dataset *d, const char *name, size_t n, bool *failed)
{
    bm_sequences x = {0};
    const char *tag = NULL;
    char expected[32];
    size_t i = 0;
    bool good = true;

    *failed = false;
    for (size_t u = 0; good && !*failed && u < d->n_units; u++) {
        const float *frame = NULL;
        const int32_t *label = NULL;

        *failed = bm_dataset_read(d, u, &x) != BM_OK;
        frame = x.x;
        label = x.targets;
        good = *failed || d->units[u].first == (int64_t)i;
        for (size_t k = 0; good && !*failed && k < x.n; k++, i++) {
            snprintf(expected, sizeof expected, "%s/%zu", name, i);
            *failed = bm_dataset_tag(d, (int64_t)i, &tag) != BM_OK;
            good = *failed || (strcmp(tag, expected) == 0 &&
                               holds(&x, k, i, frame, label));
            frame += (size_t)x.frames[k] * CORPUS_D;
            label += x.labels[k];
        }
    }
    bm_sequences_free(&x);
    return good && (*failed || (i == n && d->n == n));
}

/* ---- lengths only -------------------------------------------------------- */

bm_dataset lengths_make(size_t n_units, const int32_t *counts,
                        int32_t (*length)(void *, int64_t), void *context)
{
    bm_dataset d = {.n_units = n_units};
    int64_t first = 0;

    d.units = zeros(n_units, sizeof *d.units);
    for (size_t u = 0; u < n_units; u++)
        d.n += (size_t)counts[u];
    d.lengths = zeros(2 * d.n, sizeof *d.lengths);
    for (size_t u = 0; u < n_units; u++) {
        bm_unit_at *unit = &d.units[u];
        *unit = (bm_unit_at){
            .unit = (int32_t)u, .first = first, .sequences = counts[u]};
        for (int32_t i = 0; i < counts[u]; i++, first++) {
            int32_t frames = length(context, first);
            d.lengths[2 * first] = frames;
            unit->frames += frames;
            d.longest = frames > d.longest ? frames : d.longest;
        }
        d.frames += unit->frames;
    }
    return d;
}

void lengths_drop(bm_dataset *d)
{
    free(d->units);
    free(d->lengths);
}

int32_t lengths_same(void *context, int64_t i)
{
    (void)i;
    return *(const int32_t *)context;
}

/* Many short ones, few long ones, some empty ones. */
static int32_t skewed(void *context, int64_t i)
{
    double u = bm_rng_uniform(context);

    (void)i;
    return (int32_t)(60 * u * u * u);
}

bm_dataset lengths_random(bm_rng *rng, size_t n_units, int32_t most)
{
    int32_t *counts = zeros(n_units, sizeof *counts);
    bm_dataset d;

    for (size_t u = 0; u < n_units; u++)
        counts[u] = (int32_t)bm_rng_below(rng, (uint64_t)most + 1);
    d = lengths_make(n_units, counts, skewed, rng);
    free(counts);
    return d;
}

bm_plan *plan_of(const bm_dataset *d, const bm_plan_settings *s, int workers,
                 uint64_t seed, int64_t epoch)
{
    bm_plan *p = NULL;

    assert_ok(bm_plan_new(&p, d, s, workers, seed, epoch));
    return p;
}

int64_t share_frames(const bm_plan *p, const bm_dataset *d, int64_t block,
                     int worker)
{
    const size_t *units = NULL;
    size_t n = bm_plan_units(p, block, worker, &units);
    int64_t sum = 0;

    for (size_t u = 0; u < n; u++)
        sum += d->units[units[u]].frames;
    return sum;
}

int64_t block_frames(const bm_plan *p, const bm_dataset *d, int64_t block,
                     int workers)
{
    int64_t sum = 0;

    for (int k = 0; k < workers; k++)
        sum += share_frames(p, d, block, k);
    return sum;
}

/* ---- forged shards ------------------------------------------------------- */

/* HDF5 1.10 may not find an attribute it is to overwrite: a new one. */
void forge_attribute(hid_t file, const char *name, hid_t type,
                     const void *value)
{
    hid_t extent = H5Screate(H5S_SCALAR), id = 0;

    H5Adelete_by_name(file, "bmuf", name, H5P_DEFAULT);
    id = H5Acreate_by_name(file, "bmuf", name, type, extent, H5P_DEFAULT,
                           H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(id, type, value) >= 0);
    H5Aclose(id);
    H5Sclose(extent);
}

void forge_seal(hid_t file)
{
    char digest[BM_DIGEST_LENGTH + 1];
    int32_t lengths[24];
    uint64_t unit[10 * BM_UNIT_COLUMNS];
    uint32_t crc[20];
    bm_shard_tables t = {.n = 12,
                         .store = BM_STORE_F32,
                         .lengths = lengths,
                         .unit = unit,
                         .crc = crc};
    hid_t id = H5Dopen2(file, "seqLengths", H5P_DEFAULT);
    hid_t type = 0;

    H5Dread(id, H5T_NATIVE_INT32, 0, 0, 0, lengths);
    H5Dclose(id);
    id = H5Dopen2(file, "bmuf/block_crc32c", H5P_DEFAULT);
    t.units = (size_t)H5Dget_storage_size(id) / 8;
    assert_true(t.units <= 10);
    H5Dread(id, H5T_NATIVE_UINT32, 0, 0, 0, crc);
    H5Dclose(id);
    id = H5Dopen2(file, "bmuf/block", H5P_DEFAULT);
    H5Dread(id, H5T_NATIVE_UINT64, 0, 0, 0, unit);
    H5Dclose(id);
    assert_ok(bm_shard_digest(&t, digest));
    type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, BM_DIGEST_LENGTH);
    forge_attribute(file, "tables_xxh3", type, digest);
    H5Tclose(type);
}

void forge_number(hid_t file, const char *name, hid_t type, size_t at,
                  uint32_t value)
{
    uint32_t x[64]; /* the bits, whatever the type */
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT);

    H5Dread(id, type, 0, 0, 0, x);
    x[at] = value;
    assert_true(H5Dwrite(id, type, 0, 0, 0, x) >= 0);
    H5Dclose(id);
    forge_seal(file);
}

void forge_label(const char *path, size_t at, int32_t value)
{
    bm_shard *s = NULL;
    bm_unit_size unit;
    int32_t labels[64];
    hid_t file = 0, id = 0;

    assert_ok(bm_shard_open(&s, path));
    unit = bm_shard_unit(s, 0);
    bm_shard_close(s);
    assert_true(at < unit.labels);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    id = H5Dopen2(file, "targets/data/classes", H5P_DEFAULT);
    H5Dread(id, H5T_NATIVE_INT32, 0, 0, 0, labels);
    labels[at] = value;
    assert_true(H5Dwrite(id, H5T_NATIVE_INT32, 0, 0, 0, labels) >= 0);
    H5Dclose(id);
    forge_number(file, "bmuf/block_crc32c", H5T_NATIVE_UINT32, 1,
                 bm_crc32c(labels, unit.labels * sizeof *labels));
    H5Fclose(file);
}

#include "tests/support/corpus.h"

#include "tests/support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

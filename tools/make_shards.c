/*
 * make_shards.c - writes a data set of noise, of any size, for measurements.
 *
 *     bmuf_shards DIR SHARDS SEQUENCES SHORTEST LONGEST [FEATURES [STORE]]
 *
 * Each shard has SEQUENCES sequences of SHORTEST to LONGEST frames, with one
 * label of ten classes for every 20 frames. Default: 80 features, f32.
 */
#include "core/rng.h"
#include "io/shard/shard.h"

#include <stdio.h>
#include <stdlib.h>

enum { TABLE = 1 << 20, FRAMES_PER_LABEL = 20 };

typedef struct set {
    const char *directory, *store;
    size_t shards, sequences, shortest, longest, features;
    bm_vocab *vocab;
    float *x;        /* [longest * features + TABLE] */
    int32_t *labels; /* [longest / FRAMES_PER_LABEL + 1] */
} set;

static bm_status prepare(set *s)
{
    bm_rng rng = bm_rng_make(1, "noise", 0);
    size_t n = s->longest * s->features + TABLE;
    size_t labels = s->longest / FRAMES_PER_LABEL + 1;

    s->x = malloc(n * sizeof *s->x);
    s->labels = malloc(labels * sizeof *s->labels);
    if (s->x == NULL || s->labels == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a sequence");
    for (size_t i = 0; i < n;
         i++) /* multiples of 1/32, which every store can hold */
        s->x[i] = (float)bm_rng_below(&rng, 256) / 32 - 4;
    for (size_t i = 0; i < labels; i++)
        s->labels[i] = 1 + (int32_t)bm_rng_below(&rng, 10);
    BM_TRY(bm_vocab_new(&s->vocab, false));
    return bm_vocab_learn(s->vocab, "abcdefghij");
}

static bm_status write_shard(const set *s, size_t shard)
{
    bm_shard_settings settings = {
        .unit_frames = 2000, .shard_mb = 1e6, .store = s->store};
    bm_shard_meta meta = {.features = s->features,
                          .vocab = s->vocab,
                          .features_text = "",
                          .quant_scale = 1.0 / 32,
                          .quant_offset = -4};
    bm_rng rng = bm_rng_make(1, "sequences", shard);
    bm_shard_writer *w = NULL;
    char text[48];
    size_t shards = 0;
    bm_status status = BM_OK;

    snprintf(text, sizeof text, "noise-%06zu", shard);
    BM_TRY(bm_shard_writer_open(&w, s->directory, text, &settings, &meta));
    for (size_t i = 0; i < s->sequences; i++) {
        size_t frames = s->shortest + (size_t)bm_rng_below(
                                          &rng, s->longest - s->shortest + 1);
        const float *x = s->x + bm_rng_below(&rng, TABLE);

        snprintf(text, sizeof text, "%zu-%zu", shard, i);
        BM_TRY_DONE(bm_shard_writer_add(w, text, NULL, x, frames, s->labels,
                                        frames / FRAMES_PER_LABEL));
    }
    status = bm_shard_writer_finish(w, &shards);
done:
    bm_shard_writer_close(w);
    return status;
}

static bm_status write_all(set *s)
{
    BM_TRY(prepare(s));
    for (size_t i = 0; i < s->shards; i++)
        BM_TRY(write_shard(s, i));
    return BM_OK;
}

/* A whole number above 0, or 0. */
static size_t number(const char *text)
{
    char *end = NULL;
    long x = strtol(text, &end, 10);

    return *end == '\0' && x > 0 ? (size_t)x : 0;
}

int main(int argc, char **argv)
{
    set s = {.store = argc > 7 ? argv[7] : "f32",
             .features = argc > 6 ? number(argv[6]) : 80};
    bm_status status = BM_OK;

    if (argc >= 6) {
        s.directory = argv[1];
        s.shards = number(argv[2]);
        s.sequences = number(argv[3]);
        s.shortest = number(argv[4]);
        s.longest = number(argv[5]);
    }
    if (argc < 6 || s.shards == 0 || s.sequences == 0 || s.shortest == 0 ||
        s.longest < s.shortest || s.features == 0) {
        fprintf(stderr, "usage: bmuf_shards DIR SHARDS SEQUENCES SHORTEST "
                        "LONGEST [FEATURES [STORE]]\n");
        return 64;
    }
    status = write_all(&s);
    if (status != BM_OK)
        fprintf(stderr, "bmuf_shards: %s\n", bm_last_message());
    bm_vocab_free(s.vocab);
    free(s.x);
    free(s.labels);
    return status == BM_OK ? 0 : 1;
}

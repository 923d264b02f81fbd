/* fuzz_shard.c - shards, byte by byte. Many mutants fail inside HDF5, which is
 * not built with sanitizers; fuzz_tables.c forges what HDF5 accepts. */
#include "tests/fuzz/fuzz_shard.h"

#include "io/inspect/describe.h"
#include "io/shard/shard.h"
#include "tests/fuzz/fuzz.h"

void fuzz_read_shard(const char *path)
{
    bm_shard *s = NULL;
    bm_sequences x = {0};
    bm_waveform wave = {0};

    if (bm_describe_data(path, false, fuzz_null()) == BM_OK)
        FUZZ_RULE(bm_describe_data(path, true, fuzz_null()) == BM_OK);
    if (bm_shard_open(&s, path) != BM_OK)
        return;
    for (size_t k = 0; k < 2 * bm_shard_units(s); k++) {
        x.packed = k % 2 != 0;
        if (bm_shard_read(s, k / 2, &x) == BM_OK)
            for (size_t i = 0; i < x.n; i++)
                FUZZ_RULE(x.frames[i] >= 0 && x.labels[i] >= 0);
    }
    for (size_t i = 0; i < bm_shard_sequences(s); i++)
        if (bm_shard_sample_rate(s) > 0 &&
            bm_shard_read_waveform(s, i, &wave) == BM_OK)
            FUZZ_RULE(wave.n <= bm_shard_samples(s));
    for (size_t i = 0; i < bm_shard_sequences(s); i++) {
        const char *tag = NULL, *speaker = NULL;

        if (bm_shard_tag(s, i, &tag) != BM_OK ||
            bm_shard_speaker(s, i, &speaker) != BM_OK)
            break;
        fputs(tag, fuzz_null());
        fputs(speaker, fuzz_null());
    }
    bm_sequences_free(&x);
    bm_waveform_free(&wave);
    bm_shard_close(s);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    (void)data;
    (void)size;
    fuzz_read_shard(path);
}

const fuzz_target fuzz_shard = {"shard", "x-00000.bmuf.h5", run, NULL};

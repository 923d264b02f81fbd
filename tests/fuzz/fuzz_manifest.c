/* fuzz_manifest.c - manifests of bmuf pack. */
#include "io/import/manifest/manifest.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <string.h>

static void run(const char *path, const uint8_t *data, size_t size)
{
    static const char *const kinds[] = {"audio", "image", "feats"};

    (void)data;
    for (size_t i = 0; i < 3; i++) {
        bm_manifest *m = NULL;

        unsigned allowed = i == 0 ? BM_MANIFEST_PIPES | BM_MANIFEST_SPEEDS : 0;

        if (bm_manifest_read(&m, path, kinds[i], 50, allowed) != BM_OK)
            continue;
        FUZZ_RULE(bm_manifest_size(m) > 0);
        for (size_t k = 0; k < bm_manifest_size(m); k++) {
            bm_manifest_row row = bm_manifest_at(m, k);

            FUZZ_RULE(strlen(row.id) > 0 && strlen(row.path) > 0);
            FUZZ_RULE(strlen(row.text) <= size && strlen(row.speaker) <= size);
            FUZZ_RULE(isfinite(row.start) && row.start >= 0);
            FUZZ_RULE(isfinite(row.duration) && row.duration >= 0);
            FUZZ_RULE(row.speed >= 0.25 && row.speed <= 4);
            FUZZ_RULE(row.speaker_number < bm_manifest_speakers(m));
        }
        bm_manifest_free(m);
    }
}

const fuzz_target fuzz_manifest = {"manifest", "list.jsonl", run, NULL};

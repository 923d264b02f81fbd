#include "io/import/lines/text_direction.h"

#include "core/log.h"
#include "io/bidi.h"

/* Of the texts that have letters, those of each direction. */
typedef struct directions {
    size_t left, right;
} directions;

static directions count(const bm_manifest *m)
{
    directions found = {0};

    for (size_t k = 0; k < bm_manifest_size(m); k++) {
        long letters = bm_text_letters_left(bm_manifest_at(m, k).text);

        found.left += letters > 0;
        found.right += letters < 0;
    }
    return found;
}

bool bm_texts_run_left(const bm_manifest *m, bool logs)
{
    directions found = count(m);
    bool run_left = found.left > found.right;

    if (logs && run_left)
        bm_log(BM_NOTE,
               "%s: %zu of %zu texts run from right to left, and so do the "
               "frames (features.right_to_left)",
               bm_manifest_path(m), found.left, bm_manifest_size(m));
    else if (logs && found.left > 0)
        bm_log(BM_WARNING,
               "%s: %zu of %zu texts run from right to left, and their labels "
               "against the frames, which cannot be learned: pack these lines "
               "apart, with features.right_to_left=yes (docs/data/images.md)",
               bm_manifest_path(m), found.left, bm_manifest_size(m));
    return run_left;
}

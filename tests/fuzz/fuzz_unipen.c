/* fuzz_unipen.c - paths of a pen in UNIPEN's format, with all their frames. */
#include "core/finite.h"
#include "io/import/importer.h"
#include "tests/fuzz/fuzz.h"

static void run(const char *path, const uint8_t *data, size_t size)
{
    bm_importer *i = NULL;
    bm_item item = {0};

    (void)data;
    (void)size;
    if (bm_importer_open(&i, "unipen", NULL,
                         &(bm_import_source){.path = path}) != BM_OK)
        return;
    for (;;) {
        FUZZ_RULE(i->ops->next(i, &item) == BM_OK);
        if (item.id == NULL)
            break;
        if (item.problem != NULL)
            continue;
        FUZZ_RULE(item.frames > 0 && item.features == 5);
        FUZZ_RULE(bm_all_finite(item.x, item.frames * item.features));
    }
    bm_importer_close(i);
}

const fuzz_target fuzz_unipen = {"unipen", "x.dat", run, NULL};

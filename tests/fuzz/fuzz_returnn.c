/* fuzz_returnn.c - HDF5 files of RETURNN. */
#include "core/finite.h"
#include "io/import/importer.h"
#include "tests/fuzz/fuzz.h"

enum { MOST = 1000 }; /* sequences that are read */

static void run(const char *path, const uint8_t *data, size_t size)
{
    bm_importer *i = NULL;
    bm_item item = {.id = ""};

    (void)data;
    (void)size;
    if (bm_importer_open(&i, "returnn", NULL,
                         &(bm_import_source){.path = path}) != BM_OK)
        return;
    FUZZ_RULE(i->ops->size(i) > 0);
    for (int k = 0; k < MOST && item.id != NULL; k++) {
        if (i->ops->next(i, &item) != BM_OK)
            break;
        if (item.id != NULL && item.problem == NULL)
            FUZZ_RULE(item.frames > 0 &&
                      bm_all_finite(item.x, item.frames * item.features));
        for (size_t n = 0; item.labels != NULL && n < item.n_labels; n++)
            FUZZ_RULE(item.labels[n] >= 0 &&
                      (size_t)item.labels[n] < bm_vocab_size(i->vocab));
    }
    bm_importer_close(i);
}

const fuzz_target fuzz_returnn = {"returnn", "x.hdf", run, NULL};

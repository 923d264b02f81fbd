/* fuzz_idx.c - images in MNIST's format, as the input says, with classes that
 * fit. */
#include "core/finite.h"
#include "io/import/importer.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

enum { MOST = 64 }; /* classes */

/* As many classes as the input has images, if they are few. */
static const char *write_classes(const uint8_t *data, size_t size)
{
    const char *path = fuzz_path("x-labels-idx1-ubyte");
    FILE *file = fopen(path, "wb");
    unsigned n = size > 7 ? data[7] % MOST : 0;

    FUZZ_RULE(file != NULL);
    FUZZ_RULE(fwrite((const uint8_t[]){0, 0, 8, 1, 0, 0, 0, (uint8_t)n}, 1, 8,
                     file) == 8);
    for (unsigned i = 0; i < n; i++)
        FUZZ_RULE(putc((int)i % 10, file) != EOF);
    FUZZ_RULE(fclose(file) == 0);
    return path;
}

/* All images, until an error. */
static void read_all(bm_importer *i)
{
    bm_item item = {.id = ""};

    while (item.id != NULL && i->ops->next(i, &item) == BM_OK)
        if (item.id != NULL)
            FUZZ_RULE(item.has_text &&
                      bm_all_finite(item.x, item.frames * item.features));
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    char setting[4200];
    bm_config *config = NULL;
    bm_importer *i = NULL;

    snprintf(setting, sizeof setting, "features.labels=%s",
             write_classes(data, size));
    FUZZ_RULE(bm_config_new(&config) == BM_OK);
    FUZZ_RULE(bm_config_set(config, setting) == BM_OK);
    if (bm_importer_open(&i, "idx", config,
                         &(bm_import_source){.path = path}) == BM_OK) {
        FUZZ_RULE(i->ops->size(i) < MOST);
        read_all(i);
        read_all(i);
    }
    bm_importer_close(i);
    bm_config_free(config);
}

/* Few images, and small ones. */
static size_t repair(uint8_t *data, size_t size, size_t room)
{
    (void)room;
    if (size < 16 || data[0] == 0x1f)
        return size;
    for (size_t k = 4; k < 16; k++)
        if (k % 4 != 3)
            data[k] = 0;
    data[7] %= MOST;
    return size;
}

const fuzz_target fuzz_idx = {"idx", "x-images-idx3-ubyte", run, repair};

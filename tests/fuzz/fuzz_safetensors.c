/* fuzz_safetensors.c - files of tensors, in any use of them. */
#include "io/model/model_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static void run(const char *path, const uint8_t *data, size_t size)
{
    bm_st_file *f = NULL;
    bool checkpoint = false;

    (void)data;
    if (bm_model_open(&f, path, &checkpoint) != BM_OK)
        return;
    for (size_t i = 0; i < bm_st_count(f); i++) {
        const bm_st_tensor *t = bm_st_at(f, i);
        uint64_t bytes = t->count * bm_dtype_size(t->dtype);
        double *x = NULL; /* aligned for all types */

        FUZZ_RULE(t->count <= size && bytes <= size);
        FUZZ_RULE(bm_st_find(f, t->name) == t);
        x = malloc(bytes + sizeof *x);
        FUZZ_RULE(x != NULL);
        if (bm_st_read(f, t, 0, t->count, x) == BM_OK && t->count > 1)
            FUZZ_RULE(bm_st_read(f, t, 1, t->count - 1, x) == BM_OK);
        free(x);
    }
    bm_st_free(f);
}

const fuzz_target fuzz_safetensors = {"safetensors", "x.safetensors", run,
                                      fuzz_repair_header};

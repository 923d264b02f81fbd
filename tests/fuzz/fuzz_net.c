/* fuzz_net.c - the line that describes a network: parsed, sized, and built if
 * it is small. */
#include "models/model.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

static void run(const char *path, const uint8_t *data, size_t size)
{
    static bm_backend *be;
    static const bm_model_shape shapes[] = {{40, 5, 1}, {3, 2, 2}};
    char *net = fuzz_text(data, size);

    (void)path;
    if (be == NULL)
        FUZZ_RULE(bm_backend_open(&be, "cpu", 0) == BM_OK);
    for (size_t i = 0; i < 4; i++) {
        bm_model_settings set = {net, i < 2 ? "ctc" : "cross_entropy", "skip"};
        bm_model *m = NULL;

        if (bm_model_new(&m, &set, &shapes[i % 2], be, 1) == BM_OK) {
            bm_model_print(m, fuzz_null());
            for (size_t frames = 0; frames < 3; frames++)
                FUZZ_RULE(bm_model_frames(m, frames) <= frames);
            FUZZ_RULE(bm_model_stride(m) > 0);
        }
        bm_model_free(m);
    }
    free(net);
}

const fuzz_target fuzz_net = {"net", "net.txt", run, NULL};

/* fuzz_model.c - models for bmuf eval and decode: the network of the header is
 * built, its weights are read, and features are set up as it says. */
#include "recognise/front_end.h"
#include "recognise/recogniser.h"
#include "tests/fuzz/fuzz.h"

static void run(const char *path, const uint8_t *data, size_t size)
{
    static bm_backend *be;
    bm_recogniser r = {0};
    bm_front_end *front = NULL;

    (void)data;
    if (be == NULL)
        FUZZ_RULE(bm_backend_open(&be, "cpu", 0) == BM_OK);
    if (bm_recogniser_read(&r, be, path, 1) != BM_OK)
        return;
    FUZZ_RULE(bm_model_params(r.model)->n * sizeof(float) <= size);
    if (bm_front_end_open(&front, r.features_text, r.features, 0) == BM_OK)
        bm_front_end_close(front);
    bm_recogniser_close(&r);
}

const fuzz_target fuzz_model = {"model", "model.safetensors", run,
                                fuzz_repair_header};

/* export.c - bmuf export: writes a model for other programs. */
#include "cli/export/model_npz.h"
#include "cli/export/onnx.h"
#include "cli/verbs.h"
#include "compute/backend.h"
#include "core/file.h"

/* Each writes the model of *r to a file. */
typedef struct format {
    const char *flag;
    bm_status (*write)(const bm_recogniser *r, const char *path);
} format;

static const format formats[] = {
    {"onnx", bm_onnx_write},
    {"npz", bm_model_npz_write},
};
enum { FORMATS = sizeof formats / sizeof formats[0] };

/* Before the model is read: wrong usage, and files that cannot be written. */
static bm_status check(const bm_arguments *a)
{
    size_t n = 0;

    for (size_t i = 0; i < FORMATS; i++) {
        const char *path = bm_argument(a, formats[i].flag);

        if (path == NULL)
            continue;
        BM_TRY(bm_file_try(path));
        n++;
    }
    if (n == 0)
        return BM_FAIL(BM_ERR_ARG,
                       "export: nothing to write; give --onnx FILE or --npz "
                       "FILE");
    return BM_OK;
}

static bm_status export(const bm_arguments *a)
{
    bm_recogniser r = {0};
    bm_backend *be = NULL;
    char model[4096];
    bm_status status = BM_OK;

    BM_TRY(check(a));
    BM_TRY(bm_recogniser_find(a->nouns[0], model, sizeof model));
    BM_TRY(bm_backend_open(&be, "cpu", 0));
    BM_TRY_DONE(bm_recogniser_read(&r, be, model, 1));
    for (size_t i = 0; i < FORMATS; i++) {
        const char *path = bm_argument(a, formats[i].flag);

        if (path != NULL)
            BM_TRY_DONE(formats[i].write(&r, path));
    }
done:
    bm_recogniser_close(&r);
    bm_backend_close(be);
    return status;
}

static const bm_flag flags[] = {
    {"onnx", "FILE", "write the network as a graph of ONNX", 0, false},
    {"npz", "FILE", "write the weights for NumPy, with PyTorch's names", 0,
     false},
    {0},
};

const bm_verb bm_verb_export = {
    .name = "export",
    .nouns = "MODEL|RUN",
    .help = "write a model for other programs: ONNX, NumPy",
    .text = "  bmuf export run --onnx net.onnx\n"
            "  bmuf export run/model.safetensors --npz net.npz\n\n"
            "docs/export.md describes the files.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = export,
};

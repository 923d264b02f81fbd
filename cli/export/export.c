/* export.c - bmuf export: writes a model for other programs, or with weights of
 * fewer bits for this one. */
#include "cli/export/model_npz.h"
#include "cli/export/onnx.h"
#include "cli/outputs.h"
#include "cli/verbs.h"
#include "compute/backend.h"
#include "core/file/file.h"
#include "core/file/search_folder.h"
#include "core/text/words.h"

#include <stdio.h>
#include <string.h>

enum { OUTPUTS = 3 };

static void list_outputs(const bm_arguments *a, bm_output out[OUTPUTS])
{
    out[0] = (bm_output){"--onnx", bm_argument(a, "onnx")};
    out[1] = (bm_output){"--npz", bm_argument(a, "npz")};
    out[2] = (bm_output){"--out", bm_argument(a, "out")};
}

/* Before the model is read: wrong usage, and files that cannot be written. */
static bm_status check(const bm_arguments *a, const char **weights)
{
    bm_output outputs[OUTPUTS];
    size_t n = 0;

    list_outputs(a, outputs);
    BM_TRY(bm_argument_word(a, "weights", "fp16 int8", NULL, weights));
    if ((*weights == NULL) != (bm_argument(a, "out") == NULL))
        return BM_FAIL(BM_ERR_ARG, "export: --weights and --out require each "
                                   "other, as in --weights fp16 --out FILE");
    for (size_t i = 0; i < OUTPUTS; i++)
        if (outputs[i].path != NULL) {
            BM_TRY(bm_file_try(outputs[i].path));
            n++;
        }
    if (n == 0)
        return BM_FAIL(BM_ERR_ARG,
                       "export: nothing to write; give --onnx FILE, --npz FILE "
                       "or --weights with --out FILE");
    return BM_OK;
}

/* Nothing replaces an input or a file of a run, and no model lies among those of a
 * run: verbs would take it for one of the run. */
static bm_status check_places(const bm_arguments *a, const char *model)
{
    const char *const inputs[] = {model, NULL};
    const char *out = bm_argument(a, "out"), *slash = NULL;
    bm_output outputs[OUTPUTS];
    char folder[4096] = ".";
    size_t n = 0;

    list_outputs(a, outputs);
    BM_TRY(bm_outputs_check(outputs, OUTPUTS, inputs));
    slash = out != NULL ? strrchr(out, '/') : NULL;
    if (out == NULL)
        return BM_OK;
    if (slash != NULL)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - out + 1), out);
    n = strlen(folder);
    if (bm_ends_with(folder, "/checkpoints/"))
        folder[n - strlen("checkpoints/")] = '\0';
    return bm_run_folder_refuse(folder);
}

static bm_status write_all(const bm_arguments *a, const bm_recogniser *r,
                           const char *weights)
{
    const char *onnx = bm_argument(a, "onnx"), *npz = bm_argument(a, "npz"),
               *out = bm_argument(a, "out");

    if (onnx != NULL)
        BM_TRY(bm_onnx_write(r, onnx));
    if (npz != NULL)
        BM_TRY(bm_model_npz_write(r, npz));
    if (out != NULL)
        BM_TRY(bm_recogniser_write_narrow(
            r, out, bm_model_params(r->model)->w,
            strcmp(weights, "fp16") == 0 ? BM_WEIGHTS_FP16 : BM_WEIGHTS_INT8));
    return BM_OK;
}

static bm_status export(const bm_arguments *a)
{
    bm_recogniser r = {0};
    bm_backend *be = NULL;
    char model[4096];
    const char *weights = NULL;
    bm_status status = BM_OK;

    BM_TRY(check(a, &weights));
    BM_TRY(bm_recogniser_find(a->nouns[0], model, sizeof model));
    BM_TRY(check_places(a, model));
    BM_TRY(bm_backend_open(&be, "cpu", 0));
    BM_TRY_DONE(bm_recogniser_read(&r, be, model, 1));
    status = write_all(a, &r, weights);
done:
    bm_recogniser_close(&r);
    bm_backend_close(be);
    return status;
}

static const bm_flag flags[] = {
    {"onnx", "FILE", "write the network as a graph of ONNX", 0, false},
    {"npz", "FILE", "write the weights for NumPy, with PyTorch's names", 0,
     false},
    {"weights", "fp16|int8",
     "write the model to --out with weights of 16 or 8 bits, half or a quarter "
     "as large",
     0, false},
    {"out", "FILE", "the model with fewer bits", 'o', false},
    {0},
};

const bm_verb bm_verb_export = {
    .name = "export",
    .nouns = "MODEL|RUN",
    .help = "write a model for other programs, or smaller for this one",
    .text = "  bmuf export run --onnx net.onnx\n"
            "  bmuf export run/model.safetensors --npz net.npz\n"
            "  bmuf export run --weights int8 --out small.safetensors\n\n"
            "docs/results/export.md describes the files. All verbs that read "
            "models read\nthose of --weights. For posteriors of a data set: "
            "bmuf eval "
            "--dump.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = export,
};

#include "io/model/model_file.h"

#include <stdlib.h>
#include <string.h>

bm_status bm_model_export_narrow(const char *path, const bm_params *params,
                                 const float *model, bm_weight_type type,
                                 const bm_text *texts)
{
    bm_st_writer *w = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_st_create(&w, path, false));
    BM_TRY_DONE(bm_st_meta(w, "format", BM_MODEL_FORMAT));
    for (; texts != NULL && texts->key != NULL; texts++)
        BM_TRY_DONE(bm_st_meta(w, texts->key, texts->text));
    if (type == BM_WEIGHTS_FP32) {
        BM_TRY_DONE(bm_model_declare(w, params, ""));
        BM_TRY_DONE(bm_st_write(w, model, params->n * sizeof *model));
    } else {
        BM_TRY_DONE(bm_model_write_narrow(w, params, type, model));
    }
    BM_TRY_DONE(bm_st_commit(w, NULL));
done:
    bm_st_close(w);
    return status;
}

bm_status bm_model_export(const char *path, const bm_params *params,
                          const float *model, const bm_text *texts)
{
    return bm_model_export_narrow(path, params, model, BM_WEIGHTS_FP32, texts);
}

bm_status bm_model_open(bm_st_file **out, const char *path, bool *checkpoint)
{
    const char *format = NULL;
    bm_st_file *f = NULL;

    BM_TRY(bm_st_open(&f, path, false));
    format = bm_st_text(f, "format");
    *checkpoint = format != NULL && strcmp(format, BM_CHECKPOINT_FORMAT) == 0;
    if (*checkpoint) {
        bm_st_free(f);
        return bm_st_open(out, path, true);
    }
    *out = f;
    return BM_OK;
}

bm_status bm_model_text(const bm_st_file *f, const char *path, const char *key,
                        char **out)
{
    const char *text = bm_st_text(f, key);
    char *copy = NULL;

    if (text == NULL)
        return BM_FAIL(BM_ERR_FORMAT, "%s: the header has no text '%s'", path,
                       key);
    copy = strdup(text);
    if (copy == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the %s of %s", key, path);
    *out = copy;
    return BM_OK;
}

bm_status bm_model_check_tensors(const bm_st_file *f, const char *path,
                                 bool checkpoint, const bm_params *params)
{
    const char *prefix = checkpoint ? "model." : "";

    BM_TRY(bm_model_match(f, path, params, prefix));
    for (size_t i = 0; i < bm_st_count(f) && !checkpoint; i++)
        if (!bm_model_has(f, params, prefix, bm_st_at(f, i)->name))
            return BM_FAIL(BM_ERR_FORMAT, "%s: tensor %s is not in the network",
                           path, bm_st_at(f, i)->name);
    return BM_OK;
}

bool bm_model_in_bytes(const bm_st_file *f)
{
    for (size_t i = 0; i < bm_st_count(f); i++)
        if (bm_st_at(f, i)->dtype == BM_I8)
            return true;
    return false;
}

bm_status bm_model_load(bm_st_file *f, bool checkpoint, const bm_params *params,
                        float *model)
{
    return bm_model_read(f, params, checkpoint ? "model." : "", 0, params->n,
                         model);
}

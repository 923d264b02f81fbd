/*
 * importer.c - the registry of importers.
 */
#include "io/import/importer.h"

#include <stdlib.h>
#include <string.h>

static const bm_importer_ops *const importers[] = {
#define X(name, file) &bm_importer_##name,
    BM_IMPORTERS(X)
#undef X
        NULL,
};

const bm_importer_ops *const *bm_importer_list(void)
{
    return importers;
}

static const bm_importer_ops *find(const char *name)
{
    for (const bm_importer_ops *const *o = importers; *o != NULL; o++)
        if (strcmp((*o)->name, name) == 0)
            return *o;
    return NULL;
}

bm_status bm_importer_open(bm_importer **out, const char *name,
                           const bm_config *config,
                           const bm_import_source *source)
{
    const bm_importer_ops *ops = find(name);
    bm_importer *i = NULL;
    bm_status status = BM_OK;

#define X(known, file) " " #known
    if (ops == NULL)
        return BM_FAIL(BM_ERR_ARG,
                       "unknown importer '%s'; the importers are:%s", name,
                       BM_IMPORTERS(X));
#undef X
    i = calloc(1, sizeof *i);
    if (i == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an importer");
    i->ops = ops;
    i->settings = calloc(1, ops->settings_size);
    if (i->settings == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for an importer");
    BM_TRY_DONE(
        bm_config_fill(config, ops->section, ops->options, i->settings));
    if (ops->copies)
        BM_TRY_DONE(
            bm_config_fill(config, "copies", bm_copies_options, &i->copies));
    if (source->like != NULL)
        BM_TRY_DONE(bm_cmvn_read(&i->norm, source->like));
    BM_TRY_DONE(ops->open(i, source));
    *out = i;
    i = NULL;
done:
    bm_importer_close(i);
    return status;
}

bm_status bm_importer_each(bm_importer *i, bm_import_take *take, void *self)
{
    bm_item item = {0};

    if (i->ops->each != NULL)
        return i->ops->each(i, take, self);
    for (;;) {
        BM_TRY(i->ops->next(i, &item));
        if (item.id == NULL)
            return BM_OK;
        BM_TRY(take(self, &item));
    }
}

void bm_importer_close(bm_importer *i)
{
    if (i == NULL)
        return;
    i->ops->close(i);
    bm_cmvn_free(&i->norm);
    bm_vocab_free(i->vocab);
    free(i->settings);
    free(i);
}

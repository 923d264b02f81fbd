/*
 * importer.c - the registry of importers.
 */
#include "io/import/importer.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Collective. The status of all ranks. What rank 0 can open and another rank
 * cannot, that one's host does not see. */
static bm_status agree(bm_comm *comm, bm_status status)
{
    bm_status first = status;
    char host[64] = "";

    if (comm == NULL)
        return status;
    BM_TRY(bm_comm_broadcast_bytes(comm, &first, sizeof first, 0));
    if (status != BM_OK && first == BM_OK) {
        (void)gethostname(host, sizeof host - 1);
        status = BM_FAIL(status,
                         "%s (on host %s; rank 0 can open it: all hosts must "
                         "see the same files by the same paths)",
                         bm_last_message(), host);
    }
    return bm_comm_agree(comm, status);
}

/* What this process can do alone. */
static bm_status open_own(bm_importer *i, const bm_config *config,
                          const bm_import_source *source)
{
    const bm_importer_ops *ops = i->ops;

    if (source->samples && !ops->recordings)
        return BM_FAIL(BM_ERR_CONFIG,
                       "shard.samples = yes: %s has no recordings; set it to "
                       "no",
                       source->path);
    i->settings = calloc(1, ops->settings_size);
    if (i->settings == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an importer");
    BM_TRY(bm_config_fill(config, ops->section, ops->options, i->settings));
    if (ops->recordings)
        BM_TRY(bm_config_fill(config, "copies", bm_copies_options, &i->copies));
    if (source->like != NULL)
        BM_TRY(bm_cmvn_read(&i->norm, source->like));
    return ops->open(i, source);
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
    BM_ASSERT(source->comm == NULL || ops->each != NULL);
    i = calloc(1, sizeof *i);
    if (i == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an importer");
    i->ops = ops;
    i->comm = source->comm;
    BM_TRY_DONE(agree(source->comm, open_own(i, config, source)));
    if (ops->complete != NULL)
        BM_TRY_DONE(ops->complete(i));
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

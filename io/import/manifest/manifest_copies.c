/*
 * manifest_copies.c - more rows for each recording of a manifest, after it.
 */
#include "io/import/manifest/manifest_parts.h"

#include "io/shard/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bm_status make_copy(bm_manifest *m, const bm_manifest_entry *from,
                           size_t number, bm_manifest_entry *out)
{
    char id[BM_LONGEST_TAG + 1];
    int n = snprintf(id, sizeof id, "%s-copy%zu", m->text + from->id, number);

    *out = *from;
    out->copy = number;
    if (n >= 0 && (size_t)n < sizeof id)
        return bm_manifest_keep(m, id, &out->id);
    bm_manifest_fault(m, from->line,
                      "the id of a copy, %.60s..-copy%zu, is longer than %d "
                      "bytes",
                      m->text + from->id, number, BM_LONGEST_TAG);
    return BM_OK;
}

bm_status bm_manifest_copy(bm_manifest *m, size_t copies)
{
    size_t each = copies + 1;
    bm_manifest_entry *all = NULL;

    BM_ASSERT(m->copies == 0);
    if (copies == 0)
        return BM_OK;
    if (m->n < SIZE_MAX / sizeof *all / each)
        all = malloc(m->n * each * sizeof *all);
    if (all == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu copies of %s", copies,
                       m->path);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < each; k++)
            all[i * each + k] = m->entries[i];
    free(m->entries);
    m->entries = all;
    m->n *= each;
    m->room = m->n;
    m->copies = copies;
    for (size_t i = 0; i < m->n; i += each)
        for (size_t k = 1; k < each; k++)
            BM_TRY(make_copy(m, &m->entries[i], k, &m->entries[i + k]));
    BM_TRY(bm_manifest_check_ids(m));
    return bm_manifest_verdict(m, BM_ERR_FORMAT, "problem", "problems");
}

#include "io/import/import_base.h"

#include <stdlib.h>
#include <string.h>

bm_status bm_import_open(bm_importer *i, size_t self_size, const char *path,
                         const char *kind, double most_missing,
                         bm_import_read *read)
{
    bm_import_base *b = i->self = calloc(1, self_size);

    if (b == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an importer");
    b->read = read;
    return bm_manifest_read(&b->manifest, path, kind, most_missing);
}

void bm_import_close(bm_importer *i)
{
    bm_import_base *b = i->self;

    if (b == NULL)
        return;
    bm_manifest_free(b->manifest);
    bm_chain_free(b->chain);
    bm_frames_free(&b->frames);
    free(b->described);
    free(b);
}

bm_status bm_import_probe(bm_importer *i, bm_import_look *look,
                          const char *noun)
{
    const bm_manifest *m = ((bm_import_base *)i->self)->manifest;
    size_t n = bm_manifest_size(m), readable = 0;
    bool enough = false;
    bm_problem first = {0};

    for (size_t k = 0; k < n && !enough; k++) {
        bm_manifest_row row = bm_manifest_at(m, k);
        bm_problem problem = {0};

        BM_TRY(look(i, &row, &enough, &problem));
        if (!bm_problem_is(&problem))
            readable++;
        else if (!bm_problem_is(&first))
            first = problem;
    }
    if (readable == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s: none of the %zu %s can be read: %s",
                       bm_manifest_path(m), n, noun, first.text);
    return BM_OK;
}

static bm_status check_speakers(const bm_importer *i)
{
    const bm_import_base *b = i->self;

    for (size_t k = 0; k < bm_manifest_size(b->manifest); k++) {
        bm_manifest_row row = bm_manifest_at(b->manifest, k);
        if (row.speaker[0] == '\0')
            return BM_FAIL(BM_ERR_CONFIG,
                           "%s.normalise = speaker, but %s:%zu has no "
                           "\"speaker\"; add it there, or normalise by "
                           "utterance or global",
                           i->ops->section, bm_manifest_path(b->manifest),
                           row.line);
    }
    return BM_OK;
}

/* Reads a row to b->frames, or sets b->problem. */
static bm_status read_row(bm_importer *i, const bm_manifest_row *row)
{
    bm_import_base *b = i->self;

    b->problem.text[0] = '\0';
    b->remark = NULL;
    return b->read(i, row, &b->frames, &b->problem);
}

bm_status bm_import_refine(bm_importer *i, const bm_chain_settings *s,
                           size_t dim)
{
    bm_import_base *b = i->self;

    BM_TRY(bm_chain_new(&b->chain, s, i->ops->section, dim,
                        bm_manifest_speakers(b->manifest)));
    BM_TRY(bm_chain_give(b->chain, i->ops->section, &i->norm));
    if (bm_chain_needs_speakers(b->chain))
        BM_TRY(check_speakers(i));
    if (!bm_chain_learns(b->chain))
        return BM_OK;
    for (size_t k = 0; k < bm_manifest_size(b->manifest); k++) {
        bm_manifest_row row = bm_manifest_at(b->manifest, k);

        BM_TRY(read_row(i, &row));
        if (!bm_problem_is(&b->problem))
            BM_TRY(bm_chain_learn(b->chain, row.speaker_number, &b->frames));
    }
    return BM_OK;
}

bm_status bm_import_describe(bm_importer *i)
{
    bm_import_base *b = i->self;
    const bm_cmvn *norm = NULL;

    if (b->chain != NULL)
        BM_TRY(bm_chain_norm(b->chain, &norm));
    return bm_features_describe(&b->described, i->ops->name, i->ops->options,
                                i->settings, norm);
}

bm_status bm_import_text(bm_importer *i, const char **text)
{
    bm_import_base *b = i->self;

    if (b->text_row == bm_manifest_size(b->manifest)) {
        b->text_row = 0;
        *text = NULL;
    } else {
        *text = bm_manifest_at(b->manifest, b->text_row++).text;
    }
    return BM_OK;
}

bm_status bm_import_next(bm_importer *i, bm_item *item)
{
    bm_import_base *b = i->self;
    const bm_frames *x = &b->frames;
    bm_manifest_row row;
    bool good;

    if (b->next_row == bm_manifest_size(b->manifest)) {
        b->next_row = 0;
        *item = (bm_item){0};
        return BM_OK;
    }
    row = bm_manifest_at(b->manifest, b->next_row++);
    BM_TRY(read_row(i, &row));
    good = !bm_problem_is(&b->problem);
    if (good && b->chain != NULL)
        BM_TRY(bm_chain_apply(b->chain, row.speaker_number, &b->frames, &x));
    *item = (bm_item){
        .id = row.id,
        .speaker = row.speaker,
        .text = row.text,
        .has_text = row.has_text,
        .problem = good ? NULL : &b->problem,
        .remark = good ? b->remark : NULL,
        .x = good ? x->x : NULL,
        .frames = good ? x->n : 0,
        .features = good ? x->dim : 0,
    };
    return BM_OK;
}

size_t bm_import_size(const bm_importer *i)
{
    return bm_manifest_size(((const bm_import_base *)i->self)->manifest);
}

void bm_import_meta(const bm_importer *i, bm_shard_meta *meta)
{
    const bm_import_base *b = i->self;

    *meta = (bm_shard_meta){
        .features = b->chain != NULL ? bm_chain_features(b->chain) : 0,
        .features_text = b->described,
        .frame_shift = b->frame_shift,
    };
}

/* import_processing.c - the processing of features that an importer learns: means
 * of speakers, or of all; and what shards say of it. */
#include "core/config/faults.h"
#include "core/file/path.h"
#include "io/import/files/kaldi_cmvn.h"
#include "io/import/import_base.h"
#include "io/import/same_files.h"

#include <stdio.h>
#include <stdlib.h>

static bm_status check_speakers(const bm_importer *i)
{
    const bm_import_base *b = i->self;
    const bm_manifest *m = b->manifest;
    const char *norm =
        bm_chain_needs_statistics(b->chain) ? "kaldi" : "speaker";
    bm_faults faults = {0};

    for (size_t k = 0; k < bm_manifest_size(m); k++) {
        bm_manifest_row row = bm_manifest_at(m, k);
        char where[600];

        snprintf(where, sizeof where, "%.500s:%zu", bm_manifest_path(m),
                 row.line);
        if (row.speaker[0] == '\0' && row.copy == 0)
            bm_fault_add(&faults, where, "%.100s has no \"speaker\"", row.id);
    }
    if (faults.n == 0)
        return BM_OK;
    if (faults.n == bm_manifest_size(m) / (bm_manifest_copies(m) + 1))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s.normalise = %s needs the speaker of each row, and "
                       "none of %s has one; add \"speaker\" (in Kaldi's "
                       "directories utt2spk), or normalise by utterance or "
                       "global",
                       i->ops->section, norm, bm_manifest_path(m));
    return BM_FAIL(
        BM_ERR_FORMAT,
        "%s.normalise = %s needs the speaker of each row; add it, or "
        "normalise by utterance or global:%s%s",
        i->ops->section, norm, faults.text, bm_faults_more(&faults).text);
}

static void take_statistics(void *self, size_t speaker, const double *moments)
{
    bm_chain_take(self, speaker, moments);
}

/* Gives the chain the statistics of cmvn.scp, beside the manifest. */
static bm_status read_statistics(const bm_import_base *b, size_t dim)
{
    const char *list = bm_manifest_path(b->manifest);
    size_t speakers = bm_manifest_speakers(b->manifest);
    const char **names = calloc(speakers, sizeof *names);
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.*scmvn.scp",
                     (int)bm_path_folder_length(list), list);
    bm_status status = BM_OK;

    if (names == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu speakers", speakers);
    for (size_t k = 0; k < bm_manifest_size(b->manifest); k++) {
        bm_manifest_row row = bm_manifest_at(b->manifest, k);
        names[row.speaker_number] = row.speaker;
    }
    if (n < 0 || (size_t)n >= sizeof path)
        status = BM_FAIL(BM_ERR_MISSING, "%.60s..: path too long", list);
    else
        status = bm_kaldi_cmvn_read(path, names, speakers, dim, take_statistics,
                                    b->chain);
    free(names);
    return status;
}

bm_status bm_import_refine(bm_importer *i, const bm_chain_settings *s,
                           size_t dim)
{
    bm_import_base *b = i->self;

    BM_TRY(bm_chain_new(&b->chain, s, i->ops->section, dim,
                        bm_manifest_speakers(b->manifest)));
    b->subsample = (size_t)s->subsample;
    for (size_t k = 0; k < b->n_readers && b->parts->open_own != NULL; k++)
        BM_TRY(b->parts->open_own(i, &b->readers[k].own));
    BM_TRY(bm_chain_give(b->chain, i->ops->section, &i->norm));
    if (bm_chain_needs_speakers(b->chain))
        BM_TRY(check_speakers(i));
    return bm_chain_needs_statistics(b->chain) ? read_statistics(b, dim)
                                               : BM_OK;
}

/* Collective. The first pass, for all ranks. */
static bm_status learn(bm_importer *i)
{
    bm_import_base *b = i->self;
    double *moments = NULL;
    size_t n = 0;

    if (b->chain == NULL || !bm_chain_learns(b->chain))
        return BM_OK;
    BM_TRY(bm_import_walk(i));
    if (i->comm == NULL)
        return BM_OK;
    moments = bm_chain_moments(b->chain, &n);
    return bm_comm_broadcast_bytes(i->comm, moments, n * sizeof *moments, 0);
}

/* Describes the settings as they are now, with those that the files decided. */
static bm_status describe(bm_importer *i)
{
    bm_import_base *b = i->self;
    const bm_cmvn *norm = NULL;

    if (b->chain != NULL)
        BM_TRY(bm_chain_norm(b->chain, &norm));
    BM_TRY(bm_features_describe(&b->described, i->ops->kind, i->ops->options,
                                i->settings, norm));
    if (i->copies.count == 0)
        return BM_OK;
    return bm_features_describe_more(&b->described, "copies", bm_copies_options,
                                     &i->copies);
}

bm_status bm_import_complete(bm_importer *i)
{
    const bm_import_base *b = i->self;

    if (i->comm != NULL)
        BM_TRY(bm_same_files(i->comm, b->manifest));
    BM_TRY(learn(i));
    return describe(i);
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

size_t bm_import_size(const bm_importer *i)
{
    return bm_manifest_size(((const bm_import_base *)i->self)->manifest);
}

void bm_import_meta(const bm_importer *i, bm_shard_meta *meta)
{
    const bm_import_base *b = i->self;
    size_t moments = 0;

    if (b->sample_rate > 0)
        (void)bm_chain_moments_of(b->chain, 0, &moments);
    *meta = (bm_shard_meta){
        .features = b->chain != NULL ? bm_chain_features(b->chain) : 0,
        .features_text = b->described,
        .frame_shift = b->frame_shift,
        .sample_rate = b->sample_rate,
        .moments = moments,
        .per_frame = b->classes != NULL,
    };
}

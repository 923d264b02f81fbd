#include "cli/pack/resume.h"

#include "core/file/file.h"
#include "core/grow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bm_packed_free(bm_packed *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->tags[i]);
    free(p->tags);
    *p = (bm_packed){0};
}

/* The shard must be what this packing would write; `last`: no file follows. */
static bm_status check_shard(const bm_packed *p, bm_shard *s, bool last,
                             const char *path, const char *store,
                             const bm_shard_meta *meta)
{
    bm_shard_place place = bm_shard_place_of(s);
    const char *form = bm_shard_text_form(s), *what = NULL;

    if (place.index != p->place.index || place.first != p->place.first ||
        place.before != p->place.before ||
        (place.count > 0 && !(last && place.count == place.index + 1)))
        what = "another place in its set";
    else if (strcmp(bm_shard_features_text(s), meta->features_text) != 0)
        what = "features with other settings";
    else if (!bm_vocab_equal(bm_shard_vocab(s), meta->vocab))
        what = "another vocabulary";
    else if (form == NULL || strcmp(form, meta->text_form) != 0)
        what = "texts that were normalised in another way";
    else if (bm_shard_per_frame(s) != meta->per_frame)
        what = "another kind of labels";
    else if (strcmp(bm_store_name(bm_shard_store(s)), store) != 0)
        what = "another shard.store";
    else if (bm_shard_sample_rate(s) != meta->sample_rate)
        what = "another shard.samples";
    if (what != NULL)
        return BM_FAIL(
            BM_ERR_CREATE,
            "%s has %s, so packing cannot be resumed; give the options that it "
            "was packed with, or pack again with --force",
            path, what);
    return BM_OK;
}

static bm_status add_tag(bm_packed *p, const char *tag)
{
    BM_TRY(bm_grow(&p->tags, p->n, &p->room, sizeof(char *)));
    p->tags[p->n] = strdup(tag);
    if (p->tags[p->n] == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a name");
    p->n++;
    return BM_OK;
}

static bm_status add_shard(bm_packed *p, bm_shard *s)
{
    const int32_t *lengths = bm_shard_lengths(s);
    const char *tag = NULL;

    for (size_t i = 0; i < bm_shard_sequences(s); i++) {
        BM_TRY(bm_shard_tag(s, i, &tag));
        BM_TRY(add_tag(p, tag));
        p->frames += (size_t)lengths[2 * i];
        p->labels += (size_t)lengths[2 * i + 1];
    }
    p->place = bm_shard_place_after(s);
    p->shards++;
    return BM_OK;
}

bm_status bm_packed_read(bm_packed *p, const char *directory, const char *name,
                         const char *store, const bm_shard_meta *meta)
{
    char path[PATH_MAX], next[PATH_MAX];
    bm_shard *s = NULL;
    bm_status status = BM_OK;

    for (int64_t index = 0;; index++) {
        bool last = false;

        BM_TRY(bm_shard_path(path, directory, name, index));
        BM_TRY(bm_shard_path(next, directory, name, index + 1));
        if (access(path, F_OK) != 0)
            return BM_OK;
        last = access(next, F_OK) != 0;
        BM_TRY(bm_shard_open(&s, path));
        status = check_shard(p, s, last, path, store, meta);
        p->complete = bm_shard_place_of(s).count > 0;
        if (status == BM_OK && (!last || p->complete))
            status = add_shard(p, s);
        bm_shard_close(s);
        BM_TRY(status);
        if (last)
            return BM_OK;
    }
}

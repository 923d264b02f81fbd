/* infeasible.c - the first LOGGED sequences of a run are named. */
#include "bmuf/trainer/infeasible.h"

#include "core/log.h"
#include "core/text/words.h"

#include <stdlib.h>

enum { LOGGED = 10 }; /* sequences to name */

#define SUBSAMPLE_LESS                                                         \
    "subsample less in model.net (pool, stride, stack) or at packing "         \
    "(features.columns of images, features.subsample)"

struct bm_infeasible_check {
    const bm_model *model; /* borrowed */
    bool *bad;             /* [room] */
    size_t room;
    int64_t found;
};

static bool fits(const void *self, size_t frames, const int32_t *labels,
                 size_t n_labels)
{
    const bm_model *m = self;

    return bm_model_frames(m, frames) > 0 && bm_model_takes(m, frames) &&
           bm_model_fits(m, frames, labels, n_labels);
}

bm_fit bm_infeasible_fit(const bm_model *model)
{
    return (bm_fit){fits, model};
}

bm_status bm_infeasible_check_new(bm_infeasible_check **out,
                                  const bm_model *model)
{
    bm_infeasible_check *m = calloc(1, sizeof *m);

    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to check sequences");
    m->model = model;
    *out = m;
    return BM_OK;
}

void bm_infeasible_check_free(bm_infeasible_check *m)
{
    if (m == NULL)
        return;
    free(m->bad);
    free(m);
}

static bm_status make_room(bm_infeasible_check *m, size_t n)
{
    bool *grown = NULL;

    if (n <= m->room)
        return BM_OK;
    grown = realloc(m->bad, n * sizeof *grown);
    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu sequences", n);
    m->bad = grown;
    m->room = n;
    return BM_OK;
}

/* What becomes of them. */
static const char *fate(const bm_model *m)
{
    return bm_model_infeasible(m) == BM_INFEASIBLE_ZERO ? "counted with loss 0"
                                                        : "skipped";
}

static bm_status report(bm_infeasible_check *m, bm_reader *reader,
                        const bm_batch *b, size_t i)
{
    bool refuse = bm_model_infeasible(m->model) == BM_INFEASIBLE_ERROR;
    size_t frames = bm_model_frames(m->model, (size_t)b->extent.frames[i]);
    const int32_t *labels = b->targets.classes;
    size_t n = (size_t)b->targets.count[i], repeats = 0;
    const char *tag = NULL;
    bm_counted of_labels = bm_count_noun((long long)n, "label");
    bm_counted of_frames = bm_count_noun((long long)frames, "frame");
    bm_counted of_repeats;

    if (b->extent.frames[i] == 0 && !refuse)
        return BM_OK; /* the reader has named it: its features are not finite */
    if (m->found == LOGGED && !refuse)
        bm_log(BM_WARNING, "more sequences are %s; their names are not listed",
               fate(m->model));
    if (m->found++ >= LOGGED && !refuse)
        return BM_OK;
    tag = bm_reader_tag(reader, b->id[i]);
    if (b->extent.frames[i] == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has NaN or infinite features; leave it out, or set "
                       "model.infeasible = skip",
                       tag);
    for (size_t j = 0; j < i; j++)
        labels += b->targets.count[j];
    repeats = bm_ctc_repeats(labels, n);
    of_repeats = bm_count_noun((long long)repeats, "repeat");
    if (refuse)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s: %s with %s do not fit into %s; leave it out, " SUBSAMPLE_LESS
            ", or set model.infeasible = skip",
            tag, of_labels.text, of_repeats.text, of_frames.text);
    bm_log(BM_WARNING, "%s: %s with %s do not fit into %s, %s", tag,
           of_labels.text, of_repeats.text, of_frames.text, fate(m->model));
    return BM_OK;
}

bm_status bm_infeasible_check_look(bm_infeasible_check *m, bm_reader *reader,
                                   const bm_batch *batch, const bool **bad)
{
    BM_TRY(make_room(m, batch->extent.B));
    bm_model_find_infeasible(m->model, batch, m->bad);
    for (size_t i = 0; i < batch->extent.B; i++)
        if (m->bad[i] && reader != NULL)
            BM_TRY(report(m, reader, batch, i));
    *bad = m->bad;
    return BM_OK;
}

int64_t bm_infeasible_count(const bm_model *model, const bm_dataset *data)
{
    int64_t n = 0;

    if (bm_model_loss(model)->per_frame)
        return 0;
    for (size_t i = 0; i < data->n; i++)
        n += (size_t)data->lengths[2 * i + 1] >
             bm_model_frames(model, (size_t)data->lengths[2 * i]);
    return n;
}

bool bm_infeasible_describe(const bm_model *model, const bm_dataset *data,
                            const char *name, char *out, size_t room)
{
    int64_t bad = bm_infeasible_count(model, data);

    snprintf(out, room,
             "%lld of %s of %s have more labels than model.net leaves frames: "
             "%s (model.infeasible); of others, labels that repeat may need "
             "more frames",
             (long long)bad, bm_count_noun((long long)data->n, "sequence").text,
             name, fate(model));
    return bad > 0;
}

/* The name of the first sequence that does not fit; "": none can be read. */
static const char *first_of(const bm_model *model, bm_dataset *data)
{
    const char *tag = "";

    for (size_t i = 0; i < data->n; i++)
        if ((size_t)data->lengths[2 * i + 1] >
            bm_model_frames(model, (size_t)data->lengths[2 * i]))
            return bm_dataset_tag(data, (int64_t)i, &tag) == BM_OK ? tag : "";
    return tag;
}

bm_status bm_infeasible_check_data(const bm_model *model, bm_dataset *data,
                                   const char *name)
{
    int64_t bad = bm_infeasible_count(model, data);
    bool refuse = bm_model_infeasible(model) == BM_INFEASIBLE_ERROR;
    bool most = 2 * bad > (int64_t)data->n;
    size_t longest = (size_t)data->longest;

    if (data->n == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s = %s has no sequences", name,
                       data->directory);
    if (data->labels == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s = %s has no labels; pack it with texts", name,
                       data->directory);
    if (bad == 0 || (!most && !refuse))
        return BM_OK;
    if (!most)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%lld of %zu sequences of %s = %s have more labels than "
                       "model.net leaves frames, %s first; " SUBSAMPLE_LESS
                       ", leave them out, or set model.infeasible = skip",
                       (long long)bad, data->n, name, data->directory,
                       first_of(model, data));
    return BM_FAIL(BM_ERR_FORMAT,
                   "%lld of %zu sequences of %s = %s have more labels than "
                   "model.net leaves frames: it leaves %zu of the %zu of the "
                   "longest; " SUBSAMPLE_LESS,
                   (long long)bad, data->n, name, data->directory,
                   bm_model_frames(model, longest), longest);
}

bm_status bm_infeasible_check_longest(const bm_model *model, bm_dataset *data,
                                      const char *name)
{
    const char *tag = "";
    size_t longest = 0;

    if (data == NULL || data->n == 0)
        return BM_OK;
    for (size_t i = 1; i < data->n; i++)
        if (data->lengths[2 * i] > data->lengths[2 * longest])
            longest = i;
    if (bm_model_takes(model, (size_t)data->lengths[2 * longest]))
        return BM_OK;
    BM_TRY(bm_dataset_tag(data, (int64_t)longest, &tag));
    return BM_FAIL(BM_ERR_CONFIG,
                   "%s = %s: %s has %d frames, too many for the attention of "
                   "model.net; leave it out, or subsample more in front of it",
                   name, data->directory, tag, (int)data->lengths[2 * longest]);
}

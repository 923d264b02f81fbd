#include "cli/align/frame_targets.h"

#include <stdio.h>
#include <stdlib.h>

struct bm_frame_targets {
    bm_shard_writer *writer;
    const bm_vocab *vocab; /* borrowed */
    char vocab_path[4096];
    bool nearest;
    int32_t *outputs, *classes; /* of a sequence: [room] */
    size_t room;
};

bm_status bm_frame_targets_open(bm_frame_targets **out, const char *directory,
                                const bm_dataset *data, bool nearest)
{
    const bm_shard *like = data->shards[0];
    bm_stored stored = bm_shard_stored(like);
    bm_shard_settings set = {0};
    bm_shard_meta meta = {.features = data->features,
                          .vocab = bm_dataset_vocab(data),
                          .features_text = bm_shard_features_text(like),
                          .text_form = bm_shard_text_form(like),
                          .frame_shift = bm_shard_frame_shift(like),
                          .per_frame = true};
    bm_frame_targets *f = calloc(1, sizeof *f);
    bm_status status = BM_OK;

    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for frame targets");
    BM_TRY_DONE(bm_config_fill(NULL, "shard", bm_shard_options, &set));
    set.store = bm_store_name(bm_shard_store(like));
    if (stored.scale != NULL) {
        meta.quant_scale = (double)stored.scale[0];
        meta.quant_offset = (double)stored.offset[0];
    }
    f->vocab = meta.vocab;
    f->nearest = nearest;
    snprintf(f->vocab_path, sizeof f->vocab_path, "%s/vocab.txt", directory);
    BM_TRY_DONE(
        bm_shard_writer_open(&f->writer, directory, "data", &set, &meta));
    *out = f;
    f = NULL;
done:
    bm_frame_targets_close(f);
    return status;
}

void bm_frame_targets_close(bm_frame_targets *f)
{
    if (f == NULL)
        return;
    bm_shard_writer_close(f->writer);
    free(f->outputs);
    free(f->classes);
    free(f);
}

static bm_status make_room(bm_frame_targets *f, size_t n)
{
    int32_t **all[] = {&f->outputs, &f->classes};

    if (n <= f->room)
        return BM_OK;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        int32_t *grown = realloc(*all[i], n * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu frames", n);
        *all[i] = grown;
    }
    f->room = n;
    return BM_OK;
}

/* outputs [n_outputs] <- the class of each output of the network. */
static void fill_outputs(int32_t *outputs, size_t n_outputs, bool nearest,
                         const int32_t *labels, const bm_label_span *spans,
                         size_t n)
{
    size_t i = 0; /* the label whose span ends last before t, or has it */

    for (size_t t = 0; t < n_outputs; t++) {
        size_t chosen = 0;

        while (i + 1 < n && (size_t)spans[i + 1].first <= t)
            i++;
        chosen = i;
        if (n == 0 || (!nearest && ((size_t)spans[i].first > t ||
                                    (size_t)spans[i].last < t))) {
            outputs[t] = 0;
            continue;
        }
        if (i + 1 < n && (size_t)spans[i].last < t &&
            (size_t)spans[i + 1].first - t < t - (size_t)spans[i].last)
            chosen = i + 1;
        outputs[t] = labels[chosen];
    }
}

bm_status bm_frame_targets_add(bm_frame_targets *f, const char *id,
                               const bm_frame_map *map, const float *x,
                               const int32_t *labels,
                               const bm_label_span *spans, size_t n)
{
    BM_TRY(make_room(f, map->frames + map->outputs + 1));
    fill_outputs(f->outputs, map->outputs, f->nearest, labels, spans, n);
    for (size_t t = 0; t < map->frames; t++)
        f->classes[t] =
            map->outputs > 0 ? f->outputs[bm_frame_output(map, t)] : 0;
    return bm_shard_writer_add(f->writer, id, NULL, x, map->frames, f->classes,
                               map->frames);
}

bm_status bm_frame_targets_finish(bm_frame_targets *f)
{
    size_t shards = 0;

    BM_TRY(bm_shard_writer_finish(f->writer, &shards));
    return bm_vocab_write(f->vocab, f->vocab_path);
}

/* transcripts_shards.c - the references of a packed set, and its speakers. */
#include "cli/score/transcripts/transcripts_parts.h"
#include "io/shard/dataset.h"

#include <stdlib.h>

/* Adds a sequence with these labels [n]. */
static bm_status add(bm_transcripts *t, bm_dataset *d, int64_t sequence,
                     const int32_t *labels, size_t n)
{
    static char none[] = "";
    const char *tag = NULL, *speaker = NULL;
    bm_utterance u = {.line = (size_t)sequence + 1, .channel = none};

    BM_TRY(bm_dataset_tag(d, sequence, &tag));
    BM_TRY(bm_dataset_speaker(d, sequence, &speaker));
    BM_TRY(bm_transcripts_copy(t, tag, &u.id));
    BM_TRY(bm_transcripts_copy(t, speaker, &u.speaker));
    BM_TRY(bm_vocab_decode(bm_dataset_vocab(d), labels, n, &u.text));
    BM_TRY(bm_transcripts_own(t, u.text));
    u.has_text = bm_dataset_has_reference(d, sequence);
    return bm_transcripts_add(t, &u);
}

static bm_status add_unit(bm_transcripts *t, bm_dataset *d, size_t unit,
                          bm_sequences *room)
{
    const int32_t *labels = NULL;

    BM_TRY(bm_dataset_read_labels(d, unit, room));
    labels = room->targets;
    for (size_t i = 0; i < room->n; i++) {
        BM_TRY(add(t, d, d->units[unit].first + (int64_t)i, labels,
                   (size_t)room->labels[i]));
        labels += room->labels[i];
    }
    return BM_OK;
}

bm_status bm_transcripts_read_shards(bm_transcripts *t)
{
    bm_dataset *d = NULL;
    bm_sequences room = {0};
    bm_status status = BM_OK;

    t->form = BM_FORM_shards;
    BM_TRY_DONE(bm_dataset_open(&d, t->path));
    if (bm_shard_per_frame(d->shards[0]))
        BM_FAIL_DONE(BM_ERR_FORMAT,
                     "%s has a class for each frame, not texts; give the set "
                     "that it was made of",
                     t->path);
    for (size_t k = 0; k < d->n_units; k++)
        BM_TRY_DONE(add_unit(t, d, k, &room));
done:
    bm_sequences_free(&room);
    bm_dataset_close(d);
    return status;
}

/*
 * sound_augment.h - adds reverberation and noise to the recordings of training
 * sequences, and makes their features as `bmuf pack` made them. Shards must
 * keep samples.
 *
 * What becomes of a sequence is a function of its key (augment.h), its number,
 * the data set, the folders and the settings.
 */
#ifndef BM_IO_BATCH_SOUND_AUGMENT_H
#define BM_IO_BATCH_SOUND_AUGMENT_H

#include "io/augment/augment.h"
#include "io/shard/dataset.h"

#include <pthread.h>

typedef struct bm_sound_augmenter bm_sound_augmenter;

/*
 * *out: NULL if the settings add neither. `d` is borrowed; its shards are read
 * with `lock` held, unless that is NULL. Settings are copied. Fails with
 * BM_ERR_CONFIG if the shards have no samples or there is no other recording for
 * babble, with BM_ERR_FORMAT if it is unknown how their features were made, as
 * bm_perturb_open does, or with BM_ERR_MEMORY. Close with
 * bm_sound_augmenter_close; NULL is a no-op.
 */
BM_CHECKED bm_status bm_sound_augmenter_open(
    bm_sound_augmenter **out, bm_dataset *d, pthread_mutex_t *lock,
    const bm_augment_settings *settings);
void bm_sound_augmenter_close(bm_sound_augmenter *a);

/* As bm_perturb_digest; NULL: 0. */
uint64_t bm_sound_augmenter_digest(const bm_sound_augmenter *a);

/*
 * If the sequence gets reverberation or noise, in->x is replaced by the
 * features of the changed recording, as many, borrowed until the next call. A
 * file of noise or of an impulse response that cannot be used leaves the
 * sequence as it is, with a warning for each of the first few files. Fails as
 * bm_dataset_read_waveform does, with BM_ERR_FORMAT if features and samples do
 * not belong together, with BM_ERR_IO or with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_sound_augment(bm_sound_augmenter *a, uint64_t key,
                                      int64_t sequence, bm_augmented *in);

#endif

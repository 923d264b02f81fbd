/*
 * perturb.h - what makes a copy of a recording differ from it: its speed, then a
 * room, then noise. What is drawn for a copy is a function of copies.seed, the
 * recording's id and the number of the copy.
 */
#ifndef BM_IO_IMPORT_COPIES_PERTURB_H
#define BM_IO_IMPORT_COPIES_PERTURB_H

#include "io/import/copies/copies_settings.h"
#include "io/import/manifest/manifest.h"
#include "io/import/problem.h"
#include "io/import/sound.h"

/* What all copies have in common; threads share it. */
typedef struct bm_perturb bm_perturb;

/* The recordings that copies are made of. */
typedef struct bm_perturb_source {
    const bm_manifest *manifest; /* with the copies; borrowed */
    long rate, channel;          /* that they are read with */
} bm_perturb_source;

/* Settings are copied. Fails with BM_ERR_CONFIG if there is babble but no
 * recording for it, as bm_sound_folder_list does, or with BM_ERR_MEMORY. Close
 * with bm_perturb_close; NULL is a no-op. */
BM_CHECKED bm_status bm_perturb_open(bm_perturb **out,
                                     const bm_copies_settings *s,
                                     const bm_perturb_source *source);
void bm_perturb_close(bm_perturb *p);

/* Memory of a thread. Fails with BM_ERR_MEMORY. Free with
 * bm_perturber_free; NULL is a no-op. */
typedef struct bm_perturber bm_perturber;
BM_CHECKED bm_status bm_perturber_new(bm_perturber **out, const bm_perturb *p);
void bm_perturber_free(bm_perturber *t);

/* The speed of a row: 1 of a recording itself. */
double bm_perturb_speed(const bm_perturb *p, const bm_manifest_row *row);

/* Adds room and noise of a row, which is a copy, to its sound, which has its
 * speed and the rate of the source. The length and, before the noise, the power
 * stay. A file of noise or of an impulse response that cannot be used sets
 * *problem. Fails with BM_ERR_MEMORY or BM_ERR_IO. */
BM_CHECKED bm_status bm_perturb_apply(bm_perturber *t,
                                      const bm_manifest_row *row, bm_sound *s,
                                      bm_problem *problem);

#endif

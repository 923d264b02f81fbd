/*
 * copies.h - what makes a copy of a recording differ from it: its speed, then
 * reverberation, then noise. What is drawn for a copy is a function of
 * copies.seed, the recording's id and the number of the copy.
 */
#ifndef BM_IO_IMPORT_COPIES_COPIES_H
#define BM_IO_IMPORT_COPIES_COPIES_H

#include "io/import/copies/copies_settings.h"
#include "io/import/manifest/manifest.h"
#include "io/sound/perturb.h"

/* What all copies have in common; threads share it. */
typedef struct bm_copies bm_copies;

/* The recordings that copies are made of. */
typedef struct bm_copies_source {
    const bm_manifest *manifest; /* with the copies; borrowed */
    long rate, channel;          /* that they are read with */
} bm_copies_source;

/* Settings are copied. Fails with BM_ERR_CONFIG if there is babble but no
 * recording for it, as bm_perturb_open does, or with BM_ERR_MEMORY. Close with
 * bm_copies_close; NULL is a no-op. */
BM_CHECKED bm_status bm_copies_open(bm_copies **out,
                                    const bm_copies_settings *s,
                                    const bm_copies_source *source);
void bm_copies_close(bm_copies *c);

/* For bm_perturber_new. Borrowed. */
const bm_perturb *bm_copies_perturb(const bm_copies *c);

/* The speed of a row: 1 of a recording itself. */
double bm_copies_speed(const bm_copies *c, const bm_manifest_row *row);

/* Adds reverberation and noise of a row, which is a copy, to its sound, which
 * has its speed and the rate of the source; else as bm_perturb_apply. */
BM_CHECKED bm_status bm_copies_apply(const bm_copies *c, bm_perturber *t,
                                     const bm_manifest_row *row, bm_sound *s,
                                     bm_problem *problem);

#endif

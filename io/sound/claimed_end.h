/* claimed_end.h - where the samples of a recording end, as its header says:
 * NIST SPHERE, AIFF, AU, RF64 and W64. */
#ifndef BM_IO_SOUND_CLAIMED_END_H
#define BM_IO_SOUND_CLAIMED_END_H

#include "io/sound/sound_bytes.h"

/* Bytes from the beginning of the recording; 0: it is of another format, or its
 * header does not tell. Moves b->at. */
int64_t bm_claimed_end(bm_sound_bytes *b);

/* Is it NIST SPHERE compressed with shorten? Moves b->at. */
bool bm_sphere_is_shortened(bm_sound_bytes *b);

#endif

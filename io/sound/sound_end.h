/* sound_end.h - whether a recording ends too early by its own headers, where
 * libsndfile does not report it: WAV, Ogg, MP3, and the formats of
 * claimed_end.h. */
#ifndef BM_IO_SOUND_SOUND_END_H
#define BM_IO_SOUND_SOUND_END_H

#include "io/sound/sound_bytes.h"

/* samples: how many of each channel were read of the whole recording. Moves
 * b->at. */
bool bm_sound_is_cut(bm_sound_bytes *b, size_t samples);

/* Is it several recordings, one behind the other, of which libsndfile reads the
 * first: Ogg with a beginning behind other pages, MP3 with more frames than its
 * header counts? */
bool bm_sound_is_joined(bm_sound_bytes *b);

#endif

/* mp3_head.h - the frames of an MP3 recording, and what the first one says of
 * all of them: the header "Xing" or "Info", with the extension of LAME, or
 * "VBRI". */
#ifndef BM_IO_SOUND_MP3_HEAD_H
#define BM_IO_SOUND_MP3_HEAD_H

#include "io/sound/sound_bytes.h"

typedef struct bm_mp3_head {
    int64_t frames; /* 0: unknown */
    int64_t spare;  /* samples of them at both ends that are not played */
    int samples;    /* of a frame */
} bm_mp3_head;

/* Does it begin with a frame of MP3, or with an ID3 tag and a frame? */
bool bm_mp3_is(bm_sound_bytes *b);

/* False if it is no MP3, or has no such header. */
bool bm_mp3_head_read(bm_sound_bytes *b, bm_mp3_head *out);

/* Has it at least n frames? An ID3 tag may be between them. */
bool bm_mp3_has_frames(bm_sound_bytes *b, int64_t n);

/* Does it end within a frame? A tag or other bytes after the last frame are no
 * frame; false if the sizes of its frames are not in their headers (free
 * format). */
bool bm_mp3_ends_in_frame(bm_sound_bytes *b);

#endif

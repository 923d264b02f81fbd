#include "io/sound/sound_end.h"

#include "io/sound/claimed_end.h"
#include "io/sound/mp3_head.h"

#include <string.h>

enum { HEAD = 27, PAGE = HEAD + 255 + 255 * 255 }; /* bytes of a page of Ogg */

/* The size of the page of which the first n bytes are there. */
static size_t page_size(const unsigned char *page, size_t n)
{
    size_t segments = page[26], size = HEAD + segments;

    if (size > n)
        return size;
    for (size_t i = 0; i < segments; i++)
        size += page[HEAD + i];
    return size;
}

/* The last page of Ogg must be complete, and have the mark of the end. */
static bool ogg_ends(bm_sound_bytes *b)
{
    unsigned char tail[PAGE];
    int64_t length = bm_sound_bytes_length(b);
    size_t n = length < PAGE ? (size_t)length : PAGE;

    if (!bm_sound_bytes_get(b, length - (int64_t)n, tail, n))
        return false;
    for (size_t i = n < HEAD ? 0 : n - HEAD + 1; i-- > 0;)
        if (memcmp(tail + i, "OggS\0", 5) == 0)
            return (tail[i + 5] & 4) != 0 &&
                   page_size(tail + i, n - i) <= n - i;
    return false;
}

/* The pages of the streams that are in it at the same time begin before all others. */
static bool ogg_is_joined(bm_sound_bytes *b)
{
    enum { BEGINS = 2 };
    unsigned char page[HEAD + 255];
    int64_t length = bm_sound_bytes_length(b);
    bool behind = false;

    for (int64_t at = 0; at + HEAD <= length;) {
        size_t left = (size_t)(length - at);
        size_t n = left < sizeof page ? left : sizeof page;

        if (!bm_sound_bytes_get(b, at, page, n) ||
            memcmp(page, "OggS\0", 5) != 0)
            return false;
        if ((page[5] & BEGINS) == 0)
            behind = true;
        else if (behind)
            return true;
        at += (int64_t)page_size(page, n);
    }
    return false;
}

static bool mp3_is_joined(bm_sound_bytes *b)
{
    enum { SPARE = 2 }; /* the frame with the header, and one more */
    bm_mp3_head h;

    return bm_mp3_head_read(b, &h) &&
           bm_mp3_has_frames(b, h.frames + SPARE + 1);
}

bool bm_sound_is_joined(bm_sound_bytes *b)
{
    unsigned char head[4] = {0};

    if (!bm_sound_bytes_get(b, 0, head, sizeof head))
        return false;
    return memcmp(head, "OggS", 4) == 0 ? ogg_is_joined(b) : mp3_is_joined(b);
}

/* Encoders count the frame with the header, or do not. */
static bool mp3_ends(bm_sound_bytes *b, size_t samples)
{
    enum { SPARE = 1 };
    bm_mp3_head h;

    return !bm_mp3_head_read(b, &h) ||
           (int64_t)samples + h.spare >= (h.frames - SPARE) * h.samples;
}

/* Some programs count wrongly in the first header, so that the one of the samples
 * counts. */
static bool wav_ends(bm_sound_bytes *b, const unsigned char head[8])
{
    int64_t length = bm_sound_bytes_length(b);
    bm_wav_data data;

    if (!bm_wav_data_find(b, &data))
        return bm_wav_size(head) <= length;
    return !bm_wav_size_is_known(data.size) || data.begin + data.size <= length;
}

bool bm_sound_is_cut(bm_sound_bytes *b, size_t samples)
{
    unsigned char head[8] = {0};

    if (!bm_sound_bytes_get(b, 0, head, sizeof head))
        return false;
    if (b->size > bm_sound_bytes_length(b))
        return true;
    if (memcmp(head, "RIFF", 4) == 0)
        return !wav_ends(b, head);
    if (memcmp(head, "OggS", 4) == 0)
        return !ogg_ends(b);
    return bm_claimed_end(b) > bm_sound_bytes_length(b) ||
           !mp3_ends(b, samples) || bm_mp3_ends_in_frame(b);
}

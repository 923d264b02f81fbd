#include "io/sound/mp3_head.h"

#include <string.h>

static int64_t four(const unsigned char *p)
{
    return (int64_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

/* The length of the ID3 tag at this byte, in steps of 7 bits; 0: there is none. */
static int64_t tag_at(bm_sound_bytes *b, int64_t at)
{
    unsigned char head[10];

    if (!bm_sound_bytes_get(b, at, head, sizeof head) ||
        memcmp(head, "ID3", 3) != 0)
        return 0;
    return 10 + ((int64_t)(head[6] & 0x7f) << 21 | (head[7] & 0x7f) << 14 |
                 (head[8] & 0x7f) << 7 | (head[9] & 0x7f));
}

/* Of that in front of the frames. */
static int64_t tag_length(bm_sound_bytes *b)
{
    return tag_at(b, 0);
}

/* Bytes between the start of a frame of layer III and its "Xing"; 0: it is no
 * such frame. *samples: of each channel. */
static size_t place_of_xing(const unsigned char *frame, int *samples)
{
    bool first = (frame[1] & 0x18) == 0x18, mono = frame[3] >> 6 == 3;
    size_t checksum = frame[1] & 1 ? 0 : 2;

    if (frame[0] != 0xff || (frame[1] & 0xe6) != 0xe2)
        return 0;
    *samples = first ? 1152 : 576;
    return 4 + checksum + (first ? mono ? 17 : 32 : mono ? 9 : 17);
}

/* h: the bytes of the header, 144. */
static bool read_xing(const unsigned char *h, bm_mp3_head *out)
{
    int64_t flags = four(h + 4);
    size_t n = 12;

    if ((flags & 1) == 0)
        return false;
    out->frames = four(h + 8);
    n += (flags & 2 ? 4 : 0) + (flags & 4 ? 100 : 0) + (flags & 8 ? 4 : 0);
    /* LAME's: 21 bytes after, 12 bits for each end */
    out->spare = h[n + 21] << 4 | h[n + 22] >> 4;
    out->spare += (h[n + 22] & 15) << 8 | h[n + 23];
    return out->frames > 0;
}

bool bm_mp3_is(bm_sound_bytes *b)
{
    unsigned char frame[4];
    int samples = 0;

    return bm_sound_bytes_get(b, tag_length(b), frame, sizeof frame) &&
           place_of_xing(frame, &samples) > 0;
}

bool bm_mp3_head_read(bm_sound_bytes *b, bm_mp3_head *out)
{
    enum { VBRI = 36 };
    unsigned char frame[192];
    size_t xing = 0;

    *out = (bm_mp3_head){0};
    if (!bm_sound_bytes_get(b, tag_length(b), frame, sizeof frame))
        return false;
    xing = place_of_xing(frame, &out->samples);
    if (xing == 0)
        return false;
    if (memcmp(frame + xing, "Xing", 4) == 0 ||
        memcmp(frame + xing, "Info", 4) == 0)
        return read_xing(frame + xing, out);
    if (memcmp(frame + VBRI, "VBRI", 4) == 0)
        out->frames = four(frame + VBRI + 14);
    return out->frames > 0;
}

/* By the first 4 bytes of a frame of layer III; 0: they do not tell it. */
static int64_t frame_size(const unsigned char *frame)
{
    static const int rates[] = {44100, 48000, 32000}; /* of MPEG-1 */
    static const int kbits[2][15] = {
        {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
        {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}};
    bool first = (frame[1] & 0x18) == 0x18, quarter = (frame[1] & 0x18) == 0;
    int rate = frame[2] >> 2 & 3, kbit = frame[2] >> 4;

    if (rate == 3 || kbit == 0 || kbit == 15)
        return 0;
    rate = rates[rate] / (first ? 1 : quarter ? 4 : 2);
    return (first ? 144000 : 72000) * kbits[first][kbit] / rate +
           (frame[2] >> 1 & 1);
}

/* Are these n bytes, up to 4, the start of another frame of the recording? Its
 * version, layer and rate are those of the first frame. */
static bool is_next(const unsigned char *first, const unsigned char *frame,
                    size_t n)
{
    static const unsigned char same[4] = {0xff, 0xfe, 0x0c, 0};

    for (size_t i = 0; i < n; i++)
        if (((first[i] ^ frame[i]) & same[i]) != 0)
            return false;
    return true;
}

bool bm_mp3_has_frames(bm_sound_bytes *b, int64_t n)
{
    int64_t at = tag_length(b), count = 0;
    unsigned char first[4], frame[4];

    if (!bm_mp3_is(b) || !bm_sound_bytes_get(b, at, first, sizeof first))
        return false;
    while (count < n && bm_sound_bytes_get(b, at, frame, sizeof frame)) {
        bool next = is_next(first, frame, sizeof frame);
        int64_t size = next ? frame_size(frame) : tag_at(b, at);

        if (size == 0)
            return false;
        count += next;
        at += size;
    }
    return count >= n;
}

bool bm_mp3_ends_in_frame(bm_sound_bytes *b)
{
    int64_t length = bm_sound_bytes_length(b), at = tag_length(b), size = 0;
    unsigned char first[4], frame[4];

    if (!bm_mp3_is(b) || !bm_sound_bytes_get(b, at, first, sizeof first))
        return false;
    for (; at < length; at += size) {
        size_t n = length - at < 4 ? (size_t)(length - at) : 4;

        if (!bm_sound_bytes_get(b, at, frame, n) || !is_next(first, frame, n))
            return false;
        size = n == 4 ? frame_size(frame) : 4;
        if (size == 0)
            return false;
    }
    return at > length;
}

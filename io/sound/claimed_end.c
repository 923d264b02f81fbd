#include "io/sound/claimed_end.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_CHUNKS = 4096,   /* more are no recording */
    MOST_HEADER = 1 << 16 /* bytes of SPHERE; usually 1024 */
};

/* A number of n <= 8 bytes. Negative: it is not a size. */
static int64_t number(const unsigned char *at, size_t n, bool big)
{
    uint64_t x = 0;

    for (size_t i = 0; i < n; i++)
        x = x << 8 | at[big ? i : n - 1 - i];
    return x <= INT64_MAX / 2 ? (int64_t)x : -1;
}

static int64_t end_at(int64_t begin, int64_t size)
{
    return size > 0 && size < INT64_MAX / 2 ? begin + size : 0;
}

/* ---- NIST SPHERE --------------------------------------------------------- */

/* Reads the header to text [MOST_HEADER + 1]: lines "name -i 16000", after two
 * of which the second has its size. Returns that; 0: it is not NIST SPHERE. */
static int64_t sphere_header(bm_sound_bytes *b, char *text)
{
    static const char mark[] = "NIST_1A";
    char first[17] = "";
    long size = 0;

    if (!bm_sound_bytes_get(b, 0, first, sizeof first - 1) ||
        strncmp(first, mark, sizeof mark - 1) != 0)
        return 0;
    size = strtol(first + sizeof mark - 1, NULL, 10);
    if (size < (long)sizeof first || size > MOST_HEADER)
        return 0;
    b->at = 0;
    text[bm_sound_bytes_read(b, text, (size_t)size)] = '\0';
    return size;
}

/* The value of a field, after its type; NULL: there is none. */
static const char *sphere_field(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = strchr(text, '\n'); at != NULL;
         at = strchr(at + 1, '\n'))
        if (strncmp(at + 1, name, n) == 0 && at[1 + n] == ' ') {
            const char *value = strchr(at + 2 + n, ' ');
            return value != NULL ? value + 1 : NULL;
        }
    return NULL;
}

static int64_t sphere_number(const char *text, const char *name)
{
    const char *value = sphere_field(text, name);
    long x = value != NULL ? strtol(value, NULL, 10) : 0;

    return x > 0 && x <= INT32_MAX ? x : 0;
}

static int64_t sphere_end(bm_sound_bytes *b)
{
    char text[MOST_HEADER + 1];
    int64_t begin = sphere_header(b, text), width = 0;

    if (begin == 0)
        return 0;
    width = sphere_number(text, "channel_count") *
            sphere_number(text, "sample_n_bytes");
    if (width > UINT16_MAX)
        return 0;
    return end_at(begin, width * sphere_number(text, "sample_count"));
}

bool bm_sphere_is_shortened(bm_sound_bytes *b)
{
    char text[MOST_HEADER + 1];
    const char *coding = NULL, *found = NULL;

    if (sphere_header(b, text) == 0)
        return false;
    coding = sphere_field(text, "sample_coding");
    found = coding != NULL ? strstr(coding, "shorten") : NULL;
    return found != NULL && found < coding + strcspn(coding, "\n");
}

/* ---- chunks -------------------------------------------------------------- */

/* How a format writes its chunks: a name, then a size. */
typedef struct chunks {
    size_t name, size;  /* bytes of them */
    size_t first;       /* chunk: its position */
    int64_t multiple;   /* positions are multiples of it */
    bool big;           /* sizes have their highest byte first */
    bool with_header;   /* .. and count the chunk's own header */
    const char *wanted; /* the chunk of the samples */
} chunks;

/* *size: what its header says; its samples begin at the position that is
 * returned. 0: there is none. */
static int64_t find_chunk(bm_sound_bytes *b, const chunks *c, int64_t *size)
{
    unsigned char head[24];
    int64_t at = (int64_t)c->first, own = (int64_t)(c->name + c->size);

    for (int i = 0; i < MOST_CHUNKS; i++) {
        if (!bm_sound_bytes_get(b, at, head, (size_t)own))
            return 0;
        *size = number(head + c->name, c->size, c->big);
        if (c->with_header)
            *size -= own;
        at += own;
        if (memcmp(head, c->wanted, 4) == 0)
            return at;
        if (*size < 0 || *size > INT64_MAX / 4)
            return 0;
        at += (*size + c->multiple - 1) / c->multiple * c->multiple;
    }
    return 0;
}

/* A program that writes to a pipe puts almost 2^31 (SoX: 0x7f000000) or 2^32. */
static int64_t aiff_end(bm_sound_bytes *b)
{
    enum { UNKNOWN = 0x7eff0000 };
    static const chunks aiff = {.name = 4,
                                .size = 4,
                                .first = 12,
                                .multiple = 2,
                                .big = true,
                                .wanted = "SSND"};
    int64_t size = 0, at = find_chunk(b, &aiff, &size);

    return at > 0 && size < UNKNOWN ? end_at(at, size) : 0;
}

/* The first chunk, "ds64", has the size of the samples. */
static int64_t rf64_end(bm_sound_bytes *b)
{
    enum { DS64 = 12, SIZE = DS64 + 16 };
    static const chunks rf64 = {
        .name = 4, .size = 4, .first = DS64, .multiple = 2, .wanted = "data"};
    unsigned char ds64[4], long_size[8];
    int64_t size = 0, at = 0;

    if (!bm_sound_bytes_get(b, DS64, ds64, sizeof ds64) ||
        memcmp(ds64, "ds64", sizeof ds64) != 0 ||
        !bm_sound_bytes_get(b, SIZE, long_size, sizeof long_size))
        return 0;
    at = find_chunk(b, &rf64, &size);
    if (size == UINT32_MAX)
        size = number(long_size, sizeof long_size, false);
    return at > 0 ? end_at(at, size) : 0;
}

/* Names are of 16 bytes, of which the first four are letters. */
static int64_t w64_end(bm_sound_bytes *b)
{
    static const chunks w64 = {.name = 16,
                               .size = 8,
                               .first = 40,
                               .multiple = 8,
                               .with_header = true,
                               .wanted = "data"};
    int64_t size = 0, at = find_chunk(b, &w64, &size);

    return at > 0 ? end_at(at, size) : 0;
}

/* Sun's header is the position and the size of the samples. */
static int64_t au_end(bm_sound_bytes *b, bool big)
{
    unsigned char head[12];
    int64_t size = 0;

    if (!bm_sound_bytes_get(b, 0, head, sizeof head))
        return 0;
    size = number(head + 8, 4, big);
    return size < UINT32_MAX ? end_at(number(head + 4, 4, big), size) : 0;
}

int64_t bm_claimed_end(bm_sound_bytes *b)
{
    char head[4] = "";

    if (!bm_sound_bytes_get(b, 0, head, sizeof head))
        return 0;
    if (memcmp(head, "NIST", 4) == 0)
        return sphere_end(b);
    if (memcmp(head, "FORM", 4) == 0)
        return aiff_end(b);
    if (memcmp(head, "RF64", 4) == 0)
        return rf64_end(b);
    if (memcmp(head, "riff", 4) == 0)
        return w64_end(b);
    if (memcmp(head, ".snd", 4) == 0 || memcmp(head, "dns.", 4) == 0)
        return au_end(b, head[0] == '.');
    return 0;
}

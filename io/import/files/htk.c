/*
 * htk.c - parameter files of HTK and Sphinx.
 *
 * HTK, big-endian: frames, period in 100 ns, bytes of a frame, kind, 12 bytes in
 * all; then floats. Kind _C: 16-bit integers q, x = (q + B) / A, after the
 * floats A and B of each of the n numbers of a frame; these 8 n bytes count as
 * four frames. Kind _K: two bytes of a checksum at the end, which HTK's book does
 * not define and which is not compared.
 *
 * Sphinx, of either byte order: the number of floats, and the floats.
 */
#include "io/import/files/feature_parts.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { HEADER = 12, COMPRESSED = 02000, CHECKSUM = 010000, VECTOR = 040000 };

/* Kinds of which the frames are no vectors of floats. */
enum { BASIC = 077, WAVEFORM = 0, IREFC = 5, DISCRETE = 10 };

static uint32_t four(const uint8_t *p, bool big)
{
    if (!big)
        return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 |
               (uint32_t)p[1] << 8 | p[0];
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static float number(const uint8_t *p, bool big)
{
    uint32_t bits = four(p, big);
    float x = 0;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static unsigned two(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

/* The header of an HTK file. */
typedef struct header {
    size_t frames, bytes; /* bytes: of a frame */
    unsigned kind;
    size_t start; /* of the frames */
} header;

/* Does the length of the file agree with the header? */
static bool read_header(const uint8_t *file, size_t size, header *h)
{
    size_t body = 0;

    if (size < HEADER)
        return false;
    *h = (header){.frames = four(file, true),
                  .bytes = two(file + 8),
                  .kind = two(file + 10),
                  .start = HEADER};
    body = size - HEADER;
    if ((h->kind & CHECKSUM) != 0) {
        if (body < 2)
            return false;
        body -= 2;
    }
    if (h->bytes == 0 || body % h->bytes != 0)
        return false;
    if ((h->kind & COMPRESSED) == 0)
        return h->frames == body / h->bytes;
    h->start += 4 * h->bytes; /* some programs count these, some do not */
    if (body / h->bytes < 4 ||
        (h->frames != body / h->bytes && h->frames + 4 != body / h->bytes))
        return false;
    h->frames = body / h->bytes - 4;
    return true;
}

/* Why the frames cannot be used; NULL: they can. */
static const char *check_kind(const header *h)
{
    unsigned basic = h->kind & BASIC;

    if ((h->kind & VECTOR) != 0 || basic == DISCRETE || basic == IREFC ||
        basic == WAVEFORM)
        return "samples or indices, not vectors of features; make features of "
               "it with HCopy";
    if (h->bytes % ((h->kind & COMPRESSED) != 0 ? 2 : 4) != 0)
        return "the bytes of a frame in the header are not those of whole "
               "numbers";
    return h->frames == 0 ? "no frames" : NULL;
}

static bm_status read_htk(const uint8_t *file, const header *h, bm_frames *x,
                          const char **fault)
{
    bool packed = (h->kind & COMPRESSED) != 0;
    size_t dim = h->bytes / (packed ? 2 : 4);
    const uint8_t *scale = file + HEADER, *at = file + h->start;

    *fault = check_kind(h);
    if (*fault != NULL)
        return BM_OK;
    BM_TRY(bm_frames_shape(x, h->frames, dim));
    for (size_t t = 0; t < h->frames; t++, at += h->bytes)
        for (size_t d = 0; d < dim; d++) {
            float *to = &x->x[t * dim + d];

            if (packed)
                *to = ((float)(int16_t)two(at + 2 * d) +
                       number(scale + 4 * (dim + d), true)) /
                      number(scale + 4 * d, true);
            else
                *to = number(at + 4 * d, true);
        }
    return BM_OK;
}

/* The sizes that the file would have by its first bytes. */
static void say_size(const uint8_t *file, size_t size, char *detail)
{
    header h = {0};
    uint64_t big = 0, little = 0, htk = 0;

    if (size < HEADER)
        return;
    h = (header){.frames = four(file, true),
                 .bytes = two(file + 8),
                 .kind = two(file + 10)};
    big = four(file, true);
    little = four(file, false);
    htk = HEADER + (uint64_t)h.frames * h.bytes +
          ((h.kind & CHECKSUM) != 0 ? 2 : 0);
    snprintf(
        detail, BM_MOST_DETAIL,
        ": %zu bytes, where HTK's would need %llu, and Sphinx's %llu; make "
        "or copy it again",
        size, (unsigned long long)htk,
        4 * (1 + (unsigned long long)(big < little ? big : little)));
}

static bm_status read_sphinx(const uint8_t *file, size_t size, size_t dim,
                             bm_frames *x, const char **fault, char *detail)
{
    size_t n = size / 4;
    bool big = size >= 4 && four(file, true) == n - 1;

    if (size < 4 || size % 4 != 0 || (!big && four(file, false) != n - 1)) {
        *fault = "the length of the file disagrees with its header, of HTK or "
                 "of Sphinx";
        say_size(file, size, detail);
    } else if ((n - 1) % dim != 0)
        *fault = "the file ends within a frame; features.dim may be wrong";
    else if (n == 1)
        *fault = "no frames";
    if (*fault != NULL)
        return BM_OK;
    BM_TRY(bm_frames_shape(x, (n - 1) / dim, dim));
    for (size_t i = 0; i + 1 < n; i++)
        x->x[i] = number(file + 4 * (i + 1), big);
    return BM_OK;
}

bm_status bm_htk_read(const uint8_t *file, size_t size, size_t dim,
                      bm_frames *x, const char **fault,
                      char detail[BM_MOST_DETAIL])
{
    header h = {0};

    if (read_header(file, size, &h))
        return read_htk(file, &h, x, fault);
    return read_sphinx(file, size, dim, x, fault, detail);
}

/*
 * image_pnm.c - portable maps: PBM of bits, PGM of grey, PPM of colours, each as
 * text (P1, P2, P3) and binary (P4, P5, P6).
 */
#include "io/import/images/image_file_parts.h"

#include <stdbool.h>
#include <stdlib.h>

typedef struct map {
    const uint8_t *at, *end;
    unsigned kind; /* 1 bits, 2 grey, 3 colours */
    bool text;
    size_t width, height;
    unsigned most; /* the value of white */
} map;

static bool is_blank(uint8_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Past blanks, and comments from # to the end of the line. */
static void skip_blanks(map *m)
{
    while (m->at < m->end && (is_blank(*m->at) || *m->at == '#'))
        if (*m->at++ == '#')
            while (m->at < m->end && *m->at != '\n')
                m->at++;
}

/* A number of at most 10^8. `digits`: the most. */
static bool read_number(map *m, int digits, size_t *out)
{
    static const size_t most = 100000000;
    const uint8_t *start = NULL;

    skip_blanks(m);
    *out = 0;
    for (start = m->at; m->at < m->end && m->at - start < digits &&
                        *m->at >= '0' && *m->at <= '9' && *out <= most;
         m->at++)
        *out = 10 * *out + (size_t)(*m->at - '0');
    return m->at > start && *out <= most;
}

static bool read_head(map *m)
{
    size_t most = 1;

    m->kind = (unsigned)(m->at[1] - '0');
    m->text = m->kind <= 3;
    m->kind = m->text ? m->kind : m->kind - 3;
    m->at += 2;
    if (!read_number(m, 10, &m->width) || !read_number(m, 10, &m->height) ||
        (m->kind > 1 && !read_number(m, 10, &most)) || most == 0 ||
        most > 65535)
        return false;
    m->most = (unsigned)most;
    /* one blank before binary numbers */
    return m->text || (m->at < m->end && is_blank(*m->at++));
}

/* The next number, scaled to 255. */
static bool read_value(map *m, unsigned *out)
{
    size_t value = 0;

    if (m->text) {
        if (!read_number(m, m->kind == 1 ? 1 : 10, &value))
            return false;
    } else if (m->most > 255) {
        if (m->end - m->at < 2)
            return false;
        value = (size_t)m->at[0] << 8 | m->at[1];
        m->at += 2;
    } else {
        if (m->at == m->end)
            return false;
        value = *m->at++;
    }
    *out = (unsigned)((value * 255 + m->most / 2) / m->most);
    return value <= m->most;
}

/* Rows of bits, 1 is black; a row begins with a new byte. */
static bool read_bits(map *m, const bm_line_image *out)
{
    size_t bytes = (out->width + 7) / 8;

    if ((size_t)(m->end - m->at) < bytes * out->height)
        return false;
    for (size_t y = 0; y < out->height; y++)
        for (size_t x = 0; x < out->width; x++)
            out->grey[y * out->width + x] =
                (m->at[y * bytes + x / 8] >> (7 - x % 8) & 1) != 0 ? 0 : 255;
    return true;
}

static bool read_pixels(map *m, const bm_line_image *out)
{
    if (m->kind == 1 && !m->text)
        return read_bits(m, out);
    for (size_t i = 0; i < out->width * out->height; i++) {
        unsigned c[3] = {0};

        for (unsigned k = 0; k < (m->kind == 3 ? 3 : 1); k++)
            if (!read_value(m, &c[k]))
                return false;
        if (m->kind == 1)
            out->grey[i] = (uint8_t)(255 - c[0]);
        else if (m->kind == 2)
            out->grey[i] = (uint8_t)c[0];
        else
            out->grey[i] = bm_image_luma(c[0], c[1], c[2]);
    }
    return true;
}

bm_status bm_image_pnm(bm_line_image *out, const bm_image_source *s,
                       bm_problem *problem)
{
    map m = {.at = s->bytes, .end = s->bytes + s->size};

    if (!read_head(&m)) {
        bm_problem_set(problem, "damaged or truncated",
                       "%s: its header should be P1 to P6, width, height and "
                       "the value of white",
                       s->path);
        return BM_OK;
    }
    BM_TRY(bm_image_room(out, s, m.width, m.height, problem));
    if (!bm_problem_is(problem) && !read_pixels(&m, out))
        bm_problem_set(problem, "damaged or truncated",
                       "%s: ends within its %zu x %zu pixels, or one of them "
                       "is not a number up to %u; copy it again, or leave it "
                       "out",
                       s->path, m.width, m.height, m.most);
    return BM_OK;
}

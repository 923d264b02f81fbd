#include "io/import/manifest/lines.h"

#include "core/file/file.h"
#include "core/text/printable.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK = 1 << 16, LONGEST = 1 << 28 };

struct bm_lines {
    const char *path;
    gzFile file;
    char *text; /* [room] */
    size_t room, begin, end;
    size_t number;
    bool ended; /* nothing is left to be read */
};

bm_status bm_lines_open(bm_lines **out, const char *path)
{
    bool input = strcmp(path, "-") == 0;
    bm_lines *l = calloc(1, sizeof *l);
    int fd = -1;
    bm_status status = BM_OK;

    if (l == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", path);
    l->path = input ? "standard input" : path;
    if (input)
        fd = dup(STDIN_FILENO);
    else
        BM_TRY_DONE(bm_file_open_regular(&fd, path));
    l->file = fd >= 0 ? gzdopen(fd, "rb") : NULL;
    if (l->file == NULL)
        BM_FAIL_DONE(BM_ERR_IO, "cannot read %s: %s", l->path, strerror(errno));
    fd = -1;
    *out = l;
    l = NULL;
done:
    if (fd >= 0)
        close(fd);
    bm_lines_close(l);
    return status;
}

void bm_lines_close(bm_lines *l)
{
    if (l == NULL)
        return;
    if (l->file != NULL)
        gzclose(l->file);
    free(l->text);
    free(l);
}

bm_status bm_lines_reserve(const char *path, char **text, size_t *room,
                           size_t needed)
{
    size_t more = 2 * needed + 4096;
    char *grown = NULL;

    if (needed <= *room)
        return BM_OK;
    grown = realloc(*text, more);
    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu bytes of %s", more,
                       path);
    *text = grown;
    *room = more;
    return BM_OK;
}

/* Makes room for one more chunk after the text, and a '\0'. */
static bm_status make_room(bm_lines *l)
{
    if (l->begin > 0)
        memmove(l->text, l->text + l->begin, l->end - l->begin);
    l->end -= l->begin;
    l->begin = 0;
    if (l->end > LONGEST)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: line %zu is longer than 256 MB; it is not a list",
                       l->path, l->number + 1);
    return bm_lines_reserve(l->path, &l->text, &l->room, l->end + CHUNK + 1);
}

static bm_status fill(bm_lines *l)
{
    int got = 0, error = Z_OK;

    BM_TRY(make_room(l));
    got = gzread(l->file, l->text + l->end, CHUNK);
    (void)gzerror(l->file, &error);
    if (error == Z_ERRNO)
        return BM_FAIL(BM_ERR_IO, "cannot read %s: %s", l->path,
                       strerror(errno));
    if (error != Z_OK)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: its gzip data are damaged or end early, after "
                       "line %zu; make or fetch it again",
                       l->path, l->number);
    l->ended = got <= 0;
    l->end += got > 0 ? (size_t)got : 0;
    return BM_OK;
}

bm_status bm_lines_next(bm_lines *l, char **line, size_t *length)
{
    size_t looked = 0;
    char *end = NULL;

    for (;;) {
        size_t n = l->end - l->begin;

        if (n > looked)
            end = memchr(l->text + l->begin + looked, '\n', n - looked);
        if (end != NULL || l->ended)
            break;
        looked = n;
        BM_TRY(fill(l));
    }
    *line = NULL;
    *length = 0;
    if (end == NULL && l->begin == l->end)
        return BM_OK;
    *line = l->text + l->begin;
    *length = end != NULL ? (size_t)(end - *line) : l->end - l->begin;
    l->begin += *length + (end != NULL);
    if (*length > 0 && (*line)[*length - 1] == '\r')
        --*length;
    (*line)[*length] = '\0';
    if (l->number++ == 0) {
        *length -= bm_utf8_mark(*line);
        *line += bm_utf8_mark(*line);
    }
    return BM_OK;
}

size_t bm_lines_number(const bm_lines *l)
{
    return l->number;
}

bm_status bm_lines_all(const char *path, size_t most, char **out)
{
    bm_lines *l = NULL;
    char *line = NULL, *text = NULL;
    size_t length = 0, used = 0, room = 0;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_lines_reserve(path, &text, &room, 1));
    BM_TRY_DONE(bm_lines_open(&l, path));
    for (;;) {
        BM_TRY_DONE(bm_lines_next(l, &line, &length));
        if (line == NULL)
            break;
        if (memchr(line, '\0', length) != NULL)
            BM_FAIL_DONE(BM_ERR_FORMAT, "%s:%zu: a zero byte; it is not a list",
                         l->path, l->number);
        if (length >= most - used)
            BM_FAIL_DONE(BM_ERR_FORMAT,
                         "%s has more than %zu bytes; divide the list", l->path,
                         most);
        BM_TRY_DONE(bm_lines_reserve(l->path, &text, &room, used + length + 2));
        memcpy(text + used, line, length);
        used += length;
        text[used++] = '\n';
    }
    text[used] = '\0';
    *out = text;
    text = NULL;
done:
    bm_lines_close(l);
    free(text);
    return status;
}

#include "cli/decode/line_source.h"

#include "core/file/file.h"
#include "core/text/printable.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

bm_status bm_line_source_open(bm_line_source *s, const char *path)
{
    s->begin = s->end = 0;
    s->begun = s->ended = false;
    return bm_file_open_regular(&s->fd, path);
}

bm_status bm_line_source_rewind(bm_line_source *s)
{
    s->begin = s->end = 0;
    s->begun = s->ended = false;
    if (lseek(s->fd, 0, SEEK_SET) != 0)
        return BM_FAIL(BM_ERR_IO, "a list cannot be read: %s", strerror(errno));
    return BM_OK;
}

void bm_line_source_open_stdin(bm_line_source *s)
{
    s->fd = STDIN_FILENO;
    s->begin = s->end = 0;
    s->begun = s->ended = false;
}

void bm_line_source_close(bm_line_source *s)
{
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    s->fd = -1;
}

/* Appends what comes next, at most to the end of the buffer. */
static bm_status fill(bm_line_source *s, const atomic_bool *stop)
{
    enum { PAUSE_MS = 100 };
    struct pollfd in = {s->fd, POLLIN, 0};
    ssize_t n = 0;

    if (s->begin > 0)
        memmove(s->bytes, s->bytes + s->begin, s->end - s->begin);
    s->end -= s->begin;
    s->begin = 0;
    while (!atomic_load(stop) && poll(&in, 1, PAUSE_MS) <= 0)
        ;
    if (atomic_load(stop)) {
        s->ended = true;
        return BM_OK;
    }
    n = read(s->fd, s->bytes + s->end, sizeof s->bytes - s->end);
    if (n < 0 && errno != EINTR)
        return BM_FAIL(BM_ERR_IO, "a list cannot be read: %s", strerror(errno));
    s->ended = n == 0;
    s->end += n > 0 ? (size_t)n : 0;
    return BM_OK;
}

bm_status bm_line_source_next(bm_line_source *s, const atomic_bool *stop,
                              char **line)
{
    char *from = NULL, *end = NULL;

    *line = NULL;
    for (;;) {
        from = s->bytes + s->begin;
        end = memchr(from, '\n', s->end - s->begin);
        if (end != NULL || s->ended)
            break;
        if (s->end - s->begin == sizeof s->bytes)
            return BM_FAIL(BM_ERR_FORMAT, "a line has more than %d bytes",
                           BM_LONGEST_LINE);
        BM_TRY(fill(s, stop));
    }
    if (atomic_load(stop) || s->begin == s->end)
        return BM_OK;
    if (end == NULL) { /* the last line, without its end */
        if (s->end == sizeof s->bytes)
            return BM_FAIL(BM_ERR_FORMAT, "a line has more than %d bytes",
                           BM_LONGEST_LINE - 1);
        end = s->bytes + s->end++;
    }
    *end = '\0';
    s->begin = (size_t)(end - s->bytes) + 1;
    if (end > from && end[-1] == '\r')
        end[-1] = '\0';
    *line = from + (s->begun ? 0 : bm_utf8_mark(from));
    s->begun = true;
    return BM_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Whether a portable map begins so, "P5 640 480": 1 or 0; -1: more bytes have to
 * tell. A list may begin with the id P5. */
static int is_map(const char *bytes, size_t n)
{
    size_t at = 3, digits = 0;

    if ((n > 0 && bytes[0] != 'P') ||
        (n > 1 && (bytes[1] < '1' || bytes[1] > '6')) ||
        (n > 2 && !is_blank(bytes[2])))
        return 0;
    while (at < n && is_blank(bytes[at]))
        at++;
    if (at < n && bytes[at] == '#')
        return 1;
    digits = at;
    while (at < n && bytes[at] >= '0' && bytes[at] <= '9')
        at++;
    if (at >= n)
        return -1;
    return at > digits && is_blank(bytes[at]) ? 1 : 0;
}

/* Whether an image or a recording begins so: with a control character, which no
 * list of paths has, or as a portable map or SPHERE file, which have none there. */
static bool has_binary(const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c < '\a' || (c > '\r' && c < 0x20))
            return true;
    }
    return is_map(bytes, n) == 1 ||
           (n >= 7 && memcmp(bytes, "NIST_1A", 7) == 0);
}

bm_status bm_line_source_is_binary(bm_line_source *s, const atomic_bool *stop,
                                   bool *binary)
{
    enum { ENOUGH = 64 };

    *binary = false;
    while (!s->ended && !*binary && s->end < ENOUGH &&
           (memchr(s->bytes, '\n', s->end) == NULL ||
            is_map(s->bytes, s->end) < 0)) {
        BM_TRY(fill(s, stop));
        *binary = has_binary(s->bytes, s->end);
    }
    return BM_OK;
}

bm_status bm_line_source_store(bm_line_source *s, const atomic_bool *stop,
                               int fd)
{
    do {
        while (s->begin < s->end) {
            ssize_t n = write(fd, s->bytes + s->begin, s->end - s->begin);

            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                return BM_FAIL(BM_ERR_IO,
                               "what stdin sends cannot be stored: "
                               "%s",
                               strerror(errno));
            s->begin += (size_t)n;
        }
        BM_TRY(fill(s, stop));
    } while (!s->ended || s->begin < s->end);
    return BM_OK;
}

#include "io/import/pen/unipen.h"

#include "core/file/path.h"
#include "core/grow.h"
#include "core/log.h"
#include "io/import/manifest/lines.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* HIGHEST: folders above a file in which an included one is looked for. */
enum {
    DEEPEST = 8,
    HIGHEST = 8,
    MOST_POINTS = 1 << 26,
    MOST_SEGMENTS = 1 << 24
};

static const char blanks[] = " \t\r";

/* Where numbers and strings of the current keyword go. */
typedef enum state { ELSEWHERE, POINTS } state;

typedef struct reading {
    bm_unipen *u;
    const char *top;  /* the file that was asked for */
    const char *path; /* of this file */
    size_t line;
    int depth; /* of .INCLUDE */
    bool quiet;
    state state;
    double numbers[64]; /* of a point that is not complete */
    int have;
} reading;

static bm_status read_file(reading *r);

static bm_status refuse(const reading *r, const char *what)
{
    return BM_FAIL(BM_ERR_FORMAT, "%s:%zu: %s", r->path, r->line, what);
}

/* ---- points -------------------------------------------------------------- */

static bm_status add_component(bm_unipen *u, bool down)
{
    BM_TRY(bm_grow(&u->components, u->n_components, &u->room_components,
                   sizeof *u->components));
    u->components[u->n_components++] =
        (bm_pen_component){.first = u->n_points, .down = down};
    return BM_OK;
}

/* The point of r->numbers. */
static bm_status add_point(reading *r)
{
    bm_unipen *u = r->u;
    bm_pen_component *c = &u->components[u->n_components - 1];
    int t = u->columns[2];

    r->have = 0;
    if (u->n_points == MOST_POINTS)
        return refuse(r, "more points than a file may have");
    BM_TRY(
        bm_grow(&u->points, u->n_points, &u->room_points, sizeof *u->points));
    u->points[u->n_points++] =
        (bm_pen_point){.x = r->numbers[u->columns[0]],
                       .y = r->numbers[u->columns[1]],
                       .t = t >= 0 ? r->numbers[t] : (double)c->n};
    c->n++;
    return BM_OK;
}

/* Numbers of points. Without .COORD a line is a point. */
static bm_status read_points(reading *r, const char *at)
{
    const bm_unipen *u = r->u;

    for (at += strspn(at, blanks); *at != '\0'; at += strspn(at, blanks)) {
        char *end = NULL;
        double x = strtod(at, &end);

        if (end == at || strcspn(end, blanks) != 0 || !(fabs(x) < 1e12))
            return refuse(r, "not the numbers of a point");
        if (r->have < (int)(sizeof r->numbers / sizeof r->numbers[0]))
            r->numbers[r->have++] = x;
        at = end;
        if (u->width > 0 && r->have == u->width)
            BM_TRY(add_point(r));
    }
    if (u->width > 0 || r->have == 0)
        return BM_OK;
    return r->have >= 2 ? add_point(r)
                        : refuse(r, "a point of one number; it has X and Y");
}

/* .COORD X Y T ..: where they are in a point. */
static bm_status read_columns(reading *r, const char *at)
{
    static const char names[] = "XYT";
    bm_unipen *u = r->u;
    int columns[3] = {-1, -1, -1}, width = 0;

    for (at += strspn(at, blanks); *at != '\0'; at += strspn(at, blanks)) {
        size_t n = strcspn(at, blanks);

        for (int k = 0; n == 1 && k < 3; k++)
            if (*at == names[k])
                columns[k] = width;
        at += n;
        width++;
    }
    if (columns[0] < 0 || columns[1] < 0 ||
        width > (int)(sizeof r->numbers / sizeof r->numbers[0]))
        return refuse(r, ".COORD names no X and Y");
    memcpy(u->columns, columns, sizeof columns);
    u->width = width;
    return BM_OK;
}

/* ---- segments ------------------------------------------------------------ */

/* Moves *at past the next word, which *word gets. */
static bm_status next_word(const char **at, char **word)
{
    size_t n = 0;

    *at += strspn(*at, blanks);
    n = **at == '"' ? 0 : strcspn(*at, blanks);
    *word = strndup(*at, n);
    *at += n;
    return *word != NULL ? BM_OK
                         : BM_FAIL(BM_ERR_MEMORY, "no memory for a segment");
}

/* The text between double quotes, with \" \\ \t \n as they are meant; blanks are
 * one space. */
static bm_status read_label(const char *at, char **label)
{
    char *to = NULL;

    at += strspn(at, blanks);
    at += *at == '"';
    to = *label = malloc(strlen(at) + 1);
    if (to == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a label");
    for (; *at != '\0' && *at != '"'; at++) {
        char c = *at;

        if (c == '\\' && at[1] != '\0') {
            c = *++at;
            c = c == 't' || c == 'n' ? ' ' : c;
        }
        *to++ = strchr(blanks, c) != NULL ? ' ' : c;
    }
    *to = '\0';
    return BM_OK;
}

/* .SEGMENT type delineation quality "label" */
static bm_status read_segment(reading *r, const char *at)
{
    bm_unipen *u = r->u;
    bm_pen_segment *s = NULL;
    char *quality = NULL;
    bm_status status = BM_OK;

    if (u->n_segments == MOST_SEGMENTS)
        return refuse(r, "more segments than a file may have");
    BM_TRY(bm_grow(&u->segments, u->n_segments, &u->room_segments, sizeof *s));
    s = &u->segments[u->n_segments++];
    *s = (bm_pen_segment){.line = r->line};
    BM_TRY(next_word(&at, &s->type));
    BM_TRY(next_word(&at, &s->delineation));
    BM_TRY(next_word(&at, &quality));
    status = read_label(at, &s->label);
    free(quality);
    BM_TRY(status);
    s->writer = strdup(u->writer);
    return s->writer != NULL ? BM_OK
                             : BM_FAIL(BM_ERR_MEMORY, "no memory for a writer");
}

/* ---- files --------------------------------------------------------------- */

/* out <- where an included file is; false: nowhere. */
static bool find_include(const char *top, const char *name, char out[PATH_MAX])
{
    char folder[PATH_MAX];
    size_t n = 0;

    if (bm_path_folder(folder, top) != BM_OK)
        return false;
    for (int level = 0; level <= HIGHEST; level++) {
        static const char *const within[] = {"", "include/"};

        for (int k = 0; k < 2; k++) {
            int length =
                snprintf(out, PATH_MAX, "%s/%s%s", folder, within[k], name);

            if (length > 0 && length < PATH_MAX && access(out, R_OK) == 0)
                return true;
        }
        n = strlen(folder);
        snprintf(folder + n, sizeof folder - n, "/..");
    }
    return false;
}

/* NOLINTNEXTLINE(misc-no-recursion): DEEPEST levels */
static bm_status read_include(reading *r, const char *at)
{
    char name[PATH_MAX], path[PATH_MAX];
    reading inner = *r;
    bm_status status = BM_OK;

    at += strspn(at, blanks);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(at, blanks), at);
    if (r->depth == DEEPEST)
        return refuse(r, "files that include each other");
    if (name[0] == '\0' || name[0] == '/' || strstr(name, "..") != NULL ||
        !find_include(r->top, name, path)) {
        if (!r->quiet)
            bm_log(BM_WARNING, "%s:%zu: .INCLUDE %.200s is not there", r->path,
                   r->line, name);
        return BM_OK;
    }
    inner.path = path;
    inner.depth++;
    status = read_file(&inner);
    r->state = ELSEWHERE;
    return status;
}

/* A line that begins with a keyword. */
/* NOLINTNEXTLINE(misc-no-recursion): DEEPEST levels */
static bm_status read_keyword(reading *r, const char *line)
{
    size_t n = strcspn(line, blanks);
    const char *rest = line + n;
    char word[32];
    bm_unipen *u = r->u;

    snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), line);
    r->state = ELSEWHERE;
    r->have = 0;
    if (strcmp(word, ".INCLUDE") == 0)
        return read_include(r, rest);
    if (strcmp(word, ".COORD") == 0)
        return read_columns(r, rest);
    if (strcmp(word, ".SEGMENT") == 0)
        return read_segment(r, rest);
    if (strcmp(word, ".WRITER_ID") == 0) {
        rest += strspn(rest, blanks);
        snprintf(u->writer, sizeof u->writer, "%.*s",
                 (int)strcspn(rest, blanks), rest);
    }
    if (strcmp(word, ".PEN_DOWN") != 0 && strcmp(word, ".PEN_UP") != 0)
        return BM_OK;
    r->state = POINTS;
    if (u->n_components > 0 && !u->components[u->n_components - 1].down &&
        u->components[u->n_components - 1].n == 0)
        u->n_components--; /* a .PEN_UP without points is no component */
    BM_TRY(add_component(u, strcmp(word, ".PEN_DOWN") == 0));
    return read_points(r, rest);
}

/* NOLINTNEXTLINE(misc-no-recursion): DEEPEST levels */
static bm_status read_file(reading *r)
{
    bm_lines *lines = NULL;
    char *line = NULL;
    size_t length = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_lines_open(&lines, r->path));
    for (;;) {
        BM_TRY_DONE(bm_lines_next(lines, &line, &length));
        if (line == NULL)
            break;
        r->line = bm_lines_number(lines);
        if (line[0] == '.')
            BM_TRY_DONE(read_keyword(r, line));
        else if (r->state == POINTS)
            BM_TRY_DONE(read_points(r, line));
    }
done:
    bm_lines_close(lines);
    return status;
}

bm_status bm_unipen_read(bm_unipen *u, const char *path, bool quiet)
{
    reading r = {.u = u, .top = path, .path = path, .quiet = quiet};

    *u = (bm_unipen){.columns = {0, 1, -1}};
    return read_file(&r);
}

void bm_unipen_free(bm_unipen *u)
{
    for (size_t i = 0; i < u->n_segments; i++) {
        free(u->segments[i].type);
        free(u->segments[i].delineation);
        free(u->segments[i].label);
        free(u->segments[i].writer);
    }
    free(u->segments);
    free(u->components);
    free(u->points);
    *u = (bm_unipen){0};
}

/* ---- delineations -------------------------------------------------------- */

/* "5" or "5:12"; point: SIZE_MAX if there is none. */
static bool read_place(const char **at, size_t *component, size_t *point)
{
    char *end = NULL;

    *point = SIZE_MAX;
    if (**at < '0' || **at > '9')
        return false;
    *component = strtoull(*at, &end, 10);
    if (*end == ':') {
        *at = end + 1;
        if (**at < '0' || **at > '9')
            return false;
        *point = strtoull(*at, &end, 10);
    }
    *at = end;
    return true;
}

static bm_status add_part(const bm_unipen *u, size_t k, size_t first,
                          size_t last, bm_pen_path *out)
{
    const bm_pen_component *c = &u->components[k];

    if (c->n == 0 || first >= c->n)
        return BM_OK;
    last = last < c->n ? last : c->n - 1;
    if (last < first)
        return BM_OK;
    BM_TRY(bm_grow(&out->parts, out->n, &out->room, sizeof *out->parts));
    out->parts[out->n++] = (bm_pen_part){
        .first = c->first + first, .n = last - first + 1, .down = c->down};
    return BM_OK;
}

bm_status bm_unipen_path(const bm_unipen *u, const char *at, bm_pen_path *out,
                         const char **why)
{
    size_t begin = 0, end = 0, first = 0, last = 0;

    out->n = 0;
    *why = NULL;
    do {
        at += *at == ',';
        if (!read_place(&at, &begin, &first)) {
            *why = "its delineation is invalid; expected a form such as 0-3,5";
            return BM_OK;
        }
        end = begin;
        last = first;
        if (*at == '-') {
            at++;
            if (!read_place(&at, &end, &last)) {
                *why =
                    "its delineation is invalid; expected a form such as 0-3,5";
                return BM_OK;
            }
        }
        if (end < begin || end >= u->n_components) {
            *why = "its delineation names components that are not there";
            return BM_OK;
        }
        for (size_t k = begin; k <= end; k++)
            BM_TRY(add_part(u, k, k == begin && first != SIZE_MAX ? first : 0,
                            k == end ? last : SIZE_MAX, out));
    } while (*at == ',' && out->n <= u->n_components);
    if (*at != '\0')
        *why = "its delineation is invalid; expected a form such as 0-3,5";
    return BM_OK;
}

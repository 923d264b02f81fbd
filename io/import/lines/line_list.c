/*
 * line_list.c - lists of PyLaia: "id t h e <space> t e x t", one line each; '#'
 * begins a comment line. Where all words have one character, or <space> or <sp>
 * is among them, they are characters, <unk> for one that is none of PyLaia's
 * symbols; else the rest of a line is the text itself. A list of ids alone has no
 * texts.
 */
#include "core/file/path.h"
#include "io/import/lines/image_names.h"
#include "io/import/lines/line_source_parts.h"

#include "io/import/manifest/lines.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static const char unknown[] = "<unk>", blanks[] = " \t\r";

/* U+FFFD, a character that Unicode has for those that are unknown. */
static const char replacement[] = "\xef\xbf\xbd";

static bool combines(utf8proc_int32_t code)
{
    utf8proc_category_t c = utf8proc_category(code);

    return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_MC ||
           c == UTF8PROC_CATEGORY_ME;
}

/* Bytes of the UTF-8 character at text, with the marks that combine with it. */
static size_t character(const char *text)
{
    size_t n = 0;

    for (;;) {
        utf8proc_int32_t code = 0;
        utf8proc_ssize_t bytes =
            utf8proc_iterate((const utf8proc_uint8_t *)text + n, -1, &code);

        if (bytes < 1)
            return n > 0 ? n : 1; /* not UTF-8, which is found later */
        if (n > 0 && !combines(code))
            return n;
        n += (size_t)bytes;
    }
}

static bool is(const char *word, size_t n, const char *name)
{
    return n == strlen(name) && strncmp(word, name, n) == 0;
}

/* PyLaia's own name of a blank, and that of its examples. */
static bool is_space(const char *word, size_t n)
{
    return is(word, n, "<space>") || is(word, n, "<sp>");
}

/* What the words of all lines are, after the ids. */
typedef struct word_kinds {
    bool spaced; /* <space> or <sp> is among them */
    bool single; /* they have one character each, or are in <> */
    bool any;    /* there are some */
} word_kinds;

/* Adds what the words of a line are. */
static void scan_words(word_kinds *k, const char *at)
{
    for (at += strspn(at, blanks); *at != '\0'; at += strspn(at, blanks)) {
        size_t n = strcspn(at, blanks);
        bool named = at[0] == '<' && n > 2 && at[n - 1] == '>';

        if (is_space(at, n))
            k->spaced = true;
        if (character(at) < n && !named)
            k->single = false;
        k->any = true;
        at += n;
    }
}

/* Joins the characters in place. Returns a word that is no character, with what
 * is after it; NULL: there is none. */
static const char *join(char *text)
{
    char *to = text, *at = text;

    for (at += strspn(at, blanks); *at != '\0'; at += strspn(at, blanks)) {
        size_t n = strcspn(at, blanks);

        if (is_space(at, n))
            *to++ = ' ';
        else if (is(at, n, unknown))
            to = (char *)memcpy(to, replacement, sizeof replacement - 1) +
                 sizeof replacement - 1;
        else if (character(at) == n)
            to = (char *)memmove(to, at, n) + n;
        else
            return at;
        at += n;
    }
    *to = '\0';
    return NULL;
}

/* The text itself: without blanks at its ends. */
static char *trim(char *text)
{
    size_t n = 0;

    text += strspn(text, blanks);
    n = strlen(text);
    while (n > 0 && strchr(blanks, text[n - 1]) != NULL)
        n--;
    text[n] = '\0';
    return text;
}

typedef struct list {
    const char *path, *image_dir;
    const bm_line_taker *taker;
    bool characters, texts;
} list;

static bm_status read_line(const list *l, char *line, size_t number)
{
    char image[PATH_MAX], fault[160], *id = line + strspn(line, blanks);
    char *text = id + strcspn(id, blanks);
    const char *odd = NULL;

    if (*id == '\0' || *id == '#')
        return BM_OK;
    if (*text != '\0')
        *text++ = '\0';
    if (l->characters)
        odd = join(text);
    else
        text = trim(text);
    if (odd != NULL) {
        snprintf(fault, sizeof fault,
                 "'%.*s' is not one character, as the words of other lines "
                 "are; a blank is <space> or <sp>",
                 (int)(strcspn(odd, blanks) < 60 ? strcspn(odd, blanks) : 60),
                 odd);
        l->taker->fault(l->taker->to, l->path, number, fault);
        return BM_OK;
    }
    if (bm_is_image_name(id) ? bm_path_join(image, l->image_dir, id) != BM_OK
                             : !bm_find_image(image, l->image_dir, id))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%zu: the path of the image is too "
                       "long",
                       l->path, number);
    return l->taker->take(l->taker->to,
                          &(bm_found_line){.id = id,
                                           .image = image,
                                           .text = l->texts ? text : NULL,
                                           .file = l->path,
                                           .line = number});
}

/* Calls read_line for all lines, or only scans them. */
static bm_status walk(list *l, char *all, bool scanning)
{
    word_kinds seen = {.single = true};
    size_t number = 0;

    for (char *line = all, *next = NULL; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        number++;
        if (!scanning) {
            BM_TRY(read_line(l, line, number));
        } else if (line[strspn(line, blanks)] != '#') {
            const char *id = line + strspn(line, blanks);

            scan_words(&seen, id + strcspn(id, blanks));
        }
        if (scanning && next != NULL)
            next[-1] = '\n';
    }
    if (scanning) {
        l->characters = seen.spaced || seen.single;
        l->texts = seen.any;
    }
    return BM_OK;
}

bm_status bm_line_list_read(const char *path, const char *image_dir,
                            const bm_line_taker *taker)
{
    list l = {.path = path, .image_dir = image_dir, .taker = taker};
    char *all = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_lines_all(path, BM_MOST_LIST_BYTES, &all));
    BM_TRY_DONE(walk(&l, all, true));
    status = walk(&l, all, false);
done:
    free(all);
    return status;
}

/*
 * line_list.c - lists of PyLaia: "id t h e <space> t e x t", one line each; '#'
 * begins a comment line. Where all words have one character, or <space> or <sp>
 * is among them, they are characters; else the rest of a line is the text itself.
 * A list of ids alone has no texts.
 */
#include "core/file/path.h"
#include "io/import/lines/image_names.h"
#include "io/import/lines/line_source_parts.h"
#include "io/import/lines/list_words.h"

#include "io/import/manifest/lines.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t\r";

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
    char image[PATH_MAX], fault[BM_LIST_FAULT];
    char *id = line + strspn(line, blanks), *text = id + strcspn(id, blanks);

    if (*id == '\0' || *id == '#')
        return BM_OK;
    if (*text != '\0')
        *text++ = '\0';
    if (!l->characters) {
        text = trim(text);
    } else if (!bm_list_words_join(text, fault)) {
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

static bm_status read_lines(const list *l, char *all)
{
    size_t number = 0;

    for (char *line = all, *next = NULL; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        BM_TRY(read_line(l, line, ++number));
    }
    return BM_OK;
}

bm_status bm_line_list_read(const char *path, const char *image_dir,
                            const bm_line_taker *taker)
{
    list l = {.path = path, .image_dir = image_dir, .taker = taker};
    bm_list_words words = {0};
    char *all = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_lines_all(path, BM_MOST_LIST_BYTES, &all));
    bm_list_words_add_lines(&words, all);
    l.characters = words.spaced || words.characters == words.n;
    l.texts = words.n > 0;
    status = read_lines(&l, all);
    free(all);
    return status;
}

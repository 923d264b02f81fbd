/*
 * line_paths.c - lists of paths, one a line: pages in XML, or images of lines,
 * each with NAME.gt.txt beside it, as ketos takes them with -t. '#' begins a
 * comment line. A path is relative to the working directory or, if there is no
 * such file, to the folder of the list.
 */
#include "core/file/path.h"
#include "io/import/lines/image_names.h"
#include "io/import/lines/line_source_parts.h"

#include "core/text/words.h"
#include "io/import/lines/page_xml.h"
#include "io/import/manifest/lines.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_page(const char *path)
{
    return bm_ends_with(path, ".xml");
}

/* By the first path. Standard input could not be read again, and is a manifest. */
bool bm_line_paths_is(const char *path)
{
    bm_lines *lines = NULL;
    char *line = NULL;
    size_t length = 0;
    bool paths = false;

    if (strcmp(path, "-") == 0 || bm_lines_open(&lines, path) != BM_OK)
        return false;
    while (bm_lines_next(lines, &line, &length) == BM_OK && line != NULL) {
        line[strcspn(line, "\r")] = '\0';
        if (line[0] == '\0' || line[0] == '#')
            continue;
        paths = line[0] != '{' && (is_page(line) || bm_is_image_name(line));
        break;
    }
    bm_lines_close(lines);
    return paths;
}

typedef struct list {
    const char *path;
    int folder; /* characters of it that are its folder */
    const bm_line_taker *taker;
    size_t n, missing;
    size_t first_line; /* of a file that is missing */
    char first[PATH_MAX];
} list;

/* The text of IMAGE is in the file of its name with .gt.txt for the ending. An
 * image or text that is not there is found later, as those of manifests are. */
static bm_status read_image(const list *l, const char *image, size_t line)
{
    const bm_line_taker *taker = l->taker;
    char text[PATH_MAX], id[NAME_MAX + 1];
    int stem = (int)(strlen(image) - bm_image_ending(image));

    if (snprintf(text, sizeof text, "%.*s.gt.txt", stem, image) >=
        (int)sizeof text)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:%zu: the path of the text is too long", l->path,
                       line);
    if (access(image, F_OK) == 0 && access(text, F_OK) == 0)
        return bm_line_text_read(text, image, taker);
    bm_line_text_id(text, id);
    return taker->take(taker->to, &(bm_found_line){.id = id,
                                                   .image = image,
                                                   .file = l->path,
                                                   .line = line});
}

static bm_status read_page(const list *l, const char *page, size_t line)
{
    const bm_line_taker *taker = l->taker;
    char fault[PATH_MAX + 60];

    if (access(page, F_OK) == 0)
        return taker->pass(taker->to, bm_page_read(page, taker, NULL));
    snprintf(fault, sizeof fault, "%.4000s: %s", page, strerror(errno));
    taker->fault(taker->to, l->path, line, fault);
    return BM_OK;
}

static bm_status read_path(list *l, const char *name, size_t line)
{
    bool here = name[0] == '/' || access(name, F_OK) == 0;
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%.*s%s", here ? 0 : l->folder, l->path,
                 name) >= (int)sizeof path)
        return BM_FAIL(BM_ERR_FORMAT, "%s:%zu: a path is longer than %d bytes",
                       l->path, line, PATH_MAX - 1);
    l->n++;
    if (access(path, F_OK) != 0 && l->missing++ == 0) {
        l->first_line = line;
        snprintf(l->first, sizeof l->first, "%s", path);
    }
    return is_page(path) || !bm_is_image_name(path) ? read_page(l, path, line)
                                                    : read_image(l, path, line);
}

/* One cause, and so one line. */
static bm_status refuse_all(const list *l)
{
    char others[80] = "";

    if (l->n > 1)
        snprintf(others, sizeof others, ", as are all %zu of the list", l->n);
    return BM_FAIL(BM_ERR_MISSING,
                   "%s:%zu: %s is missing%s; a relative path "
                   "is looked for in the working directory and then in the "
                   "folder of the list",
                   l->path, l->first_line, l->first, others);
}

bm_status bm_line_paths_read(const char *path, const bm_line_taker *taker)
{
    list l = {.path = path,
              .folder = (int)bm_path_folder_length(path),
              .taker = taker};
    size_t number = 0;
    char *all = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_lines_all(path, BM_MOST_LIST_BYTES, &all));
    for (char *line = all, *next = NULL; *line != '\0'; line = next) {
        next = line + strcspn(line, "\n");
        *next++ = '\0'; /* each line has an end */
        number++;
        if (line[0] != '\0' && line[0] != '#')
            BM_TRY_DONE(read_path(&l, line, number));
    }
    if (l.n > 0 && l.missing == l.n)
        status = refuse_all(&l);
done:
    free(all);
    return status;
}

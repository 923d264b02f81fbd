/*
 * line_paths.c - lists of paths, one a line: pages in XML, or images of lines,
 * each with NAME.gt.txt beside it, as ketos takes them with -t. '#' begins a
 * comment line. A path is relative to the working directory or, if there is no
 * such file, to the folder of the list.
 */
#include "core/file/path.h"
#include "io/import/lines/image_names.h"
#include "io/import/lines/line_source_parts.h"

#include "core/words.h"
#include "io/import/lines/page_xml.h"
#include "io/import/manifest/lines.h"

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

/* The text of IMAGE is in the file of its name with .gt.txt for the ending. */
static bm_status read_image(const char *image, const bm_line_taker *taker)
{
    char text[PATH_MAX];

    if (snprintf(text, sizeof text, "%.*s.gt.txt",
                 (int)(strlen(image) - bm_image_ending(image)),
                 image) >= (int)sizeof text)
        return BM_FAIL(BM_ERR_FORMAT, "%s: its path is too long", image);
    return bm_line_text_read(text, image, taker);
}

bm_status bm_line_paths_read(const char *list, const bm_line_taker *taker)
{
    int folder = (int)bm_path_folder_length(list);
    char *text = NULL, *rest = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_lines_all(list, BM_MOST_LIST_BYTES, &text));
    for (char *line = strtok_r(text, "\r\n", &rest); line != NULL;
         line = strtok_r(NULL, "\r\n", &rest)) {
        bool here = line[0] == '/' || access(line, F_OK) == 0;
        char path[PATH_MAX];

        if (line[0] == '#')
            continue;
        if (snprintf(path, sizeof path, "%.*s%s", here ? 0 : folder, list,
                     line) >= (int)sizeof path)
            BM_FAIL_DONE(BM_ERR_FORMAT, "%s: a path is longer than %d bytes",
                         list, PATH_MAX - 1);
        if (is_page(path) || !bm_is_image_name(path))
            BM_TRY_DONE(
                taker->pass(taker->to, bm_page_read(path, taker, NULL)));
        else
            BM_TRY_DONE(read_image(path, taker));
    }
done:
    free(text);
    return status;
}

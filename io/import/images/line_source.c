#include "io/import/images/line_source.h"

#include "core/file_kind.h"
#include "core/words.h"
#include "io/import/images/line_source_parts.h"
#include "io/import/images/page_xml.h"
#include "io/import/manifest/lines.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const bm_image_endings[] = {
    ".png", ".jpg",     ".jpeg",    ".tif", ".tiff", ".pgm", ".ppm",
    ".pbm", ".bin.png", ".nrm.png", ".PNG", ".JPG",  ".TIF", NULL,
};

bool bm_is_image_name(const char *name)
{
    for (size_t i = 0; bm_image_endings[i] != NULL; i++)
        if (bm_ends_with(name, bm_image_endings[i]))
            return true;
    return false;
}

bool bm_find_image(char *path, const char *folder, const char *name)
{
    for (size_t i = 0; bm_image_endings[i] != NULL; i++) {
        if (snprintf(path, PATH_MAX, "%s/%s%s", folder, name,
                     bm_image_endings[i]) >= PATH_MAX)
            return false;
        if (access(path, F_OK) == 0)
            return true;
    }
    return snprintf(path, PATH_MAX, "%s/%s%s", folder, name,
                    bm_image_endings[0]) < PATH_MAX;
}

static bool is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_xml(const char *path)
{
    const char *kind = bm_text_kind(path);

    return kind != NULL && strcmp(kind, "XML") == 0;
}

/* Whether its first line is the path of a page. Standard input could not be read
 * again, and is a manifest. */
static bool lists_pages(const char *path)
{
    bm_lines *lines = NULL;
    char *line = NULL;
    size_t length = 0;
    bool pages = false;

    if (strcmp(path, "-") == 0 || bm_lines_open(&lines, path) != BM_OK)
        return false;
    if (bm_lines_next(lines, &line, &length) == BM_OK && line != NULL)
        pages = line[0] != '{' && bm_ends_with(line, ".xml");
    bm_lines_close(lines);
    return pages;
}

bool bm_line_source_is(const char *path, const char *image_dir)
{
    return image_dir[0] != '\0' || is_folder(path) || is_xml(path) ||
           lists_pages(path);
}

/* Pages whose paths are in a file, one a line, relative to its folder. */
static bm_status read_pages(const char *path, const bm_line_taker *taker)
{
    const char *slash = strrchr(path, '/');
    int folder = slash != NULL ? (int)(slash - path) + 1 : 0;
    char *text = NULL, *rest = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_lines_all(path, BM_MOST_LIST_BYTES, &text));
    for (char *line = strtok_r(text, "\r\n", &rest); line != NULL;
         line = strtok_r(NULL, "\r\n", &rest)) {
        char page[PATH_MAX];

        if (line[0] == '#')
            continue;
        if (snprintf(page, sizeof page, "%.*s%s", line[0] == '/' ? 0 : folder,
                     path, line) >= (int)sizeof page)
            BM_FAIL_DONE(BM_ERR_FORMAT, "%s: a path is longer than %d bytes",
                         path, PATH_MAX - 1);
        BM_TRY_DONE(taker->pass(taker->to, bm_page_read(page, taker, NULL)));
    }
done:
    free(text);
    return status;
}

bm_status bm_line_source_read(const char *path, const char *image_dir,
                              const bm_line_taker *taker)
{
    if (image_dir[0] != '\0')
        return bm_line_list_read(path, image_dir, taker);
    if (is_folder(path))
        return bm_line_folder_read(path, taker);
    return is_xml(path) ? bm_page_read(path, taker, NULL)
                        : read_pages(path, taker);
}

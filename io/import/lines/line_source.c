#include "io/import/lines/line_source.h"

#include "core/file/file_kind.h"
#include "core/words.h"
#include "io/import/lines/line_source_parts.h"
#include "io/import/lines/page_xml.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const bm_image_endings[] = {
    ".png", ".jpg",     ".jpeg",    ".tif", ".tiff", ".pgm", ".ppm",
    ".pbm", ".bin.png", ".nrm.png", ".PNG", ".JPG",  ".TIF", NULL,
};

size_t bm_image_ending(const char *name)
{
    size_t longest = 0;

    for (size_t i = 0; bm_image_endings[i] != NULL; i++)
        if (bm_ends_with(name, bm_image_endings[i]) &&
            strlen(bm_image_endings[i]) > longest)
            longest = strlen(bm_image_endings[i]);
    return longest;
}

bool bm_is_image_name(const char *name)
{
    return bm_image_ending(name) > 0;
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

bool bm_line_source_is(const char *path, const char *image_dir)
{
    return image_dir[0] != '\0' || is_folder(path) || is_xml(path) ||
           bm_line_paths_is(path);
}

bm_status bm_line_source_read(const char *path, const char *image_dir,
                              const bm_line_taker *taker)
{
    if (image_dir[0] != '\0')
        return bm_line_list_read(path, image_dir, taker);
    if (is_folder(path))
        return bm_line_folder_read(path, taker);
    return is_xml(path) ? bm_page_read(path, taker, NULL)
                        : bm_line_paths_read(path, taker);
}

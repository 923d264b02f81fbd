#include "io/import/lines/image_names.h"

#include "core/words.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
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

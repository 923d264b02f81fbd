#include "io/import/lines/image_names.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const endings[] = {
    ".png", ".jpg", ".jpeg", ".tif",     ".tiff",    ".pgm",
    ".ppm", ".pbm", ".pnm",  ".bin.png", ".nrm.png",
};
enum { N_ENDINGS = sizeof endings / sizeof *endings };

bool bm_image_suffix(char out[BM_IMAGE_SUFFIX], size_t i)
{
    if (i >= 2 * N_ENDINGS)
        return false;
    snprintf(out, BM_IMAGE_SUFFIX, "%s", endings[i % N_ENDINGS]);
    for (; i >= N_ENDINGS && *out != '\0'; out++)
        *out = (char)toupper((unsigned char)*out);
    return true;
}

size_t bm_image_ending(const char *name)
{
    size_t n = strlen(name), longest = 0;

    for (size_t i = 0; i < N_ENDINGS; i++) {
        size_t k = strlen(endings[i]);

        if (k <= n && k > longest && strcasecmp(name + n - k, endings[i]) == 0)
            longest = k;
    }
    return longest;
}

bool bm_is_image_name(const char *name)
{
    return bm_image_ending(name) > 0;
}

bool bm_find_image(char *path, const char *folder, const char *name)
{
    char suffix[BM_IMAGE_SUFFIX];

    for (size_t i = 0; bm_image_suffix(suffix, i); i++) {
        if (snprintf(path, PATH_MAX, "%s/%s%s", folder, name, suffix) >=
            PATH_MAX)
            return false;
        if (access(path, F_OK) == 0)
            return true;
    }
    return snprintf(path, PATH_MAX, "%s/%s%s", folder, name, endings[0]) <
           PATH_MAX;
}

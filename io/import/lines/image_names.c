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

/* Of images that are not read. */
static const char *const others[] = {".bmp", ".gif", ".webp", ".jp2"};
enum { N_OTHERS = sizeof others / sizeof *others };

static void capitalise(char *text, size_t n)
{
    for (size_t i = 0; i < n && text[i] != '\0'; i++)
        text[i] = (char)toupper((unsigned char)text[i]);
}

bool bm_image_suffix(char out[BM_IMAGE_SUFFIX], size_t i)
{
    if (i >= 3 * N_ENDINGS)
        return false;
    snprintf(out, BM_IMAGE_SUFFIX, "%s", endings[i % N_ENDINGS]);
    if (i >= N_ENDINGS)
        capitalise(out, i < 2 * N_ENDINGS ? BM_IMAGE_SUFFIX : 2);
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

/* path <- "FOLDER/NAME" with this ending. False: there is no such file, or
 * the path is *too_long. */
static bool is_there(char *path, const char *folder, const char *name,
                     const char *ending, bool *too_long)
{
    *too_long |=
        snprintf(path, PATH_MAX, "%s/%s%s", folder, name, ending) >= PATH_MAX;
    return !*too_long && access(path, F_OK) == 0;
}

bool bm_find_image(char *path, const char *folder, const char *name)
{
    char suffix[BM_IMAGE_SUFFIX];
    bool too_long = false;

    for (size_t i = 0; bm_image_suffix(suffix, i); i++)
        if (is_there(path, folder, name, suffix, &too_long))
            return true;
    for (size_t i = 0; i < N_OTHERS; i++)
        if (is_there(path, folder, name, others[i], &too_long))
            return true;
    (void)is_there(path, folder, name, endings[0], &too_long);
    return !too_long;
}

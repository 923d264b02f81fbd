#include "io/import/lines/text_direction.h"

#include "core/log.h"

#include <utf8proc.h>

static bool goes_left(utf8proc_int32_t code)
{
    utf8proc_propval_t class = utf8proc_get_property(code)->bidi_class;

    return class == UTF8PROC_BIDI_CLASS_R || class == UTF8PROC_BIDI_CLASS_AL;
}

/* Ends at a byte that is not UTF-8, which is found later. */
static bool has_right_to_left(const char *text)
{
    const utf8proc_uint8_t *at = (const utf8proc_uint8_t *)text;
    utf8proc_int32_t code = 0;
    utf8proc_ssize_t n = 0;

    for (; *at != '\0'; at += n) {
        n = utf8proc_iterate(at, -1, &code);
        if (n < 1)
            return false;
        if (goes_left(code))
            return true;
    }
    return false;
}

static size_t count(const bm_manifest *m)
{
    size_t found = 0;

    for (size_t k = 0; k < bm_manifest_size(m); k++)
        found += has_right_to_left(bm_manifest_at(m, k).text);
    return found;
}

void bm_warn_of_right_to_left(const bm_manifest *m)
{
    size_t found = count(m);

    if (found > 0)
        bm_log(BM_WARNING,
               "%s: %zu of %zu texts have characters from right to left. "
               "Frames run from left to right, and labels must, too, or they "
               "cannot be learned: bring texts that are in logical order into "
               "visual order before packing, e.g. with get_display of "
               "python-bidi (docs/images.md)",
               bm_manifest_path(m), found, bm_manifest_size(m));
}

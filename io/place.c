#include "io/place.h"

#include "core/text/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Cuts "a:b" or ":" off the front; NULL if it is neither. */
static const char *read_part(const char *text, bm_index_range *out)
{
    char *end = NULL;

    *out = (bm_index_range){0, SIZE_MAX};
    if (*text == ':')
        return text + 1;
    if (!isdigit((unsigned char)*text))
        return NULL;
    out->first = strtoul(text, &end, 10);
    if (*end != ':' || !isdigit((unsigned char)end[1]))
        return NULL;
    out->last = strtoul(end + 1, &end, 10);
    return out->last >= out->first && out->last < SIZE_MAX ? end : NULL;
}

/* "[0:99,2:3]", up to the end of the text. */
static bool read_ranges(bm_place *p, const char *text)
{
    const char *at = read_part(text + 1, &p->rows);

    p->cut = true;
    p->columns = (bm_index_range){0, SIZE_MAX};
    if (at != NULL && *at == ',')
        at = read_part(at + 1, &p->columns);
    return at != NULL && strcmp(at, "]") == 0;
}

bool bm_place_parse(bm_place *p, const char *text)
{
    size_t n = strlen(text);
    const char *open = n > 0 && text[n - 1] == ']' ? strrchr(text, '[') : NULL;
    char *colon = NULL;

    *p = (bm_place){.rows = {0, SIZE_MAX}, .columns = {0, SIZE_MAX}};
    if (open != NULL && !read_ranges(p, open))
        return false;
    n = open != NULL ? (size_t)(open - text) : n;
    if (n >= sizeof p->file)
        return false;
    memcpy(p->file, text, n);
    colon = strrchr(p->file, ':');
    if (colon == NULL)
        return true;
    if (colon[1] != '\0' &&
        colon[1 + strspn(colon + 1, "0123456789")] == '\0' &&
        strlen(colon) < 20) {
        p->offset = strtoull(colon + 1, NULL, 10);
        *colon = '\0';
    } else if (colon - p->file >= 4 && strncmp(colon - 4, ".npz", 4) == 0 &&
               strlen(colon + 1) < sizeof p->member) {
        memcpy(p->member, colon + 1, strlen(colon + 1) + 1);
        *colon = '\0';
    }
    return true;
}

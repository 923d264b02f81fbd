/* shared_library.c - searches places for a library and loads it: see plugin.h.
 */
#define _DEFAULT_SOURCE /* strsep */
#include "compute/plugin.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_PATH = 4096 };

/* A library that is searched. */
typedef struct search {
    const char *library;
    char why[512]; /* why the first one found could not be loaded */
} search;

static bool load(search *s, const char *path)
{
    if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) != NULL)
        return true;
    if (strchr(path, '/') != NULL && s->why[0] == '\0')
        snprintf(s->why, sizeof s->why, "%s", dlerror());
    return false;
}

/* `folder` is a glob pattern. */
static bool look_in(search *s, const char *folder, const char *below)
{
    char pattern[LONGEST_PATH];
    glob_t found = {0};
    bool loaded = false;

    if (folder[0] == '\0' ||
        snprintf(pattern, sizeof pattern, "%s%s/%s", folder, below,
                 s->library) >= LONGEST_PATH)
        return false;
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !loaded; i++)
            loaded = load(s, found.gl_pathv[i]);
    globfree(&found);
    return loaded;
}

/* The value of the variable at the start of a place; "" if it is not set. */
static const char *value_of(const char *place)
{
    char name[64];
    size_t n = strcspn(place + 1, "/");
    const char *value = NULL;

    BM_ASSERT(n < sizeof name);
    memcpy(name, place + 1, n);
    name[n] = '\0';
    value = getenv(name);
    return value != NULL ? value : "";
}

static bool look_in_list(search *s, const char *place)
{
    const char *below = place + strcspn(place, "/");
    char list[LONGEST_PATH], *rest = list;
    const char *folder = NULL;
    bool loaded = false;

    snprintf(list, sizeof list, "%s", value_of(place));
    while (!loaded && (folder = strsep(&rest, ":")) != NULL)
        loaded = look_in(s, folder, below);
    return loaded;
}

static bool look(search *s, const char *place)
{
    return place[0] == '\0'  ? load(s, s->library)
           : place[0] == '$' ? look_in_list(s, place)
                             : look_in(s, place, "");
}

/* All places, for a message. */
static void list_places(const char *const *places, char *out, size_t room)
{
    size_t n = 0;

    out[0] = '\0';
    for (; *places != NULL && n < room; places++) {
        const char *place = *places;
        const char *value = place[0] == '$' ? value_of(place) : "";

        n += (size_t)snprintf(
            out + n, room - n, "%s%s%s%s%s", n > 0 ? ", " : "",
            place[0] != '\0' ? place : "the system's search path",
            value[0] != '\0' ? " = " : "", value,
            place[0] == '$' && value[0] == '\0' ? " (not set)" : "");
    }
}

bm_status bm_library_load(const char *library, const char *const *places)
{
    search s = {.library = library};
    char list[1024];

    for (const char *const *place = places; *place != NULL; place++)
        if (look(&s, *place))
            return BM_OK;
    if (s.why[0] != '\0')
        return BM_FAIL(BM_ERR_DEVICE, "%s cannot be loaded: %s", library,
                       s.why);
    list_places(places, list, sizeof list);
    return BM_FAIL(BM_ERR_DEVICE, "%s was not found; searched: %s", library,
                   list);
}

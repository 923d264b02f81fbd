#include "cli/verbs.h"

#include "core/text/words.h"

#include <string.h>

static const bm_verb *const verbs[] = {
#define X(name) &bm_verb_##name,
    BM_VERBS(X)
#undef X
        NULL,
};

const bm_verb *const *bm_verb_list(void)
{
    return verbs;
}

/* near <- the verb that is nearest, or that the name begins with: "eval" for
 * "evaluate". */
static bool nearest(const char *name, char *near, size_t room)
{
    if (bm_nearest_word(name, BM_VERBS(BM_WORD), near, room))
        return true;
    for (size_t i = 0; verbs[i] != NULL; i++)
        if (strncmp(name, verbs[i]->name, strlen(verbs[i]->name)) == 0) {
            snprintf(near, room, "%s", verbs[i]->name);
            return true;
        }
    return false;
}

bm_status bm_verb_find(const char *name, const bm_verb **out)
{
    char near[32] = "";

    for (size_t i = 0; verbs[i] != NULL; i++)
        if (strcmp(verbs[i]->name, name) == 0) {
            *out = verbs[i];
            return BM_OK;
        }
    if (name[0] == '-')
        return BM_FAIL(BM_ERR_ARG,
                       "%s: options come after the verb; bmuf --help lists the "
                       "verbs",
                       name);
    if (nearest(name, near, sizeof near))
        return BM_FAIL(BM_ERR_ARG,
                       "unknown verb '%s'; did you mean %s? See bmuf --help",
                       name, near);
    return BM_FAIL(BM_ERR_ARG, "unknown verb '%s'; bmuf --help lists the verbs",
                   name);
}

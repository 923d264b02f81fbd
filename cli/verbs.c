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
    if (bm_nearest_word(name, BM_VERBS(BM_WORD), near, sizeof near))
        return BM_FAIL(BM_ERR_ARG,
                       "unknown verb '%s'; did you mean %s? See bmuf --help",
                       name, near);
    return BM_FAIL(BM_ERR_ARG, "unknown verb '%s'; bmuf --help lists the verbs",
                   name);
}

#include "core/file/search_folder.h"

#include "core/text/shell_word.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

static bool has(const char *folder, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", folder, name);

    return n >= 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

static bool is_search(const char *folder)
{
    return has(folder, "record/journal.jsonl");
}

bm_status bm_search_folder_refuse(const char *folder)
{
    char below[PATH_MAX];
    bm_shell_text trials, best;

    if (!is_search(folder))
        return BM_OK;
    snprintf(below, sizeof below, "%s/trials", folder);
    trials = bm_shell_word(below);
    snprintf(below, sizeof below, "%s/best.ini", folder);
    best = bm_shell_word(below);
    return BM_FAIL(BM_ERR_ARG,
                   "%s is a search of bmuf tune, not a run: bmuf info %s lists "
                   "its runs, and once it has ended bmuf train %s --out RUN "
                   "trains the best configuration",
                   folder, trials.text, best.text);
}

bool bm_run_folder_is(const char *folder)
{
    return is_search(folder) || has(folder, "journal.jsonl");
}

bm_status bm_run_folder_refuse(const char *folder)
{
    if (!bm_run_folder_is(folder))
        return BM_OK;
    return BM_FAIL(BM_ERR_CREATE,
                   "%s is a %s, whose files belong together; give another "
                   "folder",
                   folder, is_search(folder) ? "search of bmuf tune" : "run");
}

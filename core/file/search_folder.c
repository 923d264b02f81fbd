#include "core/file/search_folder.h"

#include "core/shell_word.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

bm_status bm_search_folder_refuse(const char *folder)
{
    char record[PATH_MAX], below[PATH_MAX];
    bm_shell_text trials, best;

    if (snprintf(record, sizeof record, "%s/record/journal.jsonl", folder) >=
            (int)sizeof record ||
        access(record, F_OK) != 0)
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

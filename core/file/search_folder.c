#include "core/file/search_folder.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

bm_status bm_search_folder_refuse(const char *folder)
{
    char record[PATH_MAX];

    if (snprintf(record, sizeof record, "%s/record/journal.jsonl", folder) >=
            (int)sizeof record ||
        access(record, F_OK) != 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "%s is a search of bmuf tune, not a run: bmuf info "
                   "%s/trials lists its runs, and once it has ended bmuf train "
                   "%s/best.ini --out RUN trains the best configuration",
                   folder, folder, folder);
}

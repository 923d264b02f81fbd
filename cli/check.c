/* check.c - bmuf check: everything wrong with a data set, in one pass. */
#include "io/inspect/check.h"
#include "cli/verbs.h"

static bm_status check(const bm_arguments *a)
{
    long stride = 1, limit = 0;
    size_t problems = 0;

    BM_TRY(bm_argument_number(a, "stride", 1, 1, 1000, &stride));
    BM_TRY(bm_argument_number(a, "limit", 0, 0, 1000000000, &limit));
    BM_TRY(bm_check_directory(a->nouns[0], (int)stride, (size_t)limit, stdout,
                              &problems));
    if (problems > 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s: %zu problem%s", a->nouns[0],
                       problems, problems == 1 ? "" : "s");
    return BM_OK;
}

static const bm_flag flags[] = {
    {"stride", "N", "the network keeps one frame of N", 0, false},
    {"limit", "N", "list N of a kind, count the rest; 0, the default: all", 0,
     false},
    {0},
};

const bm_verb bm_verb_check = {
    .name = "check",
    .nouns = "DIR",
    .help = "list everything that is wrong with a data set",
    .text = "  bmuf check data/train\n"
            "  bmuf check data/train --stride 3 --limit 10\n\n"
            "Reads every byte: checksums, numbers that are none, lengths, "
            "labels, and what CTC\ncannot align. Exit code 65 if anything is "
            "wrong.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = check,
};

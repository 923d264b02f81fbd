/* check.c - bmuf check: lists all problems of a data set. */
#include "io/inspect/check.h"
#include "cli/json_output.h"
#include "cli/progress.h"
#include "cli/verbs.h"
#include "core/text/words.h"

/* Part of a megabyte counts as one. */
static size_t megabytes(uint64_t bytes)
{
    return (size_t)((bytes + 999999) / 1000000);
}

static void show(uint64_t done, uint64_t bytes)
{
    bm_progress_count("MB", megabytes(done), megabytes(bytes));
}

static bm_status check(const bm_arguments *a)
{
    long stride = 1, limit = 0;
    size_t problems = 0;

    BM_TRY(bm_argument_number(a, "stride", 1, 1, 1000, &stride));
    BM_TRY(bm_argument_number(a, "limit", 0, 0, 1000000000, &limit));
    bm_progress_open(true);
    BM_TRY(bm_check_directory(a->nouns[0], (int)stride, (size_t)limit, stdout,
                              bm_argument(a, "json") != NULL, show, &problems));
    if (problems > 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s: %s", a->nouns[0],
                       bm_count_noun((long long)problems, "problem").text);
    return BM_OK;
}

static const bm_flag flags[] = {
    {"stride", "N", "frames per output of the network; default 1", 0, false},
    {"limit", "N", "list at most N problems of a kind, count the rest; 0: all",
     0, false},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_check = {
    .name = "check",
    .nouns = "DIR",
    .help = "list all problems of a data set",
    .text = "  bmuf check data/train\n"
            "  bmuf check data/train --stride 3 --limit 10\n\n"
            "Reads every byte. Reports wrong checksums, features that are not "
            "finite, wrong\nlengths and labels, and sequences too short for "
            "CTC. Exits with 65 if there is\nany problem.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = check,
};

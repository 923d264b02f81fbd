/* fuzz_journal.c - the journal of a run, as bmuf info reads it. */
#include "cli/verbs.h"
#include "tests/fuzz/fuzz.h"

static void run(const char *path, const uint8_t *data, size_t size)
{
    static const bm_flag json = {"json", NULL, "", 0, false};
    static bm_arguments a;

    (void)path;
    (void)data;
    (void)size;
    a = (bm_arguments){
        .verb = &bm_verb_info, .n_nouns = 1, .nouns = {fuzz_path(".")}};
    for (a.n_given = 0; a.n_given < 2; a.n_given++) {
        a.given[0].flag = &json;
        a.given[0].value = "";
        if (bm_verb_info.run(&a) != BM_OK)
            return;
    }
}

const fuzz_target fuzz_journal = {"journal", "journal.jsonl", run, NULL};

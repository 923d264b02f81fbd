/* fuzz_trace.c - the traces of a run's ranks, as bmuf trace reads them: the
 * same file for rank 0 and, behind a line "---", another for rank 1. */
#include "cli/verbs.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void write_rank(int rank, const char *text)
{
    char name[32];
    FILE *file = NULL;

    snprintf(name, sizeof name, "trace/rank-%d.json", rank);
    file = fopen(fuzz_path(name), "w");
    FUZZ_RULE(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    static const char mark[] = "\n---\n";
    static const bm_flag json = {"json", NULL, "", 0, false};
    static bm_arguments a;
    char *text = fuzz_text(data, size), *other = strstr(text, mark);

    (void)path;
    mkdir(fuzz_path("trace"), 0777);
    if (other != NULL) {
        *other = '\0';
        other += sizeof mark - 1;
    }
    write_rank(0, text);
    write_rank(1, other != NULL ? other : "");
    a = (bm_arguments){
        .verb = &bm_verb_trace, .n_nouns = 1, .nouns = {fuzz_path(".")}};
    a.given[0].flag = &json;
    a.given[0].value = "";
    if (bm_verb_trace.run(&a) == BM_OK) {
        a.n_given = 1;
        FUZZ_RULE(bm_verb_trace.run(&a) == BM_OK);
    }
    free(text);
}

const fuzz_target fuzz_trace = {"trace", "trace.txt", run, NULL};

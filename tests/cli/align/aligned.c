/* aligned.c - see aligned.h. */
#include "tests/cli/align/aligned.h"

#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/speech.h"

#include <stdlib.h>
#include <string.h>

const char symbols[] = "\b abc";
json_t *aligned[N];

int align_set_up(void **state)
{
    outcome o;
    char *lines = NULL, *rest = NULL, *line = NULL;

    if (make_corpus(state) != 0)
        return 1;
    assert_code(BMUF("train", "tiny.ini", "--out", "run", "--set",
                     "model.net=stack:3 blstm:16 linear", "--set",
                     "model.infeasible=error", "--set", "train.epochs=40",
                     "--set", "train.rate=0.1", "--set",
                     "schedule.kind=constant", "--set", "job.workers=1",
                     "--set", "sgd.momentum=0.9"),
                0);
    o = BMUF("align", "run", "test", "--format", "json");
    assert_code(o, 0);
    assert_says(o.err, "aligned 21 of 21 sequences");
    lines = strdup(o.out);
    line = strtok_r(lines, "\n", &rest);
    for (size_t i = 0; i < N; i++, line = strtok_r(NULL, "\n", &rest)) {
        assert_non_null(line);
        aligned[i] = parse_json(line);
    }
    assert_null(line);
    free(lines);
    return 0;
}

int align_tear_down(void **state)
{
    for (size_t i = 0; i < N; i++)
        json_decref(aligned[i]);
    programs_end(state);
    return folder_remove(state);
}

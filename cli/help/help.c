/* help.c - bmuf help: the verbs, or the help of one of them. */
#include "cli/verbs.h"

#include <stdio.h>

static void usage(FILE *out)
{
    const bm_verb *const *verbs = bm_verb_list();

    fprintf(out, "usage: bmuf VERB ...\n\n"
                 "Trains speech and handwriting recognisers in parallel, with "
                 "blockwise\nmodel-update filtering (BMUF).\n\n"
                 "  bmuf pack --audio train.jsonl --out data/train\n"
                 "  bmuf train my.ini --out run/1 -n 4\n"
                 "  bmuf eval run/1 data/test\n\n");
    for (; *verbs != NULL; verbs++)
        fprintf(out, "  %-12s %s\n", (*verbs)->name, (*verbs)->help);
    fprintf(out, "\nbmuf help VERB describes a verb and its options, bmuf "
                 "options the settings of a\nconfiguration; bmuf --version "
                 "prints the build.\n");
}

static bm_status help(const bm_arguments *a)
{
    const bm_verb *verb = NULL;

    if (a->n_nouns == 0) {
        usage(stdout);
        return BM_OK;
    }
    BM_TRY(bm_verb_find(a->nouns[0], &verb));
    bm_arguments_help(verb, true, stdout);
    return BM_OK;
}

static const bm_flag flags[] = {{0}};

const bm_verb bm_verb_help = {
    .name = "help",
    .nouns = "[VERB]",
    .help = "list the verbs, or describe one of them",
    .text = "  bmuf help train\n\n"
            "The same as bmuf train --help. bmuf train -h leaves out the exit "
            "codes.\n",
    .flags = flags,
    .least = 0,
    .most = 1,
    .run = help,
};

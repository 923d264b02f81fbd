/* main.c - finds the verb, runs it and returns its exit code. */
#include "cli/launch/processes.h"
#include "cli/launch/rank_liveness.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "compute/cpu/blas.h"
#include "core/words.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const bm_verb *const verbs[] = {
#define X(name) &bm_verb_##name,
    BM_VERBS(X)
#undef X
        NULL,
};

static void usage(FILE *out)
{
    fprintf(out, "usage: bmuf VERB ...\n\n"
                 "Trains speech and handwriting recognisers in parallel, with "
                 "blockwise model-update\nfiltering (BMUF).\n\n"
                 "  bmuf pack --audio train.jsonl --out data/train\n"
                 "  bmuf train my.ini --out run/1 -n 4\n\n");
    for (size_t i = 0; verbs[i] != NULL; i++)
        fprintf(out, "  %-8s %-16s %s\n", verbs[i]->name, verbs[i]->nouns,
                verbs[i]->help);
    fprintf(out, "\nbmuf VERB --help describes a verb and its options, bmuf "
                 "--version prints the build.\n");
}

static const bm_verb *find(const char *name)
{
    for (size_t i = 0; verbs[i] != NULL; i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static bm_status unknown_verb(const char *name)
{
    char list[256] = "", near[32] = "";

    for (size_t i = 0; verbs[i] != NULL; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s ",
                 verbs[i]->name);
    bm_nearest_word(name, list, near, sizeof near);
    return BM_FAIL(BM_ERR_ARG,
                   "unknown verb '%s'; did you mean %s? See bmuf --help", name,
                   near);
}

/* A failed assertion has printed its message; all ranks exit with one code. */
static void on_bug(int number)
{
    (void)number;
    _exit(70);
}

int main(int argc, char **argv)
{
    static bm_arguments arguments;
    const bm_verb *verb = NULL;
    bm_status status = BM_OK;

    bm_blas_restart(argv);
    bm_rank_liveness_begin();
    signal(SIGABRT, on_bug);
    signal(SIGPIPE, SIG_IGN); /* write() fails instead */
    signal(SIGXFSZ, SIG_IGN);
    status = bm_terminal_style(NULL);
    BM_ASSERT(status == BM_OK);
    if (argc < 2)
        return bm_job_end(
            BM_FAIL(BM_ERR_ARG, "no verb given; see bmuf --help"));
    if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0 ||
        strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        bm_version_print(stdout);
        return 0;
    }
    verb = find(argv[1]);
    if (verb == NULL)
        return bm_job_end(unknown_verb(argv[1]));
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            bm_arguments_help(verb, argv[i][1] == '-', stdout);
            return 0;
        }
    status = bm_arguments_read(&arguments, verb, argc - 2, argv + 2);
    arguments.argc = argc;
    arguments.argv = argv;
    if (status == BM_OK)
        status = bm_terminal_style(&arguments);
    if (status == BM_OK)
        status = verb->run(&arguments);
    return bm_job_end(status);
}

/* main.c - finds the verb, runs it and returns its exit code. */
#include "cli/habits.h"
#include "cli/launch/processes.h"
#include "cli/launch/watch/heartbeat.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compute/cpu/libraries/blas.h"
#include "compute/cpu/subnormals.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The verb of the first argument; -h and -V stand for help and version. */
static bm_status find(const char *word, const bm_verb **out)
{
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
        word = "help";
    if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0)
        word = "version";
    return bm_verb_find(word, out);
}

/* A failed assertion has printed its message; all ranks exit with one code. */
static void on_bug(int number)
{
    (void)number;
    _exit(70);
}

/* Without memory OpenBLAS' exit handler would wait for ever for its threads. */
static int end(bm_status status)
{
    int code = bm_job_end(status);

    if (code == bm_status_exit(BM_ERR_MEMORY)) {
        fflush(NULL);
        _exit(code);
    }
    return code;
}

/* What the caller has closed would be the number of the next file: output would go into
 * that. Writing to these fails. */
static void open_standard_files(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", O_RDONLY);
}

int main(int argc, char **argv)
{
    static bm_arguments arguments;
    const bm_verb *verb = NULL;
    bm_status status = BM_OK;

    open_standard_files();
    bm_subnormals_to_zero();
    bm_blas_restart(argv);
    bm_heartbeat_begin();
    signal(SIGABRT, on_bug);
    signal(SIGPIPE, SIG_IGN); /* write() fails instead */
    signal(SIGXFSZ, SIG_IGN);
    status = bm_terminal_style(NULL);
    BM_ASSERT(status == BM_OK);
    status = bm_blas_check();
    if (status != BM_OK)
        return end(status);
    if (argc < 2)
        return bm_job_end(
            BM_FAIL(BM_ERR_ARG, "no verb given; see bmuf --help"));
    status = find(argv[1], &verb);
    if (status != BM_OK)
        return bm_job_end(status);
    for (int i = 2; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) {
            bm_arguments_help(verb, argv[i][1] == '-', stdout);
            return end(BM_OK);
        }
    status =
        bm_arguments_read(&arguments, verb, argc - 2, argv + 2, bm_habit_hint);
    arguments.argc = argc;
    arguments.argv = argv;
    if (status == BM_OK)
        status = bm_terminal_style(&arguments);
    if (status == BM_OK)
        status = verb->run(&arguments);
    return end(status);
}

#include "io/import/command_output.h"

#include "core/file/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What a shell returns if there is no such program. */
enum { NOT_FOUND = 127 };

void bm_command_output_remove(bm_command_output *out)
{
    if (out->path[0] != '\0')
        close(out->fd);
    free(out->command);
    *out = (bm_command_output){0};
}

static bm_status make_file(bm_command_output *out)
{
    BM_TRY(bm_temporary_file(&out->fd));
    snprintf(out->path, sizeof out->path, "/proc/self/fd/%d", out->fd);
    return BM_OK;
}

/* In the child: calls nothing that another thread could have locked. */
static void run(char *const *words, int fd)
{
    struct rlimit size = {BM_COMMAND_BYTES, BM_COMMAND_BYTES};
    int input = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    (void)setrlimit(RLIMIT_FSIZE, &size);
    if (input >= 0 && dup2(input, STDIN_FILENO) >= 0 &&
        dup2(fd, STDOUT_FILENO) >= 0)
        execv("/bin/sh", words);
    _exit(NOT_FOUND);
}

/* Waits for the child; false: it took too long and was killed. */
static bool wait_for(pid_t child, int *result)
{
    const struct timespec nap = {0, 2000000};
    long most = BM_COMMAND_SECONDS * (1000000000L / nap.tv_nsec);

    for (; most > 0; most--) {
        pid_t ended = waitpid(child, result, WNOHANG);

        if (ended == child || (ended < 0 && errno != EINTR))
            return true;
        (void)nanosleep(&nap, NULL);
    }
    kill(-child, SIGKILL);
    while (waitpid(child, result, 0) < 0 && errno == EINTR)
        ;
    return false;
}

static bm_status judge(const bm_command_output *out, bool ended, int result,
                       bm_problem *problem)
{
    static const char failed[] = "a command failed";
    struct stat info = {0};

    if (ended && WIFEXITED(result) && WEXITSTATUS(result) == NOT_FOUND)
        return BM_FAIL(BM_ERR_MISSING,
                       "a program was not found (exit code %d of: %.300s); "
                       "install it, or change the command",
                       NOT_FOUND, out->command);
    if (!ended)
        bm_problem_set(problem, failed, "killed after %d s: %.300s",
                       BM_COMMAND_SECONDS, out->command);
    else if (WIFSIGNALED(result))
        bm_problem_set(
            problem, failed, "ended by signal %d%s: %.300s", WTERMSIG(result),
            WTERMSIG(result) == SIGXFSZ ? ", with 4 GB of output" : "",
            out->command);
    else if (WEXITSTATUS(result) != 0)
        bm_problem_set(problem, failed, "exit code %d of: %.300s",
                       WEXITSTATUS(result), out->command);
    else if (fstat(out->fd, &info) != 0 || info.st_size == 0)
        bm_problem_set(problem, failed, "no output of: %.300s", out->command);
    return BM_OK;
}

static bm_status start(bm_command_output *out, bm_problem *problem)
{
    char shell[] = "sh", option[] = "-c";
    char *words[] = {shell, option, out->command, NULL};
    int result = 0;
    bool ended = false;
    pid_t child = fork();

    if (child == 0)
        run(words, out->fd);
    if (child < 0)
        return BM_FAIL(BM_ERR_MEMORY, "cannot start a command: %s",
                       strerror(errno));
    ended = wait_for(child, &result);
    return judge(out, ended, result, problem);
}

bm_status bm_command_output_read(bm_command_output *out, const char *command,
                                 bm_problem *problem)
{
    size_t n = strlen(command);
    bm_status status = BM_OK;

    while (n > 0 && strchr("| \t", command[n - 1]) != NULL)
        n--;
    if (out->command != NULL && strncmp(out->command, command, n) == 0 &&
        out->command[n] == '\0')
        return BM_OK;
    bm_command_output_remove(out);
    out->command = strndup(command, n);
    if (out->command == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a command");
    status = make_file(out);
    if (status == BM_OK)
        status = start(out, problem);
    if (status != BM_OK || bm_problem_is(problem))
        bm_command_output_remove(out);
    return status;
}

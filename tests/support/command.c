#define _GNU_SOURCE /* posix_openpt, ptsname */
#include "tests/support/command.h"

#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 80 };

static char *texts[3 * OUTCOMES]; /* a command has up to three */
static size_t turn;

/* ---- the child ---------------------------------------------------------- */

static void open_as(int fd, const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    if (file < 0 || dup2(file, fd) < 0)
        _exit(126);
    close(file);
}

static void open_stdin(const char *path)
{
    int file = open(path, O_RDONLY);

    if (file < 0 || dup2(file, STDIN_FILENO) < 0)
        _exit(126);
    close(file);
}

/* stdout becomes a pipe without a reader. */
static void open_deaf(void)
{
    int ends[2];

    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0)
        _exit(126);
    close(ends[0]);
    close(ends[1]);
}

static void open_terminal(int control, const command *c)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)c->columns};
    int terminal = -1;

    setsid();
    terminal = open(ptsname(control), O_RDWR);
    if (terminal < 0 || ioctl(terminal, TIOCSWINSZ, &size) != 0 ||
        dup2(terminal, STDOUT_FILENO) < 0 || dup2(terminal, STDERR_FILENO) < 0)
        _exit(126);
    close(terminal);
    close(control);
    setenv("TERM", c->term != NULL ? c->term : "xterm", 1);
    unsetenv("COLUMNS");
}

static void limit_files(long bytes)
{
    struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};

    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(126);
}

static void limit_address_space(long bytes)
{
    struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};

    if (setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(126);
}

static void become(const command *c, int control)
{
    char ranks[16];
    const char *line[WORDS] = {"mpirun", "--oversubscribe", "-np", ranks};
    size_t n = c->ranks > 0 ? 4 : 0;

    snprintf(ranks, sizeof ranks, "%d", c->ranks);
    line[n++] = c->program != NULL ? c->program : BMUF_PROGRAM;
    for (size_t i = 0; c->words[i] != NULL && n + 1 < WORDS; i++)
        line[n++] = c->words[i];
    line[n] = NULL;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    /* Open MPI leaks; a failed malloc must return NULL under the sanitizer. */
    setenv("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1", 1);
    if (chdir(in_folder(".")) != 0)
        _exit(126);
    if (c->in != NULL)
        open_stdin(c->in);
    if (control >= 0) {
        open_terminal(control, c);
    } else {
        open_as(STDERR_FILENO, "stderr");
        if (c->deaf)
            open_deaf();
        else
            open_as(STDOUT_FILENO, c->out != NULL ? c->out : "stdout");
    }
    if (c->address_bytes > 0)
        limit_address_space(c->address_bytes);
    if (c->file_bytes > 0)
        limit_files(c->file_bytes);
    execvp(line[0], (char *const *)line);
    _exit(127);
}

/* ---- its output --------------------------------------------------------- */

static char *keep(char *text)
{
    size_t place = turn++ % (3 * OUTCOMES);

    free(texts[place]);
    texts[place] = text;
    return text;
}

static char *read_all(int fd)
{
    size_t n = 0, room = 4096;
    char *text = malloc(room);
    ssize_t got = 0;

    assert_non_null(text);
    while ((got = read(fd, text + n, room - n - 1)) > 0 ||
           (got < 0 && errno == EINTR)) {
        n += got > 0 ? (size_t)got : 0;
        if (n + 1 == room)
            text = realloc(text, room *= 2);
        assert_non_null(text);
    }
    text[n] = '\0';
    return keep(text);
}

static char *read_path(const char *name)
{
    int fd = open(in_folder(name), O_RDONLY);
    char *text = NULL;

    assert_true(fd >= 0);
    text = read_all(fd);
    close(fd);
    return text;
}

static int make_terminal(void)
{
    int control = posix_openpt(O_RDWR | O_NOCTTY);

    assert_true(control >= 0);
    assert_int_equal(grantpt(control), 0);
    assert_int_equal(unlockpt(control), 0);
    return control;
}

const char *bmuf_path(void)
{
    return BMUF_PROGRAM;
}

outcome command_run(const command *c)
{
    int control = c->columns > 0 ? make_terminal() : -1, state = 0;
    outcome o = {0};
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        become(c, control);
    o.out = o.err = keep(calloc(1, 1));
    if (control >= 0)
        o.out = read_all(control); /* until the terminal is closed */
    assert_true(waitpid(child, &state, 0) == child);
    o.code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    if (control >= 0) {
        close(control);
        return o;
    }
    o.err = read_path("stderr");
    if (!c->deaf && c->out == NULL)
        o.out = read_path("stdout");
    return o;
}

/* ---- assertions --------------------------------------------------------- */

void assert_code_at(outcome o, int code, const char *file, int line)
{
    if (o.code == code)
        return;
    print_error("exit code %d instead of %d\nstdout: %s\nstderr: %s\n", o.code,
                code, o.out, o.err);
    _fail(file, line);
}

size_t count_of(const char *text, const char *what)
{
    size_t n = 0;

    while ((text = strstr(text, what)) != NULL) {
        text += strlen(what);
        n++;
    }
    return n;
}

void assert_says_at(const char *text, const char *what, const char *file,
                    int line)
{
    if (strstr(text, what) != NULL)
        return;
    print_error("'%s' is not in:\n%s\n", what, text);
    _fail(file, line);
}

/* "io/shard/shard.c:17" and the like. */
static bool names_a_source(const char *text)
{
    for (const char *at = text; (at = strstr(at, ".c:")) != NULL; at += 3)
        if (isdigit((unsigned char)at[3]))
            return true;
    return false;
}

void assert_fails_at(outcome o, int code, const char *const *words,
                     const char *file, int line)
{
    assert_code_at(o, code, file, line);
    if (count_of(o.err, "bmuf: ") != 1 || o.out[0] != '\0' ||
        names_a_source(o.err)) {
        print_error(
            "expected one message and no results:\nstdout: %s\nstderr: %s\n",
            o.out, o.err);
        _fail(file, line);
    }
    for (; *words != NULL; words++)
        assert_says_at(o.err, *words, file, line);
}

#define _XOPEN_SOURCE 700 /* ttyname_r */
#include "cli/terminal.h"

#include "core/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* The supervisor's streams that are terminals, "stderr stdout"; the file name
 * of the terminal, whose size may change; its columns at the start, for ranks
 * on other hosts. */
static const char streams_name[] = "BMUF_TERMINAL";
static const char file_name[] = "BMUF_TERMINAL_FILE";
static const char columns_name[] = "COLUMNS";

static bool colour;

static bool ends_at_terminal(int fd, const char *name)
{
    const char *names = getenv(streams_name);

    return isatty(fd) || (names != NULL && strstr(names, name) != NULL);
}

bool bm_terminal_stderr(void)
{
    return ends_at_terminal(STDERR_FILENO, "stderr");
}

bool bm_terminal_stdout(void)
{
    return ends_at_terminal(STDOUT_FILENO, "stdout");
}

bool bm_terminal_redraws(void)
{
    const char *term = getenv("TERM");

    return bm_terminal_stderr() && term != NULL && strcmp(term, "dumb") != 0;
}

static bool colour_by_default(void)
{
    const char *no = getenv("NO_COLOR");

    return bm_terminal_redraws() && (no == NULL || no[0] == '\0');
}

bool bm_terminal_colour(void)
{
    return colour;
}

bm_status bm_terminal_style(const bm_arguments *a)
{
    bm_log_style style = {.most = BM_NOTE, .terminal = bm_terminal_stderr()};
    const char *when = "auto";

    if (a != NULL) {
        bool quiet = bm_argument(a, "quiet") != NULL;
        bool verbose = bm_argument(a, "verbose") != NULL;

        BM_TRY(bm_argument_word(a, "color", "auto always never", when, &when));
        if (quiet && verbose)
            return BM_FAIL(BM_ERR_ARG,
                           "%s: --quiet and --verbose: give only one",
                           a->verb->name);
        style.most = quiet ? BM_WARNING : verbose ? BM_DETAIL : BM_NOTE;
    }
    colour = strcmp(when, "always") == 0 ||
             (strcmp(when, "auto") == 0 && colour_by_default());
    style.colour = colour;
    bm_log_use_style(&style);
    return BM_OK;
}

static size_t columns_of(int fd)
{
    struct winsize size;

    return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* The columns of the supervisor's terminal; 0: it is on another host. */
static size_t columns_of_supervisor(void)
{
    const char *path = getenv(file_name);
    size_t columns = 0;
    int fd = -1;

    if (path == NULL)
        return 0;
    fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (isatty(fd))
        columns = columns_of(fd);
    close(fd);
    return columns;
}

size_t bm_terminal_width(void)
{
    const char *text = getenv(columns_name);
    size_t columns = columns_of(STDERR_FILENO);

    if (columns == 0)
        columns = columns_of_supervisor();
    if (columns == 0 && text != NULL)
        columns = (size_t)strtoul(text, NULL, 10);
    return columns > 0 && columns < 10000 ? columns : 80;
}

void bm_terminal_export(void)
{
    char text[256];
    size_t columns = columns_of(STDERR_FILENO);

    if (!isatty(STDERR_FILENO))
        return;
    setenv(streams_name, isatty(STDOUT_FILENO) ? "stderr stdout" : "stderr", 1);
    if (ttyname_r(STDERR_FILENO, text, sizeof text) == 0)
        setenv(file_name, text, 1);
    if (columns > 0) {
        snprintf(text, sizeof text, "%zu", columns);
        setenv(columns_name, text, 1);
    }
}

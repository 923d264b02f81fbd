#include "cli/train/progress.h"

#include "core/clock.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static struct {
    bool on;
    double began, drawn;
    double done, per_s; /* fraction of all blocks; fraction per second */
    char line[512];
} bar;

/* Whether `fd` is a terminal, here or in the supervisor (launch.c). */
static bool ends_at_terminal(int fd, const char *name)
{
    const char *names = getenv("BMUF_TERMINAL");

    return isatty(fd) || (names != NULL && strstr(names, name) != NULL);
}

static bool terminal(void)
{
    const char *term = getenv("TERM");

    return ends_at_terminal(STDERR_FILENO, "stderr") && term != NULL &&
           strcmp(term, "dumb") != 0;
}

static size_t width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    long n = columns != NULL ? strtol(columns, NULL, 10) : 0;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return n > 0 ? (size_t)n : 80;
}

static const char erasure[] = "\r\033[K";

static void erase(void)
{
    fputs(erasure, stderr);
}

static void draw(void)
{
    fprintf(stderr, "\r%.*s\033[K", (int)width() - 1, bar.line);
    fflush(stderr);
}

bool bm_progress_open(bool here)
{
    memset(&bar, 0, sizeof bar);
    bar.on = here && terminal();
    bar.began = bm_clock();
    if (bar.on)
        bm_log_hook(erase, draw);
    return bar.on;
}

static void format_time(double s, char *out, size_t room)
{
    long n = s < 0 || s > 3.6e6 ? -1 : (long)(s + 0.5);

    if (n < 0)
        snprintf(out, room, "?");
    else if (n >= 3600)
        snprintf(out, room, "%ld:%02ld:%02ld", n / 3600, n / 60 % 60, n % 60);
    else
        snprintf(out, room, "%ld:%02ld", n / 60, n % 60);
}

void bm_progress_show(const bm_progress *p)
{
    double now = bm_clock();
    double done = ((double)p->epoch - 1 +
                   (double)p->block / (double)(p->blocks ? p->blocks : 1)) /
                  (double)p->epochs;
    char left[32], passed[32];
    double speed = (done - bar.done) / (now - bar.drawn);

    if (!bar.on || (bar.drawn > 0 && now - bar.drawn < 0.1 && done < 1))
        return;
    if (bar.drawn > 0)
        bar.per_s = bar.per_s > 0 ? 0.7 * bar.per_s + 0.3 * speed : speed;
    bar.done = done;
    bar.drawn = now;
    format_time(now - bar.began, passed, sizeof passed);
    format_time(bar.per_s > 0 ? (1 - done) / bar.per_s : -1, left, sizeof left);
    snprintf(bar.line, sizeof bar.line,
             "epoch %ld/%ld block %ld/%ld %3.0f%% %s<%s  %.1fk frames/s  "
             "loss %.4g  exchange %.0f%%  %ld workers",
             p->epoch, p->epochs, p->block, p->blocks, 100 * done, passed, left,
             1e-3 * p->frames_per_s, p->loss, 100 * p->exchange_share,
             p->workers);
    draw();
}

void bm_progress_close(void)
{
    if (!bar.on)
        return;
    bar.on = false;
    bm_log_hook(NULL, NULL);
    erase();
    fflush(stderr);
    if (ends_at_terminal(STDOUT_FILENO, "stdout"))
        fputs(erasure, stdout); /* which may be shown before stderr */
}

/*
 * progress.c - see progress.h. A thread redraws the line each second, as a
 * block of training may take minutes, and soon after the width has changed.
 */
#define _XOPEN_SOURCE 700 /* sigaction */
#include "cli/progress.h"

#include "cli/terminal.h"
#include "core/clock.h"
#include "core/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const double NOTE_S = 30, DRAW_S = 0.1, TICK_S = 1;

static struct {
    bool counts;         /* between open(true) and close */
    double began, shown; /* shown: when done was set; 0: never */
    double done, per_s;  /* fraction of all work; fraction per second */
    double noted;        /* the last note of bm_progress_count */

    /* The line; protected by `lock`, as the thread draws it, too. */
    char where[64], fields[256];
    double drawn; /* when; 0: never */
    size_t width; /* then */
    bool closing;
    pthread_t thread;
} bar;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { LINE = 600, LEAST_BAR = 8, MOST_BAR = 24 };

static char blanks[LINE];
static volatile sig_atomic_t on; /* between open and close */
static volatile sig_atomic_t
    on_screen; /* characters of the line on the terminal */

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

/* Seconds left at time `now`; -1: unknown. */
static double left_at(double now)
{
    double left = bar.per_s > 0 ? (1 - bar.done) / bar.per_s : -1;

    if (left < 0)
        return -1;
    left -= now - bar.shown;
    return left > 0 ? left : 0;
}

/* ---- the line ----------------------------------------------------------- */

/* Leaves out last fields until `length` fits into `width`. */
static size_t cut(char *line, size_t fixed, size_t width)
{
    size_t length = strlen(line);

    while (length > width) {
        size_t at = length;

        while (at > fixed && strncmp(line + at - 2, "  ", 2) != 0)
            at--;
        if (at <= fixed) /* no field is left */
            length = width;
        else
            length = at - 2;
    }
    line[length] = '\0';
    return length;
}

/* Writes the line for this width; its filled bar is [*from, *to). */
static size_t compose(char line[LINE], size_t width, size_t *from, size_t *to)
{
    double now = bm_clock();
    char passed[32], left[32], head[100], times[80];
    size_t columns = LEAST_BAR, n = 0, fixed = 0;

    format_time(now - bar.began, passed, sizeof passed);
    format_time(left_at(now), left, sizeof left);
    snprintf(head, sizeof head, "%s %3.0f%%", bar.where, 100 * bar.done);
    snprintf(times, sizeof times, " %s<%s", passed, left);
    n = strlen(head) + strlen(times) + 2 + 2 + strlen(bar.fields);
    if (width < 60)
        columns = 0;
    else if (n + LEAST_BAR < width)
        columns = width - n < MOST_BAR ? width - n : MOST_BAR;
    *from = strlen(head) + 1;
    *to = *from + (size_t)(bar.done * (double)columns + 0.5);
    fixed = (size_t)snprintf(line, LINE, "%s", head);
    if (columns > 0)
        fixed += (size_t)snprintf(
            line + fixed, LINE - fixed, "|%.*s%*s|", (int)(*to - *from),
            "########################", (int)(columns - (*to - *from)), "");
    else
        *from = *to;
    fixed += (size_t)snprintf(line + fixed, LINE - fixed, "%s", times);
    snprintf(line + fixed, LINE - fixed, "%s%s", bar.fields[0] ? "  " : "",
             bar.fields);
    return cut(line, fixed, width);
}

static void draw(void)
{
    char line[LINE], text[2 * LINE + 40];
    size_t from = 0, to = 0, n = 0;
    int rest = 0; /* of a longer line before */

    bar.width = bm_terminal_width();
    n = compose(line, bar.width - 1, &from, &to);
    if (on_screen > (int)n)
        rest = on_screen - (int)n;
    if (n + (size_t)rest >= bar.width) /* it has become narrower */
        rest = (int)(bar.width - 1 - n);
    if (bm_terminal_colour() && from < to && to <= n)
        snprintf(text, sizeof text, "\r%.*s\033[32m%.*s\033[m%s%*s\r",
                 (int)from, line, (int)(to - from), line + from, line + to,
                 rest, "");
    else
        snprintf(text, sizeof text, "\r%s%*s\r", line, rest, "");
    fputs(text, stderr);
    on_screen = (int)n;
    bar.drawn = bm_clock();
}

void bm_progress_erase(void)
{
    ssize_t written = 0;

    if (on_screen > 0) {
        written = write(STDERR_FILENO, "\r", 1);
        written += write(STDERR_FILENO, blanks, (size_t)on_screen);
        written += write(STDERR_FILENO, "\r", 1);
    }
    (void)written;
    on_screen = 0;
}

/* Before and after a message. */
static void make_room(void)
{
    pthread_mutex_lock(&lock);
    bm_progress_erase();
}

static void draw_again(void)
{
    if (bar.drawn > 0)
        draw();
    pthread_mutex_unlock(&lock);
}

static void *tick(void *unused)
{
    struct timespec pause = {0, 100000000};
    bool closing = false;

    while (!closing) {
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&lock);
        closing = bar.closing;
        if (!closing && bar.drawn > 0 &&
            (bm_clock() - bar.drawn > TICK_S ||
             bm_terminal_width() != bar.width))
            draw();
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

/* Signals go to the other threads. */
static bool start_thread(void)
{
    sigset_t all, before;
    bool started = false;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    started = pthread_create(&bar.thread, NULL, tick, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* ---- signals ------------------------------------------------------------ */

static const int deadly[] = {SIGINT, SIGTERM, SIGHUP};

enum { DEADLY = sizeof deadly / sizeof deadly[0] };

static void die(int number)
{
    bm_progress_erase();
    raise(number); /* SA_RESETHAND: the default again */
}

/* Replaces one action of these signals by another; leaves all others. */
static void handle_signals(void (*old)(int), void (*handler)(int), int flags)
{
    for (size_t i = 0; i < DEADLY; i++) {
        struct sigaction now, action = {0};

        action.sa_handler = handler;
        action.sa_flags = flags;
        sigemptyset(&action.sa_mask);
        if (sigaction(deadly[i], NULL, &now) == 0 && now.sa_handler == old)
            sigaction(deadly[i], &action, NULL);
    }
}

/* The child of a fork has no thread and no line. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    pthread_mutex_unlock(&lock);
    bar.counts = false;
    on = on_screen = 0;
    bm_log_hook(NULL, NULL);
}

/* ---- interface ---------------------------------------------------------- */

bool bm_progress_open(bool here)
{
    static bool forks; /* handlers are set */

    memset(&bar, 0, sizeof bar);
    memset(blanks, ' ', sizeof blanks);
    bar.counts = here;
    bar.began = bar.noted = bm_clock();
    if (!here || !bm_terminal_redraws() || !bm_log_shows(BM_NOTE) ||
        !start_thread())
        return false;
    on = 1;
    handle_signals(SIG_DFL, die, (int)SA_RESETHAND);
    bm_log_hook(make_room, draw_again);
    if (!forks) {
        forks = true;
        pthread_atfork(before_fork, after_fork, after_fork_in_child);
    }
    return true;
}

/* Sets the fraction done, and the mean speed, in which the last step has
 * weight 0.3. */
static void advance(double done)
{
    double now = bm_clock();
    double speed = (done - bar.done) / (now - bar.shown);

    if (bar.shown > 0)
        bar.per_s = bar.per_s > 0 ? 0.7 * bar.per_s + 0.3 * speed : speed;
    bar.done = done;
    bar.shown = now;
}

/* The first and the last of the work is shown at once. */
static bool too_early(double done)
{
    bool ends = done >= 1 && bar.done < 1;

    return bar.shown > 0 && !ends && bm_clock() - bar.shown < DRAW_S;
}

void bm_progress_show(const bm_progress *p)
{
    if (!on || too_early(p->done))
        return;
    pthread_mutex_lock(&lock);
    advance(p->done);
    snprintf(bar.where, sizeof bar.where, "%s", p->where);
    snprintf(bar.fields, sizeof bar.fields, "%s", p->fields);
    draw();
    pthread_mutex_unlock(&lock);
}

/* "12345 of 50000 sequences (25 %), 1028 per second, 0:36 left" */
static void note_count(const char *things, size_t done, size_t total,
                       double per_s)
{
    char left[32];

    format_time(per_s > 0 ? (double)(total - done) / per_s : -1, left,
                sizeof left);
    bm_log(BM_NOTE, "%zu of %zu %s (%.0f %%), %.0f per second, %s left", done,
           total, things, 100 * (double)done / (double)total, per_s, left);
}

void bm_progress_count(const char *things, size_t done, size_t total)
{
    double now = 0, per_s = 0;
    char where[64], fields[64];

    if (!bar.counts || total == 0)
        return;
    now = bm_clock();
    per_s = now > bar.began ? (double)done / (now - bar.began) : 0;
    if (!on && now - bar.noted >= NOTE_S) {
        bar.noted = now;
        note_count(things, done, total, per_s);
    }
    if (!on || too_early((double)done / (double)total))
        return;
    snprintf(where, sizeof where, "%zu/%zu %s", done, total, things);
    snprintf(fields, sizeof fields, "%.0f/s", per_s);
    bm_progress_show(&(bm_progress){.done = (double)done / (double)total,
                                    .where = where,
                                    .fields = fields});
}

void bm_progress_close(void)
{
    int n = 0;

    bar.counts = false;
    if (!on)
        return;
    pthread_mutex_lock(&lock);
    bar.closing = true;
    pthread_mutex_unlock(&lock);
    pthread_join(bar.thread, NULL);
    handle_signals(die, SIG_DFL, 0);
    bm_log_hook(NULL, NULL);
    on = 0;
    n = on_screen;
    bm_progress_erase();
    if (bm_terminal_stdout()) /* which may be shown before stderr */
        printf("\r%*s\r", n, "");
}

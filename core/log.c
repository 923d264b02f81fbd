#include "core/log.h"

#include "core/file/fence.h"
#include "core/text/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 4096 }; /* of a message */

static struct {
    int rank;
    bm_log_style style;
    void (*before)(void), (*after)(void);
    bm_journal *journal; /* borrowed; NULL: none */
} setup = {.style = {.most = BM_NOTE}};

void bm_log_setup(int rank)
{
    setup.rank = rank;
}

void bm_log_use_style(const bm_log_style *style)
{
    setup.style = *style;
}

bool bm_log_shows(bm_level level)
{
    return level <= setup.style.most;
}

void bm_log_hook(void (*before)(void), void (*after)(void))
{
    setup.before = before;
    setup.after = after;
}

void bm_log_make_room(void)
{
    if (setup.before != NULL)
        setup.before();
}

void bm_log_end_room(void)
{
    if (setup.after != NULL)
        setup.after();
}

/* The current time, "2026-08-24T10:11:12.345Z". */
static void write_time(char *out, size_t room)
{
    struct timespec now;
    struct tm utc;
    char text[32];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out, room, "%s.%03uZ", text,
             (unsigned)(now.tv_nsec / 1000000) % 1000u);
}

/* For people: notes are plain, the name of another level goes before. */
static void format_for_terminal(bm_level level, const char *name,
                                const char *words, char *out, size_t room)
{
    char rank[32] = "";

    if (level == BM_WARNING && setup.rank != 0)
        snprintf(rank, sizeof rank, "rank %d: ", setup.rank);
    if (level > BM_WARNING)
        snprintf(out, room, "%s\n", words);
    else
        snprintf(out, room, "%s: %s%s\n", name, rank, words);
}

static void format_for_file(bm_level level, const char *name, const char *words,
                            char *out, size_t room)
{
    char when[40];

    write_time(when, sizeof when);
    if (level == BM_ERROR)
        snprintf(out, room, "bmuf: %s\n", words);
    else
        snprintf(out, room, "%s %s r%d %s\n", when, name, setup.rank, words);
}

static void print(bm_level level, const char *words)
{
    static const struct {
        const char *name, *colour; /* bold red, bold yellow */
    } levels[] = {{"error", "\033[1;31m"},
                  {"warning", "\033[1;33m"},
                  {"note", NULL},
                  {"detail", NULL}};
    char name[32], line[WORDS + 128], safe[WORDS];

    if (!bm_log_shows(level))
        return;
    words = bm_printable_lines(words, safe, sizeof safe);
    if (setup.style.colour && levels[level].colour != NULL)
        snprintf(name, sizeof name, "%s%s\033[m", levels[level].colour,
                 levels[level].name);
    else
        snprintf(name, sizeof name, "%s", levels[level].name);
    if (setup.style.terminal)
        format_for_terminal(level, name, words, line, sizeof line);
    else
        format_for_file(level, name, words, line, sizeof line);
    fflush(stdout); /* both may go to one file, which keeps the order */
    bm_log_make_room();
    fputs(line, stderr);
    bm_log_end_room();
}

void bm_log(bm_level level, const char *format, ...)
{
    char words[WORDS];
    va_list args;

    if (level > BM_WARNING && setup.rank != 0)
        return;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    print(level, words);
    if (level == BM_WARNING)
        bm_journal_write(setup.journal, "warning",
                         (bm_field[]){{"message", 0, words}, {0}});
}

void bm_log_journal(bm_journal *j)
{
    setup.journal = j;
}

struct bm_journal {
    int fd;
    const char *path;
    pthread_mutex_t lock; /* of what follows, and of the end of the file */
    double lost;          /* lines since the last one that was written */
    bool cut;             /* the file may end within a line */
    void (*take)(void *self, const char *event, const bm_field *fields);
    void *self; /* of take, borrowed */
};

/* Did a killed job leave an incomplete line? */
static bool ends_within_a_line(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    char last = '\n';

    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

bm_status bm_journal_open(bm_journal **out, const char *path)
{
    size_t room = strlen(path) + 1;
    bm_journal *j = malloc(sizeof *j + room);
    struct stat info;
    bm_status status = BM_OK;

    if (j == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a journal");
    j->path = memcpy(j + 1, path, room);
    pthread_mutex_init(&j->lock, NULL);
    j->lost = 0;
    j->cut = false;
    bm_journal_watch(j, NULL, NULL);
    j->fd =
        open(path, O_RDWR | O_CREAT | O_APPEND | O_NONBLOCK | O_CLOEXEC, 0666);
    if (j->fd < 0)
        status = BM_FAIL(BM_ERR_CREATE, "%s: %s", path, strerror(errno));
    else if (fstat(j->fd, &info) != 0 || !S_ISREG(info.st_mode))
        status = BM_FAIL(BM_ERR_CREATE, "%s is not a regular file", path);
    if (status != BM_OK) {
        bm_journal_close(j);
        return status;
    }
    j->cut = true; /* perhaps, by a killed job */
    *out = j;
    return BM_OK;
}

/* Appends a whole line, or nothing. Returns 0 or an errno. */
static int append(bm_journal *j, const char *line, size_t n)
{
    off_t end = lseek(j->fd, 0, SEEK_END);
    const char *from = line;
    int error = 0;

    while (n > 0 && error == 0) {
        ssize_t k = write(j->fd, from, n);
        if (k > 0) {
            from += k;
            n -= (size_t)k;
        } else if (k == 0 || errno != EINTR) {
            error = k == 0 ? ENOSPC : errno;
        }
    }
    if (error != 0 && from != line && ftruncate(j->fd, end) != 0)
        j->cut = true;
    return error;
}

static json_t *text_of(const char *text)
{
    json_t *value = json_string(text);
    char escaped[4096];

    return value != NULL
               ? value /* else it is not UTF-8 */
               : json_string(bm_printable(text, escaped, sizeof escaped));
}

static json_t *value_of(const bm_field *f)
{
    if (f->text != NULL)
        return text_of(f->text);
    if (!isfinite(f->number))
        return json_null();
    if (f->number == floor(f->number) && fabs(f->number) < 0x1p53)
        return json_integer((json_int_t)f->number);
    return json_real(f->number);
}

/* Appends an event. Returns 0 or an errno. */
static int write_event(bm_journal *j, const char *event, const bm_field *fields)
{
    json_t *row = NULL;
    char *line = NULL, when[40];
    size_t n = 0;
    int error = ENOMEM;

    write_time(when, sizeof when);
    row = json_pack("{s:s, s:s}", "event", event, "time", when);
    for (const bm_field *f = fields; row != NULL && f->key != NULL; f++)
        json_object_set_new(row, f->key, value_of(f));
    line = json_dumps(row, JSON_COMPACT | JSON_REAL_PRECISION(9));
    n = line != NULL ? strlen(line) : 0;
    if (n > 0) {
        line[n++] = '\n'; /* replaces the '\0': one write for the line */
        error = append(j, line, n);
    }
    free(line);
    json_decref(row);
    return error;
}

/* After lines were lost: ends a half line, and says how many there were.
 * Returns 0 or an errno. */
static int catch_up(bm_journal *j)
{
    bm_field lost[] = {{"lines", j->lost, NULL}, {0}};
    int error = 0;

    if (j->cut && ends_within_a_line(j->fd))
        error = append(j, "\n", 1);
    if (error == 0) {
        j->cut = false;
        if (j->lost > 0)
            error = write_event(j, "lost", lost);
    }
    if (error == 0)
        j->lost = 0;
    return error;
}

void bm_journal_write(bm_journal *j, const char *event, const bm_field *fields)
{
    char words[4096];
    void (*take)(void *self, const char *event, const bm_field *fields) = NULL;
    void *self = NULL;
    bool first = false;
    int error = 0;

    if (j == NULL || !bm_fence_stands())
        return;
    pthread_mutex_lock(&j->lock);
    error = catch_up(j);
    if (error == 0)
        error = write_event(j, event, fields);
    first = error != 0 && j->lost == 0;
    j->lost += error != 0;
    take = j->take;
    self = j->self;
    pthread_mutex_unlock(&j->lock);
    if (first) {
        snprintf(words, sizeof words,
                 "%s: cannot write the journal, lines are lost: %s", j->path,
                 strerror(error));
        print(BM_WARNING, words);
    }
    if (take != NULL)
        take(self, event, fields);
}

void bm_journal_watch(bm_journal *j,
                      void (*take)(void *self, const char *event,
                                   const bm_field *fields),
                      void *self)
{
    if (j == NULL)
        return;
    pthread_mutex_lock(&j->lock);
    j->take = take;
    j->self = self;
    pthread_mutex_unlock(&j->lock);
}

void bm_journal_close(bm_journal *j)
{
    if (j == NULL)
        return;
    (void)catch_up(j); /* the failure was logged before */
    pthread_mutex_destroy(&j->lock);
    if (j->fd >= 0)
        close(j->fd);
    free(j);
}

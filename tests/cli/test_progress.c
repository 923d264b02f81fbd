/*
 * The progress line: on a terminal it is redrawn in place, never wrapped,
 * erased at the end, and messages stay above it; elsewhere there is a line per
 * block. Colours. And the final table.
 */
#define _GNU_SOURCE /* posix_openpt, ptsname */
#include "cli/progress.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EPOCHS = 3, BLOCKS = 3 }; /* of tiny.ini */

/* The final contents of a terminal of unlimited width. */
typedef struct screen {
    char lines[100][600];
    size_t n, column;
} screen;

static void put(screen *s, char c)
{
    char *line = s->lines[s->n];

    assert_true(s->column + 1 < sizeof s->lines[0]);
    line[s->column++] = c;
}

static screen *show(const char *text)
{
    screen *s = calloc(1, sizeof *s);

    assert_non_null(s);
    for (; *text != '\0'; text++) {
        if (*text == '\r') {
            s->column = 0;
        } else if (*text == '\n') {
            s->column = 0;
            assert_true(++s->n < sizeof s->lines / sizeof s->lines[0]);
        } else if (strncmp(text, "\033[", 2) == 0) {
            text += strcspn(text, "m"); /* a colour */
        } else {
            assert_true(*text >= ' ' && *text <= '~'); /* no other control */
            put(s, *text);
        }
    }
    return s;
}

/* The number of lines that match. */
static int lines_with(const screen *s, const char *words)
{
    int n = 0;

    for (size_t i = 0; i <= s->n; i++)
        n += strstr(s->lines[i], words) != NULL;
    return n;
}

static outcome train_at(int columns, const char *term, const char *out,
                        const char *ranks)
{
    const char *words[] = {"train", "tiny.ini", "--out", out,
                           "-n",    ranks,      "--set", "sgd.momentum=0.9",
                           NULL};
    outcome o = command_run(
        &(command){.words = words, .columns = columns, .term = term});

    assert_code(o, 0);
    return o;
}

enum { MOST_LINES = 200, WIDEST = 300 }; /* a busy machine draws one a second */

/* All lines drawn, without colours and trailing blanks, each ended by '\0'. */
typedef struct lines {
    char line[MOST_LINES][WIDEST];
    size_t n;
} lines;

static lines drawn_in(const char *text)
{
    static lines all;

    all.n = 0;
    for (const char *at = text; (at = strstr(at, "\repoch ")) != NULL;) {
        char *line = all.line[all.n];
        size_t n = 0;

        assert_true(all.n++ < MOST_LINES);
        for (at++; *at != '\r' && *at != '\n' && *at != '\0'; at++)
            if (*at == '\033')
                at += strcspn(at, "m");
            else if (n + 1 < sizeof all.line[0])
                line[n++] = *at;
        while (n > 0 && line[n - 1] == ' ')
            n--;
        line[n] = '\0';
        if (strstr(line, ": dev loss ") != NULL) /* a message */
            all.n--;
    }
    return all;
}

/* Redraws in place from the start on, at least twice, and never in the last
 * column, where a terminal would wrap. */
static void assert_redrawn(const char *text, size_t columns)
{
    lines all = drawn_in(text);

    assert_true(all.n > 2);
    assert_true(strncmp(all.line[0], "epoch 1/3   0%", 14) == 0);
    for (size_t i = 0; i < all.n; i++)
        assert_true(strlen(all.line[i]) < columns);
}

static void assert_messages_survive(const char *text)
{
    screen *s = show(text);

    for (int epoch = 1; epoch <= EPOCHS; epoch++) {
        char words[60];

        snprintf(words, sizeof words, "epoch %d/%d: dev loss ", epoch, EPOCHS);
        assert_int_equal(lines_with(s, words), 1);
        snprintf(words, sizeof words, "epoch %d/%d  ", epoch, EPOCHS);
        assert_int_equal(lines_with(s, words), 0); /* the line is erased */
    }
    assert_int_equal(lines_with(s, "warning: sgd.momentum = 0.9"), 1);
    assert_int_equal(lines_with(s, "2.linear "), 1);
    assert_int_equal(lines_with(s, "digest    "), 1);
    free(s);
}

static void assert_draws_at(int columns, const char *ranks)
{
    char out[20];
    outcome o;

    snprintf(out, sizeof out, "drawn-%d-%s", columns, ranks);
    o = train_at(columns, NULL, out, ranks);
    assert_redrawn(o.out, (size_t)columns);
    assert_messages_survive(o.out);
}

static void test_one_line_is_redrawn_in_place(void **_)
{
    (void)_;
    assert_draws_at(20, "1");
    assert_draws_at(80, "1");
    assert_draws_at(200, "1");
}

/* The ranks write to a pipe of the supervisor. */
static void test_ranks_use_the_terminal_of_the_supervisor(void **_)
{
    (void)_;
    assert_draws_at(20, "2");
    assert_draws_at(200, "2");
}

/* ---- colours ------------------------------------------------------------ */

static const char *colour_option(const char *when)
{
    static char text[32];

    snprintf(text, sizeof text, "--color=%s", when);
    return text;
}

static outcome train_in_colour(const char *when, int columns, const char *out)
{
    const char *words[] = {"train",
                           "tiny.ini",
                           "--out",
                           out,
                           "--set",
                           "sgd.momentum=0.9",
                           colour_option(when),
                           NULL};
    outcome o = command_run(&(command){.words = words, .columns = columns});

    assert_code(o, 0);
    return o;
}

static void test_a_terminal_has_colours(void **_)
{
    outcome o = train_in_colour("auto", 80, "coloured");

    (void)_;
    assert_says(o.out, "\033[1;33mwarning\033[m: sgd.momentum");
    assert_says(o.out, "%|\033[32m###");
}

static void test_no_color_gives_no_escape_byte(void **_)
{
    outcome o;

    (void)_;
    setenv("NO_COLOR", "1", 1);
    o = train_in_colour("auto", 80, "colourless");
    assert_null(strchr(o.out, '\033'));
    assert_says(o.out, "%|###");
    o = train_in_colour("always", 80, "forced");
    assert_says(o.out, "\033[32m###");
    setenv("NO_COLOR", "", 1);
    o = train_in_colour("auto", 80, "empty");
    assert_says(o.out, "\033[32m###");
    unsetenv("NO_COLOR");
    o = train_in_colour("never", 80, "never");
    assert_null(strchr(o.out, '\033'));
    o = train_in_colour("always", 0, "file");
    assert_says(o.err, "Z \033[1;33mwarning\033[m r0 sgd.momentum");
    assert_null(strchr(o.err, '\r'));
}

/* ---- more and fewer messages -------------------------------------------- */

static outcome train_with(const char *option, int columns, const char *out)
{
    const char *words[] = {
        "train", "tiny.ini", "--out", out, "--set", "sgd.momentum=0.9",
        "-n",    "2",        option,  NULL};
    outcome o = command_run(&(command){.words = words, .columns = columns});

    assert_code(o, 0);
    return o;
}

static void test_quiet_leaves_warnings_and_results(void **_)
{
    outcome o = train_with("-q", 0, "quiet");
    outcome t = train_with("--quiet", 80, "quiet-terminal");

    (void)_;
    assert_int_equal(count_of(o.err, "\n"), count_of(o.err, " warning r0 "));
    assert_says(o.err, " warning r0 sgd.momentum");
    assert_says(o.out, "digest    ");
    assert_null(strstr(t.out, "epoch 1/"));
    assert_says(t.out, "digest    ");
}

static void test_verbose_prints_the_mpirun_command(void **_)
{
    outcome o = train_with("-v", 0, "verbose");
    outcome n = train_with("--color=auto", 0, "normal");
    json_t *start = last_event("normal", "start");

    (void)_;
    assert_says(o.err, " detail r0 starting: mpirun -np 2 ");
    assert_null(strstr(n.err, "mpirun"));
    assert_true(strncmp(text(start, "command"), "mpirun -np 2 ", 13) == 0);
    json_decref(start);
}

static bool matches(const char *line, const char *pattern)
{
    regex_t compiled;
    bool yes = false;

    assert_int_equal(regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB), 0);
    yes = regexec(&compiled, line, 0, NULL, 0) == 0;
    regfree(&compiled);
    return yes;
}

/* "1:02:03" or "2:03" in seconds; -1: "?". */
static double seconds_of(const char *at)
{
    long h = 0, m = 0, s = 0;

    if (*at == '?')
        return -1;
    if (sscanf(at, "%ld:%2ld:%2ld", &h, &m, &s) == 3)
        return (double)(3600 * h + 60 * m + s);
    assert_int_equal(sscanf(at, "%ld:%2ld", &m, &s), 2);
    return (double)(60 * m + s);
}

/* The two times of a line, "passed<left". */
static double left_in(const char *line)
{
    return seconds_of(strchr(line, '<') + 1);
}

static double passed_in(const char *line)
{
    return seconds_of(strrchr(line, '|') + 2);
}

static void test_a_wide_terminal_has_the_whole_line(void **_)
{
    outcome o = train_at(200, NULL, "wide", "1");
    lines all = drawn_in(o.out);
    const char *last = all.line[all.n - 1];

    (void)_;
    for (size_t i = 0; i < all.n; i++) {
        bool first = matches(all.line[i], /* the first block is being trained */
                             "^epoch 1/3   0%[|] {24}[|] 0:[0-5][0-9]<[?]$");

        if (i == 0)
            assert_true(first);
        if (!first &&
            !matches(all.line[i],
                     "^epoch [123]/3 +[0-9]+%[|]#+ *[|] "
                     "[0-9]+:[0-5][0-9]<[0-9]+:[0-5][0-9]  "
                     "loss [0-9.]+  error [0-9.]+%  [0-9.]+[kM]? frames/s  "
                     "(dev [0-9.]+%  )?block [123]/3  exchange [0-9]+%  "
                     "2 workers$"))
            fail_msg("drawn: %s", all.line[i]);
        assert_int_equal(strrchr(all.line[i], '|') - strchr(all.line[i], '|'),
                         25);
        assert_true(passed_in(all.line[i]) >= 0);
    }
    assert_true(
        strncmp(last, "epoch 3/3 100%|########################| ", 41) == 0);
    assert_non_null(strstr(last, " frames/s  dev "));
    assert_true(left_in(last) == 0);
}

/* ---- other verbs -------------------------------------------------------- */

/* "\r21/21 sequences 100%|####|" is drawn, at the end nothing is left of it. */
static void assert_counts(const char *const *words, const char *last)
{
    outcome o = command_run(&(command){.words = words, .columns = 80});
    screen *s = NULL;

    assert_code(o, 0);
    assert_says(o.out, last);
    s = show(o.out);
    for (size_t i = 0; i <= s->n; i++)
        assert_null(strstr(s->lines[i], "%|"));
    free(s);
    o = command_run(&(command){.words = words});
    assert_code(o, 0);
    assert_null(strchr(o.err, '\r'));
    assert_null(strchr(o.out, '\r'));
}

static void test_pack_check_and_eval_count(void **_)
{
    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "counted"), 0);
    assert_counts((const char *const[]){"pack", "--audio", "train.jsonl",
                                        "--out", "packed", "--force",
                                        "--color=never", NULL},
                  "\r42/42 sequences 100%|########################| 0:0");
    assert_counts(
        (const char *const[]){"check", "train", "--color=never", NULL},
        "\r1/1 MB 100%|########################| 0:0");
    assert_counts((const char *const[]){"eval", "counted/model.safetensors",
                                        "test", "--color=never", NULL},
                  "\r21/21 sequences 100%|########################| 0:0");
}

/* ---- in this process, on a terminal of its own --------------------------- */

/* What bm_clock reads, in seconds, so that no assertion depends on the load of the
 * machine; 0: the machine's clock. */
static _Atomic double fixed;

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    double seconds = fixed;

    if (seconds <= 0)
        return __real_clock_gettime(clock, out);
    out->tv_sec = (time_t)seconds;
    out->tv_nsec = (long)((seconds - floor(seconds)) * 1e9);
    return 0;
}

typedef struct tty {
    int control, kept; /* kept: stderr before */
} tty;

static void set_columns(const tty *t, int columns)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)columns};

    assert_int_equal(ioctl(t->control, TIOCSWINSZ, &size), 0);
}

static tty tty_open(int columns)
{
    tty t = {.control = posix_openpt(O_RDWR | O_NOCTTY),
             .kept = dup(STDERR_FILENO)};
    int end = -1;

    assert_true(t.control >= 0 && t.kept >= 0);
    assert_int_equal(grantpt(t.control), 0);
    assert_int_equal(unlockpt(t.control), 0);
    end = open(ptsname(t.control), O_RDWR | O_NOCTTY);
    assert_true(end >= 0);
    set_columns(&t, columns);
    setenv("TERM", "xterm", 1);
    fflush(stderr);
    dup2(end, STDERR_FILENO);
    close(end);
    return t;
}

/* What was written since the last call. */
static const char *tty_text(const tty *t)
{
    static char text[10000];
    struct pollfd ready = {.fd = t->control, .events = POLLIN};
    size_t n = 0;
    ssize_t got = 1;

    while (got > 0 && n + 1 < sizeof text && poll(&ready, 1, 100) > 0) {
        got = read(t->control, text + n, sizeof text - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    text[n] = '\0';
    return text;
}

/* The last line drawn, by a thread that may have to wait for a processor. */
static void assert_drawn(const tty *t, const char *expected)
{
    char last[WIDEST] = "";

    for (int tries = 0; tries < 300 && strcmp(last, expected) != 0; tries++) {
        lines all = drawn_in(tty_text(t));

        if (all.n > 0)
            snprintf(last, sizeof last, "%s", all.line[all.n - 1]);
    }
    assert_string_equal(last, expected);
}

static void tty_close(const tty *t)
{
    dup2(t->kept, STDERR_FILENO);
    close(t->kept);
    close(t->control);
}

static void test_the_line_follows_the_width(void **_)
{
    tty t = tty_open(80);
    lines all;

    (void)_;
    fixed = 1000;
    assert_true(bm_progress_open(true));
    bm_progress_show(&(bm_progress){.done = 0.5,
                                    .where = "epoch 1/2",
                                    .fields = "one two  three four  five"});
    all = drawn_in(tty_text(&t));
    assert_int_equal(all.n, 1);
    assert_string_equal(all.line[0], "epoch 1/2  50%|############            |"
                                     " 0:00<?  one two  three four  five");
    set_columns(&t, 40);
    assert_drawn(&t, "epoch 1/2  50% 0:00<?  one two");
    bm_progress_close();
    fixed = 0;
    tty_close(&t);
}

static void test_the_line_is_drawn_each_second(void **_)
{
    tty t = tty_open(80);

    (void)_;
    fixed = 1000;
    assert_true(bm_progress_open(true));
    bm_progress_show(
        &(bm_progress){.done = 0.1, .where = "epoch 1/2", .fields = ""});
    assert_drawn(&t, "epoch 1/2  10%|##                      | 0:00<?");
    fixed = 1061;
    assert_drawn(&t, "epoch 1/2  10%|##                      | 1:01<?");
    bm_progress_close();
    fixed = 0;
    tty_close(&t);
}

static void test_a_signal_erases_the_line(void **_)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

    (void)_;
    FOR_EACH (i, numbers) {
        tty t = tty_open(80);
        int state = 0;
        screen *s = NULL;
        pid_t child = fork();

        assert_true(child >= 0);
        if (child == 0) {
            signal(numbers[i], SIG_DFL);
            bm_progress_open(true);
            bm_progress_count("things", 1, 3);
            raise(numbers[i]);
            _exit(1);
        }
        assert_int_equal(waitpid(child, &state, 0), child);
        assert_true(WIFSIGNALED(state) && WTERMSIG(state) == numbers[i]);
        s = show(tty_text(&t));
        assert_int_equal(strspn(s->lines[0], " "), strlen(s->lines[0]));
        assert_true(strlen(s->lines[0]) > 40);
        assert_int_equal(s->column, 0);
        free(s);
        tty_close(&t);
    }
}

static void test_without_a_terminal_there_is_a_note_every_30_s(void **_)
{
    int file = open(in_folder("notes"), O_RDWR | O_CREAT | O_TRUNC, 0666);
    int kept = dup(STDERR_FILENO);
    size_t size = 0;
    char *text = NULL;

    (void)_;
    assert_true(file >= 0 && kept >= 0);
    dup2(file, STDERR_FILENO);
    fixed = 1000;
    assert_false(bm_progress_open(true));
    for (size_t i = 1; i <= 100; i++) { /* notes after 30, 60, 90 seconds */
        bm_progress_count("things", 10 * i, 1000);
        fixed = 1000 + (double)i;
    }
    bm_progress_close();
    bm_progress_count("things", 1000, 1000);
    fixed = 0;
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(file);
    text = slurp(in_folder("notes"), &size);
    assert_int_equal(count_of(text, "\n"), 3);
    assert_says(text, " note r0 310 of 1000 things (31 %), 10 per second, "
                      "1:07 left\n");
    assert_says(text, " 910 of 1000 things (91 %), 10 per second, 0:09 left\n");
    assert_null(strchr(text, '\r'));
    free(text);
}

/* ---- time left ---------------------------------------------------------- */

enum { LONG_MS = 150 }; /* between two calls of draw_long */

/* The lines that the bar draws after `done` of 1000 blocks. */
static lines draw_long(const int *done, size_t n)
{
    int file = open(in_folder("bar"), O_RDWR | O_CREAT | O_TRUNC, 0666);
    int kept = dup(STDERR_FILENO);
    char *text = NULL;
    size_t size = 0;
    lines all;

    assert_true(file >= 0 && kept >= 0);
    setenv("BMUF_TERMINAL", "stderr", 1);
    setenv("TERM", "xterm", 1);
    setenv("COLUMNS", "200", 1);
    dup2(file, STDERR_FILENO);
    fixed = 1000;
    bm_progress_open(true);
    for (size_t i = 0; i < n; i++) {
        fixed = 1000 + (double)(i + 1) * LONG_MS / 1e3;
        bm_progress_show(&(bm_progress){
            .done = done[i] / 1e3, .where = "epoch 1/2", .fields = "word"});
    }
    bm_progress_close();
    fixed = 0;
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(file);
    unsetenv("BMUF_TERMINAL");
    text = slurp(in_folder("bar"), &size);
    all = drawn_in(text);
    free(text);
    return all;
}

/* The rest at the mean speed, in which the last step has weight 0.3. */
static void test_time_left_follows_from_the_speed(void **_)
{
    static const int done[] = {1, 2, 3, 4, 8, 16, 48, 180, 501, 1000};
    enum { DRAWN = sizeof done / sizeof done[0] };
    const double half = 0.5 + 1e-6; /* times are rounded */
    double mean = 0;
    lines all = draw_long(done, DRAWN);

    (void)_;
    assert_int_equal(all.n, DRAWN);
    assert_true(left_in(all.line[0]) < 0);
    for (size_t i = 1; i < DRAWN; i++) {
        double speed = (done[i] - done[i - 1]) / (LONG_MS / 1e3);
        double expected = 0;

        mean = i > 1 ? 0.7 * mean + 0.3 * speed : speed;
        expected = (1000 - done[i]) / mean;
        if (fabs(left_in(all.line[i]) - expected) > half)
            fail_msg("%g s left: %s", expected, all.line[i]);
        assert_true(fabs(passed_in(all.line[i]) -
                         (double)(i + 1) * LONG_MS / 1e3) <= half);
    }
    assert_true(left_in(all.line[9]) == 0);
    assert_non_null(strstr(all.line[7], "epoch 1/2  18%|####   "));
    assert_non_null(strstr(all.line[8], "epoch 1/2  50%|############   "));
}

static void assert_plain(const char *text, const char *before)
{
    assert_null(strchr(text, '\033'));
    assert_null(strchr(text, '\b'));
    for (int epoch = 1; epoch <= EPOCHS; epoch++)
        for (int block = 1; block <= BLOCKS; block++) {
            char words[60];

            snprintf(words, sizeof words, "%sepoch %d/%d block %d/%d loss ",
                     before, epoch, EPOCHS, block, BLOCKS);
            assert_int_equal(count_of(text, words), 1);
        }
}

static void test_without_a_terminal_each_block_is_a_line(void **_)
{
    static const char *const ranks[] = {"1", "2"};

    (void)_;
    FOR_EACH (i, ranks) {
        char out[20];
        outcome o;

        snprintf(out, sizeof out, "plain-%zu", i);
        o = train_at(0, NULL, out, ranks[i]);
        assert_plain(o.err, "Z note r0 ");
        assert_null(strchr(o.err, '\r'));
        assert_null(strchr(o.out, '\033'));
        assert_null(strchr(o.out, '\r'));
    }
}

static void test_a_dumb_terminal_has_no_bar(void **_)
{
    outcome o = train_at(80, "dumb", "dumb", "1");

    (void)_;
    assert_plain(o.out, "\n");
    assert_null(strstr(o.out, "note r0"));
    assert_int_equal(count_of(o.out, "\r"), count_of(o.out, "\r\n"));
}

/* ---- the end ------------------------------------------------------------ */

/* The line of the table that begins with `words`. */
static const char *row_of(const char *table, const char *name)
{
    static char line[200];
    const char *at = strstr(table, name);

    assert_non_null(at);
    assert_true(at == table || at[-1] == '\n');
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    return line;
}

static void test_the_final_table_agrees_with_the_journal(void **_)
{
    outcome o = BMUF("train", "tiny.ini", "--out", "table", "--set",
                     "data.test=test", "--set", "train.epochs=4");
    json_t *all = journal("table"), *row = NULL, *end = NULL;
    double last = -1, best = INFINITY, test = -1;
    char expected[200];
    size_t i = 0;

    (void)_;
    assert_code(o, 0);
    json_array_foreach(all, i, row)
    {
        if (strcmp(text(row, "event"), "eval") != 0)
            continue;
        if (strcmp(text(row, "data"), "test") == 0) {
            test = number(row, "ler");
            continue;
        }
        last = number(row, "ler");
        best = fmin(best, last);
    }
    end = last_event("table", "end");
    snprintf(expected, sizeof expected, "seconds   %.1f (%.0f frames/s)",
             number(end, "seconds"),
             number(end, "frames") / number(end, "seconds"));
    assert_string_equal(row_of(o.out, "seconds "), expected);
    snprintf(expected, sizeof expected, "dev LER   %.2f %%, best %.2f %%",
             100 * last, 100 * best);
    assert_string_equal(row_of(o.out, "dev LER "), expected);
    snprintf(expected, sizeof expected, "test LER  %.2f %%", 100 * test);
    assert_string_equal(row_of(o.out, "test LER "), expected);
    assert_string_equal(row_of(o.out, "epochs "), "epochs    4");
    assert_string_equal(row_of(o.out, "evaluate "),
                        "evaluate  bmuf eval table test");
    o = BMUF("train", "tiny.ini", "--out", "it's two", "--set",
             "train.epochs=1");
    assert_code(o, 0);
    assert_string_equal(row_of(o.out, "evaluate "),
                        "evaluate  bmuf eval 'it'\\''s two' DATA");
    json_decref(end);
    json_decref(all);
}

/* The texts have spaces, so there are words. Compared with bmuf eval, which
 * test_eval tests. */
static void test_the_journal_has_word_error_rates(void **_)
{
    json_t *eval = NULL, *result = NULL;
    outcome o;

    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "worded"), 0);
    eval = last_event("worded", "eval");
    o = BMUF("eval", "worded/model.safetensors", "test", "--json");
    assert_code(o, 0);
    result = json_loads(o.out, 0, NULL);
    assert_non_null(result);
    assert_true(number(result, "words") > 21); /* recordings */
    assert_true(near(number(eval, "wer"),
                     number(result, "word_errors") / number(result, "words"),
                     1e-8));
    json_decref(eval);
    json_decref(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line_is_redrawn_in_place),
        cmocka_unit_test(test_ranks_use_the_terminal_of_the_supervisor),
        cmocka_unit_test(test_a_terminal_has_colours),
        cmocka_unit_test(test_no_color_gives_no_escape_byte),
        cmocka_unit_test(test_quiet_leaves_warnings_and_results),
        cmocka_unit_test(test_verbose_prints_the_mpirun_command),
        cmocka_unit_test(test_a_wide_terminal_has_the_whole_line),
        cmocka_unit_test(test_pack_check_and_eval_count),
        cmocka_unit_test(test_the_line_follows_the_width),
        cmocka_unit_test(test_the_line_is_drawn_each_second),
        cmocka_unit_test(test_a_signal_erases_the_line),
        cmocka_unit_test(test_without_a_terminal_there_is_a_note_every_30_s),
        cmocka_unit_test(test_time_left_follows_from_the_speed),
        cmocka_unit_test(test_without_a_terminal_each_block_is_a_line),
        cmocka_unit_test(test_a_dumb_terminal_has_no_bar),
        cmocka_unit_test(test_the_final_table_agrees_with_the_journal),
        cmocka_unit_test(test_the_journal_has_word_error_rates),
    };
    return cmocka_run_group_tests_name("progress", tests, make_corpus,
                                       folder_remove);
}

#define _DEFAULT_SOURCE /* strsep */
#include "tests/support/program.h"

#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 64, STARTED = 1024 };
static const double patience = 60;

static pid_t started[STARTED]; /* 0: it has ended */
static size_t n_started;

static const char configuration[] = "[data]\n"
                                    "train = train\n"
                                    "dev = dev\n"
                                    "[model]\n"
                                    "net = blstm:12 dropout:0.2 linear\n"
                                    "[train]\n"
                                    "epochs = 2\n"
                                    "rate = 0.02\n"
                                    "checkpoint_every = 2\n"
                                    "[job]\n"
                                    "workers = 4\n"
                                    "[batch]\n"
                                    "sequences = 2\n"
                                    "[sgd]\n"
                                    "clip = 5\n"
                                    "[schedule]\n"
                                    "kind = newbob\n"
                                    "[block]\n"
                                    "frames_total = 600\n";

double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void pause_for(double seconds)
{
    struct timespec t = {(time_t)seconds,
                         (long)(1e9 * (seconds - (double)(time_t)seconds))};

    nanosleep(&t, NULL);
}

bool short_tests(void)
{
    return getenv("BMUF_TEST_SHORT") != NULL;
}

/* ---- one program -------------------------------------------------------- */

static int open_for_writing(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
}

/* In the child: dies with the test, even if that is killed. */
static void end_with(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

static void become_program(const program *p, const char *const *words)
{
    const char *line[WORDS + 2] = {BMUF_PROGRAM};
    int out = open_for_writing(p->out), err = open_for_writing(p->err);

    for (size_t i = 0; words[i] != NULL && i < WORDS; i++)
        line[i + 1] = words[i];
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0); /* Open MPI's */
    setenv("TMPDIR", in_folder(""), 1);
    if (chdir(in_folder("")) != 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(1);
    execv(BMUF_PROGRAM, (char *const *)line);
    _exit(127);
}

/* The launcher process: writes the program's pid to `to`. */
static void become_launcher(const program *p, const char *const *words, int to)
{
    pid_t rank = 0;

    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
    rank = fork();
    if (rank == 0)
        become_program(p, words);
    if (rank > 0 && write(to, &rank, sizeof rank) == sizeof rank)
        waitpid(rank, NULL, 0);
    _exit(0);
}

static void prepare(program *p)
{
    char name[32];

    assert_true(n_started + 2 <= STARTED);
    snprintf(name, sizeof name, "said-%zu.out", n_started);
    snprintf(p->out, sizeof p->out, "%s", in_folder(name));
    snprintf(name, sizeof name, "said-%zu.err", n_started);
    snprintf(p->err, sizeof p->err, "%s", in_folder(name));
    p->code = -1;
}

void program_start(program *p, const char *const *words)
{
    pid_t parent = getpid();

    prepare(p);
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        end_with(parent);
        become_program(p, words);
    }
    started[n_started++] = p->pid;
}

void program_launch(program *p, program *launcher, const char *const *words)
{
    pid_t parent = getpid();
    int ends[2];

    prepare(p);
    *launcher = *p;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(pipe(ends), 0);
    launcher->pid = fork();
    assert_true(launcher->pid >= 0);
    if (launcher->pid == 0) {
        end_with(parent);
        become_launcher(p, words, ends[1]);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &p->pid, sizeof p->pid), sizeof p->pid);
    close(ends[0]);
    started[n_started++] = launcher->pid;
    started[n_started++] = p->pid;
}

static void forget(pid_t pid)
{
    for (size_t i = 0; i < n_started; i++)
        if (started[i] == pid)
            started[i] = 0;
}

bool program_runs(program *p)
{
    int state = 0;

    if (p->code >= 0)
        return false;
    if (waitpid(p->pid, &state, WNOHANG) == 0)
        return true;
    forget(p->pid);
    p->code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    return false;
}

void show_end(const char *path)
{
    enum { LAST = 24 };
    static char lines[LAST][400];
    FILE *file = fopen(path, "r");
    size_t n = 0;

    while (file != NULL && fgets(lines[n % LAST], sizeof lines[0], file))
        n++;
    for (size_t i = n < LAST ? 0 : n - LAST; i < n; i++)
        print_message("    | %s", lines[i % LAST]);
    if (file != NULL)
        fclose(file);
}

void program_wait(program *p)
{
    double since = now();

    while (program_runs(p)) {
        if (now() - since > patience) {
            show_end(p->err);
            fail_msg("the program runs for more than %g s", patience);
        }
        pause_for(0.002);
    }
}

int programs_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_started; i++)
        if (started[i] != 0) {
            kill(started[i], SIGKILL);
            waitpid(started[i], NULL, 0);
            started[i] = 0;
        }
    return 0;
}

/* ---- bmuf train --------------------------------------------------------- */

void train_start(program *p, const char *run, int ranks, const char *settings)
{
    const char *words[WORDS] = {"train", "base.ini", "--verbose", "--out", run};
    char list[1024], count[16], *rest = NULL;
    size_t n = 5;

    if (access(in_folder("base.ini"), F_OK) != 0)
        write_text("base.ini", configuration);
    snprintf(list, sizeof list, "%s", settings);
    snprintf(count, sizeof count, "%d", ranks);
    if (ranks > 1) {
        words[n++] = "-n";
        words[n++] = count;
    }
    for (char *s = strtok_r(list, ";", &rest); s != NULL;
         s = strtok_r(NULL, ";", &rest)) {
        s += strspn(s, " ");
        assert_true(n + 2 < WORDS);
        words[n++] = strncmp(s, "--", 2) != 0 ? "--set" : strsep(&s, " ");
        words[n++] = s;
    }
    program_start(p, words);
}

void train(program *p, const char *run, int ranks, const char *settings)
{
    train_start(p, run, ranks, settings);
    program_wait(p);
}

/* ---- assertions --------------------------------------------------------- */

void assert_ended(program *p, int code)
{
    program_wait(p);
    if (p->code == code)
        return;
    show_end(p->out);
    show_end(p->err);
    fail_msg("the program ended with %d, not %d", p->code, code);
}

static int count(const char *path, const char *words)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    int n = 0;

    if (file == NULL) /* not created yet */
        return 0;
    while (getline(&line, &room, file) >= 0)
        n += strstr(line, words) != NULL;
    free(line);
    fclose(file);
    return n;
}

int times_said(const program *p, const char *words)
{
    return count(p->err, words);
}

bool said_comes(program *p, const char *words)
{
    while (times_said(p, words) == 0 && program_runs(p))
        pause_for(0.001);
    return times_said(p, words) > 0;
}

void assert_said(const program *p, const char *words)
{
    if (times_said(p, words) > 0)
        return;
    show_end(p->err);
    fail_msg("'%s' is not on stderr", words);
}

void assert_not_said(const program *p, const char *words)
{
    if (times_said(p, words) == 0)
        return;
    show_end(p->err);
    fail_msg("'%s' is on stderr", words);
}

void assert_printed(const program *p, const char *words)
{
    if (count(p->out, words) > 0)
        return;
    show_end(p->out);
    fail_msg("'%s' is not on stdout", words);
}

/* ---- processes ---------------------------------------------------------- */

/* The parent of a running process; 0: it is not running. */
static pid_t parent_of(pid_t pid)
{
    char path[64], line[512] = "", state = 'X';
    const char *end = NULL;
    FILE *file = NULL;
    long parent = 0;

    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fgets(line, sizeof line, file) != NULL)
        end = strrchr(line, ')'); /* names may hold anything */
    fclose(file);
    if (end == NULL || sscanf(end + 1, " %c %ld", &state, &parent) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : (pid_t)parent;
}

static bool descends(pid_t pid, pid_t from)
{
    for (int depth = 0; pid > 1 && depth < 16; depth++) {
        pid = parent_of(pid);
        if (pid == from)
            return true;
    }
    return false;
}

size_t family(const program *p, pid_t out[FAMILY])
{
    DIR *processes = opendir("/proc");
    const struct dirent *row = NULL;
    size_t n = 0;

    assert_non_null(processes);
    while ((row = readdir(processes)) != NULL) {
        pid_t pid = (pid_t)strtol(row->d_name, NULL, 10);
        if (pid > 0 && n < FAMILY && descends(pid, p->pid))
            out[n++] = pid;
    }
    closedir(processes);
    return n;
}

int rank_of(pid_t pid)
{
    static const char key[] = "OMPI_COMM_WORLD_RANK=";
    char path[64], *word = NULL;
    size_t room = 0;
    FILE *file = NULL;
    int rank = -1;

    snprintf(path, sizeof path, "/proc/%ld/environ", (long)pid);
    file = fopen(path, "r");
    if (file == NULL)
        return -1;
    while (rank < 0 && getdelim(&word, &room, '\0', file) > 0)
        if (strncmp(word, key, sizeof key - 1) == 0)
            rank = (int)strtol(word + sizeof key - 1, NULL, 10);
    free(word);
    fclose(file);
    return rank;
}

bool is_gone(pid_t pid)
{
    return parent_of(pid) == 0;
}

void assert_gone(const pid_t *pids, size_t n)
{
    double since = now();

    for (size_t i = 0; i < n; i++)
        while (!is_gone(pids[i])) {
            if (now() - since > 10)
                fail_msg("process %ld (rank %d) still runs after 10 s",
                         (long)pids[i], rank_of(pids[i]));
            pause_for(0.01);
        }
}

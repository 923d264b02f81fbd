#define _GNU_SOURCE /* pipe2 */
#include "cli/hosts/remote.h"

#include "core/clock.h"
#include "core/text/shell_word.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    AT_ONCE = 64,   /* processes */
    MOST_WORDS = 64 /* of ssh's command line */
};

/* ---- this host ---------------------------------------------------------- */

/* A socket can be bound to addresses of this host only. */
static bool can_bind(const struct addrinfo *a)
{
    int s = socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool bound = s >= 0 && bind(s, a->ai_addr, a->ai_addrlen) == 0;

    if (s >= 0)
        close(s);
    return bound;
}

bool bm_remote_is_here(const char *host)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *list = NULL;
    char own[256] = "";
    bool here = false;

    if (gethostname(own, sizeof own - 1) == 0 && strcmp(host, own) == 0)
        return true;
    if (strchr(host, '@') != NULL || getaddrinfo(host, NULL, &hints, &list))
        return false;
    for (const struct addrinfo *a = list; a != NULL && !here; a = a->ai_next)
        here = can_bind(a);
    freeaddrinfo(list);
    return here;
}

/* ---- ssh ---------------------------------------------------------------- */

static const char *agent(void)
{
    const char *given = getenv("OMPI_MCA_plm_rsh_agent");

    return given != NULL && given[0] != '\0' ? given : "ssh";
}

/* Is the agent, the first of "ssh : rsh", an ssh? */
static bool is_ssh(void)
{
    const char *name = agent();
    size_t n = strcspn(name, " :");

    for (size_t i = n; i-- > 0;)
        if (name[i] == '/') {
            name += i + 1;
            n -= i + 1;
            break;
        }
    return n == 3 && strncmp(name, "ssh", n) == 0;
}

const char *bm_remote_arguments(void)
{
    static char text[4096];
    const char *given = getenv("OMPI_MCA_plm_rsh_args");

    if (given == NULL)
        given = "";
    if (!is_ssh())
        return given;
    snprintf(text, sizeof text,
             "%s%s-o BatchMode=yes -o ConnectTimeout=10 -o "
             "ServerAliveInterval=5 -o ServerAliveCountMax=3",
             given, given[0] != '\0' ? " " : "");
    return text;
}

bool bm_program_path(char *out, size_t room)
{
    ssize_t n = readlink("/proc/self/exe", out, room - 1);

    out[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* Cuts a text at blanks, and at ':' too; adds its words to words [*n]. */
static void cut(char *text, char **words, int *n)
{
    char *rest = NULL;

    for (char *w = strtok_r(text, " \t", &rest);
         w != NULL && strcmp(w, ":") != 0 && *n < MOST_WORDS;
         w = strtok_r(NULL, " \t", &rest))
        words[(*n)++] = w;
}

void bm_remote_quote(const char *word, FILE *out)
{
    fputc('\'', out);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

void bm_remote_word(const char *word, FILE *out)
{
    if (bm_shell_is_plain(word))
        fputs(word, out);
    else
        bm_remote_quote(word, out);
}

/* In the child; does not return. */
static void run(const char *host, const char *command)
{
    char first[4096], arguments[4096], *words[MOST_WORDS + 3];
    int n = 0;

    if (bm_remote_is_here(host)) {
        execlp("sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    snprintf(first, sizeof first, "%s", agent());
    snprintf(arguments, sizeof arguments, "%s", bm_remote_arguments());
    cut(first, words, &n);
    cut(arguments, words, &n);
    words[n++] = (char *)host;
    words[n++] = (char *)command;
    words[n] = NULL;
    execvp(words[0], words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    fflush(stderr);
    _exit(127);
}

/* ---- many processes ----------------------------------------------------- */

typedef struct process {
    bm_remote *remote; /* NULL: none */
    pid_t pid;
    int fds[2];      /* what it prints on stdout and stderr; -1: at its end */
    size_t sizes[2]; /* of what was kept */
} process;

/* In the child: stdin is empty; in a group of its own, to end all of it. */
static void become(const bm_remote *r, const char *command, int out, int err)
{
    int null = open("/dev/null", O_RDONLY);

    setpgid(0, 0);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
        dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        _exit(127);
    run(r->host, command);
}

static bm_status start(process *p, bm_remote *r, const char *command)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1};

    *p = (process){.pid = -1, .fds = {-1, -1}};
    r->code = -1;
    r->out = calloc(BM_REMOTE_TEXT, 1);
    r->err = calloc(BM_REMOTE_TEXT, 1);
    fflush(NULL);
    if (r->out != NULL && r->err != NULL && pipe2(out, O_CLOEXEC) == 0 &&
        pipe2(err, O_CLOEXEC) == 0)
        p->pid = fork();
    if (p->pid == 0)
        become(r, command, out[1], err[1]);
    if (out[1] >= 0)
        close(out[1]);
    if (err[1] >= 0)
        close(err[1]);
    p->fds[0] = out[0];
    p->fds[1] = err[0];
    if (p->pid < 0) {
        for (int i = 0; i < 2; i++)
            if (p->fds[i] >= 0)
                close(p->fds[i]);
        return BM_FAIL(BM_ERR_MEMORY, "%s: cannot start a process: %s", r->host,
                       strerror(errno));
    }
    p->remote = r;
    return BM_OK;
}

static void take(process *p, int k)
{
    char *text = k == 0 ? p->remote->out : p->remote->err, rest[4096];
    size_t room = BM_REMOTE_TEXT - 1 - p->sizes[k];
    ssize_t n = room > 0 ? read(p->fds[k], text + p->sizes[k], room)
                         : read(p->fds[k], rest, sizeof rest);

    if (n > 0 && room > 0)
        p->sizes[k] += (size_t)n;
    if (n == 0 || (n < 0 && errno != EINTR)) {
        close(p->fds[k]);
        p->fds[k] = -1;
    }
}

/* Reads what is left, without waiting: a process that ssh leaves behind may hold
 * the pipes open. Then forgets the process, which has ended. */
static void finish(process *p, int code)
{
    for (int k = 0; k < 2; k++) {
        struct pollfd ready = {.fd = p->fds[k], .events = POLLIN};

        while (p->fds[k] >= 0 && poll(&ready, 1, 0) > 0)
            take(p, k);
        if (p->fds[k] >= 0)
            close(p->fds[k]);
    }
    p->remote->code = code;
    p->remote = NULL;
}

/* Ends the process if its time is over. */
static void end(process *p, bool over)
{
    int state = 0;

    if (over)
        kill(-p->pid, SIGKILL);
    if (waitpid(p->pid, &state, over ? 0 : WNOHANG) != p->pid)
        return;
    if (over)
        finish(p, -1);
    else
        finish(p,
               WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state));
}

/* Reads for a moment what processes print; ends those that are done. */
static void serve(process *list, double until)
{
    struct pollfd polled[2 * AT_ONCE];

    for (int i = 0; i < 2 * AT_ONCE; i++)
        polled[i] = (struct pollfd){
            list[i / 2].remote != NULL ? list[i / 2].fds[i % 2] : -1, POLLIN,
            0};
    poll(polled, 2 * AT_ONCE, 20);
    for (int i = 0; i < 2 * AT_ONCE; i++)
        if (polled[i].fd >= 0 && polled[i].revents != 0)
            take(&list[i / 2], i % 2);
    for (int i = 0; i < AT_ONCE; i++)
        if (list[i].remote != NULL)
            end(&list[i], bm_clock() >= until);
}

static int busy(const process *list)
{
    int n = 0;

    for (int i = 0; i < AT_ONCE; i++)
        n += list[i].remote != NULL;
    return n;
}

static process *free_place(process *list)
{
    int i = 0;

    while (list[i].remote != NULL)
        i++;
    return &list[i];
}

bm_status bm_remote_run(bm_remote *list, size_t n, const char *command,
                        double seconds)
{
    static process processes[AT_ONCE];
    size_t turns = 1 + n / AT_ONCE;
    double until = bm_clock() + seconds * (double)turns;
    bm_status status = BM_OK;

    memset(processes, 0, sizeof processes);
    for (size_t i = 0; i < n; i++) {
        list[i].code = -1;
        list[i].out = list[i].err = NULL;
    }
    for (size_t i = 0; i < n && status == BM_OK; i++) {
        while (busy(processes) == AT_ONCE)
            serve(processes, until);
        status = start(free_place(processes), &list[i], command);
    }
    while (busy(processes) > 0)
        serve(processes, status == BM_OK ? until : 0);
    return status;
}

void bm_remote_free(bm_remote *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(list[i].out);
        free(list[i].err);
        list[i].out = list[i].err = NULL;
    }
}

#include "cli/hosts/reach.h"

#include "cli/help/version.h"
#include "cli/hosts/remote.h"
#include "core/log.h"

#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_S = 20, KEEP_S = 5, REMOVE_S = 5, MOST_LINES = 12 };

/* ---- the question ------------------------------------------------------- */

/* A file with an unpredictable name in `folder`, or in its nearest parent that
 * exists: a host that sees it sees the same folder. "": none could be made,
 * which is reported later by who needs the folder. */
static void make_mark(const char *folder, char *out, size_t room)
{
    char path[PATH_MAX], *parent = path;
    int file = -1;

    snprintf(path, sizeof path, "%s", folder);
    while (access(parent, F_OK) != 0 && strcmp(parent, ".") != 0 &&
           strcmp(parent, "/") != 0)
        parent = dirname(parent);
    snprintf(out, room, "%s/.bmuf-seen-XXXXXX", parent);
    file = mkstemp(out);
    if (file >= 0)
        close(file);
    else
        out[0] = '\0';
}

/* mpirun's daemon, where mpirun will look for it. */
static const char daemon_name[] = "orted";

/* What a host is asked, in the words of a shell. It answers "no WHAT", or with
 * `bmuf version --json`. */
static char *question(const char *here, const char *mark, const char *program)
{
    char *inner = NULL, *outer = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&inner, &size);

    if (memory == NULL)
        return NULL;
    fputs("cd ", memory);
    bm_remote_quote(here, memory);
    fputs(" 2>/dev/null || { echo no folder; exit; }; ", memory);
    if (mark[0] != '\0') {
        fputs("[ -e ", memory);
        bm_remote_quote(mark, memory);
        fputs(" ] || { echo no mark; exit; }; ", memory);
    }
    fputs("[ -x ", memory);
    bm_remote_quote(program, memory);
    fprintf(memory,
            " ] || { echo no program; exit; }; command -v %s >/dev/null || "
            "{ echo no daemon; exit; }; exec ",
            daemon_name);
    bm_remote_quote(program, memory);
    fputs(" version --json", memory);
    if (fclose(memory) != 0) {
        free(inner);
        return NULL;
    }
    memory = open_memstream(&outer, &size);
    if (memory != NULL) { /* the shell of the user may be another one */
        fputs("exec sh -c ", memory);
        bm_remote_quote(inner, memory);
        if (fclose(memory) != 0) {
            free(outer);
            outer = NULL;
        }
    }
    free(inner);
    return outer;
}

/* ---- the answer --------------------------------------------------------- */

typedef struct check {
    const char *here, *folder, *program;
    json_t *own;    /* what this host answers */
    int seconds;    /* for an answer */
    bm_hosts *lost; /* takes hosts that cannot take part; NULL: none may */
    char lines[2400];
    size_t bad;
} check;

/* Adds a line for a host that cannot take part. */
__attribute__((format(printf, 3, 4))) static void
blame(check *c, const char *host, const char *format, ...)
{
    char text[600];
    size_t n = strlen(c->lines);
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (c->bad++ < MOST_LINES)
        snprintf(c->lines + n, sizeof c->lines - n, "%s%s: %s",
                 n > 0 ? "\n  " : "", host, text);
}

/* The last line of a text, without its end; it may change the text. */
static const char *last_line(char *text)
{
    size_t n = strlen(text);

    while (n > 0 && strchr("\r\n ", text[n - 1]) != NULL)
        text[--n] = '\0';
    while (n > 0 && text[n - 1] != '\n')
        n--;
    return text + n;
}

static bool has(const char *text, const char *words)
{
    return strstr(text, words) != NULL;
}

/* ssh itself failed. */
static void blame_ssh(check *c, const bm_remote *r)
{
    if (has(r->err, "ould not resolve"))
        blame(c, r->host,
              "no host of this name is known; look for a mistake in the name, "
              "or add it to DNS or /etc/hosts");
    else if (has(r->err, "Host key verification failed"))
        blame(c, r->host,
              "ssh does not trust the key of this host; run ssh %s once by "
              "hand",
              r->host);
    else if (has(r->err, "Permission denied"))
        blame(c, r->host,
              "ssh asks for a password; allow your key with ssh-copy-id %s, "
              "see docs/jobs/cluster.md",
              r->host);
    else
        blame(c, r->host,
              "ssh fails (%.200s); is the host on, and does sshd run there?",
              last_line(r->err));
}

/* The program did not get as far as its version. */
static void blame_script(check *c, const bm_remote *r)
{
    if (has(r->out, "no folder"))
        blame(c, r->host,
              "it has no folder %s, where this command runs; start it in a "
              "folder that all hosts share",
              c->here);
    else if (has(r->out, "no mark"))
        blame(c, r->host,
              "it does not see the run's folder %s; put the run on a file "
              "system that all hosts share",
              c->folder);
    else if (has(r->out, "no program"))
        blame(c, r->host,
              "it has no program %s; install it there, or on a file system "
              "that all hosts share",
              c->program);
    else if (has(r->out, "no daemon"))
        blame(c, r->host,
              "it has no %s in the PATH of ssh; install Open MPI there, or "
              "set PATH in ~/.bashrc",
              daemon_name);
    else
        blame(c, r->host, "%s version fails with exit code %d: %.200s",
              c->program, r->code, last_line(r->err));
}

static const char *fact(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text != NULL ? text : "unknown";
}

/* Compares what a host answers with this host. False: it cannot take part. */
static void compare(check *c, bm_host *host, const json_t *theirs)
{
    static const char *const computing[] = {"blas", "onednn", "loops"};
    static const char *const needed[] = {"version", "mpi"};
    long cores = (long)json_integer_value(json_object_get(theirs, "cores"));

    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        const char *ours = fact(c->own, needed[i]);

        if (strcmp(fact(theirs, needed[i]), ours) == 0)
            continue;
        blame(c, host->name,
              "its %s is %.100s, and here it is %.100s; install "
              "the same",
              i == 0 ? "bmuf" : "MPI", fact(theirs, needed[i]), ours);
        return;
    }
    for (size_t i = 0; i < sizeof computing / sizeof computing[0]; i++)
        if (strcmp(fact(theirs, computing[i]), fact(c->own, computing[i])) != 0)
            bm_log(BM_WARNING,
                   "%s computes with %s %.100s, this host with %.100s: results "
                   "depend on which host a worker is on",
                   host->name, computing[i], fact(theirs, computing[i]),
                   fact(c->own, computing[i]));
    if (host->slots == 0)
        host->slots = cores >= 1 && cores <= 4096 ? cores : 1;
    if (host->most == 0)
        host->most = host->slots;
    if (host->slots > host->most)
        host->slots = host->most;
}

static void read_answer(check *c, bm_host *host, const bm_remote *r)
{
    /* A login script may have printed something before. */
    const char *start = strchr(r->out, '{');
    json_t *theirs = NULL;

    if (r->code < 0) {
        blame(c, r->host,
              "no answer within %d s; try ssh %s true, and see "
              "docs/jobs/cluster.md",
              c->seconds, r->host);
        return;
    }
    if (r->code == 255) {
        blame_ssh(c, r);
        return;
    }
    if (start != NULL && r->code == 0)
        theirs = json_loads(start, JSON_REJECT_DUPLICATES, NULL);
    if (theirs != NULL)
        compare(c, host, theirs);
    else
        blame_script(c, r);
    json_decref(theirs);
}

/* Moves a host to those that are lost; h->list[*n], the next that is kept. */
static bm_status sort(check *c, bm_hosts *h, size_t i, bool bad, size_t *n)
{
    const bm_host *host = &h->list[i];

    if (bad && c->lost != NULL) {
        bm_log(BM_WARNING, "continuing without %s", c->lines);
        c->lines[0] = '\0';
        c->bad = 0;
        return bm_hosts_add(c->lost, host->name, strlen(host->name),
                            host->slots, host->most);
    }
    h->list[(*n)++] = *host;
    return BM_OK;
}

static bm_status ask(check *c, bm_hosts *h, const char *command)
{
    size_t asked = h->n, n = 0;
    bm_remote *list = calloc(h->n, sizeof *list);
    bm_status status = BM_OK;

    if (list == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu hosts", h->n);
    for (size_t i = 0; i < h->n; i++)
        list[i].host = h->list[i].name;
    status = bm_remote_run(list, asked, command, c->seconds);
    for (size_t i = 0; i < asked && status == BM_OK; i++) {
        size_t bad = c->bad;

        read_answer(c, &h->list[i], &list[i]);
        status = sort(c, h, i, c->bad > bad, &n);
    }
    bm_remote_free(list, asked);
    free(list);
    if (status == BM_OK && c->lost != NULL) {
        h->n = n;
        return n > 0 ? BM_OK
                     : BM_FAIL(BM_ERR_COMM, "no host is left of %zu", asked);
    }
    if (status == BM_OK && c->bad == 1)
        return BM_FAIL(BM_ERR_COMM, "host %s", c->lines);
    if (status == BM_OK && c->bad > 1)
        return BM_FAIL(BM_ERR_COMM, "%zu of %zu hosts cannot take part:\n  %s",
                       c->bad, h->n, c->lines);
    return status;
}

static bm_status reach(bm_hosts *h, bm_hosts *lost, const char *folder)
{
    char mark[PATH_MAX + 32], here[PATH_MAX], program[PATH_MAX];
    char *command = NULL;
    check *c = calloc(1, sizeof *c);
    bm_status status = BM_OK;

    if (c == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to ask hosts");
    make_mark(folder, mark, sizeof mark);
    if (getcwd(here, sizeof here) == NULL ||
        !bm_program_path(program, sizeof program))
        BM_FAIL_DONE(BM_ERR_IO, "the current folder: %s", strerror(errno));
    c->own = bm_version_json();
    command = question(here, mark, program);
    c->here = here;
    c->folder = folder;
    c->program = program;
    c->lost = lost;
    c->seconds = lost != NULL ? KEEP_S : ANSWER_S;
    status = c->own != NULL && command != NULL
                 ? ask(c, h, command)
                 : BM_FAIL(BM_ERR_MEMORY, "no memory to ask hosts");
done:
    if (mark[0] != '\0')
        unlink(mark);
    json_decref(c->own);
    free(command);
    free(c);
    return status;
}

bm_status bm_reach_check(bm_hosts *h, const char *folder)
{
    return reach(h, NULL, folder);
}

bm_status bm_reach_keep(bm_hosts *h, bm_hosts *lost, const char *folder)
{
    return reach(h, lost, folder);
}

void bm_reach_remove(const bm_hosts *h, const char *folder)
{
    bm_remote *list = calloc(h->n + 1, sizeof *list);
    char *command = NULL;
    size_t size = 0, n = 0;
    FILE *memory = open_memstream(&command, &size);

    if (memory != NULL) {
        fputs("exec rm -rf ", memory);
        bm_remote_quote(folder, memory);
        if (fclose(memory) != 0) { /* it may lack the end of the folder */
            free(command);
            command = NULL;
        }
    }
    for (size_t i = 0; list != NULL && i < h->n; i++)
        if (!bm_remote_is_here(h->list[i].name))
            list[n++].host = h->list[i].name;
    if (list != NULL && command != NULL && n > 0 &&
        bm_remote_run(list, n, command, REMOVE_S) != BM_OK)
        bm_log(BM_DETAIL, "%s may be left on other hosts", folder);
    if (list != NULL)
        bm_remote_free(list, n);
    free(list);
    free(command);
}

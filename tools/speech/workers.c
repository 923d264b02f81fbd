#include "tools/speech/workers.h"

#include "cli/progress.h"
#include "tools/speech/shard_maker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 10000 };

/* What a process reports: seconds that it made, or how it ended. */
typedef struct report {
    bool ended;
    double seconds;
    bm_status status;
    bm_shard_place place; /* of the shard after its own */
    char message[1024];
} report;

/* A process that works on a shard. */
typedef struct worker {
    pid_t pid; /* 0: none */
    int fd;    /* the parent's end */
    bm_speech_set set;
    int64_t shard;
    bool placed; /* its place was sent */
} worker;

typedef struct pool {
    const bm_corpus *c;
    bm_shard_place *places;            /* of the next shard to be written */
    int64_t started[BM_SPEECH_N_SETS]; /* shards that were given to a process */
    worker *workers;                   /* [n] */
    struct pollfd *polled;             /* [n] */
    size_t n;
    double made, total; /* seconds */
} pool;

/* ---- in the process of a shard ------------------------------------------- */

/* All or nothing; false: the other side has ended. */
static bool transfer(int fd, void *data, size_t size, bool out)
{
    char *at = data;

    while (size > 0) {
        ssize_t n =
            out ? send(fd, at, size, MSG_NOSIGNAL) : recv(fd, at, size, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static bm_status parent_has_ended(void)
{
    return BM_FAIL(BM_STOPPED, "bmuf_speech has ended");
}

static bm_status send_progress(void *self, double seconds)
{
    report r = {.seconds = seconds};

    return transfer(*(const int *)self, &r, sizeof r, true)
               ? BM_OK
               : parent_has_ended();
}

static bm_status make_shard(const bm_corpus *c, bm_speech_set set, size_t shard,
                            int fd, bm_shard_place *place)
{
    bm_shard_maker *m = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_shard_make(&m, c, set, shard, send_progress, &fd));
    status = transfer(fd, place, sizeof *place, false)
                 ? bm_shard_maker_write(m, place)
                 : parent_has_ended();
    bm_shard_maker_free(m);
    return status;
}

static void run_worker(const bm_corpus *c, bm_speech_set set, size_t shard,
                       int fd)
{
    report r = {.ended = true};

    r.status = make_shard(c, set, shard, fd, &r.place);
    if (r.status != BM_OK)
        snprintf(r.message, sizeof r.message, "%.1000s", bm_last_message());
    _exit(transfer(fd, &r, sizeof r, true) ? 0 : 1);
}

/* ---- in the parent ------------------------------------------------------- */

/* The next shard that no process has; false: there is none. */
static bool find_shard(const pool *p, bm_speech_set *set)
{
    for (*set = 0; *set < BM_SPEECH_N_SETS; ++*set)
        if (p->started[*set] < (int64_t)p->c->shards[*set])
            return true;
    return false;
}

static bm_status start(pool *p, worker *w, bm_speech_set set)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        return BM_FAIL(BM_ERR_IO, "cannot talk to another process: %s",
                       strerror(errno));
    *w = (worker){.fd = fds[0], .set = set, .shard = p->started[set]};
    fflush(NULL);
    w->pid = fork();
    if (w->pid == 0) {
        for (size_t i = 0; i < p->n; i++) /* only the parent may hold them */
            if (p->workers[i].fd >= 0)
                close(p->workers[i].fd);
        run_worker(p->c, set, (size_t)w->shard, fds[1]);
    }
    close(fds[1]);
    if (w->pid < 0) {
        close(fds[0]);
        *w = (worker){.fd = -1};
        return BM_FAIL(BM_ERR_MEMORY,
                       "cannot start a process: %s; take fewer "
                       "--jobs",
                       strerror(errno));
    }
    p->started[set]++;
    return BM_OK;
}

/* Sends its place to the process whose shard is the next to be written. If it
 * has died, its end tells why. */
static void send_place(const pool *p, worker *w)
{
    bm_shard_place place = p->places[w->set];

    if (w->pid > 0 && !w->placed && w->shard == place.index) {
        w->placed = true;
        (void)transfer(w->fd, &place, sizeof place, true);
    }
}

/* The process has ended without a report. */
static bm_status explain_death(worker *w, const char *set)
{
    int how = 0;

    while (waitpid(w->pid, &how, 0) < 0 && errno == EINTR)
        ;
    w->pid = 0;
    if (WIFSIGNALED(how))
        return BM_FAIL(WTERMSIG(how) == SIGKILL ? BM_ERR_MEMORY : BM_ERR_IO,
                       "the process of %s, shard %lld, was killed by signal "
                       "%d%s; run the same command again to go on",
                       set, (long long)w->shard, WTERMSIG(how),
                       WTERMSIG(how) == SIGKILL ? ", perhaps for lack of memory"
                                                : "");
    return BM_FAIL(BM_ERR_IO, "the process of %s, shard %lld, has ended", set,
                   (long long)w->shard);
}

static void end(worker *w)
{
    if (w->fd >= 0)
        close(w->fd);
    while (w->pid > 0 && waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *w = (worker){.fd = -1};
}

static bm_status listen_to(pool *p, worker *w)
{
    report r;

    if (!transfer(w->fd, &r, sizeof r, false))
        return explain_death(w, bm_speech_set_name(w->set));
    if (!r.ended) {
        p->made += r.seconds;
        bm_progress_count("seconds of speech", (size_t)p->made,
                          (size_t)p->total);
        return BM_OK;
    }
    if (r.status != BM_OK)
        return BM_FAIL(r.status, "%s", r.message);
    p->places[w->set] = r.place;
    end(w);
    return BM_OK;
}

static bm_status step(pool *p)
{
    bm_speech_set set;

    for (size_t i = 0; i < p->n; i++) {
        if (p->workers[i].pid == 0 && find_shard(p, &set))
            BM_TRY(start(p, &p->workers[i], set));
        send_place(p, &p->workers[i]);
        p->polled[i] = (struct pollfd){p->workers[i].fd, POLLIN, 0};
    }
    if (poll(p->polled, p->n, POLL_MS) < 0 && errno != EINTR)
        return BM_FAIL(BM_ERR_IO, "cannot wait for a process: %s",
                       strerror(errno));
    for (size_t i = 0; i < p->n; i++)
        if (p->polled[i].fd >= 0 && p->polled[i].revents != 0)
            BM_TRY(listen_to(p, &p->workers[i]));
    return BM_OK;
}

static bool is_done(const pool *p)
{
    for (int set = 0; set < BM_SPEECH_N_SETS; set++)
        if (p->places[set].index < (int64_t)p->c->shards[set])
            return false;
    return true;
}

static bm_status run(pool *p)
{
    bm_status status = BM_OK;

    p->workers = calloc(p->n, sizeof *p->workers);
    p->polled = calloc(p->n, sizeof *p->polled);
    if (p->workers == NULL || p->polled == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu processes", p->n);
    for (size_t i = 0; i < p->n; i++)
        p->workers[i].fd = -1;
    for (int set = 0; set < BM_SPEECH_N_SETS; set++) {
        double part =
            (double)(p->c->shards[set] - (size_t)p->places[set].index) /
            (double)p->c->shards[set];

        p->started[set] = p->places[set].index;
        p->total += 3600 * p->c->hours[set] * part;
    }
    bm_progress_open(true);
    while (status == BM_OK && !is_done(p))
        status = step(p);
    bm_progress_close();
    for (size_t i = 0; i < p->n; i++) /* without its parent a process ends */
        end(&p->workers[i]);
    return status;
}

bm_status bm_workers_run(const bm_corpus *c,
                         bm_shard_place places[BM_SPEECH_N_SETS])
{
    pool p = {.c = c, .places = places, .n = (size_t)c->s.jobs};
    bm_status status = run(&p);

    free(p.workers);
    free(p.polled);
    return status;
}

#define _GNU_SOURCE /* F_OFD_SETLK */
#include "cli/launch/watch/heartbeat.h"

#include "core/trace/span.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEEPEST = 16, LINE = 200, SHARED_EVERY = 8 };

/* ---- in a rank ----------------------------------------------------------- */

static struct {
    char path[1100]; /* "": none */
    int file;
    bool shared;          /* on another host than the supervisor */
    pthread_mutex_t lock; /* of the file's line */
    long beats, calls;
    char host[64];
} own = {.file = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic(const char *) phase = "start";
static _Atomic(const char *) ground = "start"; /* outside of all spans */
static atomic_long progress;

static _Thread_local bool computing; /* this thread's spans are the phases */
static _Thread_local int depth;
static _Thread_local const char *open_spans[DEEPEST];

static void set_phase(const char *name)
{
    atomic_store_explicit(&phase, name, memory_order_relaxed);
}

static void span_begins(const char *name)
{
    atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    if (!computing)
        return;
    if (depth < DEEPEST)
        open_spans[depth] = name;
    depth++;
    set_phase(name);
}

static void span_ends(const char *name, double began, double ended)
{
    (void)name;
    (void)began;
    (void)ended;
    atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    if (!computing || depth == 0)
        return;
    depth--;
    if (depth == 0)
        set_phase(atomic_load(&ground));
    else if (depth <= DEEPEST)
        set_phase(open_spans[depth - 1]);
}

static const bm_span_watcher watcher = {span_begins, span_ends};

/* False if another process holds the lock. The lock lasts until the descriptor
 * is closed. On a file system without locks there is none. */
static bool lock(int file)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(file, F_OFD_SETLK, &whole) == 0 ||
           (errno != EAGAIN && errno != EACCES);
}

/* mpirun makes a folder of this name on other hosts, too, but the supervisor's
 * lock is in its own. */
static bool is_of_the_supervisor(const char *folder)
{
    char path[1100];

    snprintf(path, sizeof path, "%s/supervisor", folder);
    return access(path, F_OK) == 0;
}

static int open_own(const char *folder, const char *rank)
{
    snprintf(own.path, sizeof own.path, "%s/rank-%s", folder, rank);
    return open(own.path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
}

void bm_heartbeat_begin(void)
{
    const char *folder = getenv(BM_HEARTBEAT_FOLDER);
    const char *shared = getenv(BM_HEARTBEAT_SHARED);
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (folder == NULL || rank == NULL)
        return;
    own.shared = !is_of_the_supervisor(folder);
    if (!own.shared)
        own.file = open_own(folder, rank);
    else if (shared != NULL && shared[0] != '\0') {
        (void)mkdir(shared, 0777);
        own.file = open_own(shared, rank);
    }
    if (own.file >= 0 && !own.shared && !lock(own.file)) {
        close(own.file);
        own.file = -1;
    }
    if (own.file < 0) {
        own.path[0] = '\0';
        return;
    }
    (void)gethostname(own.host, sizeof own.host - 1);
    computing = true;
    bm_span_watch(&watcher);
}

bool bm_heartbeat_is_read(void)
{
    return getenv(BM_HEARTBEAT_FOLDER) != NULL;
}

static double cpu_seconds(void)
{
    struct rusage r = {0};

    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void write_line(void)
{
    char line[LINE + 1];
    int n = snprintf(line, sizeof line, "%ld %ld %.2f %s %ld %s", ++own.beats,
                     atomic_load(&progress), cpu_seconds(), atomic_load(&phase),
                     (long)getpid(), own.host);
    if (n <= 0 || n >= LINE)
        return;
    memset(line + n, ' ', (size_t)(LINE - n)); /* over a longer line */
    line[LINE - 1] = '\n';
    n = (int)pwrite(own.file, line, LINE, 0); /* the next one may succeed */
    (void)n;
}

void bm_heartbeat_beat(void)
{
    pthread_mutex_lock(&own.lock);
    if (own.file >= 0 && (!own.shared || own.calls++ % SHARED_EVERY == 0))
        write_line();
    pthread_mutex_unlock(&own.lock);
}

/* Written at once: a rank that stops right after the start has started. */
void bm_heartbeat_phase(const char *name)
{
    pthread_mutex_lock(&own.lock);
    atomic_fetch_add(&progress, 1);
    atomic_store(&ground, name);
    if (depth == 0)
        set_phase(name);
    if (own.file >= 0)
        write_line();
    pthread_mutex_unlock(&own.lock);
}

void bm_heartbeat_end(void)
{
    if (own.path[0] != '\0')
        unlink(own.path);
}

/* ---- in the supervisor --------------------------------------------------- */

/* Whether nobody holds the lock. Does not take it, as the rank may be about to. */
static bool is_free(int file)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(file, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_UNLCK;
}

static void read_line(int file, bm_heartbeat *h)
{
    char line[LINE + 1] = "";
    bm_heartbeat new = *h;

    if (pread(file, line, LINE, 0) == LINE &&
        sscanf(line, "%ld %ld %lf %15s %ld %63s", &new.beats, &new.progress,
               &new.cpu_s, new.phase, &new.pid, new.host) == 6)
        *h = new;
}

void bm_heartbeat_read(const char *folder, const char *shared, int rank,
                       bm_heartbeat *out)
{
    char path[1100], ours[sizeof out->host] = "";
    int file = -1;

    *out = (bm_heartbeat){.here = true, .phase = "start", .host = "?"};
    snprintf(path, sizeof path, "%s/rank-%d", folder, rank);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file >= 0) {
        out->state = is_free(file) ? BM_HEARTBEAT_DEAD : BM_HEARTBEAT_ALIVE;
    } else if (shared[0] != '\0') {
        snprintf(path, sizeof path, "%s/rank-%d", shared, rank);
        file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0)
            return;
        out->state = BM_HEARTBEAT_ALIVE;
    }
    if (file < 0)
        return;
    read_line(file, out);
    close(file);
    (void)gethostname(ours, sizeof ours - 1);
    out->here = out->beats == 0 || strcmp(ours, out->host) == 0;
}

#include "core/trace/trace.h"

#include "core/file/file.h"
#include "core/grow.h"
#include "core/trace/span.h"

#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRACKS = 16, NO_BLOCK = -1 };

typedef struct event {
    const char *name;
    double began, ended; /* by the clock of this process */
    int64_t block;
} event;

/* The spans of a thread, and of later threads of the same name. */
typedef struct track {
    pthread_mutex_t lock; /* of what follows */
    event *events;
    size_t n, room;

    const char *thread; /* guarded by trace.lock */
    bool in_use;        /* guarded by trace.lock */
    bool named;         /* its name is in the file */
} track;

static struct {
    pthread_mutex_t lock;
    pthread_key_t key; /* a thread's track */
    track tracks[TRACKS];
    int n_tracks;
    atomic_bool recording;
    atomic_size_t kept, lost;
    track *own; /* of the thread that opened the trace */

    bm_trace_about about;
    double zero; /* the clock of this process at ts 0 */
    int64_t block;
    char path[PATH_MAX];
    FILE *memory; /* the file's contents without `tail` */
    char *text;
    size_t size;
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char tail[] = "\n]}\n";

bool bm_trace_window_read(const char *text, bm_trace_window *out)
{
    static const char word[] = "blocks ";
    char *end = NULL;
    long long first = 0, last = 0;

    *out = (bm_trace_window){0, 0};
    if (*text == '\0')
        return true;
    if (strncmp(text, word, sizeof word - 1) != 0)
        return false;
    text += sizeof word - 1;
    if (text[strspn(text, " 0123456789:")] != '\0')
        return false;
    first = strtoll(text, &end, 10);
    if (end == text || *end != ':')
        return false;
    text = end + 1;
    last = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || first >= last || last == LLONG_MAX)
        return false;
    *out = (bm_trace_window){first, last};
    return true;
}

/* ---- threads that have spans -------------------------------------------- */

/* An unused track for a thread of this name; NULL: all are in use. */
static track *acquire_track(const char *thread)
{
    track *found = NULL;

    pthread_mutex_lock(&trace.lock);
    for (int i = 0; i < trace.n_tracks && found == NULL; i++)
        if (!trace.tracks[i].in_use &&
            strcmp(trace.tracks[i].thread, thread) == 0)
            found = &trace.tracks[i];
    if (found == NULL && trace.n_tracks < TRACKS) {
        found = &trace.tracks[trace.n_tracks++];
        pthread_mutex_init(&found->lock, NULL);
        found->thread = thread;
    }
    if (found != NULL)
        found->in_use = true;
    pthread_mutex_unlock(&trace.lock);
    return found;
}

static void release_track(void *self)
{
    pthread_mutex_lock(&trace.lock);
    ((track *)self)->in_use = false;
    pthread_mutex_unlock(&trace.lock);
}

static track *own_track(void)
{
    track *t = pthread_getspecific(trace.key);

    if (t == NULL) {
        t = acquire_track(bm_span_thread_name());
        if (pthread_setspecific(trace.key, t) != 0 && t != NULL) {
            release_track(t);
            t = NULL;
        }
    }
    return t;
}

static bool keep(track *t, const event *e)
{
    bool kept = false;

    pthread_mutex_lock(&t->lock);
    kept = bm_grow(&t->events, t->n, &t->room, sizeof *t->events) == BM_OK;
    if (kept)
        t->events[t->n++] = *e;
    pthread_mutex_unlock(&t->lock);
    return kept;
}

static void begin(const char *name)
{
    (void)name;
}

static void end(const char *name, double began, double ended)
{
    event e = {name, began, ended, NO_BLOCK};
    track *t = NULL;

    if (!atomic_load(&trace.recording) || began < trace.zero)
        return;
    t = own_track();
    if (t != NULL && t == trace.own)
        e.block = trace.block;
    if (t == NULL || atomic_fetch_add(&trace.kept, 1) >= BM_TRACE_MOST ||
        !keep(t, &e))
        atomic_fetch_add(&trace.lost, 1);
}

static const bm_span_watcher watcher = {begin, end};

void bm_trace_watch(void)
{
    static bool watched;

    if (!watched)
        BM_ASSERT(pthread_key_create(&trace.key, release_track) == 0);
    watched = true;
    bm_span_watch(&watcher);
}

/* ---- the file ----------------------------------------------------------- */

/* Rounded to integers, so that nested spans stay nested. */
static long long nanoseconds(double clock)
{
    return llround(1e9 * (clock - trace.zero));
}

static void put_microseconds(const char *key, long long ns)
{
    fprintf(trace.memory, ",\"%s\":%s%lld.%03lld", key, ns < 0 ? "-" : "",
            llabs(ns) / 1000, llabs(ns) % 1000);
}

static void put_event(const track *t, const event *e)
{
    long long from = nanoseconds(e->began), to = nanoseconds(e->ended);

    fprintf(trace.memory,
            ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":%d,"
            "\"tid\":%d",
            e->name, t->thread, trace.about.rank, 1 + (int)(t - trace.tracks));
    put_microseconds("ts", from);
    put_microseconds("dur", to - from);
    if (e->block != NO_BLOCK)
        fprintf(trace.memory, ",\"args\":{\"block\":%lld}",
                (long long)e->block);
    fputs("}", trace.memory);
}

static void put_name(track *t)
{
    if (!t->named)
        fprintf(trace.memory,
                ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,"
                "\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
                trace.about.rank, 1 + (int)(t - trace.tracks), t->thread);
    t->named = true;
}

/* Sorts a span before the spans that it contains. */
static int earlier(const void *a, const void *b)
{
    const event *x = a, *y = b;

    if (x->began != y->began)
        return x->began < y->began ? -1 : 1;
    return (x->ended < y->ended) - (x->ended > y->ended);
}

static void put_events(track *t)
{
    pthread_mutex_lock(&t->lock);
    if (t->n > 0) {
        put_name(t);
        qsort(t->events, t->n, sizeof *t->events, earlier);
    }
    for (size_t i = 0; i < t->n; i++)
        put_event(t, &t->events[i]);
    t->n = 0;
    pthread_mutex_unlock(&t->lock);
}

static int count_tracks(void)
{
    int n = 0;

    pthread_mutex_lock(&trace.lock);
    n = trace.n_tracks;
    pthread_mutex_unlock(&trace.lock);
    return n;
}

/* Replaces the file atomically. It need not survive a power cut. */
static bm_status write_file(void)
{
    bm_file_replacement r;
    bm_status status = BM_OK;

    for (int i = 0, n = count_tracks(); i < n; i++)
        put_events(&trace.tracks[i]);
    if (fflush(trace.memory) != 0)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the trace");
    BM_TRY(bm_file_replace_begin(&r, trace.path));
    BM_TRY_DONE(bm_file_replace_write(&r, trace.text, trace.size));
    BM_TRY_DONE(bm_file_replace_write(&r, tail, sizeof tail - 1));
    status = bm_file_replace_commit(&r, false);
done:
    bm_file_replace_abort(&r);
    return status;
}

static bm_status put_head(void)
{
    const bm_trace_about *a = &trace.about;
    char host[256] = "?", name[300];
    json_t *head = NULL, *process = NULL;

    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, "rank %d on %s", a->rank, host);
    head = json_pack("{s:i, s:i, s:s, s:i, s:I, s:I, s:f, s:f, s:f}", "rank",
                     a->rank, "ranks", a->ranks, "host", host, "attempt",
                     a->attempt, "first_block", (json_int_t)a->window.first,
                     "end_block", (json_int_t)a->window.end, "clock_offset_us",
                     1e6 * a->offset, "round_trip_us", 1e6 * a->round_trip,
                     "clock_origin_s", a->origin);
    process = json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name",
                        "process_name", "pid", a->rank, "tid", 0, "args",
                        "name", name);
    if (head != NULL && process != NULL) {
        fputs("{\"displayTimeUnit\":\"ms\",\"otherData\":", trace.memory);
        json_dumpf(head, trace.memory, JSON_COMPACT);
        fputs(",\"traceEvents\":[\n", trace.memory);
        json_dumpf(process, trace.memory, JSON_COMPACT);
    }
    json_decref(head);
    json_decref(process);
    return head != NULL && process != NULL
               ? BM_OK
               : BM_FAIL(BM_ERR_UNSUPPORTED,
                         "the name of this host is not UTF-8");
}

/* ---- from open to close ------------------------------------------------- */

static void discard(void)
{
    atomic_store(&trace.recording, false);
    if (trace.memory != NULL)
        fclose(trace.memory);
    free(trace.text);
    trace.memory = NULL;
    trace.text = NULL;
    for (int i = 0, n = count_tracks(); i < n; i++) {
        track *t = &trace.tracks[i];
        pthread_mutex_lock(&t->lock);
        free(t->events);
        t->events = NULL;
        t->n = t->room = 0;
        t->named = false;
        pthread_mutex_unlock(&t->lock);
    }
}

static bm_status start(void)
{
    trace.memory = open_memstream(&trace.text, &trace.size);
    trace.own = own_track();
    if (trace.memory == NULL || trace.own == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the trace");
    BM_TRY(put_head());
    return write_file();
}

bm_status bm_trace_open(const char *path, const bm_trace_about *about)
{
    bm_status status = BM_OK;

    BM_ASSERT(trace.memory == NULL);
    discard(); /* spans that ended after the last close */
    if (strlen(path) >= sizeof trace.path)
        return BM_FAIL(BM_ERR_CREATE, "%.60s...: the path is too long", path);
    snprintf(trace.path, sizeof trace.path, "%s", path);
    trace.about = *about;
    trace.zero = about->origin - about->offset;
    trace.block = about->window.first;
    atomic_store(&trace.kept, 0);
    atomic_store(&trace.lost, 0);
    status = start();
    if (status != BM_OK)
        discard();
    else
        atomic_store(&trace.recording, true);
    return status;
}

bm_status bm_trace_block(int64_t block)
{
    bm_status status = BM_OK;

    BM_ASSERT(trace.memory != NULL);
    status = write_file();
    trace.block = block;
    if (status != BM_OK)
        discard();
    return status;
}

bm_status bm_trace_close(void)
{
    bm_status status = BM_OK;

    if (trace.memory == NULL)
        return BM_OK;
    atomic_store(&trace.recording, false);
    status = write_file();
    discard();
    return status;
}

bool bm_trace_is_open(void)
{
    return trace.memory != NULL;
}

size_t bm_trace_lost(void)
{
    return atomic_load(&trace.lost);
}
